package telemetry_test

import (
	"context"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// What one process asks for and another works on is one trace.
func TestContextTravelsWithATask(t *testing.T) {
	c := collect(t, nil)
	r := start(t, at(c))
	if text := r.Carry(context.Background()); text != "" {
		t.Errorf("no span is carried as %q", text)
	}
	asked, endAsked := r.Send(context.Background(), "web")
	carried := r.Carry(asked)
	endAsked(nil)
	worked, end := r.Work(context.Background(), "web", carried)
	_, endInner := r.Call(worked, telemetry.Op{Method: "inner"}, nil)
	endInner(nil)
	end(marchwarden.Errorf(marchwarden.CodeUnavailable, "secret words"))
	around, endAround := r.Call(context.Background(), telemetry.Op{Method: "around"}, nil)
	_, endStray := r.Work(around, "a queue\nof evil", "00-nonsense-01")
	endStray(nil)
	endAround(nil)
	r.flush(t)

	submit, work, inner, stray := c.named("send web"), c.named("process web"), c.named("inner"), c.named("process _OTHER")
	if work.TraceID != submit.TraceID || work.ParentSpanID != submit.SpanID || work.Kind != 5 || work.Flags != 0x301 {
		t.Errorf("the work is of %s %s, kind %d, flags %x", work.TraceID, work.ParentSpanID, work.Kind, work.Flags)
	}
	if submit.Kind != 4 || submit.got["messaging.operation.type"] != "send" {
		t.Errorf("handing in is of kind %d: %v", submit.Kind, submit.got)
	}
	if inner.ParentSpanID != work.SpanID {
		t.Errorf("what it does is of %s", inner.ParentSpanID)
	}
	if work.got["messaging.destination.name"] != "web" || work.got["messaging.operation.type"] != "process" || work.got["error.type"] != "unavailable" {
		t.Errorf("attributes: %v", work.got)
	}
	if stray.TraceID != c.named("around").TraceID || stray.ParentSpanID != c.named("around").SpanID {
		t.Errorf("one without a parent is of %s", stray.TraceID)
	}
	var none *telemetry.Tracer
	if ctx, end := none.Send(context.Background(), "web"); ctx != context.Background() {
		t.Error("no tracer changes something")
	} else {
		end(nil)
	}
	if ctx, end := none.Work(context.Background(), "web", carried); ctx != context.Background() || none.Carry(asked) != "" {
		t.Error("no tracer changes something")
	} else {
		end(nil)
	}
}
