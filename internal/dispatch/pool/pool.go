// Package pool is the dispatcher over supervised sessions. It opens a session with
// a member of the network when it is first asked, shares it among all calls, opens
// another after a crash, and refuses an external member whose tool is no longer described as it
// was.
//
// It owns what a member's session goes through. It does not know how a session is
// made (a process, an address, a value in this program): a seat brings a function
// that opens one. Nor does it judge what a researcher found; it checks only that
// there is a result, and that evidence has the hash it was asked for by.
//
// What becomes of a call:
//
//	answer, or an error that the researcher answered with   it is passed on
//	panic                                                    CodeInternal
//	session over before an answer                            a crash: CodeUnavailable
//	session that does not open                               CodeUnavailable or the opener's own code
//	seat's time is up                                        CodeTimeout
//	caller's context is over                                 CodeCanceled
//
// A call that was sent is never repeated: it may have cost something. After a crash the next
// call opens a session at once.
package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// MaxEvidence is the most bytes of one piece of evidence.
const MaxEvidence = 16 << 20

// closeLimit is how long Close waits for sessions that do not close.
const closeLimit = 5 * time.Second

// Session is a connection to one researcher. It is safe for concurrent use.
type Session interface {
	marchwarden.Researcher
	// Evidence is stored content by its hash ("sha256:…"). CodeNotFound and
	// CodeUnsupported say that there is none to be had.
	Evidence(ctx context.Context, hash string) ([]byte, error)
	// Done is closed when the session is over, by Close or by a crash, and no later
	// than a tenth of a second after the first call that failed of it.
	Done() <-chan struct{}
	// Close ends the session and the calls on it, and frees what it holds. It is
	// called once, after a crash too.
	Close() error
}

// Card is what the far end says of itself. Nothing in it was cleaned.
type Card struct {
	Contract    string // version of the research contract
	Description string // of its tool
	ToolHash    string // of all a caller's model would be told about the tool
	Private     bool   // it reports from sources of the user's own
}

// Seat is a place in the network: who sits there and how to reach them.
type Seat struct {
	dispatch.Member
	// Open makes a session. Its context bounds the opening alone and ends with it;
	// the session must outlive it. Open is not called twice at the same time, except
	// when an earlier one ignores that its context is over, and by Approve.
	Open func(ctx context.Context) (Session, Card, error)
	// Timeout bounds one call, the opening of a session included; 0 is no bound.
	Timeout time.Duration
	// Pinned says that the tool is external: the description it has on its first use is the one it
	// must keep.
	Pinned bool
}

// Config is what a pool needs.
type Config struct {
	Seats []Seat
	// Pins remembers descriptions; needed when a seat is pinned.
	Pins FilePins
	Now  func() time.Time
	// Log is told about sessions; nil: no log.
	Log *slog.Logger
}

// Pool asks members over sessions. It is safe for concurrent use, and no member
// waits for another.
type Pool struct {
	members []*member // in the order of configuration
	stop    context.CancelFunc
	tasks   *sync.WaitGroup // openings, and closings of dead sessions

	closing  sync.Once
	closeErr error
}

var _ dispatch.Dispatcher = (*Pool)(nil)

// New makes a pool. Nothing is opened before it is needed. Names that cannot be told
// apart or typed are an error with CodeInvalid. The caller closes the pool.
func New(cfg Config) (*Pool, error) {
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	over, stop := context.WithCancel(context.Background())
	p := &Pool{stop: stop, tasks: new(sync.WaitGroup)}
	for i, s := range cfg.Seats {
		wrong := ""
		switch {
		case !dispatch.ValidName.MatchString(s.Name):
			wrong = fmt.Sprintf("%q is no name for a researcher: it has 1 to 40 of a-z, 0-9, _ and -, and begins with a letter", s.Name)
		case slices.ContainsFunc(cfg.Seats[:i], func(other Seat) bool { return other.Name == s.Name }):
			wrong = "two researchers are called " + s.Name
		}
		if wrong != "" {
			stop()
			return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "name", Message: wrong}
		}
		p.members = append(p.members, &member{Seat: s, pins: cfg.Pins, now: cfg.Now, log: log.With("researcher", s.Name), over: over, tasks: p.tasks})
	}
	return p, nil
}

// Members are all that may be asked, in the order of their configuration.
func (p *Pool) Members() []dispatch.Member {
	all := make([]dispatch.Member, len(p.members))
	for i, m := range p.members {
		all[i] = m.Member
	}
	return all
}

// Dispatch asks one member, as dispatch.Dispatcher promises. A name that is not in
// the network is an error with CodeInvalid. The sink hears nothing after Dispatch
// returned. When ctx ends, a session has a moment to hand over what it has.
func (p *Pool) Dispatch(ctx context.Context, name string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	m, err := p.find(name)
	if err != nil {
		return nil, err
	}
	if sink != nil {
		t := m.tap(ctx, sink)
		defer t.shut()
		sink = t.hear
	}
	return call(ctx, m, func(ctx context.Context, s Session) (*marchwarden.Result, error) {
		return checked(s.Research(ctx, req, sink))
	})
}

// Evidence is what a member stored under a hash. Content that has another hash is
// an error with CodeCorrupt, more than MaxEvidence bytes one with CodeMalformed.
func (p *Pool) Evidence(ctx context.Context, name, hash string) ([]byte, error) {
	m, err := p.find(name)
	if err != nil {
		return nil, err
	}
	ref, err := blob.Parse(hash)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "content_hash",
			Message: fmt.Sprintf("%.80q is not sha256: and 64 lower-case hexadecimal digits", hash)}
	}
	return call(ctx, m, func(ctx context.Context, s Session) ([]byte, error) {
		data, err := s.Evidence(ctx, hash)
		if err != nil {
			return nil, err
		}
		if len(data) > MaxEvidence {
			return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s has %d bytes, the limit is %d", hash, len(data), MaxEvidence)
		}
		if blob.Of(data) != ref {
			return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "what it hands over as %s has another hash", hash)
		}
		return data, nil
	})
}

func (p *Pool) find(name string) (*member, error) {
	names := make([]string, len(p.members))
	for i, m := range p.members {
		if m.Name == name {
			return m, nil
		}
		names[i] = m.Name
	}
	e := &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "researcher", Message: fmt.Sprintf("no researcher in the network is called %.80q", name)}
	if len(names) > 0 {
		e.Hint = "there are " + strings.Join(names, ", ")
	}
	return nil, dispatch.NotAsked(e)
}

// Close ends all sessions, and with them the calls under way. It waits five
// seconds for sessions to close; the error names those that failed or did not.
// Later calls, of Close too, find the pool closed.
func (p *Pool) Close() error {
	p.closing.Do(func() {
		errs := make([]error, len(p.members)+1)
		var all sync.WaitGroup
		for i, m := range p.members {
			m.mu.Lock()
			l := m.line
			m.line, m.closed = nil, true
			m.mu.Unlock()
			if l != nil {
				all.Go(func() { errs[i] = m.close(l) })
			}
		}
		p.stop() // when all are closed, so that openings see why they end
		all.Go(func() {
			if brief(slog.New(slog.DiscardHandler), "the pool", func() error { p.tasks.Wait(); return nil }) != nil {
				errs[len(p.members)] = marchwarden.Errorf(marchwarden.CodeTimeout, "a session was still opening or closing after %s", closeLimit)
			}
		})
		all.Wait()
		p.closeErr = errors.Join(errs...)
	})
	return p.closeErr
}
