//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// scenario is a research that is tortured.
type scenario struct {
	name          string
	args          []string
	investigation bool // several researchers, each with a part in it
}

const aboutBoats = "When was the Lake Vettern boathouse built?"

// scenarios are the kinds of runs: one researcher without and with an index, one
// that pays, and investigations that pay, with processes of their own and without.
var scenarios = []scenario{
	{"files", []string{"ask", "--json", "--researcher", "files", "What are ideal crops for a garden in Utah?"}, false},
	{"folder", []string{"ask", "--json", "--researcher", "files", "--library", "notes", aboutBoats}, false},
	{"web", []string{"ask", "--json", "--researcher", "web", "--model", "openai/gpt-test", webtest.Startups}, false},
	{"isolated", []string{"ask", "--json", "--isolate", "--researchers", "files,web", "--library", "notes", "--model", "openai/gpt-test", webtest.Startups}, true},
	{"investigation", []string{"ask", "--json", "--researchers", "files,web", "--library", "notes", "--model", "openai/gpt-test", webtest.Startups}, true},
}

func scenarioNamed(name string) scenario {
	return scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })]
}

// rack is a world of its own for runs one after the other: the program, a web, a
// model that is paid, and a fresh home for every run.
type rack struct {
	program string
	dir     string // the working directory, with the folder notes
	env     []string
	site    *webtest.Site
	models  *llmtest.Server
}

func newRack(t *testing.T) *rack {
	r := &rack{program: asMarchwarden(t), dir: t.TempDir(), site: webtest.New(t, webtest.Biotech()), models: llmtest.NewServer(t, thorough)}
	write(t, filepath.Join(r.dir, "notes", "roof.md"), "Marta Lindqvist repaired the roof of the boathouse in May 2024.\n\nThe Lake Vettern boathouse was built in 1931.\n")
	write(t, filepath.Join(r.dir, "notes", "genes.md"), "# Startups\n\nNova Edit is a startup in Boston that works on a CRISPR gene therapy.\n")
	r.env = []string{
		"PATH=" + filepath.Dir(r.program), "GOCOVERDIR=" + t.TempDir(), "MARCHWARDEN_FETCH_ALLOW=127.0.0.0/8",
		"MARCHWARDEN_SEARCH=searxng", "SEARXNG_URL=" + r.site.SearchURL(), "OPENAI_BASE_URL=" + r.models.URL() + "/v1",
	}
	for _, service := range []string{"ARXIV_URL", "ARXIV_SITE", "CROSSREF_URL", "OPENALEX_URL", "SEMANTIC_SCHOLAR_URL", "WIKIPEDIA_URL"} {
		r.env = append(r.env, service+"=http://127.0.0.1:1") // nothing leaves this machine in a test
	}
	return r
}

// thorough is a model that makes a claim of every passage and believes it.
func thorough(turn llmtest.Turn) llmtest.Said {
	switch webtest.SiteOf(turn) {
	case webtest.SiteWrite, webtest.SiteRepair:
		return llmtest.Said{Text: webtest.Draft(turn.Input, 40)}
	case webtest.SiteJudge:
		var verdicts []string
		for n := range 40 {
			verdicts = append(verdicts, fmt.Sprintf(`{"claim":%d,"support":"supported"}`, n+1))
		}
		return llmtest.Said{Text: `{"verdicts":[` + strings.Join(verdicts, ",") + `]}`}
	}
	return webtest.Obedient(turn)
}

// spec is a run of the program in a home.
func (r *rack) spec(home string, args ...string) runSpec {
	return runSpec{program: r.program, args: args, dir: r.dir, env: append(slices.Clone(r.env), "HOME="+home)}
}

// home makes an empty home, which the caller removes.
func (r *rack) home(t *testing.T) string {
	home, err := os.MkdirTemp(r.dir, "home-")
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// bill counts what was asked of the paid world, by what was asked.
type bill map[string]int

// paid is everything that was asked so far. What a process that was killed had sent may
// still be on its way: it is waited for until nothing more comes.
func (r *rack) paid() bill { return r.paidFor(4) }

// paidFor is paid when nothing more has come for so many looks, 15 ms apart.
func (r *rack) paidFor(looks int) bill {
	b := r.count()
	for calm := 0; calm < looks; {
		time.Sleep(15 * time.Millisecond)
		now := r.count()
		if calm++; !maps.Equal(b, now) {
			b, calm = now, 0
		}
	}
	return b
}

func (r *rack) count() bill {
	b := bill{}
	for _, q := range r.site.Queries() {
		b["search "+q]++
	}
	for _, p := range r.site.Requests() {
		b["page "+p]++
	}
	b["model"] = len(r.models.Turns())
	return b
}

// since is what was asked after an earlier bill.
func (b bill) since(earlier bill) bill {
	diff := bill{}
	for k, n := range b {
		if n > earlier[k] {
			diff[k] = n - earlier[k]
		}
	}
	return diff
}

// beyond says what was asked more often than a bill allows.
func (b bill) beyond(allowed bill) []string {
	var over []string
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if b[k] > max(allowed[k], 0) {
			over = append(over, fmt.Sprintf("%s: %d times, at most %d wanted", k, b[k], max(allowed[k], 0)))
		}
	}
	return over
}

// common counts what was asked in both.
func (b bill) common(other bill) int {
	n := 0
	for k := range b {
		n += min(b[k], other[k])
	}
	return n
}

// above counts what was asked more often than in another bill.
func (b bill) above(other bill) int {
	n := 0
	for k := range b {
		n += max(b[k]-other[k], 0)
	}
	return n
}

// essence is what must be the same in every run of a scenario.
func (r *rack) essence(stdout []byte) (string, marchwarden.TraceID, error) {
	res, err := marchwarden.DecodeResult(stdout)
	if err != nil {
		return "", marchwarden.TraceID{}, fmt.Errorf("stdout is no result: %w: %.300q", err, stdout)
	}
	var lines []string
	add := func(parts ...any) { lines = append(lines, strings.TrimSuffix(fmt.Sprintln(parts...), "\n")) }
	for _, c := range res.Citations {
		add(c.Locator, "|", c.RawExcerpt)
	}
	for _, g := range res.Gaps {
		add(g.Category, g.Topic)
	}
	for _, c := range res.Claims {
		add(c.Text, c.Citations, c.Support)
	}
	lines = append(lines, res.Answer)
	return strings.NewReplacer(r.site.URL, "SITE", r.dir, "DIR").Replace(strings.Join(lines, "\n")), res.TraceID, nil
}

// remains is what a home holds.
type remains struct {
	problems []string
	done     bill                  // what the traces say was completed
	runs     []marchwarden.TraceID // that are part of no other and have begun, newest first
	ledger   int
	blobs    int
	retried  int // steps that say that they were tried a second time
	open     int // paid effects that were begun and not completed
}

// inspect reads everything that is kept in a home: each trace, each blob by its
// digest, all that the traces need, and the ledger.
func inspect(home string) remains {
	left := remains{done: bill{}}
	kept := filepath.Join(home, ".marchwarden")
	complain := func(format string, args ...any) { left.problems = append(left.problems, fmt.Sprintf(format, args...)) }
	if _, err := os.Stat(filepath.Join(kept, "traces")); errors.Is(err, fs.ErrNotExist) {
		return left
	}
	blobs, err := dir.Open(filepath.Join(kept, "blobs"))
	if err != nil {
		complain("the blobs: %v", err)
		return left
	}
	defer blobs.Close()
	traces, err := trace.OpenDir(filepath.Join(kept, "traces"), time.Now)
	if err != nil {
		complain("the traces: %v", err)
		return left
	}
	defer traces.Close()
	ctx := context.Background()
	walk := func(info blob.File) error {
		if info.Leftover {
			return nil
		}
		left.blobs++
		if _, err := blobs.Get(ctx, info.Ref); err != nil {
			complain("blob %s: %v", info.Ref, err)
		}
		return nil
	}
	if err := blobs.Files(ctx, walk); err != nil {
		complain("the blobs: %v", err)
	}
	ids, err := traces.List()
	if err != nil {
		complain("the traces: %v", err)
	}
	for _, id := range ids {
		log, err := traces.Load(id)
		if err != nil {
			complain("trace %s: %v", id, err)
			continue
		}
		left.add(log, func(ref blob.Ref) error { _, err := blobs.Get(ctx, ref); return err }, complain)
	}
	entries, bad, err := ledger.Read(filepath.Join(kept, "costs.jsonl"))
	if err != nil || len(bad) > 0 {
		complain("the ledger: %d of %d lines cannot be read, %v", len(bad), len(bad)+len(entries), err)
	}
	left.ledger = len(entries)
	return left
}

// add takes one trace into account.
func (left *remains) add(log *trace.Log, get func(blob.Ref) error, complain func(string, ...any)) {
	start, err := log.Start()
	switch {
	case err == nil && !start.PartOf:
		left.runs = append(left.runs, start.TraceID)
	case err != nil && len(log.Steps) > 0:
		complain("a trace of %d steps: %v", len(log.Steps), err)
	}
	begun := map[trace.ActionID]bool{}
	for i, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Search, *trace.Fetch, *trace.Model:
			begun[*s.(trace.Beginning).Begins()] = true
		case trace.Recorded:
			delete(begun, s.Record().ActionID)
		}
		if s.Header().Step != i+1 {
			complain("step %d of a trace has the number %d", i+1, s.Header().Step)
		}
		for _, ref := range trace.Refs(s) {
			if err := get(ref); err != nil {
				complain("step %d (%s) of a trace needs %s: %v", i+1, s.Header().Action, ref, err)
			}
		}
		line, _ := json.Marshal(s) // what was read can be written
		if strings.Contains(string(line), `"retried":true`) {
			left.retried++
		}
		switch s := s.(type) {
		case *trace.SearchComplete:
			if strings.Contains(s.Engine, "searxng") {
				left.done["search "+s.Query]++
			}
		case *trace.FetchComplete:
			if u, err := url.Parse(s.URL); err == nil && u.Scheme == "http" {
				left.done["page "+cmp.Or(u.RequestURI(), "/")]++
			}
		case *trace.ModelComplete:
			left.done["model"]++
		}
	}
	left.open += len(begun)
}
