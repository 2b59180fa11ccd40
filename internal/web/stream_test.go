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

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

const (
	every    = 250 * time.Millisecond // the pause between two looks
	patience = 10 * time.Second       // with a client that does not read
)

// pass lets time pass, and then everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Every client gets every picture that is there long enough, none twice, then the end.
func TestPictures(t *testing.T) {
	for _, clients := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := &film{shown: "one"}
			th := newTheatre(t, f)
			var all []*viewer
			for range clients {
				all = append(all, th.watch())
			}
			pass(2 * every)
			f.set("two\r\nlines\revent: over", false)
			pass(2 * every)
			f.set("three", true)
			pass(every)
			for _, v := range all {
				if want := "picture one, picture two\nlines\nevent: over, picture three, over {}"; v.seen() != want {
					t.Errorf("got %q, want %q", v.seen(), want)
				}
				if !v.ended() || v.err != nil || v.retry == "" {
					t.Errorf("ended: %v, %v, retry %q", v.ended(), v.err, v.retry)
				}
			}
			looks := f.count()
			pass(time.Minute)
			if f.count() != looks || th.here.Load() != 0 {
				t.Errorf("looked at %d times after the end; left: %d clients", f.count()-looks, th.here.Load())
			}
		})
	}
}

// One that does not read is dropped when its time is over. Until then the others do not wait
// for it. One that reads again in time has lost what was between, and has the latest.
func TestNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{shown: "0"}
		th := newTheatre(t, f)
		began := time.Now()
		reader := th.watch()
		th.ask()
		slow := th.ask()
		for n := range 30 {
			f.set(fmt.Sprint(n), false)
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
		pass(time.Until(began.Add(patience - time.Millisecond)))
		if clients := th.here.Load(); clients != 3 {
			t.Errorf("%d clients just before the time is over", clients)
		}
		pass(time.Millisecond)
		if clients := th.here.Load(); clients != 2 {
			t.Errorf("%d clients when the time is over", clients)
		}
	})
}

// A run is not looked at for a client that has left.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{shown: "one"}
		th := newTheatre(t, f)
		v := th.watch()
		pass(every + every/2)
		_ = v.conn.Close()
		pass(time.Millisecond)
		before := f.count()
		pass(time.Minute)
		if looks := f.count(); looks != before || th.here.Load() != 0 {
			t.Errorf("%d clients; looked at %d times when there was none", th.here.Load(), looks-before)
		}
	})
}

// Where nothing happens a comment shows life.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &film{shown: "one"}
		v := newTheatre(t, f).watch()
		pass(10 * time.Second)
		f.set("two", false)
		for _, want := range []int{0, 1, 2} { // after 24 s, 39 s, 54 s
			pass(14 * time.Second)
			if v.beats != want || v.seen() != "picture one, picture two" {
				t.Errorf("%d comments, want %d; %q", v.beats, want, v.seen())
			}
			pass(1500 * time.Millisecond)
		}
	})
}

// A client that stops to read just before the end of the answer holds nothing, either.
func TestFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newTheatre(t, &film{shown: "one", over: true})
		conn := th.ask()
		var got []byte
		for b := make([]byte, 1); !strings.HasSuffix(string(got), "data: {}\n\n\r\n"); got = append(got, b...) {
			if _, err := io.ReadFull(conn, b); err != nil {
				t.Fatalf("after %q: %v", got, err)
			}
		}
		pass(2 * patience)
		if rest, err := io.ReadAll(conn); err != nil || len(rest) != 0 {
			t.Errorf("the connection was still open: %q, %v", rest, err)
		}
	})
}

// The end of the server ends streams that wait at once, and those that are stuck when their time is over.
func TestStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newTheatre(t, &film{shown: "one"})
		reader := th.watch()
		th.ask()
		pass(time.Second)
		th.end()
		synctest.Wait()
		if !reader.ended() || reader.err != nil || reader.seen() != "picture one" {
			t.Errorf("the one that reads: %v, %v, %q", reader.ended(), reader.err, reader.seen())
		}
		pass(patience)
		if clients := th.here.Load(); clients != 0 {
			t.Errorf("left: %d clients", clients)
		}
	})
}

// Over HTTP/2, where streams share a connection, one that is silent for longer than a write may
// take lives on.
func TestHTTP2(t *testing.T) {
	f := &film{shown: "small"}
	now := func() time.Time { return time.Now().Add(time.Second - patience) } // which leaves a second
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = web.Stream(r.Context(), w, now, f.screening()) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Fatal(resp.Proto)
	}
	for f.count() < 8 && t.Context().Err() == nil { // seven pauses of a quarter of a second
		time.Sleep(10 * time.Millisecond)
	}
	f.set("small", true)
	if all, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(all), "data: small\n\nevent: over\ndata: {}\n\n") {
		t.Errorf("got %q, %v", all, err)
	}
}
