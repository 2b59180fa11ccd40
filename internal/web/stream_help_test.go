package web_test

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

// film is events that a test sets. Each client gets those it has not got.
type film struct {
	mu    sync.Mutex // guards what follows
	shown string
	over  bool
	looks int
}

func (f *film) set(shown string, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown, f.over = shown, over
}

func (f *film) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

// screening is what one client is sent of a film.
func (f *film) screening() func(context.Context) (string, bool) {
	has := ""
	return func(context.Context) (string, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.looks++
		text := ""
		if f.shown != has {
			has, text = f.shown, web.Event("picture", f.shown)
		}
		if f.over {
			text += web.Event("over", "{}")
		}
		return text, f.over
	}
}

// pipes is a listener whose connections hold nothing: a write waits for its reader, and
// the clock of a bubble goes on while it does.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// theatre shows a film to all who come, behind a server on pipes.
type theatre struct {
	*testing.T
	door *pipes
	life context.Context // of the streams
	end  context.CancelFunc
	here atomic.Int64 // clients
}

func newTheatre(t *testing.T, f *film) *theatre {
	t.Helper()
	th := &theatre{T: t, door: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	th.life, th.end = context.WithCancel(t.Context())
	// Times such as careful servers have, which must not end a stream.
	srv := &http.Server{ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		th.here.Add(1)
		defer th.here.Add(-1)
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		defer context.AfterFunc(th.life, stop)()
		_ = web.Stream(ctx, w, time.Now, f.screening())
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(th.door)
	}()
	t.Cleanup(func() {
		th.end()
		_ = srv.Close()
		<-done
	})
	return th
}

// ask sends a request, and reads nothing.
func (th *theatre) ask() net.Conn {
	th.Helper()
	ours, theirs := net.Pipe()
	th.Cleanup(func() { _ = ours.Close() })
	th.door.conns <- theirs
	if _, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		th.Fatal(err)
	}
	return ours
}

// watch is a client that reads everything.
func (th *theatre) watch() *viewer {
	th.Helper()
	return view(th.ask())
}

// viewer reads a stream as the standard says that browsers do.
type viewer struct {
	conn io.Closer
	done chan struct{}

	mu    sync.Mutex // guards what follows
	got   []message
	retry string
	beats int
	err   error // nil when the answer ended as it should
}

// message is an event that came.
type message struct {
	Name, ID, Data string
}

func view(conn net.Conn) *viewer {
	v := &viewer{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(v.done)
		in := bufio.NewReaderSize(conn, 4<<10)
		resp, err := http.ReadResponse(in, nil)
		v.mu.Lock()
		v.err = err
		v.mu.Unlock()
		if err == nil {
			defer func() { _ = resp.Body.Close() }()
			v.read(bufio.NewReaderSize(resp.Body, 4<<10))
		}
	}()
	return v
}

// read follows "interpreting an event stream" of the HTML standard, for streams whose
// lines end in LF.
func (v *viewer) read(in *bufio.Reader) {
	var m message
	var data []string
	var last string
	for {
		line, err := in.ReadString('\n')
		v.mu.Lock()
		if err != nil {
			if err != io.EOF || line != "" {
				v.err = cmp.Or(v.err, err)
			}
			v.mu.Unlock()
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "\n":
			if data != nil {
				m.Data, m.ID = strings.Join(data, "\n"), last
				v.got = append(v.got, m)
			}
			m, data = message{}, nil
		case name == "":
			v.beats++
		case name == "data":
			data = append(data, value)
		case name == "event":
			m.Name = value
		case name == "id":
			last = value
		case name == "retry":
			v.retry = value
		}
		v.mu.Unlock()
	}
}

// seen is the names and data of all events so far.
func (v *viewer) seen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []string
	for _, m := range v.got {
		all = append(all, m.Name+" "+m.Data)
	}
	return strings.Join(all, ", ")
}

func (v *viewer) ended() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}
