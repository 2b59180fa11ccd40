package marchwarden

import (
	"context"
	"strings"
)

// TraceID names one research call. It is a UUID in its canonical lower-case
// form; the zero TraceID is invalid. TraceIDs compare with == and serve as map
// keys. The caller makes the id: this package has no randomness.
type TraceID struct{ s string }

// ParseTraceID accepts the canonical text form of a UUID, in either case, and
// nothing else: a parsed TraceID is safe to use as a file name.
func ParseTraceID(s string) (TraceID, error) {
	bad := invalid("trace_id", "run 'marchwarden traces' to list the ids there are", "%q is not a UUID such as 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", clip(s, 60))
	if len(s) != 36 {
		return TraceID{}, bad
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return TraceID{}, bad
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return TraceID{}, bad
		}
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

// chosenID is the key of that id.
type chosenID struct{}

// ChosenTraceID is the id that a caller has chosen, if it has.
func ChosenTraceID(ctx context.Context) (TraceID, bool) {
	id, ok := ctx.Value(chosenID{}).(TraceID)
	return id, ok && id.Valid()
}
