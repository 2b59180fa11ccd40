package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Model is m with a CLIENT span "chat MODEL" around each call, and else as m. Put it
// where calls go out, below whatever answers from a record. A nil Tracer or a nil m
// gives m itself.
func (t *Tracer) Model(m llm.Model) llm.Model {
	if t == nil || m == nil {
		return m
	}
	return &model{inner: m, tracer: t}
}

// model is a model whose calls are told.
type model struct {
	inner  llm.Model
	tracer *Tracer
}

// ID is the inner model's.
func (m *model) ID() string { return m.inner.ID() }

// Generate makes the call and tells of it.
func (m *model) Generate(ctx context.Context, c llm.Call) (reply llm.Reply, err error) {
	id := m.inner.ID()
	who, asked := provider(id)
	list := []attribute.KeyValue{
		keyOperation.String(opChat),
		keyProvider.String(who),
		keyRequestModel.String(asked),
		keyMaxTokens.Int(c.MaxTokens),
		keyOwnPrompt.String(name(c.Prompt)),
	}
	if c.Schema != nil {
		list = append(list, keyOutputType.String("json"))
	}
	if c.Attempt > 0 {
		list = append(list, keyOwnAttempt.Int(c.Attempt))
	}
	m.tracer.within(ctx, opChat+" "+asked, trace.SpanKindClient, list, func(ctx context.Context, span trace.Span) {
		reply, err = m.inner.Generate(ctx, c)
		tellReply(span, id, reply, err)
	})
	return reply, err
}

// tellReply tells what a call cost and how it ended.
func tellReply(span trace.Span, asked string, reply llm.Reply, err error) {
	if u := reply.Usage; u.Total() > 0 {
		span.SetAttributes(keyInputTokens.Int(u.In), keyOutputTokens.Int(u.Out))
		if u.CacheRead > 0 {
			span.SetAttributes(keyCacheRead.Int(u.CacheRead))
		}
		if u.CacheWrite > 0 {
			span.SetAttributes(keyCacheWrite.Int(u.CacheWrite))
		}
	}
	if err != nil {
		failed(span, string(marchwarden.CodeOf(err)))
		return
	}
	_, answered := provider(reply.By(asked))
	span.SetAttributes(keyResponseModel.String(answered), keyFinishReasons.StringSlice([]string{finishReason(reply.Stop)}))
	if reply.By(asked) != asked {
		span.SetAttributes(keyStoodIn.Bool(true))
	}
}

// finishReason is the conventions' word for the reason to stop.
func finishReason(s llm.Stop) string {
	switch s {
	case llm.StopEnd:
		return "stop"
	case llm.StopTools:
		return "tool_call"
	case llm.StopLength:
		return "length"
	case llm.StopRefusal:
		return "content_filter"
	}
	return "other"
}

// Research is r with an INTERNAL span "invoke_agent NAME" around each call, and else
// as r. A nil Tracer or a nil r gives r itself.
func (t *Tracer) Research(r marchwarden.Researcher, name string) marchwarden.Researcher {
	if t == nil || r == nil {
		return r
	}
	return &researcher{inner: r, name: name, tracer: t}
}

// researcher is a researcher whose calls are told.
type researcher struct {
	inner  marchwarden.Researcher
	name   string
	tracer *Tracer
}

// Research does the research and tells of it.
func (r *researcher) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (res *marchwarden.Result, err error) {
	agent := name(r.name)
	list := []attribute.KeyValue{
		keyOperation.String(opInvokeAgent),
		keyProvider.String(ownAgent),
		keyAgent.String(agent),
	}
	list = append(list, asked(ctx, req)...)
	r.tracer.within(ctx, opInvokeAgent+" "+agent, trace.SpanKindInternal, list, func(ctx context.Context, span trace.Span) {
		res, err = r.inner.Research(ctx, req, sink)
		if err != nil {
			failed(span, string(marchwarden.CodeOf(err)))
		}
		if res != nil {
			span.SetAttributes(found(res)...)
		}
	})
	return res, err
}

// within does something within a span. One that panics has failed.
func (t *Tracer) within(ctx context.Context, name string, kind trace.SpanKind, list []attribute.KeyValue, do func(context.Context, trace.Span)) {
	ctx, span := t.start(ctx, name, kind, trace.WithAttributes(list...))
	returned := false
	defer func() {
		if !returned {
			failed(span, string(marchwarden.CodeInternal))
		}
		t.finish(span)
	}()
	do(ctx, span)
	returned = true
}

// asked is what is told of a request, which may be one that breaks the contract.
func asked(ctx context.Context, req marchwarden.Request) []attribute.KeyValue {
	var list []attribute.KeyValue
	switch req.Depth {
	case "":
		list = append(list, keyDepth.String(string(marchwarden.Balanced)))
	case marchwarden.Shallow, marchwarden.Balanced, marchwarden.Deep:
		list = append(list, keyDepth.String(string(req.Depth)))
	}
	if req.Resume != "" {
		list = append(list, keyResumed.Bool(true))
		if id, err := marchwarden.ParseTraceID(req.Resume); err == nil {
			return append(list, keyConversation.String(id.String()))
		}
	}
	if id, ok := marchwarden.ChosenTraceID(ctx); ok {
		list = append(list, keyConversation.String(id.String()))
	}
	return list
}

// found is what is told of a result, which may be an external researcher's.
func found(res *marchwarden.Result) []attribute.KeyValue {
	cost := res.CostMetadata
	list := []attribute.KeyValue{
		keyCitations.Int(len(res.Citations)),
		keyGaps.Int(len(res.Gaps)),
		keyOpenQuestions.Int(len(res.OpenQuestions)),
		keyConfidence.Float64(float64(res.Confidence)),
		keyTokens.Int(cost.TokensUsed),
		keyIterations.Int(cost.IterationsRun),
		keySources.Int(cost.SourcesRead),
		keyExhausted.Bool(cost.BudgetExhausted),
	}
	if len(res.Rihlas) > 0 {
		list = append(list, keyJourneys.Int(len(res.Rihlas)))
	}
	if cost.ModelID != "" {
		list = append(list, keyRequestModel.String(name(cost.ModelID)))
	}
	if res.TraceID.Valid() {
		list = append(list, keyConversation.String(res.TraceID.String()))
	}
	return list
}
