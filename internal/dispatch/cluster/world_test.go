package cluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// full says that the long tests are wanted.
func full() bool { return os.Getenv("MARCHWARDEN_TEST_CLUSTER") == "full" }

func TestMain(m *testing.M) {
	datatest.Abreast(12) // they wait for leases, and do little meanwhile
	datatest.InMemory()
	os.Exit(m.Run())
}

// lease is long enough for a busy machine to renew in.
const lease = 2 * time.Second

// serve starts a server on a directory, without a port.
func serve(t *testing.T, dir string, sync bool) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{ServerName: "hub", DontListen: true, JetStream: true, StoreDir: dir,
		SyncAlways: sync, NoSigs: true, NoLog: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// world is a prepared server and the lines that lead to it.
type world struct {
	t     *testing.T
	lease time.Duration

	mu     sync.Mutex // guards what follows
	server *server.Server
	lines  map[dispatch.Engine]*line
}

func newWorld(t *testing.T, lease time.Duration) *world {
	t.Helper()
	w := &world{t: t, lease: lease, server: serve(t, t.TempDir(), false), lines: map[dispatch.Engine]*line{}}
	if err := cluster.Prepare(t.Context(), w.config("hub", w.server), cluster.Facts{Lease: lease}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) config(name string, in interface{ InProcessConn() (net.Conn, error) }) cluster.Config {
	return cluster.Config{InProcess: in, Name: name, Now: time.Now}
}

// open opens an engine over a line of its own.
func (w *world) open(t *testing.T, name string) *cluster.Engine {
	t.Helper()
	l := &line{world: w, open: make(chan struct{})}
	close(l.open)
	e, err := cluster.Open(t.Context(), w.config(name, l))
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.lines[e] = l
	w.mu.Unlock()
	t.Cleanup(func() { l.resume(); _ = e.Close() })
	return e
}

// openOn opens an engine with its own evidence and clock.
func (w *world) openOn(t *testing.T, name string, evidence blob.Store, now func() time.Time) *cluster.Engine {
	t.Helper()
	cfg := w.config(name, w.server)
	cfg.Now = now
	e, err := cluster.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.UseBlobs(evidence)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// handBack has an engine begin a task of the queue web and hand it back, with a line that
// is so long that it is among the evidence: the next worker has to ask for that.
func handBack(t *testing.T, e *cluster.Engine) dispatch.Task {
	t.Helper()
	task, begun := dispatchtest.Task("web"), make(chan struct{}, 8)
	if err := e.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	stop := work(t, e, 1, func(ctx context.Context, _ dispatch.Task, lines dispatch.Lines, _ marchwarden.Sink) (*marchwarden.Result, error) {
		if err := lines.Append(ctx, append(make([]byte, 200<<10), '\n')); err != nil {
			return nil, err
		}
		begun <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	<-begun
	stop()
	return task
}

func (w *world) line(e dispatch.Engine) *line {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[e]
}

func (w *world) rig() dispatchtest.Rig {
	return dispatchtest.Rig{
		Lease: w.lease,
		Open:  func(t *testing.T, name string) dispatch.Engine { return w.open(t, name) },
		Kill:  func(e dispatch.Engine) { _ = e.Close() },
		Stall: func(e dispatch.Engine) func() {
			l := w.line(e)
			l.pause()
			return l.resume
		},
	}
}

// line is the way from one engine to the server. It can be interrupted so that neither
// end notices, or be cut.
type line struct {
	world *world

	mu    sync.Mutex    // guards what follows
	open  chan struct{} // closed while bytes pass
	conns []net.Conn
	lose  func([]byte) bool // what of the server's words gets lost with the connection
}

func (l *line) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

func (l *line) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// cut breaks the connections that there are.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *line) wait() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	<-open
}

// InProcessConn leads to the server through a pair of pipes that heed the line.
func (l *line) InProcessConn() (net.Conn, error) {
	l.wait()
	l.world.mu.Lock()
	s := l.world.server
	l.world.mu.Unlock()
	if s == nil {
		return nil, errors.New("no server")
	}
	far, err := s.InProcessConn()
	if err != nil {
		return nil, err
	}
	near, mine := net.Pipe()
	l.mu.Lock()
	l.conns = append(l.conns, far, mine)
	l.mu.Unlock()
	go l.copy(far, mine, false)
	go l.copy(mine, far, true)
	return near, nil
}

func (l *line) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			l.wait()
			l.mu.Lock()
			lose := l.lose
			l.mu.Unlock()
			if answers && lose != nil && lose(buf[:n]) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	t.Cleanup(stop)
	return ctx
}

func TestEngine(t *testing.T) {
	t.Parallel()
	dispatchtest.Run(t, func(t *testing.T, lease time.Duration) dispatchtest.Rig { return newWorld(t, lease).rig() })
}
