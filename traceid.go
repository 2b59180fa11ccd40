package marchwarden

import (
	"context"
	"regexp"
	"strings"
)

// TraceID names one research call. It is a UUID in its canonical lower-case
// form; the zero TraceID is invalid. TraceIDs compare with == and serve as map
// keys. The caller makes the id: this package has no randomness.
type TraceID struct{ s string }

// traceIDPattern is what ParseTraceID accepts.
const traceIDPattern = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"

var traceIDShape = regexp.MustCompile(traceIDPattern)

// ParseTraceID accepts the canonical text form of a UUID, in either case, and
// nothing else: a parsed TraceID is safe to use as a file name.
func ParseTraceID(s string) (TraceID, error) {
	if !traceIDShape.MatchString(s) {
		return TraceID{}, invalid("trace_id", "run 'marchwarden traces' to list the ids there are", "%q is not a UUID such as 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", clip(s, 60))
	}
	return TraceID{strings.ToLower(s)}, nil
}

// String is the canonical form, or "" for the zero TraceID.
func (id TraceID) String() string { return id.s }

// Valid reports whether id was parsed.
func (id TraceID) Valid() bool { return id.s != "" }

// MarshalText writes the canonical form.
func (id TraceID) MarshalText() ([]byte, error) { return []byte(id.s), nil }

// UnmarshalText reads the canonical form; "" gives the zero TraceID.
func (id *TraceID) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*id = TraceID{}
		return nil
	}
	parsed, err := ParseTraceID(string(b))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// clip shortens s to at most n runes for use inside a message.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

// WithTraceID asks a researcher to make its run under an id that its caller has chosen
// and written down, so that the caller finds the run again whatever happens to either
// of them. An id that is taken is not used again: the run has another then. A server
// passes on no id that an unknown caller has chosen, and a researcher that asks others does not
// pass on its own; the zero TraceID takes the wish back.
func WithTraceID(ctx context.Context, id TraceID) context.Context {
	return context.WithValue(ctx, chosenID{}, id)
}

type chosenID struct{}

// ChosenTraceID is the id that a caller has chosen, if it has.
func ChosenTraceID(ctx context.Context) (TraceID, bool) {
	id, ok := ctx.Value(chosenID{}).(TraceID)
	return id, ok && id.Valid()
}
