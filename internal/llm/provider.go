package llm

import (
	"encoding/json"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What the adapters of all providers share.

// Fault is a failed call: the error, and what to do about it.
type Fault struct {
	Err   *marchwarden.Error
	Retry bool          // the same call may succeed later
	Wait  time.Duration // what the provider asked to wait, if Waits
	Waits bool
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Retryable reports whether the same call may succeed later.
func (f *Fault) Retryable() bool { return f.Retry }

// RetryAfter is the wait that the provider asked for, if it did.
func (f *Fault) RetryAfter() (time.Duration, bool) { return f.Wait, f.Waits }

// ToolInput is the input of a tool call as JSON: no input is an empty object, and what is no
// JSON is a JSON string of it.
func ToolInput(said string) json.RawMessage {
	switch {
	case strings.TrimSpace(said) == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(said)):
		return json.RawMessage(said)
	}
	quoted, err := json.Marshal(said)
	if err != nil { // a string always marshals
		return json.RawMessage(`null`)
	}
	return quoted
}

// Within clamps a number of tokens that a provider reports.
func Within(n int64, most int) int { return int(min(max(n, 0), int64(most))) }
