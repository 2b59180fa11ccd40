package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// TestMain plays a process that shares a file of pins when it is told to.
func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		if err := childSets(path, os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// often is more than once: what holds of a member that often holds for good.
const often = 6

// fake is a session that does what its functions say.
type fake struct {
	research func(ctx context.Context, s *fake, sink marchwarden.Sink) (*marchwarden.Result, error)
	evidence func(ctx context.Context, hash string) ([]byte, error)
	onClose  func() error

	done   chan struct{}
	ending sync.Once
	closes atomic.Int32
}

func (f *fake) Research(ctx context.Context, _ marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return f.research(ctx, f, sink)
}

func (f *fake) Evidence(ctx context.Context, hash string) ([]byte, error) {
	return f.evidence(ctx, hash)
}

func (f *fake) Done() <-chan struct{} { return f.done }

func (f *fake) Close() error {
	f.closes.Add(1)
	f.crash()
	if f.onClose != nil {
		return f.onClose()
	}
	return nil
}

// crash ends the session as a killed process would.
func (f *fake) crash() { f.ending.Do(func() { close(f.done) }) }

// house opens fakes and keeps count of them.
type house struct {
	fake // what every session does
	card Card
	fail func(n int) error // of the n-th opening, from one

	mu     sync.Mutex // guards opened
	opened []*fake
	tries  atomic.Int32
}

func (h *house) open(context.Context) (Session, Card, error) {
	n := int(h.tries.Add(1))
	if h.fail != nil {
		if err := h.fail(n); err != nil {
			return nil, Card{}, err
		}
	}
	s := &fake{research: h.research, evidence: h.evidence, onClose: h.onClose, done: make(chan struct{})}
	if s.research == nil {
		s.research = answers
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = append(h.opened, s)
	return s, h.card, nil
}

func (h *house) last() *fake {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened[len(h.opened)-1]
}

func (h *house) seat(name string) Seat {
	return Seat{Member: dispatch.Member{Name: name}, Open: h.open}
}

// allClosed says which sessions were not closed exactly once.
func (h *house) allClosed(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range h.opened {
		if n := s.closes.Load(); n != 1 {
			t.Errorf("session %d of %d was closed %d times", i+1, len(h.opened), n)
		}
	}
}

func answers(context.Context, *fake, marchwarden.Sink) (*marchwarden.Result, error) {
	return &marchwarden.Result{Answer: "yes"}, nil
}

// dies is a call that is never answered because the session crashes.
func dies(_ context.Context, s *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
	s.crash()
	return nil, errors.New("EOF")
}

// hangs is a call that ends with its context.
func hangs(ctx context.Context, _ *fake, _ marchwarden.Sink) (*marchwarden.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func newPool(t *testing.T, seats ...Seat) *Pool {
	t.Helper()
	return configured(t, Config{Seats: seats})
}

func configured(t *testing.T, cfg Config) *Pool {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func ask(p *Pool, member string) error {
	_, err := p.Dispatch(context.Background(), member, marchwarden.Request{Question: "why?"}, nil)
	return err
}

// wantError compares the code and a part of the text.
func wantError(t *testing.T, err error, code marchwarden.Code, part string) {
	t.Helper()
	if marchwarden.CodeOf(err) != code || !strings.Contains(fmt.Sprint(err), part) {
		t.Errorf("got %q: %v\nwant %q: … %s …", marchwarden.CodeOf(err), err, code, part)
	}
}
