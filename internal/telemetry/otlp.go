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

// object is an object of the JSON form of OTLP: ids are hex, 64-bit numbers are decimal
// strings and enumerations are numbers. Only what our spans have is here.
type object map[string]any

// The flags of OTLP beside those of W3C: whether it is known that the parent, or the
// span of a link, is of another process, and whether it is.
const (
	flagHasRemote = 1 << 8
	flagIsRemote  = 1 << 9
)

// body is the body of one request.
type body struct {
	raw   []byte
	spans int
}

// encode writes spans as the bodies of requests, each below the limit where a single
// span is.
func encode(spans []sdktrace.ReadOnlySpan, resource []object, limit int) ([]body, error) {
	var bodies []body
	var list []json.RawMessage
	size := 0
	flush := func() error {
		if len(list) == 0 {
			return nil
		}
		scope := spans[0].InstrumentationScope() // there is but one tracer
		raw, err := json.Marshal(object{"resourceSpans": []object{{
			"resource":   object{"attributes": resource},
			"scopeSpans": []object{{"scope": object{"name": scope.Name, "version": scope.Version}, "spans": list, "schemaUrl": scope.SchemaURL}},
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

// wireOf is a span as it is sent.
func wireOf(span sdktrace.ReadOnlySpan) object {
	parent := span.Parent()
	w := contextOf(span.SpanContext(), parent)
	w["name"] = span.Name()
	w["kind"] = int(span.SpanKind()) // the numbers are OTLP's
	w["startTimeUnixNano"] = strconv.FormatInt(span.StartTime().UnixNano(), 10)
	w["endTimeUnixNano"] = strconv.FormatInt(span.EndTime().UnixNano(), 10)
	w["attributes"] = wireAttributes(span.Attributes())
	w["droppedAttributesCount"] = span.DroppedAttributes()
	w["status"] = object{"code": statusCodes[span.Status().Code]}
	if parent.SpanID().IsValid() {
		w["parentSpanId"] = parent.SpanID().String()
	}
	var links []object
	for _, l := range span.Links() {
		links = append(links, contextOf(l.SpanContext, l.SpanContext))
	}
	if links != nil {
		w["links"] = links
	}
	return w
}

// contextOf is a span's context, and whether the other is remote.
func contextOf(c, other trace.SpanContext) object {
	flags := uint32(c.TraceFlags()) | flagHasRemote
	if other.IsRemote() {
		flags |= flagIsRemote
	}
	return object{"traceId": c.TraceID().String(), "spanId": c.SpanID().String(), "traceState": c.TraceState().String(), "flags": flags}
}

// statusCodes are OTLP's numbers, which are not the SDK's.
var statusCodes = map[codes.Code]int{codes.Unset: 0, codes.Ok: 1, codes.Error: 2}

func wireAttributes(list []attribute.KeyValue) []object {
	wire := make([]object, 0, len(list))
	for _, kv := range list {
		wire = append(wire, object{"key": string(kv.Key), "value": wireValue(kv.Value)})
	}
	return wire
}

// wireValue keeps the types that our spans have; every other is written as text.
func wireValue(v attribute.Value) object {
	switch v.Type() {
	case attribute.BOOL:
		return object{"boolValue": v.AsBool()}
	case attribute.INT64:
		return object{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return object{"doubleValue": v.AsFloat64()}
	case attribute.STRING:
		return object{"stringValue": v.AsString()}
	case attribute.STRINGSLICE:
		values := []object{}
		for _, s := range v.AsStringSlice() {
			values = append(values, object{"stringValue": s})
		}
		return object{"arrayValue": object{"values": values}}
	}
	return object{"stringValue": v.String()}
}
