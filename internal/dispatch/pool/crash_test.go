package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

func TestKilledInFlight(t *testing.T) {
	for name, research := range map[string]func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error){
		"call fails with it": dies,
		"call fails first": func(_ context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
			time.AfterFunc(lag/2, s.crash)
			return nil, errors.New("EOF")
		},
		"call does not notice": func(ctx context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
			s.crash()
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				h := &house{}
				h.research = func(ctx context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error) {
					if calls.Add(1) > 1 {
						return answers(ctx, s, sink)
					}
					return research(ctx, s, sink)
				}
				p := newPool(t, h.seat("web"))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				began := time.Now()
				_, err := p.Dispatch(ctx, "web", marchwarden.Request{}, nil)
				wantError(t, err, marchwarden.CodeUnavailable, "researcher web died while it was asked")
				if n := calls.Load(); n != 1 {
					t.Errorf("the call was made %d times", n)
				}
				if err := ask(p, "web"); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > lag {
					t.Errorf("took %s", took)
				}
				p.Close()
				h.allClosed(t)
				if n := h.tries.Load(); n != 2 {
					t.Errorf("opened %d times", n)
				}
			})
		})
	}
}

// TestOneCrashOfManyCalls counts sessions, not the calls that were on them.
func TestOneCrashOfManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.research = func(ctx context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
			<-s.done
			return nil, errors.New("EOF")
		}
		p := newPool(t, h.seat("web"))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				wantError(t, ask(p, "web"), marchwarden.CodeUnavailable, "researcher web died while it was asked")
			})
		}
		synctest.Wait()
		h.research = answers
		h.last().crash()
		wg.Wait()
		if err := ask(p, "web"); err != nil || h.tries.Load() != 2 {
			t.Errorf("%v after %d openings", err, h.tries.Load())
		}
	})
}

// TestAnswerAtTheLastMoment keeps a result that was there when the session died.
func TestAnswerAtTheLastMoment(t *testing.T) {
	h := &house{}
	h.research = func(ctx context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
		s.crash()
		return answers(ctx, s, nil)
	}
	p := newPool(t, h.seat("web"))
	for range often { // a server of one answer a process is odd, and serves
		if err := ask(p, "web"); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.tries.Load(); n != often {
		t.Errorf("opened %d times", n)
	}
}

func TestDiedIdle(t *testing.T) {
	h := &house{}
	p := newPool(t, h.seat("web"))
	for range 4 { // each is followed by a success
		if err := ask(p, "web"); err != nil {
			t.Fatal(err)
		}
		h.last().crash()
	}
	p.Close()
	h.allClosed(t)
	if n := h.tries.Load(); n != 4 {
		t.Errorf("opened %d times", n)
	}
}

func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) { panic("wild") }
		opens := Seat{Member: dispatch.Member{Name: "opens"}, Open: func(context.Context) (Session, Card, error) { panic("wild") }}
		empty := Seat{Member: dispatch.Member{Name: "empty"}, Open: func(context.Context) (Session, Card, error) { return nil, Card{}, nil }}
		p := newPool(t, h.seat("web"), opens, empty)
		wantError(t, ask(p, "web"), marchwarden.CodeInternal, "the session with researcher web panicked at")
		wantError(t, ask(p, "opens"), marchwarden.CodeUnavailable, "researcher opens cannot be reached: a bug in this program: the opening of a session panicked at")
		wantError(t, ask(p, "empty"), marchwarden.CodeUnavailable, "researcher empty cannot be reached: it opened and gave no session")
	})
}

func TestOpenErrorsKeepTheirCode(t *testing.T) {
	old := &house{fail: func(int) error {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "it speaks contract v7, and this program v1")
	}}
	none := &house{fail: func(int) error { return errors.New("no such command") }}
	p := newPool(t, old.seat("old"), none.seat("none"))
	wantError(t, ask(p, "old"), marchwarden.CodeUnsupported, "researcher old cannot be reached: it speaks contract v7")
	wantError(t, ask(p, "none"), marchwarden.CodeUnavailable, "researcher none cannot be reached: no such command")
}

func TestOpeningThatHangs(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprint("deaf ", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{}
				seat := h.seat("web")
				var tries atomic.Int32
				seat.Open = func(ctx context.Context) (Session, Card, error) {
					if tries.Add(1) > 1 {
						return h.open(ctx)
					}
					if deaf {
						time.Sleep(time.Hour)
						return h.open(ctx) // too late: it must be closed
					}
					began := time.Now()
					<-ctx.Done()
					if took := time.Since(began); took != 3*time.Second {
						t.Errorf("called off after %s, not when the last one left", took)
					}
					return nil, Card{}, ctx.Err()
				}
				p := newPool(t, seat)
				began := time.Now()
				var wg sync.WaitGroup
				for _, limit := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), limit)
						defer cancel()
						_, err := p.Dispatch(ctx, "web", marchwarden.Request{}, nil)
						wantError(t, err, marchwarden.CodeCanceled, "researcher web")
						if took := time.Since(began); took != limit {
							t.Errorf("a limit of %s took %s", limit, took)
						}
					})
				}
				wg.Wait()
				if n := tries.Load(); n != 1 {
					t.Errorf("opened %d times for three who waited", n)
				}
				if err := ask(p, "web"); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Hour)
				p.Close()
				h.allClosed(t)
			})
		})
	}
}

// TestStorm has many callers of members that crash, refuse and answer at random
// times, and looks that nothing is lost: every call ends with a result or an error
// that says who, every session is closed once.
func TestStorm(t *testing.T) {
	var calls atomic.Int64
	flaky := func() *house {
		h := &house{fail: func(n int) error {
			if n%5 == 0 {
				return errors.New("refused")
			}
			return nil
		}}
		h.research = func(ctx context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error) {
			switch n := calls.Add(1); {
			case n%23 == 0:
				return dies(ctx, s, sink)
			case n%41 == 0:
				panic("wild")
			case n%7 == 0:
				return hangs(ctx, s, sink)
			}
			return answers(ctx, s, sink)
		}
		return h
	}
	houses := []*house{flaky(), flaky(), flaky(), {}}
	p := newPool(t, houses[0].seat("m0"), houses[1].seat("m1"), houses[2].seat("m2"), houses[3].seat("m3"))
	var wg sync.WaitGroup
	var good atomic.Int32
	for i := range 100 {
		wg.Go(func() {
			name, limit := fmt.Sprintf("m%d", i%4), 20*time.Millisecond
			if name == "m3" { // which never hangs, on however busy a machine
				limit = time.Minute
			}
			for range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				res, err := p.Dispatch(ctx, name, marchwarden.Request{}, func(marchwarden.Event) {})
				cancel()
				if (res == nil) == (err == nil) || err != nil && (name == "m3" || !strings.Contains(err.Error(), "researcher "+name)) {
					t.Errorf("%s: %v, %v", name, res, err)
				}
				if err == nil {
					good.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := good.Load(); n < 500 { // the fourth member's alone
		t.Errorf("%d of 2000 calls were answered", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, h := range houses {
		h.allClosed(t)
	}
	t.Logf("%d of 2000 calls answered; sessions opened: %d %d %d %d", good.Load(), len(houses[0].opened), len(houses[1].opened), len(houses[2].opened), len(houses[3].opened))
}
