package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scripttest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// TestDriftScripts are scripts with a web that they can change. $SITE serves the
// folder site of the script, and finds all of its pages below $SITE/searx:
//
//	NAME.html            a page, with an ETag, for NAME
//	NAME.status          answers with this status, and the address behind it if there is one
//	NAME.slow            answers nothing
//	NAME                 anything else, such as robots.txt
func TestDriftScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/drift",
		Setup: func(e *testscript.Env) error {
			server := httptest.NewServer(folderSite(filepath.Join(e.WorkDir, "site")))
			e.Defer(func() {
				server.CloseClientConnections()
				server.Close()
			})
			home := filepath.Join(e.WorkDir, "home")
			for name, value := range map[string]string{
				"HOME": home, "KEPT": filepath.Join(home, ".marchwarden"), "SITE": server.URL, "SEARXNG_URL": server.URL + "/searx",
				"MARCHWARDEN_FETCH_ALLOW": "127.0.0.0/8", "MARCHWARDEN_SEARCH": "searxng",
			} {
				e.Setenv(name, value)
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds:                scripttest.With(nil),
		RequireExplicitExec: true,
	})
}

func folderSite(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/searx") {
			foundPages(w, r, dir)
			return
		}
		file := filepath.Join(dir, filepath.Base(r.URL.Path))
		if said, err := os.ReadFile(file + ".status"); err == nil {
			code, to, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
			if to != "" {
				w.Header().Set("Location", to)
			}
			n, _ := strconv.Atoi(code) // a wrong one is seen in the script
			w.WriteHeader(n)
			return
		}
		if _, err := os.Stat(file + ".slow"); err == nil {
			<-r.Context().Done()
			return
		}
		page, err := os.ReadFile(file + ".html")
		if err != nil {
			http.ServeFile(w, r, file)
			return
		}
		tag := fmt.Sprintf(`"%x"`, sha256.Sum256(page))
		w.Header().Set("ETag", tag)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(page) // a client that went away is its own affair
	}
}

// foundPages is a search service that finds every page.
func foundPages(w http.ResponseWriter, r *http.Request, dir string) {
	type hit struct {
		URL     string `json:"url"`
		Title   string `json:"title"`
		Content string `json:"content"`
	}
	hits := []hit{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.html")) // the pattern is a good one
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".html")
		hits = append(hits, hit{"http://" + r.Host + "/" + name, "Harbour " + name, "About the harbour."})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"query": r.FormValue("q"), "results": hits})
}

// TestWatch: a line a check, everything when something is other than the last time,
// and an end after so many checks or with the context.
func TestWatch(t *testing.T) {
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	report := func(s drift.Standing) drift.Report {
		return drift.Report{Format: drift.Format, CheckedAt: at,
			Sources:  []drift.Source{{Locator: "https://example.org/lamp", State: drift.Changed, Citations: []int{1}}},
			Passages: []drift.Passage{{Citation: 1, State: s, Excerpt: "lit in 1887"}},
			Claims:   []drift.Claim{{Text: "It was lit in 1887.", Citations: []int{1}, State: map[drift.Standing]drift.Hold{drift.Present: drift.Kept, drift.Missing: drift.Lost}[s]}},
		}
	}
	checks := []drift.Report{report(drift.Present), report(drift.Present), report(drift.Missing), report(drift.Missing), report(drift.Present)}
	for _, tc := range []struct {
		name  string
		times int
		stop  int // at which wait the context ends
		code  int
		full  []int
	}{
		{"two", 2, 0, exitOK, []int{1}},
		{"five", 5, 0, exitDrifted, []int{1, 3, 5}}, // the last of which is a good one
		{"three", 3, 0, exitDrifted, []int{1, 3}},
		{"interrupted", 0, 2, exitInterrupted, []int{1}},
	} {
		var out, notes bytes.Buffer
		a := &app{stdout: &out, Host: network.Host{Stderr: &notes, Now: func() time.Time { return at }, Env: func(string) (string, bool) { return "", false }}}
		ctx, cancel := context.WithCancelCause(t.Context())
		n, waits, full := 0, []time.Duration(nil), []int(nil)
		check := func(context.Context) (drift.Report, error) {
			if strings.Contains(out.String(), "\n\n") {
				full = append(full, n)
			}
			out.Reset()
			n++
			return checks[n-1], nil
		}
		code, err := watchDrift(ctx, a, driftOptions{watch: time.Hour, times: tc.times, context: 5}, check, func(ctx context.Context, d time.Duration) error {
			at, waits = at.Add(d), append(waits, d)
			if len(waits) == tc.stop {
				cancel(errInterrupted)
			}
			if ctx.Err() != nil {
				return sleepFor(ctx, d)
			}
			return nil
		})
		if strings.Contains(out.String(), "\n\n") {
			full = append(full, n)
		}
		if err != nil {
			code = exitCode(ctx, err)
		}
		if code != tc.code || !slices.Equal(full, tc.full) {
			t.Errorf("%s: exit code %d (%v), in full at %v; want %d, %v", tc.name, code, err, full, tc.code, tc.full)
		}
		if want := fmt.Sprintf("marchwarden: %s made: in ", term.Plural(n, "check")); strings.Count(notes.String(), want) != 1 {
			t.Errorf("%s: no %q in:\n%s", tc.name, want, notes.String())
		}
		if slices.ContainsFunc(waits, func(d time.Duration) bool { return d != time.Hour }) || strings.Count(notes.String(), "next check at") != len(waits) {
			t.Errorf("%s: waited %v, said %q", tc.name, waits, notes.String())
		}
		cancel(nil)
	}
	failed := errors.New("no record")
	a := &app{stdout: &bytes.Buffer{}, Host: network.Host{Stderr: &bytes.Buffer{}}}
	if _, err := watchDrift(t.Context(), a, driftOptions{watch: time.Hour}, func(context.Context) (drift.Report, error) { return drift.Report{}, failed }, nil); !errors.Is(err, failed) {
		t.Errorf("a check that failed: %v", err)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if err := sleepFor(ctx, time.Hour); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("it ended with %v", err)
	}
	if err := sleepFor(t.Context(), time.Millisecond); err != nil {
		t.Error(err)
	}
}
