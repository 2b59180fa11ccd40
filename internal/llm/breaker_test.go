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

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// once asks a model without repetition.
func once(m *scripted, b *Breaker) error {
	_, err := steadied(m, SteadyConfig{Breaker: b, MaxAttempts: 1}).Generate(context.Background(), Call{})
	return err
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		sick, well := &scripted{id: "acme/one", script: []said{overload}}, &scripted{id: "acme/two", script: []said{answer}}
		for range 4 {
			once(sick, &b)
		}
		if err := once(well, &b); err != nil {
			t.Fatalf("shut after four failures: %v", err)
		}
		for range 5 { // the success began the count anew
			once(sick, &b)
		}
		err := once(well, &b)
		if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !errors.Is(err, shut{}) || well.calls() != 1 {
			t.Fatalf("not shut after five failures: %v", err)
		}
		if want := "acme failed 5 times in a row and is left alone for 20s"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
		time.Sleep(20*time.Second - 1)
		if err := once(well, &b); err == nil {
			t.Error("open before its time")
		}
		time.Sleep(time.Nanosecond)
		once(sick, &b)
		if err := once(well, &b); err == nil || sick.calls() != 10 {
			t.Errorf("a failed probe does not shut it again: %v after %d calls", err, sick.calls())
		}
		time.Sleep(20 * time.Second)
		for range 3 {
			if err := once(well, &b); err != nil {
				t.Errorf("after a probe that succeeded: %v", err)
			}
		}
		for range 4 {
			once(sick, &b)
		}
		if err := once(well, &b); err != nil {
			t.Errorf("the count does not begin anew: %v", err)
		}
	})
}

// TestWhatIsNoSickness: these say that a provider is up, or nothing about it.
func TestWhatIsNoSickness(t *testing.T) {
	for _, code := range []marchwarden.Code{marchwarden.CodeRateLimited, marchwarden.CodeDenied, marchwarden.CodeInvalid, marchwarden.CodeCanceled, marchwarden.CodeMalformed} {
		var b Breaker
		m := &scripted{id: "acme/one", script: []said{fails(code)}}
		for range 20 {
			once(m, &b)
		}
		if m.calls() != 20 {
			t.Errorf("%s: shut after %d calls", code, m.calls())
		}
	}
	for _, code := range []marchwarden.Code{marchwarden.CodeUnavailable, marchwarden.CodeTimeout, marchwarden.CodeTruncated} {
		var b Breaker
		m := &scripted{id: "acme/one", script: []said{charged(fails(code))}}
		for range 20 {
			once(m, &b)
		}
		if m.calls() != 5 {
			t.Errorf("%s: shut after %d calls", code, m.calls())
		}
	}
}

func TestProbeThatSaysNothing(t *testing.T) {
	for name, odd := range map[string]said{"canceled": fails(marchwarden.CodeCanceled), "rate limit": fails(marchwarden.CodeRateLimited)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b Breaker
				sick := &scripted{id: "acme/one", script: []said{overload}}
				for range 5 {
					once(sick, &b)
				}
				time.Sleep(20 * time.Second)
				once(&scripted{id: "acme/one", script: []said{odd}}, &b)
				well := &scripted{id: "acme/one", script: []said{answer}}
				if err := once(well, &b); err != nil {
					t.Errorf("the next caller may not probe: %v", err)
				}
			})
		})
	}
}

// TestPanicReturnsThePermit: a caller may recover above, and the next must be
// able to probe.
func TestPanicReturnsThePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		for range 5 {
			once(&scripted{id: "acme/one", script: []said{overload}}, &b)
		}
		time.Sleep(20 * time.Second)
		func() {
			defer func() { _ = recover() }()
			once(&scripted{id: "acme/one"}, &b) // no script: it panics
		}()
		if err := once(&scripted{id: "acme/one", script: []said{answer}}, &b); err != nil {
			t.Error(err)
		}
	})
}

// outage is a provider that is down until a moment and answers after 100 ms.
type outage struct {
	until time.Time

	mu    sync.Mutex // guards what follows
	calls []time.Time
}

func (o *outage) ID() string { return "acme/one" }

func (o *outage) Generate(ctx context.Context, _ Call) (Reply, error) {
	o.mu.Lock()
	o.calls = append(o.calls, time.Now())
	o.mu.Unlock()
	if err := httpapi.Sleep(ctx, 100*time.Millisecond); err != nil {
		return Reply{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask")
	}
	if time.Now().Before(o.until) {
		return Reply{}, overload.err
	}
	return answer.reply, nil
}

// TestBreakerUnderLoad lets 100 callers, each with its own model, meet an outage
// of 50 s: they share one breaker.
func TestBreakerUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		o := &outage{until: start.Add(50 * time.Second)}
		var b Breaker
		var mu sync.Mutex // guards what follows
		outcomes := map[string]int{}
		var wg sync.WaitGroup
		for caller := range 100 {
			wg.Go(func() {
				m := NewSteady(o, SteadyConfig{Breaker: &b, Now: time.Now})
				time.Sleep(time.Duration(caller) * time.Millisecond)
				for time.Since(start) < 90*time.Second {
					before := time.Now()
					_, err := m.Generate(t.Context(), Call{})
					mu.Lock()
					switch {
					case err == nil:
						outcomes["answered"]++
					case errors.Is(err, shut{}) && time.Since(before) == 0:
						outcomes["turned away at once"]++
					case marchwarden.CodeOf(err) == marchwarden.CodeUnavailable:
						outcomes["failed"]++
					default:
						outcomes[err.Error()]++
					}
					mu.Unlock()
					time.Sleep(time.Second)
				}
			})
		}
		wg.Wait()
		early, during, after := 0, 0, 0
		for _, at := range o.calls {
			switch since := at.Sub(start); {
			case since < 5*time.Second:
				early++
			case since < 50*time.Second:
				during++
			default:
				after++
			}
		}
		// Those that had begun when the fifth failure came, then one call each 20 s.
		if early > 110 || during != 2 {
			t.Errorf("%d calls before the breaker opened, %d while the provider was down", early, during)
		}
		if after < 100*20 || outcomes["answered"] != after || outcomes["turned away at once"] < 4000 || len(outcomes) != 3 {
			t.Errorf("%d calls after the outage; outcomes %v", after, outcomes)
		}
		t.Logf("calls: %d at first, %d during the outage, %d after; %v", early, during, after, outcomes)
	})
}

func TestShutInMidCourse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Breaker
		for range 4 {
			once(&scripted{id: "acme/one", script: []said{overload}}, &b)
		}
		m := &scripted{id: "acme/one", script: []said{overload}}
		_, err := steadied(m, SteadyConfig{Breaker: &b}).Generate(t.Context(), Call{})
		want := "acme failed 5 times in a row and is left alone for 19.5s: circuit breaker open; before that: fault unavailable"
		if fmt.Sprint(err) != want || m.calls() != 1 || marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("%v after %d calls, want %s", err, m.calls(), want)
		}
	})
}
