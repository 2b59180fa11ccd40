package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	maxGrowth = 64 << 20
	grace     = 500 * time.Millisecond
)

// growth runs do and returns by how much the heap grew at its largest, garbage
// included, and how long it took.
func growth(do func()) (bytes uint64, took time.Duration) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := heap()
	most := before
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			most = max(most, heap())
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	start := time.Now()
	do()
	took = time.Since(start)
	close(stop)
	wg.Wait()
	return most - before, took
}

const part, parts = 16 << 20, 64 // 1 GiB

// gzipBomb decompresses to 1 GiB of zeros. It is one part
// repeated, because making a whole one takes longer than all tests together.
func gzipBomb(t *testing.T) []byte {
	return bytes.Repeat(press(t, "gzip", make([]byte, part)), parts)
}

func TestBombs(t *testing.T) {
	for coding, bomb := range map[string][]byte{"gzip": gzipBomb(t)} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(bomb)
		})
		f := newFetcher(t, nil)
		var err error
		grown, took := growth(func() { _, err = f.Fetch(t.Context(), server.URL+"/") })
		wantCode(t, coding+" bomb", err, marchwarden.CodeUnavailable)
		if !strings.Contains(err.Error(), "16777216") {
			t.Errorf("%s bomb: %v does not name the limit", coding, err)
		}
		t.Logf("%s bomb of %d bytes: %d KiB of heap, %v", coding, len(bomb), grown>>10, took)
		if grown > maxGrowth || took > 10*time.Second+grace {
			t.Errorf("%s bomb: %d MiB of heap, %v", coding, grown>>20, took)
		}
	}
}

func TestEndlessBodies(t *testing.T) {
	for name, header := range map[string]http.Header{
		"endless": {}, "announced": {"Content-Length": {"10737418240"}}, "empty members": {"Content-Encoding": {"gzip"}},
	} {
		piece := make([]byte, 1<<20)
		if name == "empty members" { // a stream that decompresses to nothing for ever
			piece = bytes.Repeat(press(t, "gzip", nil), 1000)
		}
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			for key, values := range header {
				w.Header()[key] = values
			}
			for {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		})
		f := newFetcher(t, func(c *Config) { c.Timeout = time.Minute }) // its size ends it, also where a machine is busy
		var err error
		grown, took := growth(func() { _, err = f.Fetch(t.Context(), server.URL+"/") })
		wantCode(t, name, err, marchwarden.CodeUnavailable)
		if grown > maxGrowth {
			t.Errorf("%s: %d MiB of heap, %v", name, grown>>20, took)
		}
	}
}

func TestBodyAtTheLimit(t *testing.T) {
	const limit = 100_000
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var size int
		fmt.Sscanf(r.URL.Path, "/%d", &size)
		body := bytes.Repeat([]byte("a"), size)
		if r.URL.Query().Has("gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			body = press(t, "gzip", body)
		}
		if r.URL.Query().Has("chunked") {
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(body)
	})
	f := newFetcher(t, func(c *Config) { c.MaxBody = limit })
	for _, how := range []string{"", "?gzip=1", "?chunked=1"} {
		if page, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d%s", server.URL, limit, how)); err != nil || page.RawBytes != limit {
			t.Errorf("a body at the limit (%s) gave %d bytes, %v", how, page.RawBytes, err)
		}
		_, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d%s", server.URL, limit+1, how))
		wantCode(t, "a body over the limit "+how, err, marchwarden.CodeUnavailable)
	}
}

// rawServer answers the first request of every connection with what answer
// writes.
func rawServer(t *testing.T, answer func(conn net.Conn, path string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					answer(conn, req.URL.Path)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

const noRobotsHere = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

// drip writes text over and over, a byte at a time, until the other end is gone.
func drip(conn net.Conn, text string, every time.Duration) {
	for i := 0; ; i++ {
		if _, err := conn.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
		time.Sleep(every)
	}
}

func TestHeaders(t *testing.T) {
	base := rawServer(t, func(conn net.Conn, path string) {
		switch path {
		case "/robots.txt":
			fmt.Fprint(conn, noRobotsHere)
		case "/one": // 2 MB in one line
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX-Large: %s\r\n\r\n", strings.Repeat("x", 2<<20))
		case "/many":
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%s\r\n", strings.Repeat("X-Small: x\r\n", 200_000))
		case "/interim":
			fmt.Fprint(conn, strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 100_000))
		case "/nonsense":
			fmt.Fprint(conn, strings.Repeat("\x00\xff\x1b[31m", 1000))
		}
	})
	f := newFetcher(t, nil)
	for _, path := range []string{"/one", "/many", "/interim", "/nonsense", "/nothing"} {
		var err error
		grown, took := growth(func() { _, err = f.Fetch(t.Context(), base+path) })
		wantCode(t, path, err, marchwarden.CodeUnavailable)
		if grown > maxGrowth || took > 10*time.Second+grace {
			t.Errorf("%s: %d MiB of heap, %v", path, grown>>20, took)
		}
		if strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: the error carries control characters: %q", path, err)
		}
	}
}

func TestSlowServers(t *testing.T) {
	const timeout = 300 * time.Millisecond
	for _, test := range []struct {
		name, robots, path string
	}{
		{"body", noRobotsHere, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n"},
		{"chunks", noRobotsHere, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"header", noRobotsHere, "HTTP/1.1 200 OK\r\nX-Slow: "},
		{"silence", noRobotsHere, ""},
		{"redirect", noRobotsHere, "HTTP/1.1 302 Found\r\nLocation: /page\r\n\r\n"},
		{"robots", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", ""},
		{"silent robots", "", ""},
	} {
		base := rawServer(t, func(conn net.Conn, path string) {
			answer := test.path
			if path == "/robots.txt" {
				answer = test.robots
			}
			fmt.Fprint(conn, answer)
			switch answer {
			case noRobotsHere:
			case "":
				_, _ = io.Copy(io.Discard, conn) // until the other end is gone
			default:
				drip(conn, "1\r\na\r\n", 100*time.Millisecond)
			}
		})
		f := newFetcher(t, func(c *Config) { c.Timeout = timeout })
		var err error
		grown, took := growth(func() { _, err = f.Fetch(t.Context(), base+"/page") })
		if test.name != "redirect" { // one that ends in time leads back to itself
			wantCode(t, test.name, err, marchwarden.CodeTimeout)
		}
		if err == nil || grown > maxGrowth || took > timeout+grace {
			t.Errorf("%s: %d MiB of heap, %v, %v", test.name, grown>>20, took, err)
		}
		if err := f.Close(); err != nil { // lets go of robots.txt, and so the server end
			t.Error(err)
		}
	}
}
