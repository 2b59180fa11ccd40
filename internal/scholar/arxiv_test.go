package scholar

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

// clock is a clock that only sleeping moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return ctx.Err()
}

func newClient(t *testing.T, base string) (*Arxiv, *clock) {
	return newImpatient(t, base, time.Minute)
}

func newImpatient(t *testing.T, base string, timeout time.Duration) (*Arxiv, *clock) {
	c := newClock()
	return NewArxiv(ArxivConfig{BaseURL: base, HTTP: searchtest.Client(t), Timeout: timeout, Now: c.Now, Sleep: c.Sleep}), c
}

// atom writes a feed as arXiv does; each entry is given as its inner XML.
func atom(entries ...string) string {
	var b strings.Builder
	b.WriteString(`<?xml version='1.0' encoding='UTF-8'?><feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns="http://www.w3.org/2005/Atom"><title>arXiv Query</title>`)
	for _, e := range entries {
		b.WriteString("<entry>" + e + "</entry>")
	}
	return b.String() + "</feed>"
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}

// service answers as arXiv does, but to any of the words. Documents have made-up
// ids, by their names.
func service(t *testing.T, docs map[string]string) (base string, idOf map[string]string) {
	idOf = map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(docs)) {
		idOf[name] = fmt.Sprintf("2401.%05d", i+1)
	}
	return searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.FormValue("search_query")
		if r.URL.Path != "/api/query" || q == "" || r.FormValue("max_results") == "" || strings.ContainsAny(q, "\x00\n") || strings.Count(q, `"`)%2 != 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var entries []string
		for _, name := range searchtest.Match(docs, regexp.MustCompile(`\b(all|au|ti):| AND `).ReplaceAllString(q, " ")) {
			entries = append(entries, "<id>http://arxiv.org/abs/"+idOf[name]+"v1</id><title>About "+name+"</title><published>2024-01-02T03:04:05Z</published><summary>"+escaped(docs[name])+"</summary>")
		}
		io.WriteString(w, atom(entries...))
	}), idOf
}

// namedHits lets the conformance suite see which document a hit is.
type namedHits struct {
	*Arxiv
	idOf map[string]string
}

func (n namedHits) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := n.Arxiv.Search(ctx, q)
	for i, h := range hits {
		for name, id := range n.idOf {
			if h.Locator == "arxiv:"+id {
				hits[i].Locator += "/" + name
			}
		}
	}
	return hits, err
}

func TestArxivConformance(t *testing.T) {
	searchtest.RunFilter(t, func(t *testing.T, docs map[string]string) search.Engine {
		base, idOf := service(t, docs)
		c, _ := newClient(t, base)
		return namedHits{c, idOf}
	}, "arxiv.org", func(loc string) bool { return strings.HasPrefix(loc, "arxiv:2401.") })
}

func TestFaults(t *testing.T) {
	searchtest.RunFaults(t, "", func(t *testing.T, base string, timeout time.Duration) search.Engine {
		c, _ := newImpatient(t, base, timeout)
		return c
	})
}

// Requests come one at a time and three seconds apart, from all callers together.
func TestPoliteness(t *testing.T) {
	var mu sync.Mutex
	var times []time.Time
	under := 0
	var c *Arxiv
	var clk *clock
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		under++
		if under > 1 {
			t.Error("two requests at a time")
		}
		times = append(times, clk.Now())
		mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		under--
		mu.Unlock()
		io.WriteString(w, atom())
	})
	c, clk = newClient(t, base)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i%2 == 0 {
				_, _ = c.Search(t.Context(), search.Query{Text: "soil"})
				return
			}
			id, _ := ParseID("2401.00001")
			_, _ = c.Paper(t.Context(), id)
		})
	}
	wg.Wait()
	if len(times) != 8 {
		t.Fatalf("%d requests", len(times))
	}
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap < Pace {
			t.Errorf("%v between requests %d and %d", gap, i-1, i)
		}
	}
}

// A caller that gives up does not wait for its turn.
func TestGivingUpInTheQueue(t *testing.T) {
	release := make(chan struct{})
	base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		io.WriteString(w, atom())
	})
	c := NewArxiv(ArxivConfig{BaseURL: base, HTTP: searchtest.Client(t), Now: time.Now})
	done := make(chan error)
	go func() {
		_, err := c.Search(t.Context(), search.Query{Text: "soil"})
		done <- err
	}()
	for len(c.turns.turn) == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Search(ctx, search.Query{Text: "soil"}); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := c.Search(ctx, search.Query{Text: "soil"}); !errors.Is(err, marchwarden.CodeCanceled) || time.Since(start) > 4*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// A refusal is tried once more when arXiv says, and not at all when that is long.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		status   int
		after    string
		failures int
		requests int
		waited   time.Duration
		code     marchwarden.Code
	}{
		{429, "", 1, 2, 3 * time.Second, ""},
		{503, "7", 1, 2, 7 * time.Second, ""},
		{503, "1", 1, 2, 3 * time.Second, ""},
		{429, "9", 9, 2, 9 * time.Second, marchwarden.CodeRateLimited},
		{503, "600", 9, 1, 0, marchwarden.CodeUnavailable},
		{404, "", 9, 1, 0, marchwarden.CodeUnavailable},
	} {
		requests := 0
		base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if requests++; requests > tt.failures {
				io.WriteString(w, atom())
				return
			}
			if tt.after != "" {
				w.Header().Set("Retry-After", tt.after)
			}
			w.WriteHeader(tt.status)
			io.WriteString(w, "Rate exceeded.")
		})
		c, clk := newClient(t, base)
		start := clk.Now()
		_, err := c.Search(t.Context(), search.Query{Text: "soil"})
		if waited := clk.Now().Sub(start); requests != tt.requests || waited != tt.waited || marchwarden.CodeOf(err) != tt.code {
			t.Errorf("%d %q: %d requests in %v: %v", tt.status, tt.after, requests, waited, err)
		}
		if tt.after == "600" {
			if _, err := c.Search(t.Context(), search.Query{Text: "water"}); requests != 1 || marchwarden.CodeOf(err) != marchwarden.CodeRateLimited {
				t.Errorf("asked again, %d requests: %v", requests, err)
			}
		}
	}
}

func TestExpression(t *testing.T) {
	for text, want := range map[string]string{
		"What is attention in neural networks?":      "all:attention AND all:neural AND all:networks",
		`papers by Yoshua Bengio on "deep learning"`: `au:"Yoshua Bengio" AND all:"deep learning"`,
		"AND OR": `all:"and" AND all:"or"`,
	} {
		if got := expression(TermsOf(text), search.Query{}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	got := expression(TermsOf("soil"), search.Query{Since: "2024-01-02"})
	if got += expression(TermsOf("soil"), search.Query{Until: "2024-01-02"}); got != "all:soil AND submittedDate:[202401020000 TO 299912312359]all:soil AND submittedDate:[199101010000 TO 202401022359]" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		got := expression(TermsOf(rapid.String().Draw(t, "question")), search.Query{})
		if strings.Count(got, `"`)%2 != 0 || len(got) > 4000 || strings.ContainsAny(got, "()\\\n\x00") {
			t.Fatalf("%q", got)
		}
	})
}

// Ids in a question are looked up, versions kept only where they were asked for,
// and words are searched beside them; what was found is not asked for again.
func TestIDsInTheQuery(t *testing.T) {
	var asked []url.Values
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query())
		if r.FormValue("id_list") != "" {
			io.WriteString(w, atom("<id>http://arxiv.org/abs/1706.03762v7</id><title>Attention</title>", "<id>http://arxiv.org/abs/2005.14165v2</id><title>GPT</title>"))
			return
		}
		io.WriteString(w, atom("<id>http://arxiv.org/abs/1706.03762v7</id><title>Attention</title>", "<id>http://arxiv.org/abs/1810.04805v2</id><title>BERT</title>"))
	})
	c, _ := newClient(t, base)
	hits, err := c.Search(t.Context(), search.Query{Text: "How do arXiv:1706.03762 and https://arxiv.org/abs/2005.14165v2 use transformers? And doi:10.1000/x", Limit: 5})
	var got []string
	for _, h := range hits {
		got = append(got, h.Locator)
	}
	if diff := cmp.Diff([]string{"arxiv:1706.03762", "arxiv:2005.14165v2", "arxiv:1810.04805"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(asked) != 2 || asked[0].Get("id_list") != "1706.03762,2005.14165v2" || asked[1].Get("search_query") != "all:transformers" {
		t.Errorf("%v", asked)
	}
	for _, s := range []string{"1810.04805", "1810.04805v2", "2005.14165v2", "1706.03762"} {
		id, _ := ParseID(s)
		if p, err := c.Paper(t.Context(), id); err != nil || p.ID.Work() != id.Work() {
			t.Errorf("%s: %v", s, err)
		}
	}
	if len(asked) != 2 {
		t.Errorf("%d requests", len(asked))
	}
	old, _ := ParseID("2005.14165") // only version 2 of it was asked for, which may not be the newest
	if _, err := c.Paper(t.Context(), old); err != nil || len(asked) != 3 {
		t.Errorf("%v, %d requests", err, len(asked))
	}
}

func TestFewerWords(t *testing.T) {
	var asked []string
	base := searchtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.FormValue("search_query"))
		io.WriteString(w, atom())
	})
	c, _ := newClient(t, base)
	hits, err := c.Search(t.Context(), search.Query{Text: "Which emerging methods edit genes by CRISPR in wheat?"})
	want := []string{"all:emerging AND all:methods AND all:edit AND all:genes AND all:CRISPR AND all:wheat", "all:emerging AND all:methods AND all:CRISPR"}
	if diff := cmp.Diff(want, asked); diff != "" || err != nil || len(hits) != 0 {
		t.Errorf("%v %v (-want +got):\n%s", hits, err, diff)
	}
}

// recorded is a real answer.
type recorded struct {
	URL    string `json:"url"`
	Status int    `json:"status_code"`
	Body   string `json:"body"`
}

func arxivRecordings(t testing.TB) map[string]recorded {
	out := map[string]recorded{}
	for _, f := range datatest.Files(t, "api/cassettes.tar.gz", func(name string) bool {
		return strings.Contains(name, "arxiv-py/tests/fixtures/") && strings.HasSuffix(name, ".json")
	}) {
		var r recorded
		if err := json.Unmarshal(f.Data, &r); err != nil {
			t.Fatal(err)
		}
		out[f.Name[strings.LastIndex(f.Name, "/")+1:strings.LastIndex(f.Name, "_")]] = r
	}
	return out
}

func TestRecorded(t *testing.T) {
	all := arxivRecordings(t)
	for name, r := range all {
		papers, err := parse([]byte(r.Body))
		switch {
		case name == "id_abc_s0_m100":
			if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "incorrect id format for abc") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if want := strings.Count(r.Body, "<entry>"); len(papers) != want {
			t.Errorf("%s: %d papers, want %d", name, len(papers), want)
		}
		for _, p := range papers {
			if p.Title == "" || p.Summary == "" || len(p.Authors) == 0 || len(p.Published) != 10 || len(p.Updated) != 10 || len(p.Categories) == 0 || p.ID.Version() == 0 {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	papers, err := parse([]byte(all["id_astro-ph_0601001_s0_m100"].Body))
	if err != nil {
		t.Fatal(err)
	}
	p := papers[0]
	if p.ID.Locator() != "arxiv:astro-ph/0601001v1" || p.Journal != "ActaAstron.56:1-50,2006" || p.Published != "2006-01-02" || p.Authors[0] != "Andrew Gould" || !strings.Contains(p.Summary, "V_max<17.5") {
		t.Errorf("%+v", p)
	}
	base := searchtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, all["q_testing_s0_m10"].Body) })
	c, _ := newClient(t, base)
	q := search.Query{Text: "testing", Limit: 10}
	hits, err := c.Search(t.Context(), q)
	if err != nil || len(hits) != 10 {
		t.Errorf("%v %v", hits, err)
	}
	for _, h := range hits {
		if id, ok := ParseID(h.Locator); !ok || id.Version() != 0 || h.Title == "" || h.Snippet == "" || h.Published == "" {
			t.Errorf("%+v", h)
		}
	}
}

// There is no wait before a request that is not made.
func TestNoPaceWhereNobodyIsReached(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	client, clock := newClient(t, gone.URL)
	began := clock.Now()
	for range 3 {
		if _, err := client.Search(t.Context(), search.Query{Text: "attention sinks", Limit: 3}); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Fatal(err)
		}
	}
	if waited := clock.Now().Sub(began); waited != 0 {
		t.Errorf("waited %v for a service that is not there", waited)
	}
}
