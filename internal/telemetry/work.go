package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceParent is the one field of a W3C trace context that travels with a task.
const traceParent = "traceparent"

// Carry is the span in ctx as a text that travels with a task, or "" where there is none
// that is told.
func (t *Tracer) Carry(ctx context.Context) string {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	meta := map[string]any{}
	propagation.TraceContext{}.Inject(ctx, carrier(meta))
	text, _ := meta[traceParent].(string)
	return text
}

// Send begins the PRODUCER span of a task that is submitted, such as "send pi"; Carry then
// gives what travels with it. The returned function ends it, as that of Work does.
func (t *Tracer) Send(ctx context.Context, queue string) (context.Context, func(err error)) {
	if t == nil {
		return ctx, noEnd
	}
	ctx, span := t.start(ctx, opSend+" "+name(queue), trace.SpanKindProducer, messaging(opSend, queue))
	return ctx, t.ender(span)
}

// messaging are the attributes of an operation on a queue.
func messaging(op, queue string) trace.SpanStartEventOption {
	return trace.WithAttributes(keyMessaging.String(ownAgent), keyMessagingOp.String(op), keyMessagingType.String(op), keyDestination.String(name(queue)))
}

// Work begins the CONSUMER span of a task that was taken from a queue, such as "process
// web". Its parent is the caller's span, as Carry gave it; where that cannot be read, it is the
// span in ctx. Else it is as Serve.
func (t *Tracer) Work(ctx context.Context, queue, carried string) (context.Context, func(err error)) {
	if t == nil {
		return ctx, noEnd
	}
	if parent := remote(map[string]any{traceParent: strings.TrimSpace(carried)}); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx, span := t.start(ctx, opProcess+" "+name(queue), trace.SpanKindConsumer, messaging(opProcess, queue))
	return ctx, t.ender(span)
}
