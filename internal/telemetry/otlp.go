package telemetry

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The JSON form of OTLP: ids are hex, 64-bit numbers are decimal strings and
// enumerations are numbers. Only what our spans have is here.
type (
	wireRequest struct {
		ResourceSpans []wireResourceSpans `json:"resourceSpans"`
	}
	wireResourceSpans struct {
		Resource   wireResource     `json:"resource"`
		ScopeSpans []wireScopeSpans `json:"scopeSpans"`
	}
	wireResource struct {
		Attributes []wireAttribute `json:"attributes"`
	}
	wireScopeSpans struct {
		Scope     wireScope         `json:"scope"`
		Spans     []json.RawMessage `json:"spans"` // of wireSpan
		SchemaURL string            `json:"schemaUrl"`
	}
	wireScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	wireSpan struct {
		TraceID           string          `json:"traceId"`
		SpanID            string          `json:"spanId"`
		TraceState        string          `json:"traceState,omitempty"`
		ParentSpanID      string          `json:"parentSpanId,omitempty"`
		Flags             uint32          `json:"flags"`
		Name              string          `json:"name"`
		Kind              int             `json:"kind"`
		Start             string          `json:"startTimeUnixNano"`
		End               string          `json:"endTimeUnixNano"`
		Attributes        []wireAttribute `json:"attributes,omitempty"`
		DroppedAttributes int             `json:"droppedAttributesCount,omitempty"`
		Links             []wireLink      `json:"links,omitempty"`
		Status            wireStatus      `json:"status"`
	}
	wireLink struct {
		TraceID    string `json:"traceId"`
		SpanID     string `json:"spanId"`
		TraceState string `json:"traceState,omitempty"`
		Flags      uint32 `json:"flags"`
	}
	wireStatus struct {
		Code int `json:"code,omitempty"`
	}
	wireAttribute struct {
		Key   string    `json:"key"`
		Value wireValue `json:"value"`
	}
	wireValue struct {
		String *string    `json:"stringValue,omitempty"`
		Bool   *bool      `json:"boolValue,omitempty"`
		Int    *string    `json:"intValue,omitempty"`
		Double *float64   `json:"doubleValue,omitempty"`
		Array  *wireArray `json:"arrayValue,omitempty"`
	}
	wireArray struct {
		Values []wireValue `json:"values"`
	}
)

// The flags of OTLP beside those of W3C: whether it is known that the parent, or the
// span of a link, is of another process, and whether it is.
const (
	flagHasRemote = 1 << 8
	flagIsRemote  = 1 << 9
)

// encode writes spans as the bodies of requests, each below the limit where a single
// span is.
func encode(spans []sdktrace.ReadOnlySpan, resource []wireAttribute, limit int) ([]body, error) {
	var bodies []body
	var list []json.RawMessage
	size := 0
	flush := func() error {
		if len(list) == 0 {
			return nil
		}
		scope := spans[0].InstrumentationScope() // there is but one tracer
		raw, err := json.Marshal(wireRequest{[]wireResourceSpans{{
			Resource:   wireResource{resource},
			ScopeSpans: []wireScopeSpans{{Scope: wireScope{scope.Name, scope.Version}, Spans: list, SchemaURL: scope.SchemaURL}},
		}}})
		if err != nil {
			return fmt.Errorf("encode a batch of spans: %w", err)
		}
		bodies = append(bodies, body{raw: raw, spans: len(list)})
		list, size = nil, 0
		return nil
	}
	for _, span := range spans {
		raw, err := json.Marshal(wireOf(span))
		if err != nil {
			return nil, fmt.Errorf("encode a span: %w", err)
		}
		if size+len(raw) > limit {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		list, size = append(list, raw), size+len(raw)
	}
	return bodies, flush()
}

// body is the body of one request.
type body struct {
	raw   []byte
	spans int
}

// wireOf is a span as it is sent.
func wireOf(span sdktrace.ReadOnlySpan) wireSpan {
	self, parent := span.SpanContext(), span.Parent()
	w := wireSpan{
		TraceID:           self.TraceID().String(),
		SpanID:            self.SpanID().String(),
		TraceState:        self.TraceState().String(),
		Flags:             flags(self.TraceFlags(), parent),
		Name:              span.Name(),
		Kind:              int(span.SpanKind()), // the numbers are OTLP's
		Start:             strconv.FormatInt(span.StartTime().UnixNano(), 10),
		End:               strconv.FormatInt(span.EndTime().UnixNano(), 10),
		Attributes:        wireAttributes(span.Attributes()),
		DroppedAttributes: span.DroppedAttributes(),
		Status:            wireStatus{statusCode(span.Status().Code)},
	}
	if parent.SpanID().IsValid() {
		w.ParentSpanID = parent.SpanID().String()
	}
	for _, l := range span.Links() {
		c := l.SpanContext
		w.Links = append(w.Links, wireLink{c.TraceID().String(), c.SpanID().String(), c.TraceState().String(), flags(c.TraceFlags(), c)})
	}
	return w
}

// flags are a span's own and whether the other is remote.
func flags(own trace.TraceFlags, other trace.SpanContext) uint32 {
	f := uint32(own) | flagHasRemote
	if other.IsRemote() {
		f |= flagIsRemote
	}
	return f
}

// statusCode is OTLP's number, which is not the SDK's.
func statusCode(c codes.Code) int {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

func wireAttributes(list []attribute.KeyValue) []wireAttribute {
	wire := make([]wireAttribute, 0, len(list))
	for _, kv := range list {
		wire = append(wire, wireAttribute{string(kv.Key), wireValueOf(kv.Value)})
	}
	return wire
}

// wireValueOf keeps the types that our spans have; every other is written as text.
func wireValueOf(v attribute.Value) wireValue {
	switch v.Type() {
	case attribute.BOOL:
		b := v.AsBool()
		return wireValue{Bool: &b}
	case attribute.INT64:
		n := strconv.FormatInt(v.AsInt64(), 10)
		return wireValue{Int: &n}
	case attribute.FLOAT64:
		f := v.AsFloat64()
		return wireValue{Double: &f}
	case attribute.STRINGSLICE:
		array := &wireArray{Values: []wireValue{}}
		for _, s := range v.AsStringSlice() {
			array.Values = append(array.Values, wireValue{String: &s})
		}
		return wireValue{Array: array}
	}
	s := v.String()
	if v.Type() == attribute.STRING {
		s = v.AsString()
	}
	return wireValue{String: &s}
}
