package researcher_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// toxic is what a bad line does to the bytes that come back: it hands them on with
// send and returns false to end the connection.
type toxic struct {
	name string
	pass func(l *line, b []byte) bool
}

// line is one connection through a proxy.
type line struct {
	client net.Conn
	over   <-chan struct{} // the test is at its end
	sent   int
}

func (l *line) send(b []byte) bool {
	n, err := l.client.Write(b)
	l.sent += n
	return err == nil
}

// pause waits and reports whether the test goes on.
func (l *line) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-l.over:
		return false
	}
}

// after is a toxic that lets some bytes through, different ones each time it is
// made, and then ends the connection.
func after(bytes int, end func(*line)) func(*line, []byte) bool {
	return func(l *line, b []byte) bool {
		if room := bytes - l.sent; len(b) > room {
			l.send(b[:room])
			end(l)
			return false
		}
		return l.send(b)
	}
}

func toxics(n int) []toxic {
	return []toxic{
		{"latency", func(l *line, b []byte) bool { return l.pause(150*time.Millisecond) && l.send(b) }},
		{"slicer", func(l *line, b []byte) bool {
			for len(b) > 0 {
				k := min(1+n%7, len(b))
				if !l.send(b[:k]) {
					return false
				}
				b = b[k:]
			}
			return true
		}},
		{"bandwidth", func(l *line, b []byte) bool {
			for len(b) > 0 {
				k := min(200, len(b))
				if !l.pause(20*time.Millisecond) || !l.send(b[:k]) {
					return false
				}
				b = b[k:]
			}
			return true
		}},
		{"timeout", func(l *line, _ []byte) bool { return l.pause(time.Minute) }},
		{"reset", after(97*n, func(l *line) {
			if tcp, ok := l.client.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // else it is closed in order, which is the next one
			}
		})},
		{"close", after(131*n, func(*line) {})},
	}
}

// proxy is a bad line to an address; it gives the address of its near end.
func proxy(t testing.TB, target string, tox toxic) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				open.Go(func() { tox.carry(client, target, over) })
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		_ = listener.Close() // nothing is lost with it
		open.Wait()
	})
	return "http://" + listener.Addr().String()
}

func (tox toxic) carry(client net.Conn, target string, over <-chan struct{}) {
	server, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
	if err != nil {
		_ = client.Close()
		return
	}
	hangUp := func() { _, _ = client.Close(), server.Close() } // ends every read on either side
	var both sync.WaitGroup
	defer both.Wait()
	defer hangUp()
	ended := make(chan struct{})
	both.Go(func() {
		defer close(ended)
		defer hangUp()
		_, _ = io.Copy(server, client) // a line that breaks is what this is for
	})
	both.Go(func() {
		select {
		case <-over:
		case <-ended:
		}
		hangUp()
	})
	l := &line{client: client, over: over}
	for buf := make([]byte, 4<<10); ; {
		n, err := server.Read(buf)
		if n > 0 && !tox.pass(l, buf[:n]) || err != nil {
			return
		}
	}
}

// Bad lines to the model and to the search service: no run hangs past its
// deadline, and each has a valid result.
func TestBadLines(t *testing.T) {
	const deadline = 2 * time.Second
	tries := size(20, 4, 1)
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	var mu sync.Mutex
	runs, cited, slowest := 0, 0, time.Duration(0)
	run, wait := abreast(t, 20)
	for i := range tries {
		for _, tox := range toxics(i) {
			for _, to := range []string{"model", "search"} {
				run(fmt.Sprintf("%s to the %s %d", tox.name, to, i), func(t *testing.T) {
					site, server := webtest.New(t, biotech()), llmtest.NewServer(t, obedient)
					far := &farEnds{site.SearchURL(), server.URL()}
					if to == "model" {
						far.model = proxy(t, server.URL(), tox)
					} else {
						far.search = proxy(t, site.URL, tox) + "/searx"
					}
					wire := []llmtest.Wire{llmtest.WireOpenAI, llmtest.WireAnthropic}[i%2]
					l := newLab(t, nil, nil, options{wire: wire, deadline: deadline, idle: 500 * time.Millisecond, search: time.Second, extract: x, far: far})
					req := marchwarden.Request{Question: startups}
					began := time.Now()
					res, err := l.Research(t.Context(), req, nil)
					took := time.Since(began)
					if err != nil {
						t.Fatalf("no result: %v", err)
					}
					if took > deadline+faultGrace {
						t.Errorf("took %v of %v", took, deadline)
					}
					l.holds(t, req, res)
					cleanOfFaults(t, l, res)
					if len(res.Citations) == 0 && len(res.Gaps) == 0 {
						t.Errorf("%s %+v", res.Answer, res.Gaps)
					}
					mu.Lock()
					defer mu.Unlock()
					runs++
					slowest = max(slowest, took)
					if len(res.Citations) > 0 {
						cited++
					}
				})
			}
		}
	}
	wait()
	t.Logf("%d runs over bad lines: %d with citations, slowest %v of %v", runs, cited, slowest.Round(time.Millisecond), deadline)
}
