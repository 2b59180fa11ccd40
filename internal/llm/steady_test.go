package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// said is what a scripted model does with one call.
type said struct {
	reply Reply
	err   error
	takes time.Duration // the call is over earlier if its context ends
}

// scripted plays said after said; the last one stays.
type scripted struct {
	id     string
	script []said

	mu sync.Mutex // guards what follows
	at []time.Time
}

func (s *scripted) ID() string { return s.id }

func (s *scripted) Generate(ctx context.Context, _ Call) (Reply, error) {
	s.mu.Lock()
	next := s.script[min(len(s.at), len(s.script)-1)]
	s.at = append(s.at, time.Now())
	s.mu.Unlock()
	if next.takes > 0 {
		if err := httpapi.Sleep(ctx, next.takes); err != nil {
			return Reply{Usage: next.reply.Usage}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask %s", s.id)
		}
	}
	return next.reply, next.err
}

// calls is how often the model was asked.
func (s *scripted) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// fault is an error as the models of this program make it.
type fault struct {
	code      marchwarden.Code
	retryable bool
	after     time.Duration
}

func (f fault) Error() string                     { return "fault " + string(f.code) }
func (f fault) Unwrap() error                     { return f.code }
func (f fault) Retryable() bool                   { return f.retryable }
func (f fault) RetryAfter() (time.Duration, bool) { return f.after, f.after != 0 }

// fails is a call that fails with a bare code.
func fails(code marchwarden.Code) said {
	return said{err: marchwarden.Errorf(code, "it is %s", code)}
}

var (
	answer   = said{reply: Reply{Text: "yes", Stop: StopEnd, Usage: Usage{In: 10, Out: 2}}}
	overload = said{err: fault{code: marchwarden.CodeUnavailable, retryable: true}}
	late     = func(d time.Duration) said {
		return said{err: fault{code: marchwarden.CodeRateLimited, retryable: true, after: d}}
	}
	charged = func(s said) said { s.reply.Usage = Usage{In: 100, Out: 7}; return s }
)

// steadied makes a model without chance in its pauses.
func steadied(primary Model, cfg SteadyConfig) Model {
	cfg.Now = time.Now
	if cfg.Jitter == nil {
		cfg.Jitter = func() float64 { return 0 }
	}
	return NewSteady(primary, cfg)
}

// TestFaults is the table of faults of a provider, as they look above the model
// that classified them.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		script []said
		calls  int              // to the primary
		code   marchwarden.Code // "" is success
		spent  time.Duration
	}{
		{"answer", []said{answer}, 1, "", 0},
		{"no content", []said{{reply: Reply{Stop: StopEnd, Usage: Usage{In: 9}}}}, 1, "", 0},
		{"refusal", []said{{reply: Reply{Stop: StopRefusal}}}, 1, "", 0},
		{"reply cut by max_tokens", []said{{reply: Reply{Stop: StopLength}}}, 1, "", 0},
		{"stream cut cleanly, charged", []said{charged(fails(marchwarden.CodeTruncated)), answer}, 1, marchwarden.CodeTruncated, 0},
		{"stream reset, charged", []said{charged(said{err: fault{code: marchwarden.CodeTruncated, retryable: true}}), answer}, 1, marchwarden.CodeTruncated, 0},
		{"overloaded in mid-stream, charged", []said{charged(overload), answer}, 1, marchwarden.CodeUnavailable, 0},
		{"overloaded in mid-stream, free", []said{overload, answer}, 2, "", 500 * time.Millisecond},
		{"529 three times", []said{overload, overload, overload, answer}, 4, "", 3500 * time.Millisecond},
		{"529 for ever", []said{overload}, 4, marchwarden.CodeUnavailable, 3500 * time.Millisecond},
		{"500, bare code", []said{fails(marchwarden.CodeUnavailable), answer}, 2, "", 500 * time.Millisecond},
		{"429 without Retry-After", []said{late(0), answer}, 2, "", 500 * time.Millisecond},
		{"429, bare code", []said{fails(marchwarden.CodeRateLimited), answer}, 2, "", 500 * time.Millisecond},
		{"429 with Retry-After 7", []said{late(7 * time.Second), answer}, 2, "", 7 * time.Second},
		{"429 with a negative Retry-After", []said{late(-time.Hour), answer}, 2, "", 500 * time.Millisecond},
		{"429 with Retry-After 3600", []said{late(time.Hour), answer}, 1, marchwarden.CodeRateLimited, 0},
		{"spend limit", []said{{err: fault{code: marchwarden.CodeDenied}}, answer}, 1, marchwarden.CodeDenied, 0},
		{"a 429 that is final", []said{{err: fault{code: marchwarden.CodeRateLimited}}, answer}, 1, marchwarden.CodeRateLimited, 0},
		{"bad key", []said{fails(marchwarden.CodeDenied), answer}, 1, marchwarden.CodeDenied, 0},
		{"bad request", []said{fails(marchwarden.CodeInvalid), answer}, 1, marchwarden.CodeInvalid, 0},
		{"cut JSON body, free", []said{{err: fault{code: marchwarden.CodeTruncated, retryable: true}}, answer}, 2, "", 500 * time.Millisecond},
		{"cut JSON body, bare code", []said{fails(marchwarden.CodeTruncated), answer}, 1, marchwarden.CodeTruncated, 0},
		{"a page instead of an answer", []said{fails(marchwarden.CodeMalformed), answer}, 1, marchwarden.CodeMalformed, 0},
		{"512 MiB reply, charged", []said{charged(fails(marchwarden.CodeMalformed)), answer}, 1, marchwarden.CodeMalformed, 0},
		{"nothing but pings", []said{{err: marchwarden.Errorf(marchwarden.CodeTimeout, "silence"), takes: time.Minute}, answer}, 1, marchwarden.CodeTimeout, time.Minute},
		{"canceled within", []said{fails(marchwarden.CodeCanceled), answer}, 1, marchwarden.CodeCanceled, 0},
		{"an error nobody classified", []said{{err: errors.New("odd")}, answer}, 1, marchwarden.CodeInternal, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &scripted{id: "a/one", script: c.script}
				start := time.Now()
				reply, err := steadied(first, SteadyConfig{}).Generate(t.Context(), Call{})
				if got := marchwarden.CodeOf(err); got != c.code || first.calls() != c.calls || time.Since(start) != c.spent {
					t.Errorf("%d calls in %v end with %q (%v), want %d in %v with %q", first.calls(), time.Since(start), got, err, c.calls, c.spent, c.code)
				}
				last := c.script[min(c.calls, len(c.script))-1].reply
				if d := cmp.Diff(last, reply); d != "" {
					t.Errorf("reply (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		script []said
		left   time.Duration
		calls  int
		spent  time.Duration
		says   string
	}{
		{"the third pause does not fit", []said{overload}, 3 * time.Second, 3, 1500 * time.Millisecond, "a/one failed 3 times, and the deadline is in 1.5s"},
		{"a pause that ends with the deadline", []said{overload}, 500 * time.Millisecond, 1, 0, "the deadline is in 500ms"},
		{"a pause that ends a millisecond before it", []said{overload}, 501 * time.Millisecond, 2, 500 * time.Millisecond, "the deadline is in 1ms"},
		{"a wait that is asked for and does not fit", []said{late(5 * time.Second)}, 4999 * time.Millisecond, 1, 0, "a/one asks to come back in 5s, and the deadline is in 4.999s"},
		{"one that fits", []said{late(5 * time.Second)}, 5001 * time.Millisecond, 2, 5 * time.Second, "the deadline is in 1ms"},
		{"slow failures", []said{{err: overload.err, takes: 400 * time.Millisecond}}, time.Second, 2, 1000 * time.Millisecond, "ask a/one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.left)
				defer cancel()
				first := &scripted{id: "a/one", script: c.script}
				start := time.Now()
				_, err := steadied(first, SteadyConfig{}).Generate(ctx, Call{})
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v does not say %q", err, c.says)
				}
				if time.Since(start) != c.spent || first.calls() != c.calls {
					t.Errorf("%d calls in %v, want %d in %v", first.calls(), time.Since(start), c.calls, c.spent)
				}
			})
		})
	}
}

func TestWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock begins with the year 2000
		_, err := steadied(&scripted{id: "a/one", script: []said{late(time.Hour)}}, SteadyConfig{}).Generate(t.Context(), Call{})
		if want := "a/one asks to come back in 1h0m0s, and a pause may take 30s"; !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("error %v", err)
		}
		if got := marchwarden.HintOf(err); got != "try again after 2000-01-01T01:00:00Z" {
			t.Errorf("hint %q", got)
		}
		if wait, ok := retryAfter(err); wait != time.Hour || !ok {
			t.Errorf("the wait is lost: %v", wait)
		}
	})
}

func TestCancelDuringPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(123*time.Millisecond, cancel)
		first := &scripted{id: "a/one", script: []said{overload}}
		start := time.Now()
		_, err := steadied(first, SteadyConfig{}).Generate(ctx, Call{})
		if got := time.Since(start); got != 123*time.Millisecond || marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			t.Errorf("after %v: %v", got, err)
		}
		if _, err := steadied(first, SteadyConfig{}).Generate(ctx, Call{}); marchwarden.CodeOf(err) != marchwarden.CodeCanceled || first.calls() != 1 {
			t.Errorf("a context that has ended: %v after %d calls", err, first.calls())
		}
	})
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, jitter := range []float64{0, 0.5, 0.999999} {
			first := &scripted{id: "a/one", script: []said{overload}}
			if _, err := steadied(first, SteadyConfig{Jitter: func() float64 { return jitter }}).Generate(t.Context(), Call{}); err == nil {
				t.Fatal("it did not fail")
			}
			for i, full := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
				if got, want := first.at[i+1].Sub(first.at[i]), time.Duration(float64(full)*(1-0.25*jitter)); got < want-1 || got > want+1 {
					t.Errorf("pause %d with jitter %v is %v, want %v", i+1, jitter, got, want)
				}
			}
		}
		seen := map[time.Duration]bool{}
		for range 200 {
			first := &scripted{id: "a/one", script: []said{overload, answer}}
			if _, err := NewSteady(first, SteadyConfig{Now: time.Now}).Generate(t.Context(), Call{}); err != nil {
				t.Fatal(err)
			}
			pause := first.at[1].Sub(first.at[0])
			if pause < 375*time.Millisecond || pause > 500*time.Millisecond {
				t.Errorf("pause of %v", pause)
			}
			seen[pause] = true
		}
		if len(seen) < 100 {
			t.Errorf("%d different pauses in 200", len(seen))
		}
	})
}
