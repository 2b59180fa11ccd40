package pool

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

type researcher func(context.Context, marchwarden.Sink) (*marchwarden.Result, error)

func (f researcher) Research(ctx context.Context, _ marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f(ctx, sink)
}

// here is the seat of a researcher in this process.
func here(name string, do researcher, evidence func(context.Context, string) ([]byte, error), close func() error) Seat {
	return Seat{Member: dispatch.Member{Name: name}, Open: func(context.Context) (Session, Card, error) {
		return InProcess(do, evidence, close), Card{}, nil
	}}
}

func TestInProcess(t *testing.T) {
	yes := &marchwarden.Result{Answer: "yes"}
	for name, tc := range map[string]struct {
		do   researcher
		code marchwarden.Code
		part string
		took time.Duration // of which a minute is the context's
	}{
		"answers": {func(context.Context, marchwarden.Sink) (*marchwarden.Result, error) { return yes, nil }, "", "nil", 0},
		"fails": {func(context.Context, marchwarden.Sink) (*marchwarden.Result, error) {
			return nil, marchwarden.Errorf(marchwarden.CodeDenied, "no")
		}, marchwarden.CodeDenied, "no", 0},
		"panics": {func(context.Context, marchwarden.Sink) (*marchwarden.Result, error) { panic("wild") }, marchwarden.CodeInternal, "panicked", lag},
		"ends with what it has": {func(ctx context.Context, _ marchwarden.Sink) (*marchwarden.Result, error) {
			<-ctx.Done()
			time.Sleep(localGrace / 2)
			return yes, nil
		}, "", "nil", time.Minute + localGrace/2},
		"ignores its end": {func(context.Context, marchwarden.Sink) (*marchwarden.Result, error) {
			time.Sleep(time.Hour)
			return yes, nil
		}, marchwarden.CodeCanceled, "was not waited for", time.Minute + localGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				closes := 0
				var log bytes.Buffer
				p := configured(t, Config{Seats: []Seat{here("web", tc.do, nil, func() error { closes++; return nil })}, Log: slog.New(slog.NewTextHandler(&log, nil))})
				began := time.Now()
				res, err := p.Dispatch(ctx, "web", marchwarden.Request{}, nil)
				wantError(t, err, tc.code, tc.part)
				if (res == nil) == (err == nil) {
					t.Errorf("%v beside %v", res, err)
				}
				if got := strings.Contains(log.String(), "inprocess_test.go"); got != (name == "panics") || strings.Contains(log.String(), "wild") {
					t.Errorf("the log says %s", &log)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %s", took)
				}
				if err := errors.Join(p.Close(), p.Close()); err != nil || closes != 1 {
					t.Errorf("closed %d times, %v", closes, err)
				}
				time.Sleep(time.Hour) // work that ignored its end comes to it
			})
		})
	}
}

func TestInProcessEvidence(t *testing.T) {
	_, err := InProcess(nil, nil, nil).Evidence(t.Context(), "sha256:")
	wantError(t, err, marchwarden.CodeUnsupported, "no evidence")
	s := InProcess(nil, func(_ context.Context, hash string) ([]byte, error) { return []byte(hash), nil }, nil)
	if got, err := s.Evidence(t.Context(), "x"); err != nil || string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
}

func TestInProcessCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, here("web", func(ctx context.Context, sink marchwarden.Sink) (*marchwarden.Result, error) {
			time.Sleep(time.Hour)
			sink(marchwarden.Event{Message: "late"})
			return nil, ctx.Err()
		}, nil, nil))
		go func() {
			synctest.Wait()
			p.Close()
		}()
		var heard []marchwarden.Event
		_, err := p.Dispatch(t.Context(), "web", marchwarden.Request{}, func(e marchwarden.Event) { heard = append(heard, e) })
		wantError(t, err, marchwarden.CodeUnavailable, "closed")
		time.Sleep(2 * time.Hour)
		if diff := cmp.Diff([]marchwarden.Event(nil), heard); diff != "" {
			t.Error(diff)
		}
	})
}
