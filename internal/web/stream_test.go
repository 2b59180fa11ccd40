package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

const every = 250 * time.Millisecond // the default

// pass lets time pass, and then everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Every client gets every picture that is there long enough, none twice, then the end.
func TestPictures(t *testing.T) {
	for _, clients := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &film{restless: true}
			f.picture = "one"
			th := newTheatre(t, web.StreamConfig{Open: f.open})
			var all []*viewer
			for range clients {
				all = append(all, th.watch("/1"))
			}
			pass(2 * every)
			f.set(func() { f.picture = "two\nlines" })
			pass(2 * every)
			f.set(func() { f.picture, f.over = "three", true })
			pass(every)
			for _, v := range all {
				if want := "picture one, picture two\nlines, picture three, over {}"; v.seen() != want {
					t.Errorf("got %q, want %q", v.seen(), want)
				}
				if !v.ended() || v.err != nil || v.status != 200 || v.retry == "" {
					t.Errorf("ended: %v, %v, status %d, retry %q", v.ended(), v.err, v.status, v.retry)
				}
				if v.head.Get("Content-Type") != "text/event-stream" || !strings.Contains(v.head.Get("Cache-Control"), "no-store") {
					t.Errorf("head: %v", v.head)
				}
			}
			pass(time.Minute)
			if looks := f.count(); looks != 6*clients {
				t.Errorf("looked at %d times, want %d", looks, 6*clients)
			}
			if left := th.hub.Count(); left != 0 {
				t.Errorf("left: %d clients", left)
			}
		})
	}
}

// Who comes back says what picture it has, and gets others only, also when the run has
// ended meanwhile.
func TestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one"}
		th := newTheatre(t, web.StreamConfig{Open: f.open})
		v := th.watch("/1")
		pass(every)
		has := "Last-Event-ID: " + v.last().ID
		if v.last().ID == "" {
			t.Fatal("a picture without an id")
		}
		same, stranger := th.watch("/1", has), th.watch("/1", "Last-Event-ID: 7")
		pass(every)
		if same.seen() != "" || stranger.seen() != "picture one" {
			t.Errorf("back with it: %q; with something else: %q", same.seen(), stranger.seen())
		}
		for _, v := range []*viewer{v, same, stranger} {
			_ = v.conn.Close()
		}
		pass(2 * every)
		again := th.watch("/1", has)
		pass(every)
		f.set(func() { f.picture = "two" })
		pass(every)
		if again.seen() != "picture two" {
			t.Errorf("back with it: %q", again.seen())
		}
		f.set(func() { f.over = true })
		pass(every)
		late := th.watch("/1", "Last-Event-ID: "+again.last().ID)
		pass(every)
		if late.seen() != "over {}" || !late.ended() {
			t.Errorf("after the end: %q", late.seen())
		}
	})
}

// One that does not read is dropped when its time is over. Until then the others do not wait
// for it. One that reads again in time has lost what was between, and has the latest.
func TestNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "0"}
		th := newTheatre(t, web.StreamConfig{Open: f.open, Patience: 10 * time.Second})
		began := time.Now()
		reader := th.watch("/1")
		th.ask("/1")
		slow := th.ask("/1")
		for n := range 30 {
			f.set(func() { f.picture = fmt.Sprint(n) })
			pass(every)
		}
		if got := strings.Count(reader.seen(), "picture"); got != 30 {
			t.Errorf("the one that reads got %d pictures", got)
		}
		v := view(slow)
		synctest.Wait()
		if v.seen() != "picture 29" {
			t.Errorf("the slow one got %q", v.seen())
		}
		if clients := th.hub.Count(); clients != 3 {
			t.Errorf("%d clients before the time is over", clients)
		}
		pass(time.Until(began.Add(10*time.Second - time.Millisecond)))
		if clients := th.hub.Count(); clients != 3 {
			t.Errorf("%d clients just before the time is over", clients)
		}
		pass(time.Millisecond)
		if clients := th.hub.Count(); clients != 2 {
			t.Errorf("%d clients when the time is over", clients)
		}
	})
}

// A run is not looked at for a client that has left.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one"}
		th := newTheatre(t, web.StreamConfig{Open: f.open})
		v := th.watch("/1")
		pass(every + every/2)
		_ = v.conn.Close()
		pass(time.Millisecond)
		before := f.count()
		pass(time.Minute)
		if looks := f.count(); looks != before || th.hub.Count() != 0 {
			t.Errorf("%d clients; looked at %d times when there was none", th.hub.Count(), looks-before)
		}
	})
}

// Where nothing happens a comment shows life; a stream that lives long enough ends as it
// should, so that its client is let in anew.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one"}
		th := newTheatre(t, web.StreamConfig{Open: f.open, Beat: 15 * time.Second, Life: time.Minute})
		v := th.watch("/1")
		pass(10 * time.Second)
		f.set(func() { f.picture = "two" })
		for _, want := range []int{0, 1, 2} { // after 24 s, 39 s, 54 s
			pass(14 * time.Second)
			if v.beats != want || v.seen() != "picture one, picture two" {
				t.Errorf("%d comments, want %d; %q", v.beats, want, v.seen())
			}
			pass(time.Second)
		}
		pass(5 * time.Second)
		if !v.ended() || v.err != nil {
			t.Errorf("ended: %v, %v", v.ended(), v.err)
		}
	})
}

// A client that stops to read just before the end of the answer holds nothing, either.
func TestFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one", over: true}
		th := newTheatre(t, web.StreamConfig{Open: f.open})
		conn := th.ask("/1")
		var got []byte
		for b := make([]byte, 1); !strings.HasSuffix(string(got), "data: {}\n\n\r\n"); got = append(got, b...) {
			if _, err := io.ReadFull(conn, b); err != nil {
				t.Fatalf("after %q: %v", got, err)
			}
		}
		pass(3 * time.Second)
		if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
			t.Errorf("the connection was still open: %q, %v", rest, err)
		}
	})
}

// There is an end to clients; HEAD takes no place.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one"}
		th := newTheatre(t, web.StreamConfig{Open: f.open, MaxClients: 2})
		refused := func(path string, want bool) *viewer {
			t.Helper()
			v := th.watch(path)
			pass(time.Millisecond)
			if got := v.status == http.StatusServiceUnavailable; got != want || got && v.head.Get("Retry-After") == "" {
				t.Errorf("%s: status %d, %v", path, v.status, v.head)
			}
			return v
		}
		refused("/1", false)
		second := refused("/2", false)
		refused("/3", true)
		_ = second.conn.Close()
		pass(every)
		refused("/3", false)
		rec := httptest.NewRecorder()
		th.hub.Serve(rec, httptest.NewRequest(http.MethodHead, "/1", nil), id(1))
		if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "text/event-stream" || th.hub.Count() != 2 {
			t.Errorf("HEAD: %d %v, %d clients", rec.Code, rec.Header(), th.hub.Count())
		}
		th.hub.Close()
		refused("/1", true)
	})
}

// A writer without deadlines is refused, rather than held by a client that never reads.
func TestNoDeadlines(t *testing.T) {
	f := &film{picture: "one"}
	h := web.NewStreams(web.StreamConfig{Open: f.open, Now: time.Now})
	defer h.Close()
	rec := httptest.NewRecorder()
	h.Serve(rec, httptest.NewRequest(http.MethodGet, "/1", nil), id(1))
	if rec.Code != http.StatusInternalServerError {
		t.Errorf("status %d", rec.Code)
	}
}

// Close ends streams that wait and streams that are stuck, in no time.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{picture: "one"}
		th := newTheatre(t, web.StreamConfig{Open: f.open})
		reader := th.watch("/1")
		stuck := th.ask("/1")
		half := th.ask("/2")
		if _, err := io.ReadFull(half, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		began := time.Now()
		th.hub.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("closing took %v", took)
		}
		synctest.Wait()
		if !reader.ended() || reader.err != nil || reader.seen() != "picture one" {
			t.Errorf("the one that reads: %v, %v, %q", reader.ended(), reader.err, reader.seen())
		}
		if got, err := io.ReadAll(stuck); err != nil || strings.Contains(string(got), "picture") {
			t.Errorf("the one that is stuck: %q, %v", got, err)
		}
		th.hub.Close()
	})
}

// Over HTTP/2, where streams share a connection, one that is not read is dropped as well.
// Another on its connection lives on, also when it is silent for longer than a write may
// take.
func TestHTTP2(t *testing.T) {
	const patience = 500 * time.Millisecond
	films := map[marchwarden.TraceID]*film{id(1): {picture: strings.Repeat("x", 12<<20)}, id(2): {picture: "small"}} // more than windows hold
	h := web.NewStreams(web.StreamConfig{Now: time.Now, Patience: patience, Open: func(run marchwarden.TraceID) web.Source { return films[run].open(run) }})
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
	for films[id(1)].count() == 0 || h.Count() != 1 { // one that does not read is dropped
		if t.Context().Err() != nil {
			t.Fatal("it is not dropped")
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * patience)
	films[id(2)].set(func() { films[id(2)].over = true })
	if all, err := io.ReadAll(reader); err != nil || !strings.HasSuffix(string(all), "data: small\n\nevent: over\ndata: {}\n\n") {
		t.Errorf("the other: %q, %v", all, err)
	}
}
