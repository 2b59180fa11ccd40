package pool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

func TestNewRefuses(t *testing.T) {
	named := func(names ...string) (seats []Seat) {
		for _, name := range names {
			seats = append(seats, (&house{}).seat(name))
		}
		return seats
	}
	for name, seats := range map[string][]Seat{
		"no name":       named(""),
		"capital":       named("Files"),
		"line break":    named("files\n"),
		"41 characters": named("a1234567890123456789012345678901234567890"),
		"twice":         named("files", "files"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Seats: seats, Now: time.Now})
			var e *marchwarden.Error
			if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != "name" {
				t.Errorf("got %v", err)
			}
		})
	}
	p := newPool(t, (&house{}).seat("a123456789012345678901234567890123456789"), (&house{}).seat("b-_2"))
	want := []dispatch.Member{{Name: "a123456789012345678901234567890123456789"}, {Name: "b-_2"}}
	if diff := cmp.Diff(want, p.Members()); diff != "" {
		t.Error(diff)
	}
}

func TestOneSessionForAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		seat := h.seat("files")
		seat.Open = func(ctx context.Context) (Session, Card, error) {
			time.Sleep(time.Second)
			return h.open(ctx)
		}
		p := newPool(t, seat)
		if h.tries.Load() != 0 {
			t.Error("opened before the first use")
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := ask(p, "files"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := h.tries.Load(); n != 1 {
			t.Errorf("opened %d times", n)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		h.allClosed(t)
		wantError(t, ask(p, "files"), marchwarden.CodeUnavailable, "the pool is closed")
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestResultsAreChecked(t *testing.T) {
	result := func() *marchwarden.Result { return &marchwarden.Result{Answer: "yes"} }
	nan, over := result(), result()
	nan.Confidence = marchwarden.Unit(math.NaN())
	over.Citations = []marchwarden.Citation{{Confidence: 1.5}}
	refusal := &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "depth", Message: "bad depth", Hint: "say deep"}
	for name, tc := range map[string]struct {
		res  *marchwarden.Result
		err  error
		code marchwarden.Code
		part string
	}{
		"neither":     {nil, nil, marchwarden.CodeMalformed, "researcher web: it gave neither a result nor an error"},
		"both":        {result(), errors.New("oh"), marchwarden.CodeMalformed, "both a result and an error: oh"},
		"NaN":         {nan, nil, marchwarden.CodeMalformed, "not from 0 to 1"},
		"over":        {over, nil, marchwarden.CodeMalformed, "not from 0 to 1"},
		"tool error":  {nil, refusal, marchwarden.CodeInvalid, "researcher web: depth: bad depth"},
		"unavailable": {nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "engine down"), marchwarden.CodeUnavailable, "researcher web: engine down"},
		"its own end": {nil, context.Canceled, marchwarden.CodeUnavailable, "researcher web broke off"},
		"no code":     {nil, errors.New("oh"), marchwarden.CodeInternal, "researcher web: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{}
				h.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) { return tc.res, tc.err }
				p := newPool(t, h.seat("web"))
				for range often { // none of them is a crash
					res, err := p.Dispatch(t.Context(), "web", marchwarden.Request{}, nil)
					wantError(t, err, tc.code, tc.part)
					if res != nil {
						t.Errorf("a result beside an error: %v", res)
					}
					if errors.Is(tc.err, refusal) && marchwarden.HintOf(err) != "say deep" {
						t.Errorf("the hint is gone: %q", marchwarden.HintOf(err))
					}
				}
				if n := h.tries.Load(); n != 1 {
					t.Errorf("opened %d times", n)
				}
			})
		})
	}
	given := &marchwarden.Result{Claims: []marchwarden.Claim{{Text: "x"}}}
	h := &house{}
	h.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) { return given, nil }
	res, err := newPool(t, h.seat("web")).Dispatch(t.Context(), "web", marchwarden.Request{}, nil)
	if err != nil || res.Gaps == nil || res.Claims[0].Citations == nil {
		t.Errorf("not normalised: %v %v", res, err)
	}
	if given.Gaps != nil || given.Claims[0].Citations != nil {
		t.Error("the session's own result was changed")
	}
}

func TestUnknownMember(t *testing.T) {
	p := newPool(t, (&house{}).seat("files"), (&house{}).seat("web"))
	_, _, approved := p.Approve(t.Context(), "arxiv")
	_, evidence := p.Evidence(t.Context(), "arxiv", "sha256:")
	for _, err := range []error{ask(p, "arxiv"), approved, evidence} {
		wantError(t, err, marchwarden.CodeInvalid, `researcher: no researcher in the network is called "arxiv"`)
		if got := marchwarden.HintOf(err); got != "there are files, web" {
			t.Error(got)
		}
	}
}

// TestEnds has one call for every way in which it is not waited for any longer.
func TestEnds(t *testing.T) {
	deaf := func(_ context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
		time.Sleep(time.Hour)
		return answers(context.Background(), s, nil)
	}
	partial := func(ctx context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-ctx.Done()
		time.Sleep(time.Second)
		return answers(context.Background(), s, nil)
	}
	refuses := func(ctx context.Context, _ *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
		<-ctx.Done()
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "no")
	}
	for name, tc := range map[string]struct {
		research         func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error)
		timeout, caller  time.Duration
		code             marchwarden.Code
		part             string
		earliest, latest time.Duration
	}{
		"caller":             {hangs, 0, time.Minute, marchwarden.CodeCanceled, "researcher web was not waited for any longer", time.Minute, time.Minute},
		"seat":               {hangs, time.Second, time.Minute, marchwarden.CodeTimeout, "researcher web did not answer within 1s", time.Second, time.Second},
		"deaf":               {deaf, 0, time.Minute, marchwarden.CodeCanceled, "researcher web", time.Minute, time.Minute + grace},
		"deaf, seat":         {deaf, time.Second, 0, marchwarden.CodeTimeout, "within 1s", time.Second, time.Second + grace},
		"with what there is": {partial, time.Second, 0, "", "nil", 2 * time.Second, 2 * time.Second},
		"its own words":      {refuses, time.Second, 0, marchwarden.CodeDenied, "researcher web: no", time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{}
				h.research = tc.research
				seat := h.seat("web")
				seat.Timeout = tc.timeout
				p := newPool(t, seat)
				ctx := t.Context()
				if tc.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.caller)
					defer cancel()
				}
				for range often { // a slow member is no dead one
					began := time.Now()
					_, err := p.Dispatch(ctx, "web", marchwarden.Request{}, nil)
					wantError(t, err, tc.code, tc.part)
					if took := time.Since(began); took < tc.earliest || took > tc.latest {
						t.Errorf("took %s", took)
					}
					if tc.caller > 0 {
						break
					}
				}
				if n := h.tries.Load(); n != 1 {
					t.Errorf("opened %d times", n)
				}
				time.Sleep(2 * time.Hour) // the deaf come to their end
			})
		})
	}
}

func TestCanceledBeforehand(t *testing.T) {
	h := &house{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newPool(t, h.seat("web")).Dispatch(ctx, "web", marchwarden.Request{}, nil)
	wantError(t, err, marchwarden.CodeCanceled, "researcher web")
	if !errors.Is(err, context.Canceled) || h.tries.Load() != 0 {
		t.Errorf("%v after %d openings", err, h.tries.Load())
	}
}

func TestHangingMemberHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deafOpen := func(context.Context) (Session, Card, error) {
			<-release
			return nil, Card{}, errors.New("late")
		}
		hung := &house{}
		hung.research = hangs
		crashing := &house{}
		crashing.research = dies
		p := newPool(t, hung.seat("hung"), crashing.seat("crashing"), (&house{}).seat("well"),
			Seat{Member: dispatch.Member{Name: "deaf"}, Open: deafOpen})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for _, name := range []string{"hung", "crashing", "deaf"} {
			wg.Go(func() { p.Dispatch(ctx, name, marchwarden.Request{}, nil) })
		}
		synctest.Wait()
		began := time.Now()
		for range 10 {
			if err := ask(p, "well"); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s for others", took)
		}
		wg.Wait()
		close(release)
	})
}

func TestSinkIsShutAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.research = func(_ context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error) {
			sink(marchwarden.Event{Message: "one"})
			go func() {
				time.Sleep(time.Second)
				sink(marchwarden.Event{Message: "too late"})
			}()
			return answers(context.Background(), s, nil)
		}
		p := newPool(t, h.seat("web"))
		var heard []string
		_, err := p.Dispatch(t.Context(), "web", marchwarden.Request{}, func(e marchwarden.Event) { heard = append(heard, e.Message) })
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"one"}, heard); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		h.last().research = func(_ context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error) {
			if sink != nil {
				t.Error("nobody listens, and the researcher is not told so")
			}
			return answers(context.Background(), s, nil)
		}
		if err := ask(p, "web"); err != nil {
			t.Error(err)
		}
	})
}

func TestEvidence(t *testing.T) {
	content := []byte("the stored page")
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	large := bytes.Repeat([]byte("x"), MaxEvidence+1)
	for name, tc := range map[string]struct {
		hash string
		data []byte
		err  error
		code marchwarden.Code
		part string
	}{
		"good":        {hash, content, nil, "", "nil"},
		"altered":     {hash, []byte("the stored pagf"), nil, marchwarden.CodeCorrupt, "researcher web: what it hands over"},
		"nothing":     {hash, nil, nil, marchwarden.CodeCorrupt, "another hash"},
		"empty":       {fmt.Sprintf("sha256:%x", sha256.Sum256(nil)), nil, nil, "", "nil"},
		"at limit":    {fmt.Sprintf("sha256:%x", sha256.Sum256(large[1:])), large[1:], nil, "", "nil"},
		"too large":   {fmt.Sprintf("sha256:%x", sha256.Sum256(large)), large, nil, marchwarden.CodeMalformed, "the limit is 16777216"},
		"not there":   {hash, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no such"), marchwarden.CodeNotFound, "researcher web: no such"},
		"none at all": {hash, nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "none"), marchwarden.CodeUnsupported, "none"},
		"no hash":     {"../../etc/passwd", nil, nil, marchwarden.CodeInvalid, "content_hash"},
		"capitals":    {"sha256:" + "ABCDEF", nil, nil, marchwarden.CodeInvalid, "content_hash"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &house{}
			h.evidence = func(_ context.Context, got string) ([]byte, error) {
				if got != tc.hash {
					t.Errorf("asked for %s", got)
				}
				return tc.data, tc.err
			}
			got, err := newPool(t, h.seat("web")).Evidence(t.Context(), "web", tc.hash)
			wantError(t, err, tc.code, tc.part)
			if tc.code == "" && !bytes.Equal(got, tc.data) || tc.code != "" && got != nil {
				t.Errorf("got %d bytes", len(got))
			}
		})
	}
}

func TestClose(t *testing.T) {
	t.Run("ends calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, local := &house{}, InProcess(researcher(func(ctx context.Context, _ marchwarden.Sink) (*marchwarden.Result, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}), nil, nil)
			h.research = hangs
			p := newPool(t, h.seat("web"), Seat{Member: dispatch.Member{Name: "files"}, Open: func(context.Context) (Session, Card, error) { return local, Card{}, nil }})
			var wg sync.WaitGroup
			for _, name := range []string{"web", "files"} {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := p.Dispatch(ctx, name, marchwarden.Request{}, nil)
					wantError(t, err, marchwarden.CodeUnavailable, "the pool is closed")
				})
			}
			synctest.Wait()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			began := time.Now()
			wg.Wait()
			if took := time.Since(began); took > time.Second {
				t.Errorf("calls went on for %s", took)
			}
		})
	})
	t.Run("calls off openings", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPool(t, Seat{Member: dispatch.Member{Name: "web"}, Open: func(ctx context.Context) (Session, Card, error) {
				<-ctx.Done()
				return nil, Card{}, ctx.Err()
			}})
			go func() {
				synctest.Wait()
				p.Close()
			}()
			wantError(t, ask(p, "web"), marchwarden.CodeUnavailable, "the pool is closed")
		})
	})
	t.Run("names who does not end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow, broken, wild := &house{}, &house{}, &house{}
			slow.onClose = func() error { time.Sleep(time.Hour); return nil }
			broken.onClose = func() error { return errors.New("exit status 3") }
			wild.onClose = func() error { panic("wild") }
			p := newPool(t, slow.seat("slow"), broken.seat("broken"), wild.seat("wild"))
			for _, m := range p.Members() {
				if err := ask(p, m.Name); err != nil {
					t.Error(err)
				}
			}
			began := time.Now()
			err := p.Close()
			want := "close researcher slow: it did not end within 5s\nclose researcher broken: exit status 3\nclose researcher wild: a bug in this program: the end of a session panicked at "
			if !strings.HasPrefix(fmt.Sprint(err), want) || time.Since(began) != closeLimit {
				t.Errorf("after %s:\n%v", time.Since(began), err)
			}
			time.Sleep(time.Hour)
		})
	})
}

// A member that says nothing is reported every few seconds, with the time that it has
// left: that of the caller, or its own.
func TestSilenceIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{}
		h.research = func(ctx context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error) {
			select {
			case <-time.After(13 * time.Second):
				sink(marchwarden.Event{Stage: marchwarden.StageFetch, Message: "reading"})
			case <-ctx.Done():
			}
			return hangs(ctx, s, sink)
		}
		limited := h.seat("limited")
		limited.Timeout = 22 * time.Second
		p := newPool(t, h.seat("web"), limited)
		said := func(ctx context.Context, name string) (all []string) {
			_, _ = p.Dispatch(ctx, name, marchwarden.Request{}, func(e marchwarden.Event) { all = append(all, string(e.Stage)+": "+e.Message) })
			return all
		}
		ctx, cancel := context.WithTimeout(t.Context(), 22*time.Second)
		defer cancel()
		want := []string{"plan: has said nothing for 5s; 17s left", "plan: has said nothing for 10s; 12s left", "fetch: reading", "fetch: has said nothing for 5s; 4s left"}
		if got := said(ctx, "web"); !slices.Equal(got, want) {
			t.Errorf("until the caller's deadline: %q", got)
		}
		if got := said(t.Context(), "limited"); !slices.Equal(got, want) {
			t.Errorf("until the member's: %q", got)
		}
		free, stop := context.WithCancel(t.Context())
		time.AfterFunc(6*time.Second, stop)
		if got := said(free, "web"); !slices.Equal(got, []string{"plan: has said nothing for 5s; no time limit"}) {
			t.Errorf("without one: %q", got)
		}
		h = &house{}
		h.research = func(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) {
			time.Sleep(11 * time.Second) // past the end, while what it has so far is waited for
			return nil, context.DeadlineExceeded
		}
		p = newPool(t, h.seat("web"))
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		if got := said(short, "web"); !slices.Equal(got, []string{"plan: has said nothing for 5s; 4s left", "plan: has said nothing for 10s; 0s left"}) {
			t.Errorf("past the deadline: %q", got)
		}
	})
}
