package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// member is one seat and what became of its sessions.
type member struct {
	Seat
	pins  FilePins
	now   func() time.Time
	log   *slog.Logger
	over  context.Context // ends with the pool
	tasks *sync.WaitGroup // the pool's; added to under mu while not closed

	mu      sync.Mutex // guards what follows; nothing of what others wrote is called with it held
	line    *line      // the session in use, or nil
	opening *opening   // the one under way, or nil
	closed  bool
}

// line is one open session. It is told from others by its address.
type line struct {
	session Session
	over    <-chan struct{} // the session's Done
	grace   time.Duration   // how long a call may go on when its context is over
	card    Card
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// opening is one attempt to open a session, for all who wait for it.
type opening struct {
	cancel  context.CancelFunc
	waiters int           // guarded by the member's mu
	done    chan struct{} // closed after line or err were set
	line    *line
	err     error
}

// acquire gives a session that is alive as far as one can see, waiting until one
// is open. When ctx ends first, err is its error.
func (m *member) acquire(ctx context.Context) (*line, error) {
	m.mu.Lock()
	m.notice()
	if m.closed {
		m.mu.Unlock()
		return nil, m.closedError()
	}
	if l := m.line; l != nil {
		m.mu.Unlock()
		return l, nil
	}
	o := m.opening
	if o == nil {
		o = m.begin(ctx)
	}
	o.waiters++
	m.mu.Unlock()

	select {
	case <-o.done:
		return o.line, o.err
	case <-ctx.Done():
		m.giveUp(o)
		return nil, ctx.Err()
	}
}

func (m *member) closedError() error {
	return marchwarden.Errorf(marchwarden.CodeUnavailable, "researcher %s is not asked: the pool is closed", m.Name)
}

// begin starts to open a session. It is called with mu held.
func (m *member) begin(ctx context.Context) *opening {
	// The first caller may leave while others wait.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	o := &opening{cancel: cancel, done: make(chan struct{})}
	m.opening = o
	m.tasks.Go(func() {
		defer cancel()
		defer context.AfterFunc(m.over, cancel)()
		m.open(ctx, o)
	})
	return o
}

// open carries an opening out.
func (m *member) open(ctx context.Context, o *opening) {
	l, err := m.dial(ctx)
	if err == nil {
		err = m.admit(l.card)
	}
	m.mu.Lock()
	switch {
	case m.closed:
		err = m.closedError()
	case m.opening != o: // given up: what came of it is not read
		err = context.Canceled
	case err == nil:
		m.opening, m.line = nil, l
	default:
		m.opening = nil
	}
	o.line, o.err = l, err
	close(o.done)
	m.mu.Unlock()

	if err == nil {
		m.log.Debug("session open", "contract", l.card.Contract, "tool", l.card.ToolHash)
		return
	}
	m.log.Warn("no session", "error", err)
	if l != nil {
		m.discard(l.session)
	}
}

// dial opens a session. The context's own error is given as it is.
func (m *member) dial(ctx context.Context) (*line, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var l line
	_, err := guarded(m.log, "the opening of a session", func() (_ struct{}, err error) {
		if l.session, l.card, err = m.Open(ctx); err == nil && l.session == nil {
			err = marchwarden.Errorf(marchwarden.CodeInternal, "it opened and gave no session")
		}
		return
	})
	if err == nil {
		l.over, l.grace = l.session.Done(), grace
		if _, here := l.session.(*local); here {
			l.grace = localGrace
		}
		return &l, nil
	}
	if l.session != nil {
		m.discard(l.session)
	}
	err = m.discreet(err)
	code := marchwarden.CodeOf(err)
	if code == marchwarden.CodeInternal || code == marchwarden.CodeCanceled {
		code = marchwarden.CodeUnavailable
	}
	return nil, marchwarden.Wrap(err, code, "researcher %s cannot be reached", m.Name)
}

// giveUp is for a waiter that leaves an opening. After the last one it is called
// off, and the next call begins a new one, whatever this one does.
func (m *member) giveUp(o *opening) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.waiters--
	if o.waiters > 0 || m.opening != o {
		return
	}
	m.opening = nil
	o.cancel()
}

// notice looks whether the session died while no call used it. It is called with mu held.
func (m *member) notice() {
	if m.line != nil && closed(m.line.over) {
		m.drop(errEnded)
	}
}

// errEnded is why a session is not used any more that ended by itself.
var errEnded = errors.New("its session ended")

// drop gives up the session in use, which crashed. It is called with mu held and the
// member not closed.
func (m *member) drop(cause error) {
	l := m.line
	m.line = nil
	m.tasks.Go(func() {
		m.log.Warn("session lost", "error", cause)
		m.discard(l.session)
	})
}

// lost says that a call met the end of its session. However many calls say so, it
// is one crash. The result is false when the pool was closed.
func (m *member) lost(l *line, cause error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.line == l {
		m.drop(cause)
	}
	return !m.closed
}

// closingIt is what may panic, in words.
const closingIt = "the end of a session"

// close closes a session, within the limit.
func (m *member) close(l *line) error {
	err := brief(m.log, closingIt, l.session.Close)
	if errors.Is(err, errOverdue) {
		return marchwarden.Errorf(marchwarden.CodeTimeout, "close researcher %s: it did not end within %s", m.Name, closeLimit)
	}
	return marchwarden.Wrap(err, marchwarden.CodeOf(err), "close researcher %s", m.Name)
}

// brief waits for what was told to end, for closeLimit; then it is errOverdue.
func brief(log *slog.Logger, what string, end func() error) error {
	limit, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_, err := await(limit, log, nil, 0, what, func() (struct{}, error) { return struct{}{}, end() })
	return err
}

// discard closes an unused session, where an error is to be expected.
func (m *member) discard(s Session) {
	if _, err := guarded(m.log, closingIt, func() (struct{}, error) { return struct{}{}, s.Close() }); err != nil {
		m.log.Debug("session closed", "error", err)
	}
}
