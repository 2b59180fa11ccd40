package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Op describes one MCP request. Empty fields are not told. What is no plain name or
// is too long to be one is told as "_OTHER": a peer chooses these words.
type Op struct {
	Method    string // such as "tools/call"
	Tool      string // the tool called
	Resource  string // the resource's URI; only its form is told, such as marchwarden://trace/{id}
	Prompt    string // the prompt got
	Session   string // the session's id; a hash of it is told, for the id lets its holder speak in the session
	Protocol  string // the version of MCP, such as "2025-11-25"
	Transport string // "pipe", or "tcp" for HTTP
}

// noEnd ends nothing.
func noEnd(error) {}

// Serve begins the SERVER span of a request that came in, such as "tools/call
// research". Its parent is what meta, the request's _meta, says in "traceparent" and
// "tracestate"; where that says nothing that can be read, it is the span in ctx. The
// work goes on in the returned context. The returned function ends the span when the request
// is answered, with nil or with an error, of which only the code is told. meta is only read.
func (t *Tracer) Serve(ctx context.Context, op Op, meta map[string]any) (context.Context, func(err error)) {
	if t == nil {
		return ctx, noEnd
	}
	opts := []trace.SpanStartOption{trace.WithAttributes(op.attributes()...)}
	if parent := remote(meta); parent.IsValid() {
		if around := trace.SpanContextFromContext(ctx); around.IsValid() {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: around}))
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.start(ctx, op.name(), trace.SpanKindServer, opts...)
	return ctx, t.ender(span)
}

// Call begins the CLIENT span of a request that goes out, and writes its context into
// meta, which becomes the request's _meta; a nil meta carries nothing. Else it is as
// Serve.
func (t *Tracer) Call(ctx context.Context, op Op, meta map[string]any) (context.Context, func(err error)) {
	if t == nil {
		return ctx, noEnd
	}
	ctx, span := t.start(ctx, op.name(), trace.SpanKindClient, trace.WithAttributes(op.attributes()...))
	if meta != nil {
		delete(meta, "tracestate") // of another span, if any
		propagation.TraceContext{}.Inject(ctx, carrier(meta))
	}
	return ctx, t.ender(span)
}

// ender is the function that ends a span of a request.
func (t *Tracer) ender(span trace.Span) func(error) {
	return func(err error) {
		if err != nil {
			failed(span, string(marchwarden.CodeOf(err)))
		}
		t.finish(span)
	}
}

// name is the name of the span: the method, and the tool or prompt. A resource is not
// in it, as the conventions have it.
func (op Op) name() string {
	s := name(op.Method)
	switch {
	case op.Tool != "":
		s += " " + name(op.Tool)
	case op.Prompt != "":
		s += " " + name(op.Prompt)
	}
	return s
}

// attributes are what is told of a request.
func (op Op) attributes() []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 10)
	add := func(key attribute.Key, value string) {
		if value != "" {
			list = append(list, key.String(name(value)))
		}
	}
	list = append(list, keyMethod.String(name(op.Method)))
	if op.Method == "tools/call" {
		add(keyOperation, opExecuteTool)
	}
	add(keyTool, op.Tool)
	add(keyPrompt, op.Prompt)
	if op.Resource != "" {
		list = append(list, keyResource.String(form(op.Resource)))
	}
	add(keySession, pseudonym(op.Session))
	add(keyProtocol, op.Protocol)
	switch op.Transport {
	case "pipe":
		add(keyTransport, "pipe")
	case "tcp":
		add(keyTransport, "tcp")
		add(keyNetworkProtocol, "http")
	}
	return list
}

// words are the parts of our resources' addresses that are no ids.
var words = map[string]bool{"trace": true, "result": true, "evidence": true, "sha256": true, "contract": true, "report": true, "marchwarden": true}

// form is the template that a resource's URI is an instance of. Of an address that is
// not ours only the scheme is left.
func form(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || name(scheme) == unnamed {
		return unnamed
	}
	if scheme != "marchwarden" && scheme != "ui" {
		return scheme + "://{uri}"
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	parts := strings.Split(rest, "/")
	if len(parts) > 4 { // ours have three
		return scheme + "://{uri}"
	}
	for i, part := range parts {
		switch {
		case words[part]:
		case i > 0 && parts[i-1] == "sha256":
			parts[i] = "{hex}"
		default:
			parts[i] = "{id}"
		}
	}
	return scheme + "://" + strings.Join(parts, "/")
}

// pseudonym tells sessions apart without their ids.
func pseudonym(session string) string {
	if session == "" {
		return ""
	}
	const domain = "marchwarden telemetry mcp session"
	frame := binary.BigEndian.AppendUint64([]byte(domain+"\x00"), uint64(len(session)))
	sum := sha256.Sum256(append(frame, session...))
	return hex.EncodeToString(sum[:16])
}

// maxState is the longest tracestate that is passed on, as W3C asks for at least.
const maxState = 512

// carrier is a request's _meta as the propagator wants it.
type carrier map[string]any

// Get is a text in meta; what is none, or too long, is not there.
func (c carrier) Get(key string) string {
	s, _ := c[key].(string)
	if len(s) > maxState {
		return ""
	}
	return s
}

// Set writes a text.
func (c carrier) Set(key, value string) { c[key] = value }

// Keys are not asked for by the propagator of trace contexts.
func (c carrier) Keys() []string { return nil }

// remote is the span that meta names as the parent, or an invalid one.
func remote(meta map[string]any) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier(meta))
	return trace.SpanContextFromContext(ctx)
}
