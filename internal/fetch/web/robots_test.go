package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// TestRobotsRules are the rules of RFC 9309, and what is common practice where it
// is silent.
func TestRobotsRules(t *testing.T) {
	for _, test := range []struct {
		name, text string
		yes, no    []string
	}{
		{"empty", "", []string{"/", "/a"}, nil},
		{"all", "User-agent: *\nDisallow: /\n", nil, []string{"/", "/a"}},
		{"nothing", "User-agent: *\nDisallow:\n", []string{"/", "/a"}, nil},
		{"prefix", "User-agent: *\nDisallow: /private\n", []string{"/", "/Private"}, []string{"/private", "/private/a", "/privateer"}},
		{"own group wins", "User-agent: *\nDisallow: /\n\nUser-agent: marchwarden\nDisallow: /x\n", []string{"/", "/a"}, []string{"/x"}},
		{"own group comes first", "User-agent: marchwarden\nAllow: /\n\nUser-agent: *\nDisallow: /\n", []string{"/a"}, nil},
		{"own groups are joined", "User-agent: marchwarden\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: marchwarden\nDisallow: /b\n", []string{"/c"}, []string{"/a", "/b"}},
		{"name in any case", "user-AGENT: MarchWarden\nDISALLOW: /a\n", []string{"/b"}, []string{"/a"}},
		{"name with version", "User-agent: marchwarden/2.0\nDisallow: /a\n", []string{"/b"}, []string{"/a"}},
		{"other names", "User-agent: march\nDisallow: /\n\nUser-agent: marchwardenbot\nDisallow: /\n", []string{"/a"}, nil},
		{"several names", "User-agent: x\nUser-agent: marchwarden\nDisallow: /a\n", []string{"/b"}, []string{"/a"}},
		{"longest wins", "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\n", []string{"/a/b", "/a/b/d"}, []string{"/a", "/a/b/c"}},
		{"order does not matter", "User-agent: *\nAllow: /a/b\nDisallow: /a\n", []string{"/a/b"}, []string{"/a/c"}},
		{"tie allows", "User-agent: *\nDisallow: /a\nAllow: /a\n", []string{"/a"}, nil},
		{"wildcard", "User-agent: *\nDisallow: /*/private\n", []string{"/private"}, []string{"/a/private", "/a/b/private/c"}},
		{"end", "User-agent: *\nDisallow: /*.php$\n", []string{"/a.php?b", "/a.phpx"}, []string{"/a.php", "/b/a.php"}},
		{"query", "User-agent: *\nDisallow: /*?print=\n", []string{"/a"}, []string{"/a?print=1"}},
		{"escapes", "User-agent: *\nDisallow: /a%2fb\nDisallow: /\u00e9\nDisallow: /%c3%a8\nDisallow: /%7eme\nDisallow: /%24\n", []string{"/a/b", "/c"}, []string{"/a%2Fb", "/%C3%A9", "/%C3%A8", "/~me", "/%24"}},
		{"comments", "# a comment\nUser-agent: * # all\nDisallow: /a # this\n", []string{"/b"}, []string{"/a"}},
		{"line ends", "User-agent: *\rDisallow: /a\r\nDisallow: /b", []string{"/c"}, []string{"/a", "/b"}},
		{"byte order mark", "\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", []string{"/b"}, []string{"/a"}},
		{"rules before a group", "Disallow: /a\nUser-agent: *\nDisallow: /b\n", []string{"/a"}, []string{"/b"}},
		{"other lines do not split a group", "User-agent: *\nCrawl-delay: 1\nSitemap: https://example.org/s.xml\nDisallow: /a\n", []string{"/b"}, []string{"/a"}},
		{"not a robots.txt", "<!doctype html><html><body>Disallow: everything</body></html>", []string{"/", "/a"}, nil},
		{"binary", "\x00\xff\x00\xfe", []string{"/a"}, nil},
	} {
		server := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				fmt.Fprint(w, test.text)
				return
			}
			fmt.Fprint(w, "a page")
		})
		f := newFetcher(t, func(c *Config) { c.UserAgent = "Marchwarden/1.2 (tests)" })
		for _, path := range test.yes {
			_, err := f.Fetch(t.Context(), server+path)
			wantCode(t, test.name+": "+path, err, "")
		}
		for _, path := range test.no {
			_, err := f.Fetch(t.Context(), server+path)
			wantCode(t, test.name+": "+path, err, marchwarden.CodeDenied)
			if err != nil && !strings.Contains(err.Error(), "robots.txt of 127.0.0.1") {
				t.Errorf("%s: %v does not name the reason", test.name, err)
			}
		}
	}
}

func serveAll(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	return listen(t, "127.0.0.1:0", handle).URL
}

func TestRobotsThatAreNotThere(t *testing.T) {
	var status atomic.Int32
	server := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			if s := int(status.Load()); s >= 300 && s < 400 {
				http.Redirect(w, r, "/robots.txt", s)
			} else {
				w.WriteHeader(s)
			}
			return
		}
		fmt.Fprint(w, "a page")
	})
	for s, code := range map[int32]marchwarden.Code{
		401: "", 403: "", 404: "", 410: "", 429: "", 204: "", 301: "", // a circle of redirects is as good as nothing
		500: marchwarden.CodeDenied, 503: marchwarden.CodeDenied, 599: marchwarden.CodeDenied,
	} {
		status.Store(s)
		_, err := newFetcher(t, nil).Fetch(t.Context(), server+"/a")
		wantCode(t, fmt.Sprintf("robots.txt with status %d", s), err, code)
	}
}

func TestRobotsAreAskedOnce(t *testing.T) {
	var asked, status atomic.Int32
	status.Store(http.StatusOK)
	server := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			asked.Add(1)
			time.Sleep(20 * time.Millisecond)
			w.WriteHeader(int(status.Load()))
			fmt.Fprint(w, "User-agent: *\nDisallow: /no\n")
			return
		}
		fmt.Fprint(w, "a page")
	})
	var mu sync.Mutex
	now := noon
	f := newFetcher(t, func(c *Config) {
		c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		c.PerHost = 10
	})
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := f.Fetch(t.Context(), fmt.Sprintf("%s/%d", server, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	step := func(what string, after time.Duration, wantAsked int32, path string, code marchwarden.Code) {
		t.Helper()
		later(after)
		_, err := f.Fetch(t.Context(), server+path)
		wantCode(t, what, err, code)
		if asked.Load() != wantAsked {
			t.Errorf("%s: robots.txt was asked for %d times, want %d", what, asked.Load(), wantAsked)
		}
	}
	step("the same day", 23*time.Hour, 1, "/no", marchwarden.CodeDenied)
	status.Store(http.StatusServiceUnavailable)
	step("the next day", 2*time.Hour, 2, "/a", marchwarden.CodeDenied)
	step("a moment after a fault", time.Minute, 2, "/a", marchwarden.CodeDenied)
	status.Store(http.StatusOK)
	step("a while after a fault", 5*time.Minute, 3, "/a", "")
}

// TestRobotsOfEveryHop: a redirect leads to what robots.txt there must allow.
func TestRobotsOfEveryHop(t *testing.T) {
	closed := listen(t, "127.0.0.2:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /\n")
	}))
	server := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /no\n")
		case "/away":
			http.Redirect(w, r, closed.URL+"/", http.StatusFound)
		default:
			http.Redirect(w, r, "/no", http.StatusFound)
		}
	})
	f := newFetcher(t, nil)
	for _, path := range []string{"/away", "/here"} {
		_, err := f.Fetch(t.Context(), server+path)
		wantCode(t, path, err, marchwarden.CodeDenied)
	}
}

func TestLongRobots(t *testing.T) {
	head := "User-agent: *\nDisallow: /early\n"
	text := head + strings.Repeat("# filler\n", (robotsBytes-len(head))/9+1) + "Disallow: /late\n"
	server := serveAll(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) })
	f := newFetcher(t, nil)
	_, err := f.Fetch(t.Context(), server+"/early")
	wantCode(t, "a rule within the limit", err, marchwarden.CodeDenied)
	_, err = f.Fetch(t.Context(), server+"/late")
	wantCode(t, "a rule beyond the limit", err, "")
	_, err = f.Fetch(t.Context(), server+"/"+strings.Repeat("a", 4000))
	wantCode(t, "a long address", err, "")
}

// TestCostlyRobots: matching a long address against many wildcards would take
// seconds.
func TestCostlyRobots(t *testing.T) {
	line := "Disallow: /" + strings.Repeat("*a", 1000) + "\n"
	text := "User-agent: *\n" + strings.Repeat(line, robotsBytes/len(line))
	server := serveAll(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) })
	f := newFetcher(t, nil)
	_, err := f.Fetch(t.Context(), server+"/b")
	wantCode(t, "a short address", err, "")
	_, err = f.Fetch(t.Context(), server+"/"+strings.Repeat("a", 800))
	wantCode(t, "a long address", err, marchwarden.CodeDenied)
	if err != nil && !strings.Contains(err.Error(), "wildcards") {
		t.Errorf("%v does not name the reason", err)
	}
}

func TestRobotsAreForgotten(t *testing.T) {
	r := newRobots("marchwarden", func() time.Time { return noon }, nil)
	defer r.close()
	for i := range maxHosts + 10 {
		origin := fmt.Sprint(i)
		r.keep(origin, rules{text: strings.Repeat("a", 20<<10), until: noon.Add(time.Duration(i))})
		if _, ok := r.known[origin]; !ok {
			t.Fatal("the newest was forgotten")
		}
	}
	size := 0
	for _, rules := range r.known {
		size += len(rules.text)
	}
	if size != r.size || size > robotsMemory || len(r.known) > maxHosts || len(r.known) == 0 {
		t.Errorf("%d hosts with %d bytes, counted %d", len(r.known), size, r.size)
	}
}

// TestPanicOfAFlight: what panics while a robots.txt is fetched and read costs only those that wait
// for it.
func TestPanicOfAFlight(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page") })
	f := newFetcher(t, func(c *Config) { c.PerHost = 4 })
	get, start := f.robots.get, make(chan struct{})
	for _, test := range []struct {
		value any
		says  string
	}{{"SAID BY THE SERVER", "a string"}, {nil, "index out of range"}} {
		var asked atomic.Int32
		f.robots.get = func(context.Context, *url.URL) (answer, error) {
			asked.Add(1)
			<-start
			if test.value != nil {
				panic(test.value)
			}
			var codes []int
			return answer{status: codes[asked.Load()]}, nil
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				_, err := f.Fetch(t.Context(), server.URL+"/")
				wantCode(t, "a flight that panics", err, marchwarden.CodeInternal)
				if err == nil || !strings.Contains(err.Error(), "robots.txt of 127.0.0.1") || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "SAID") {
					t.Errorf("error %v, want %q in it", err, test.says)
				}
			})
		}
		for asked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(start)
		wg.Wait()
		start = make(chan struct{})
	}
	f.robots.get = get
	if _, err := f.Fetch(t.Context(), server.URL+"/"); err != nil {
		t.Errorf("the next flight: %v", err)
	}
}

func TestClosedFetcher(t *testing.T) {
	f := newFetcher(t, nil)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := f.Fetch(t.Context(), "http://127.0.0.1:1/")
	wantCode(t, "a closed fetcher", err, marchwarden.CodeCanceled)
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /*a$\nCrawl-delay: 2", "/a%2F?b")
	f.Add("User-agent: marchwarden\nAllow: /\x00%", "/%")
	f.Fuzz(func(t *testing.T, text, path string) {
		u := url.URL{Scheme: "https", Host: "example.org", Path: "/" + path}
		allows(text, "marchwarden", u.String())
	})
}
