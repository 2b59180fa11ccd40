package llm

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
)

// provider answers as it is told, and notes when it was asked.
type provider struct {
	id     string
	answer func(n int) (Reply, error) // for the nth call, from 0
	takes  time.Duration

	mu sync.Mutex // guards what follows
	at []time.Time
}

func (p *provider) ID() string { return p.id }

func (p *provider) Generate(context.Context, Call) (Reply, error) {
	p.mu.Lock()
	n := len(p.at)
	p.at = append(p.at, time.Now())
	p.mu.Unlock()
	time.Sleep(p.takes)
	return p.answer(n)
}

func answers(u Usage) func(int) (Reply, error) {
	return func(int) (Reply, error) { return Reply{Text: "yes", Usage: u}, nil }
}

// ration is a set of limits of its own.
func ration(t *testing.T, texts ...string) *limit.Set {
	t.Helper()
	rules, err := limit.ParseRules(texts)
	if err != nil {
		t.Fatal(err)
	}
	return &limit.Set{Rules: rules, Now: time.Now, Store: limit.Folder(t.TempDir(), time.Now)}
}

const sonnet = "anthropic/claude-sonnet-4-5"

// TestRefusedOnce: one call is refused for two seconds. All calls stay away for as long, the one
// that was refused too, and not for longer.
func TestRefusedOnce(t *testing.T) {
	for _, rules := range [][]string{nil, {"anthropic requests 20/s"}} {
		synctest.Test(t, func(t *testing.T) {
			p := &provider{id: sonnet, answer: func(n int) (Reply, error) {
				if n == 3 {
					return Reply{}, fault{code: marchwarden.CodeRateLimited, retryable: true, after: 2 * time.Second}
				}
				return Reply{Text: "yes", Usage: Usage{In: 10, Out: 1}}, nil
			}}
			set := ration(t, rules...)
			var wg sync.WaitGroup
			for range 4 { // workers, with a wrapper each
				m := NewSteady(NewRationed(p, set.Limit, time.Now, nil), SteadyConfig{Now: time.Now})
				wg.Go(func() {
					for range 10 {
						if _, err := m.Generate(t.Context(), Call{MaxTokens: 10}); err != nil {
							t.Error(err)
						}
						time.Sleep(50 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			refused, next := p.at[3], time.Hour
			for _, at := range p.at[4:] {
				if d := at.Sub(refused); d > 10*time.Millisecond { // who asked at the same moment could not know
					next = min(next, d)
				}
			}
			if len(p.at) != 41 || next < 2*time.Second || next > 2600*time.Millisecond {
				t.Errorf("%v: %d calls, the next after %v", rules, len(p.at), next)
			}
		})
	}
}

// TestTokens: the worst case is set aside and the rest given back, so that calls follow
// each other by what they really use.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{id: sonnet, takes: time.Second, answer: answers(Usage{In: 90, Out: 10})}
		m := NewRationed(p, ration(t, "anthropic tokens 2000/m").Limit, time.Now, nil)
		took := func(maxTokens int, want marchwarden.Code) time.Duration {
			began := time.Now()
			for range 8 {
				if _, err := m.Generate(t.Context(), Call{MaxTokens: maxTokens}); marchwarden.CodeOf(err) != want {
					t.Fatal(err)
				}
			}
			return time.Since(began)
		}
		// 800 tokens, in worst cases of more than 1,000 each.
		if d := took(1000, ""); d > 20*time.Second {
			t.Errorf("eight calls took %v", d)
		}
		p.answer = func(int) (Reply, error) { return Reply{}, fault{code: marchwarden.CodeUnavailable, retryable: true} }
		if d := took(700, marchwarden.CodeUnavailable); d > 20*time.Second {
			t.Errorf("eight failures that cost nothing took %v", d)
		}
		_, err := m.Generate(t.Context(), Call{MaxTokens: 2000})
		if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || !strings.Contains(err.Error(), "ever allows") {
			t.Errorf("a call that never fits: %v", err)
		}
		p.answer = answers(Usage{}) // a provider that does not count has used all of it
		took(1800, "")
		if d := p.at[len(p.at)-1].Sub(p.at[len(p.at)-2]); d < time.Minute {
			t.Errorf("calls without a count follow after %v", d)
		}
	})
}

// TestRequestsOfADay: a request is used for certain when it is made, so that no call waits for one
// of them to come back.
func TestRequestsOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{id: sonnet, answer: answers(Usage{In: 10, Out: 1})}
		m := NewRationed(p, ration(t, "anthropic requests 2/day").Limit, time.Now, nil)
		began := time.Now()
		for i, want := range []marchwarden.Code{"", "", marchwarden.CodeExhausted} {
			_, err := m.Generate(t.Context(), Call{MaxTokens: 10})
			synctest.Wait()
			if marchwarden.CodeOf(err) != want || time.Since(began) > time.Second {
				t.Errorf("call %d: %v after %v", i, err, time.Since(began))
			}
		}
	})
}

func TestMoney(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{id: sonnet, answer: answers(Usage{In: 100_000, Out: 10_000})} // $0.45
		set := ration(t, "anthropic money 1/day", "who money 1/day")
		m := NewRationed(p, set.Limit, time.Now, nil)
		call := Call{MaxTokens: 10_000} // $0.15 and a little, as far as is known before
		for range 2 {
			if _, err := m.Generate(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		_, err := m.Generate(t.Context(), call)
		if marchwarden.CodeOf(err) != marchwarden.CodeExhausted || !strings.Contains(err.Error(), "anthropic/money") || !strings.Contains(marchwarden.HintOf(err), "T00:00:00Z") || len(p.at) != 2 {
			t.Errorf("%v (%s) after %d calls", err, marchwarden.HintOf(err), len(p.at))
		}
		_, err = NewRationed(&provider{id: "who/knows"}, set.Limit, time.Now, nil).Generate(t.Context(), call)
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(err.Error(), "the price of who/knows is unknown") {
			t.Errorf("a price that nobody knows: %v", err)
		}
		if _, err := NewRationed(&provider{id: "free/model", answer: p.answer}, set.Limit, time.Now, nil).Generate(t.Context(), call); err != nil {
			t.Errorf("another provider: %v", err)
		}
	})
}

func TestUsed(t *testing.T) {
	prices, _ := ledger.Prices(nil).Of(sonnet)
	m := &rationed{Model: &provider{id: sonnet}, prices: prices}
	worst := map[string]int{limit.Tokens: 700, limit.Money: 9000}
	for _, tt := range []struct {
		name          string
		reply         Usage
		err           error
		tokens, money int
	}{
		{"answered", Usage{In: 100, Out: 20}, nil, 120, 600},
		{"from a cache", Usage{In: 100, Out: 20, CacheRead: 100}, nil, 120, 330},
		{"not counted", Usage{}, nil, 700, 9000},
		{"free", Usage{}, fault{code: marchwarden.CodeUnavailable, retryable: true}, 0, 0},
		{"silent", Usage{}, fault{code: marchwarden.CodeTimeout, retryable: true}, 700, 9000},
		{"broke off", Usage{In: 100, Out: 1}, fault{code: marchwarden.CodeTruncated}, 600, 7800},
	} {
		used := m.used(Call{MaxTokens: 500}, Reply{Usage: tt.reply}, tt.err, worst)
		tokens, money := used[limit.Tokens], used[limit.Money]
		if tokens != tt.tokens || money != tt.money {
			t.Errorf("%s: %d tokens, %d millionths; want %d, %d", tt.name, tokens, money, tt.tokens, tt.money)
		}
	}
}

func TestNothingToWrap(t *testing.T) {
	if NewRationed(nil, ration(t).Limit, time.Now, nil) != nil {
		t.Error("no model became one")
	}
	p := &provider{id: sonnet}
	if NewRationed(p, nil, time.Now, nil) != Model(p) || NewRationed(p, ration(t).Limit, time.Now, nil).ID() != sonnet {
		t.Error("the model is another")
	}
}
