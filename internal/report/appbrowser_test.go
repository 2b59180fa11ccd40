package report

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/chromium"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// given is what the host in testdata/host.js shows and looks for.
type given struct {
	Question        string         `json:"question"`
	View            string         `json:"view"`
	Words           []string       `json:"words"`
	Hostile         []string       `json:"hostile"`
	Structured      map[string]any `json:"structured"`
	StructuredWords []string       `json:"structuredWords"`
	Only            bool           `json:"only"` // the hostile ones
}

// seen is what became of it.
type seen struct {
	Verdicts []struct {
		Name, Detail string
		OK           bool
	}
	Executed   int // scripts that must not run
	asked      []string
	complaints []string // of the browser
}

// hosted opens a host with the view in a real browser.
func hosted(t *testing.T, chromium string, page []byte, g given) seen {
	t.Helper()
	var mu sync.Mutex
	var out seen
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<!DOCTYPE html><title>host</title><link rel="icon" href="data:,"><body><script src="/host.js"></script><img src="/hold" alt="">`)
	})
	mux.HandleFunc("GET /host.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "testdata/host.js") })
	mux.HandleFunc("GET /app", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) })
	mux.HandleFunc("GET /given", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(g) })
	mux.HandleFunc("GET /hold", func(w http.ResponseWriter, r *http.Request) { // the browser ends when the page has loaded
		select {
		case <-done:
		case <-r.Context().Done():
		case <-time.After(50 * time.Second):
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	})
	mux.HandleFunc("POST /verdict", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewDecoder(r.Body).Decode(&out); err != nil {
			t.Errorf("read the verdicts: %v", err)
		}
		close(done)
	})
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		out.asked = append(out.asked, r.URL.Path)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for i, s := range g.Hostile {
		g.Hostile[i] = strings.ReplaceAll(s, "EVIL", srv.URL+"/evil")
	}
	_, out.complaints = browse(t, chromium, srv.URL+"/")
	mu.Lock()
	defer mu.Unlock()
	return out
}

// hostileHTML are pieces of HTML that run, load or lead somewhere if they can.
func hostileHTML() []string {
	const run = `parent.executed()`
	all := []string{
		`<img src="EVIL/img" onerror="` + run + `">`, `<svg onload="` + run + `"><a href="javascript:` + run + `"><text>go</text></a><image href="EVIL/image"/></svg>`,
		`<script>` + run + `</script><script src="EVIL/js"></script>`, `<iframe srcdoc="<script>parent.` + run + `</script>"></iframe><iframe src="EVIL/frame"></iframe>`,
		`<object data="EVIL/object"></object><embed src="EVIL/embed">`, `<video src="EVIL/video" poster="EVIL/poster"></video><audio src="EVIL/audio" autoplay></audio>`,
		`<link rel="stylesheet" href="EVIL/css"><style>@import url(EVIL/import); p { background: url(EVIL/bg) }</style>`, `<meta http-equiv="refresh" content="0;url=EVIL/refresh"><base href="EVIL/">`,
		`<form action="EVIL/form"><input autofocus onfocus="` + run + `"><button>go</button></form>`, `<details open ontoggle="` + run + `"><summary onclick="` + run + `">x</summary></details>`,
		`<a href="javascript:` + run + `">go</a><a href=" java&#10;script:` + run + `">go</a><a href="data:text/html,<script>` + run + `</script>">go</a><a href="//evil.example">go</a><a href="EVIL/x" ping="EVIL/ping" target="_top" download>go</a>`,
		`<a href="https://user:pass@evil.example/">go</a><a href="file:///etc/passwd">go</a><a href="blob:x">go</a>`, `<p style="background:url(EVIL/style)" onclick="` + run + `" class="x" id="status">x</p>`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=` + run + `&gt;">`, `<template><img src=x onerror="` + run + `"></template><noscript><img src=x onerror="` + run + `"></noscript>`,
		`<p id="view"><p id="__proto__"><a href="#view">go</a><a href="#nowhere">go</a><a id="host" name="parent">x</a>`, strings.Repeat("<div>", 2000) + "<img src=x onerror=" + run + ">",
		`<marquee onstart="` + run + `">x</marquee><select><option>x</option></select><x-y onclick="` + run + `">x</x-y><constructor>x</constructor><bdi title="x" class="A;B">x</bdi>`,
	}
	return append(all, payloads...)
}

func chromiumOf(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped with -short")
	}
	chromium, ok := chromium.Find(os.Getenv("MARCHWARDEN_CHROMIUM"), exec.LookPath)
	if !ok {
		t.Skip("no chromium on this machine; install one, or set MARCHWARDEN_CHROMIUM")
	}
	return chromium
}

// TestAppInBrowser plays a host to the view: it shows a result, follows the theme, has
// links opened, makes do with the result alone, and runs and asks for nothing.
func TestAppInBrowser(t *testing.T) {
	chromium := chromiumOf(t)
	res := sample(t, func(s string) string { return s + " " + strings.Join(payloads, " ") }).Result
	res.Blocks = append(wired(t).Blocks[:5], hostileBlocks("The last frost is on 26 April. " + payloads[0]).Blocks[:5]...)
	view, _ := shown(t, res)
	evil := `<img src=x onerror=parent.executed()>`
	got := hosted(t, chromium, AppPage(), given{
		Question: "When is the <b>last</b> frost? " + evil, View: view,
		Words: []string{"The last frost is on 26 April.", "The average last frost falls on 26 April.", "confidence 0.82", "Not found in what was searched", payloads[0], payloads[12]},
		Structured: map[string]any{"answer": "It is cold " + evil + " \\[sic\\]. [1][2] And [9] not.\n\nMore.", "confidence": 0.5, "warnings": []any{"take note " + evil, 7},
			"citations": []any{map[string]any{"locator": "https://example.org/frost?a=<b>", "title": "Frost " + evil, "raw_excerpt": "An excerpt " + evil + "\n of \u202etwo lines"},
				map[string]any{"locator": "javascript:parent.executed()", "raw_excerpt": "", "unchecked": true}},
			"gaps": []any{map[string]any{"topic": "gap " + evil, "category": "source_not_found", "detail": "detail " + evil}}},
		StructuredWords: []string{"It is cold " + evil + " [sic].", "And [9] not.", "take note " + evil, "Frost " + evil, "An excerpt " + evil + "\n of \ufffdtwo lines", "javascript:parent.executed()", "gap " + evil, "detail " + evil, "Unchecked"},
	})
	got.fine(t, 45)
	if len(got.complaints) > 0 {
		t.Errorf("the browser says: %q", got.complaints)
	}
}

// TestAppInBrowserHostile hands the view HTML that no report has. The browser has its
// say about it when the script parses it, and then it is dropped.
func TestAppInBrowserHostile(t *testing.T) {
	all := hostileHTML()
	got := hosted(t, chromiumOf(t), AppPage(), given{Hostile: all, Only: true})
	got.fine(t, 4*len(all))
}

// fine fails if anything ran, was asked for or is not as it should be, or if fewer
// things than that many were looked at.
func (s seen) fine(t *testing.T, atLeast int) {
	t.Helper()
	for _, v := range s.Verdicts {
		if !v.OK {
			t.Errorf("%s: no: %s", v.Name, v.Detail)
		}
	}
	if len(s.Verdicts) < atLeast {
		t.Errorf("only %d things were looked at, want %d", len(s.Verdicts), atLeast)
	}
	if s.Executed > 0 || len(s.asked) > 0 {
		t.Errorf("%d scripts ran, and %q was asked for", s.Executed, s.asked)
	}
}

// TestAppBrowserHears shows that the tests above would notice: without the script's own
// care the policy is all that holds, and without both, things run and are asked for.
func TestAppBrowserHears(t *testing.T) {
	if !datatest.Full() {
		t.Skip("set MARCHWARDEN_TEST_FULL=1")
	}
	chromium := chromiumOf(t)
	careless := strings.Replace(appScript, `clean(new DOMParser().parseFromString(html, "text/html").body, fresh)`, `fresh.append(document.createRange().createContextualFragment(html))`, 1)
	if careless == appScript {
		t.Fatal("the script has changed")
	}
	view := h.Fill(`<div id="view"><h1 id="question"></h1><p id="status"></p></div>`)
	page := h.Document{Style: style, Script: careless, Body: view}
	hostile := []string{hostileHTML()[0], hostileHTML()[2]}
	held := hosted(t, chromium, []byte(page.String()), given{Hostile: hostile, Only: true})
	if held.Executed > 0 || len(held.asked) > 0 || len(held.complaints) == 0 {
		t.Errorf("with the policy alone %d scripts ran, %q was asked for, and the browser says %q", held.Executed, held.asked, held.complaints)
	}
	open := strings.Replace(page.String(), "Content-Security-Policy", "x", 1)
	loose := hosted(t, chromium, []byte(open), given{Hostile: []string{hostileHTML()[0], hostileHTML()[2]}, Only: true})
	failed := 0
	for _, v := range loose.Verdicts {
		if !v.OK {
			failed++
		}
	}
	if loose.Executed == 0 || len(loose.asked) == 0 || failed == 0 {
		t.Errorf("with neither, %d scripts ran, %q was asked for, and %d of %d checks failed: none of this would be noticed", loose.Executed, loose.asked, failed, len(loose.Verdicts))
	}
}
