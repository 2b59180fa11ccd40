// Package telemetry tells an OpenTelemetry collector what a process does: spans of
// MCP requests, of tasks that workers take, of research and of calls to models, by the
// GenAI, MCP and messaging semantic conventions. It owns the reading of OTEL_* settings, the names of attributes, the
// context that travels in an MCP request's _meta (SEP-414) and the sending of
// OTLP/JSON over HTTP. It does nothing unless an OTLP endpoint is set, and what
// happens to the collector never reaches research: spans are dropped instead.
//
// Spans hold names, numbers and codes. They never hold questions, answers, prompts,
// arguments, text of documents, error messages, keys or addresses;
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is deliberately not supported.
// Metrics and logs are not sent.
//
// docs/configuration.md has the settings. Contexts travel as W3C trace contexts whatever
// OTEL_PROPAGATORS says; baggage, which may hold anything, does not travel.
package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The settings without which nothing is sent.
const (
	Endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	TracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// Config is what a tracer needs from its process.
type Config struct {
	// Env looks a setting up; "" is unset.
	Env func(string) string
	// Version is that of the program.
	Version string
	// Now is the clock of spans.
	Now func() time.Time
	// Log gets warnings, at most one a minute once the process runs; nil drops them.
	// No setting's value that may be a secret is ever logged.
	Log *slog.Logger
}

// Tracer makes spans and sends them. A nil *Tracer is valid: its methods do nothing
// and cost nothing. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *exporter
	now      func() time.Time
	once     sync.Once // guards the close
}

// The most that a span holds, whatever fills it.
const (
	maxAttributes  = 48
	maxValueLength = 256 // of a text, in characters
	maxLinks       = 4
)

// Start reads the OTEL_* settings and begins to send spans. It returns nil and no
// error where there is nothing to do: without an endpoint, or switched off. A setting that
// cannot be read is an error of CodeInvalid that names it and does not repeat its value.
// Nothing is sent yet: a collector that cannot be reached is no error. The caller closes it.
func Start(cfg Config) (*Tracer, error) {
	s, err := readSettings(cfg)
	if err != nil || s == nil {
		return nil, err
	}
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	for _, note := range s.notes {
		log.Warn("telemetry: " + note)
	}
	e := newExporter(s, cfg, log)
	batches := sdktrace.NewBatchSpanProcessor(e,
		sdktrace.WithMaxQueueSize(s.queue),
		sdktrace.WithMaxExportBatchSize(s.batch),
		sdktrace.WithBatchTimeout(s.delay),
		sdktrace.WithExportTimeout(s.exportTimeout))
	p := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(&counted{SpanProcessor: batches, ended: &e.ended}),
		sdktrace.WithSampler(s.sampler),
		sdktrace.WithResource(resource.Empty()), // the exporter has its own; the SDK's would look at the machine
		sdktrace.WithoutPanicRecording(),        // what a panic says may hold anything
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: maxValueLength,
			AttributeCountLimit:       maxAttributes,
			LinkCountLimit:            maxLinks,
		}))
	return &Tracer{
		provider: p,
		tracer:   p.Tracer(scopeName, trace.WithInstrumentationVersion(cfg.Version), trace.WithSchemaURL(schemaURL)),
		exporter: e,
		now:      cfg.Now,
	}, nil
}

// Close sends what is left, and returns when that is done or ctx ends, whichever is
// first; then it fails with CodeCanceled and what is left is dropped. It does not wait
// for a collector that has failed. Spans that end later are dropped. Closing again
// does nothing.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var err error
	t.once.Do(func() {
		t.exporter.hurry()
		err = t.provider.Shutdown(ctx)
		t.exporter.end(err == nil)
	})
	return marchwarden.Wrap(err, marchwarden.CodeCanceled, "send the last spans")
}

// start begins a span by the tracer's clock.
func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	opts = append(opts, trace.WithSpanKind(kind), trace.WithTimestamp(t.now()))
	return t.tracer.Start(ctx, name, opts...)
}

// finish ends a span by the tracer's clock.
func (t *Tracer) finish(span trace.Span) { span.End(trace.WithTimestamp(t.now())) }

// failed marks a span as failed. The status has no description: the conventions want
// the error's message there, which may quote anything.
func failed(span trace.Span, kind string) {
	span.SetAttributes(keyErrorType.String(kind))
	span.SetStatus(codes.Error, "")
}
