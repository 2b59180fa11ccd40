package web_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

const (
	pictures    = 50
	pictureSize = 20 << 10
)

// bytesOf makes picture n, of lines such as a page has.
func bytesOf(n int) []byte {
	line := fmt.Sprintf("picture %d %s\n", n, strings.Repeat("x", 100))
	return bytes.Repeat([]byte(line), pictureSize/len(line)+1)[:pictureSize]
}

func digest(data string) string {
	sum := sha256.New()
	_, _ = io.WriteString(sum, data) // without a copy
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// memory is what lives on the heap and on stacks.
func memory() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// show is a run that begins when a test says so, and has a new picture at every look.
type show struct {
	begin atomic.Bool

	mu      sync.Mutex // guards what follows
	looks   []time.Time
	grown   int // memory at the last picture but one, when the slow clients are stuck
	measure bool
}

func (s *show) Next(context.Context) ([]byte, bool, bool, error) {
	if !s.begin.Load() {
		return nil, false, false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, time.Now())
	n := len(s.looks)
	if n == pictures-1 && s.measure {
		s.grown = memory()
	}
	return bytesOf(n), true, n == pictures, nil
}

type connKey struct{}

// crowd is a server on loopback whose clients come in three kinds.
type crowd struct {
	t       *testing.T
	hub     *web.Hub
	address string
	conns   sync.WaitGroup
	readers []*viewer
	idle    []net.Conn   // never read
	stuck   atomic.Int32 // those whose stream lasted as long as it may
}

func newCrowd(t *testing.T, cfg web.StreamConfig) *crowd {
	t.Helper()
	c := &crowd{t: t, hub: web.NewStream(cfg)}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		if r.URL.Path == "/small" { // or the kernel would hold all pictures for one that does not read
			if err := r.Context().Value(connKey{}).(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
				t.Error(err)
			}
		}
		c.hub.Serve(w, r, id(1))
		if r.URL.Path == "/small" && time.Since(began) >= cfg.Patience {
			c.stuck.Add(1)
		}
	}))
	srv.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	srv.Start()
	c.address = srv.Listener.Addr().String()
	t.Cleanup(func() {
		c.hub.Close()
		for _, conn := range c.idle {
			_ = conn.Close()
		}
		c.conns.Wait()
		srv.Close()
	})
	return c
}

func (c *crowd) dial(path string) *net.TCPConn {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	if path == "/small" {
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			c.t.Fatal(err)
		}
	}
	if _, err := io.WriteString(conn, request(path, "Connection: close")); err != nil {
		c.t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// join adds clients: some read all, some never read, some leave after a while.
func (c *crowd) join(readers, idle, leaving int) {
	for range readers {
		v := skim(c.dial("/"), digest)
		c.readers = append(c.readers, v)
		c.conns.Go(func() {
			<-v.done
			_ = v.conn.Close()
		})
	}
	for range idle {
		c.idle = append(c.idle, c.dial("/small"))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range leaving {
		conn, after := c.dial("/"), random.IntN(pictures*pictureSize*3/4)
		c.conns.Go(func() {
			_, _ = io.CopyN(io.Discard, conn, int64(after))
			_ = conn.SetLinger(0) // the rude way, without a goodbye
			_ = conn.Close()
		})
	}
	c.t.Helper()
	c.wait("everybody is there", func() bool {
		clients, runs := c.hub.Count()
		return clients == readers+idle+leaving && runs == 1
	})
}

func (c *crowd) wait(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("never: %s", what)
		}
	}
}

// play shows all pictures to a crowd, and gives how much memory it took, how often the
// source was looked at and the longest pause between two looks.
func play(t *testing.T, readers, idle, leaving int) (grown, looks int, longest time.Duration) {
	const patience = 8 * time.Second // far above what a busy machine does to a pause
	s := &show{measure: true}
	opened := 0
	c := newCrowd(t, web.StreamConfig{Now: time.Now, Every: 20 * time.Millisecond, Patience: patience,
		Open: func(context.Context, marchwarden.TraceID) (web.Source, error) {
			opened++
			return s, nil
		}})
	before := memory()
	c.join(readers, idle, leaving)
	s.begin.Store(true)
	for _, v := range c.readers {
		select {
		case <-v.done:
		case <-time.After(30 * time.Second):
			t.Fatal("a reader never came to the end")
		}
		v.mu.Lock()
		n := len(v.got)
		if n < 2 || v.got[n-1].Name != web.EventOver || v.got[n-2].Data != digest(string(bytesOf(pictures))) || v.err != nil {
			t.Errorf("a reader got %d events, not the last picture and the end: %v", n, v.err)
		}
		for i := 1; i < n; i++ {
			if v.got[i].Name == web.EventPicture && v.got[i].ID == v.got[i-1].ID {
				t.Error("a reader got a picture twice")
			}
		}
		v.mu.Unlock()
	}
	// Those who do not read are dropped, in time.
	c.wait("nobody is left", func() bool {
		clients, runs := c.hub.Count()
		return clients+runs == 0 && int(c.stuck.Load()) >= idle
	})
	if stuck := int(c.stuck.Load()); stuck != idle {
		t.Errorf("%d clients were stuck until they were dropped, want %d", stuck, idle)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.looks); i++ {
		longest = max(longest, s.looks[i].Sub(s.looks[i-1]))
	}
	if longest >= patience {
		t.Errorf("the source waited %v for its next look, as long as a slow client may take", longest)
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	return s.grown - before, len(s.looks), longest
}

// A hundred clients of one run, a fifth of which never read and a fifth of which drop,
// cost memory by the connection and not by the picture; the source is looked at as for
// one client, and never waits.
func TestHundred(t *testing.T) {
	one, looksOne, pauseOne := play(t, 1, 0, 0)
	all, looksAll, pauseAll := play(t, 60, 20, 20)
	t.Logf("one client:  %4d kB, %d looks, longest pause %v", one>>10, looksOne, pauseOne)
	t.Logf("100 clients: %4d kB, %d looks, longest pause %v", all>>10, looksAll, pauseAll)
	if looksOne != pictures || looksAll != looksOne {
		t.Errorf("%d looks for one client, %d for a hundred, want %d", looksOne, looksAll, pictures)
	}
	// A connection is goroutines and buffers on both of its sides, more of them under the
	// race detector. The server may be in the middle of a picture for each, and a reader of
	// this test has one twice, as lines and as a whole. Queues for the twenty that do not
	// read would be another 20 MB.
	const connection = 48 << 10
	if bound := 100*(connection+pictureSize) + 60*2*pictureSize; all > bound {
		t.Errorf("a hundred clients took %d kB, over %d kB", all>>10, bound>>10)
	}
}

// A client that never reads costs the same after thousands of pictures as after one.
func TestQueuesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shown = 2000
		s := &reel{}
		th := newTheatre(t, web.StreamConfig{Every: time.Second, Patience: 10 * time.Hour, Life: 10 * time.Hour,
			Open: func(context.Context, marchwarden.TraceID) (web.Source, error) { return s, nil }})
		conn := th.ask("/1")
		pass(10 * time.Second)
		before := memory()
		pass((shown - 10) * time.Second)
		grown := memory() - before
		t.Logf("%d pictures, %d kB, to one that does not read: %d kB more", s.looks, s.looks*pictureSize>>10, grown>>10)
		if s.looks < shown || grown > 20*pictureSize {
			t.Errorf("%d looks, %d kB more", s.looks, grown>>10)
		}
		v := skim(conn, func(data string) string { return data[:20] })
		synctest.Wait()
		if want := fmt.Sprintf("picture picture %d", s.looks); !strings.HasPrefix(v.seen(), want) {
			t.Errorf("when it reads at last it gets %q, want %q", v.seen(), want)
		}
	})
}

// reel has a new picture at every look, without an end.
type reel struct{ looks int }

func (r *reel) Next(context.Context) ([]byte, bool, bool, error) {
	r.looks++
	return bytesOf(r.looks), true, false, nil
}

// Clients come and go at random, on several runs at once. There is one source a run at a
// time, and who stays to the end sees it.
func TestComeAndGo(t *testing.T) {
	f := &film{picture: "0"}
	var mu sync.Mutex
	watched := map[marchwarden.TraceID]context.Context{}
	h := web.NewStream(web.StreamConfig{Now: time.Now, Every: time.Millisecond, Open: func(ctx context.Context, run marchwarden.TraceID) (web.Source, error) {
		mu.Lock()
		defer mu.Unlock()
		if before := watched[run]; before != nil && before.Err() == nil {
			t.Error("two sources of one run")
		}
		watched[run] = ctx
		return f.open(ctx, run)
	}})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Serve(w, r, id(r.URL.Path[1]-'0')) }))
	defer srv.Close()
	defer h.Close()
	var guests sync.WaitGroup
	for n := range 24 {
		guests.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(n)))
			for range 20 {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(random.IntN(8))*time.Millisecond)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint(srv.URL, "/", random.IntN(4)), nil)
				if err != nil {
					t.Error(err)
				}
				if resp, err := srv.Client().Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				leave()
				f.set(func() { f.picture = fmt.Sprint(n, random.Int()) })
			}
		})
	}
	guests.Wait()
	f.set(func() { f.picture, f.over = "the last", true })
	resp, err := srv.Client().Get(srv.URL + "/1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if all, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(all), "data: the last\n\nevent: over\ndata: {}\n\n") {
		t.Errorf("got %q, %v", all, err)
	}
}

// Over HTTP/2, where streams share a connection, one that is not read is dropped as well.
// Another on its connection lives on, also when it is silent for longer than a write may
// take.
func TestHTTP2(t *testing.T) {
	const patience = 500 * time.Millisecond
	films := map[marchwarden.TraceID]*film{id(1): {picture: strings.Repeat("x", 12<<20)}, id(2): {picture: "small"}} // more than windows hold
	h := web.NewStream(web.StreamConfig{Now: time.Now, Patience: patience, Open: func(ctx context.Context, run marchwarden.TraceID) (web.Source, error) {
		return films[run].open(ctx, run)
	}})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Serve(w, r, id(r.URL.Path[1]-'0')) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	defer h.Close()
	get := func(path string) io.ReadCloser {
		t.Helper()
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 {
			t.Fatal(resp.Proto)
		}
		return resp.Body
	}
	reader := get("/2")
	defer func() { _ = reader.Close() }()
	stuck := get("/1")
	defer func() { _ = stuck.Close() }()
	(&crowd{t: t}).wait("one that does not read is dropped", func() bool {
		_, looks := films[id(1)].count()
		clients, _ := h.Count()
		return looks > 0 && clients == 1
	})
	time.Sleep(2 * patience)
	films[id(2)].set(func() { films[id(2)].over = true })
	if all, err := io.ReadAll(reader); err != nil || !strings.HasSuffix(string(all), "data: small\n\nevent: over\ndata: {}\n\n") {
		t.Errorf("the other: %q, %v", all, err)
	}
}
