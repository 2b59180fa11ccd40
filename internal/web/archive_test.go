package web

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// many writes n runs, without the care of a writer, and gives their questions. The i-th
// began i minutes after the first.
func (w *world) many(n int) {
	w.t.Helper()
	encoded, err := marchwarden.EncodeResult(&marchwarden.Result{Answer: "Alfalfa grows.", Confidence: 0.5, CostMetadata: marchwarden.CostMetadata{TokensUsed: 10, ModelID: "extractive/1"}})
	if err != nil {
		w.t.Fatal(err)
	}
	ref, err := w.blobs.Put(context.Background(), encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := 1; i <= n; i++ {
		at := began.Add(time.Duration(i) * time.Minute)
		id := idOf(i).String()
		lines := fmt.Sprintf(`{"step":1,"action":"start","timestamp":%q,"decision":"","format":1,"trace_id":%q,"researcher":"files","mind":"extractive/1","version":"test","started_at":%q,"request":{"question":"Question %d?"},"limits":{"max_iterations":5,"token_budget":20000,"max_sources":10}}`+"\n",
			at.Format(time.RFC3339Nano), id, at.Format(time.RFC3339Nano), i)
		lines += fmt.Sprintf(`{"step":2,"action":"complete","timestamp":%q,"decision":"","result":%q,"tokens_used":10,"iterations_run":1,"citations":0,"confidence":0.5}`+"\n", at.Add(time.Second).Format(time.RFC3339Nano), ref)
		if err := os.WriteFile(filepath.Join(w.traces.Path(), id+".jsonl"), []byte(lines), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

var (
	nextPage     = regexp.MustCompile(`rel="next" href="([^"]+)"`)
	previousPage = regexp.MustCompile(`rel="prev" href="([^"]+)"`)
	leading      = regexp.MustCompile(`href="/runs/([0-9a-f-]{36})"`)
)

// listed are the runs of a page of the history.
func listed(text string) []string {
	var ids []string
	for _, m := range leading.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	return ids
}

func link(re *regexp.Regexp, text string) string {
	if m := re.FindStringSubmatch(text); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

func TestHistoryPages(t *testing.T) {
	w := newWorld(t, nil)
	w.many(60)
	b := w.local()
	at := "/history?q=alfalfa&status=complete&status=interrupted&researcher=files&notice=deleted"
	seen := map[string]bool{}
	for page, want := range []int{25, 25, 10} {
		status, text := b.get(at)
		if status != 200 {
			t.Fatalf("%d", status)
		}
		if n := len(listed(text)); n != want {
			t.Errorf("page %d has %d runs", page, n)
		}
		has(t, text, "60", `value="alfalfa"`, `value="complete" checked`, `value="interrupted" checked`, `value="files" checked`)
		for _, id := range listed(text) {
			seen[id] = true
		}
		if at = link(nextPage, text); at != "" {
			q, err := url.Parse(at)
			if err != nil || q.Query().Get("q") != "alfalfa" || len(q.Query()["status"]) != 2 || q.Query().Get("researcher") != "files" || q.Query().Has("notice") {
				t.Errorf("it leads to %s", at)
			}
		}
		if prev := link(previousPage, text); (prev == "") != (page == 0) {
			t.Errorf("%d: before it is %q", page, prev)
		}
	}
	if at != "" || len(seen) != 60 {
		t.Errorf("%d runs were listed; then %q", len(seen), at)
	}
	for _, offset := range []string{"60", "1000", "9223372036854775807"} { // beyond the end: the last page
		_, text := b.get("/history?offset=" + offset)
		if len(listed(text)) != 10 || link(nextPage, text) != "" || link(previousPage, text) == "" {
			t.Errorf("%s: %d runs, and then %s", offset, len(listed(text)), link(nextPage, text))
		}
	}
	for _, offset := range []string{"-5", "x", "99999999999999999999", "0"} {
		_, text := b.get("/history?offset=" + offset)
		if ids := listed(text); len(ids) != 25 || ids[0] != idOf(60).String() {
			t.Errorf("%s: %v", offset, ids)
		}
	}
}

func TestHistoryFilters(t *testing.T) {
	w := newWorld(t, nil)
	w.many(3)
	cut := w.writes(idOf(10), "Cut off?")
	_ = cut.Close()
	w.writes(idOf(11), "Goes on?")
	res := w.investigation()
	b := w.local()
	for query, want := range map[string]int{
		"":                   6,
		"q=alfalfa":          3,
		"q=zebra":            0,
		"status=complete":    4,
		"status=running":     1,
		"status=interrupted": 1,
		"status=bogus":       6,
		"researcher=files":   6,
		"researcher=nobody":  0,
	} {
		status, text := b.get("/history?" + query)
		if status != 200 {
			t.Errorf("%s: %d", query, status)
		}
		if n := len(listed(text)); n != want {
			t.Errorf("%s: %d runs", query, n)
		}
	}
	status, text := b.get("/history?q=" + strings.Repeat("w+", 3000))
	if status != 200 {
		t.Errorf("too many words: %d", status)
	}
	has(t, text, "This needs to be corrected", `<a href="#q">`)
	_, text = b.get("/history?q=%3Cscript%3Ealert(1)%3C/script%3E%22%3E%3Csvg/onload")
	lacks(t, text, "<script>alert", `"><svg`)
	if status, _ := b.get("/history?%zz=%zz&q=a%ff"); status != 200 {
		t.Errorf("garbage: %d", status)
	}
	_, text = b.get("/history")
	has(t, text, questions, res.TraceID.String())
	for _, r := range res.Rihlas {
		lacks(t, text, r.TraceID.String()) // they are parts
	}
}

// The first page and the history of thousands of runs are made in an instant once they
// were read.
func TestThousandsOfRuns(t *testing.T) {
	w := newWorld(t, nil)
	runs := 1000
	if datatest.Full() {
		runs = 5000
	}
	w.many(runs)
	b := w.local()
	for _, path := range []string{"/", "/history", "/history?q=alfalfa"} {
		var took [2]time.Duration
		for i := range took {
			began := time.Now()
			if status, _ := b.get(path); status != 200 {
				t.Errorf("%s: %d", path, status)
			}
			took[i] = time.Since(began)
		}
		t.Logf("%s: %v, then %v", path, took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
		if took[1] > 5*time.Second {
			t.Errorf("%s takes %v", path, took[1])
		}
	}
}
