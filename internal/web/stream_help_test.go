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
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

// film is a run whose picture a test sets.
type film struct {
	mu      sync.Mutex // guards what follows
	picture string
	restless,
	over bool // restless: every look says that the picture has changed
	err    error
	before func(context.Context) // every look
	looks  int
}

func (f *film) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *film) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looks
}

func (f *film) open(marchwarden.TraceID) web.Source { return &screening{film: f} }

// screening is one source of a film.
type screening struct {
	*film
	shown string
}

func (s *screening) Next(ctx context.Context) ([]byte, bool, bool, error) {
	s.mu.Lock()
	before := s.before
	s.looks++
	s.mu.Unlock()
	if before != nil {
		before(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, false, false, s.err
	}
	changed := s.picture != s.shown || s.restless
	s.shown = s.picture
	return []byte(s.picture), changed, s.over, nil
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

// theatre is streams behind a server on pipes.
type theatre struct {
	*testing.T
	hub  *web.Streams
	door *pipes
}

func id(n byte) marchwarden.TraceID {
	text := []byte("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	text[0] = '0' + n
	parsed, err := marchwarden.ParseTraceID(string(text))
	if err != nil {
		panic(err)
	}
	return parsed
}

// newTheatre serves run n at /n.
func newTheatre(t *testing.T, cfg web.StreamConfig) *theatre {
	t.Helper()
	cfg.Now = time.Now
	th := &theatre{T: t, hub: web.NewStreams(cfg), door: &pipes{conns: make(chan net.Conn), done: make(chan struct{})}}
	// Times such as careful servers have, which must not end a stream.
	srv := &http.Server{ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { th.hub.Serve(w, r, id(r.URL.Path[1]-'0')) })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(th.door)
	}()
	t.Cleanup(func() {
		th.hub.Close()
		_ = srv.Close()
		<-done
	})
	return th
}

// ask sends a request, and reads nothing.
func (th *theatre) ask(path string, header ...string) net.Conn {
	th.Helper()
	ours, theirs := net.Pipe()
	th.Cleanup(func() { _ = ours.Close() })
	th.door.conns <- theirs
	if _, err := io.WriteString(ours, request(path, header...)); err != nil {
		th.Fatal(err)
	}
	return ours
}

func request(path string, header ...string) string {
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: x"}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// watch is a client that reads everything.
func (th *theatre) watch(path string, header ...string) *viewer {
	th.Helper()
	return view(th.ask(path, header...))
}

// viewer reads a stream as the standard says that browsers do.
type viewer struct {
	conn io.Closer
	done chan struct{}

	mu     sync.Mutex // guards what follows
	status int
	head   http.Header
	got    []message
	retry  string
	beats  int
	err    error // nil when the answer ended as it should
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
		if err == nil {
			v.status, v.head = resp.StatusCode, resp.Header
		}
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

// last is the last event.
func (v *viewer) last() message {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.got) == 0 {
		return message{}
	}
	return v.got[len(v.got)-1]
}

func (v *viewer) ended() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}
