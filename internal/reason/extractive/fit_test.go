package extractive_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
)

var (
	questions = flag.String("questions", "", "score the questions of this `FILE`, for tools/reader/score.py")
	scores    = flag.String("scored", "", "write the scores to this `FILE`")
	plain     = flag.Bool("plain", false, "score by words alone, as a program without its models does")
)

type asked struct {
	Folder   string   `json:"folder"`
	Question string   `json:"question"`
	Keys     []string `json:"keys"`
	Short    []string `json:"short,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	None     bool     `json:"none"`
	ID       string   `json:"id,omitempty"`
}

type scored struct {
	asked
	Seen   extractive.Watched  `json:"seen"`
	Result *marchwarden.Result `json:"result"`
}

// TestFit asks questions of folders and writes, for each, what the reasoner scored: one
// JSON object a line. tools/reader/score.py fits the weights to that. A line of questions
// is {"folder": a path, "question": …, "keys": […], "none": bool}. Without a file of
// questions it asks one of the corpus.
func TestFit(t *testing.T) {
	lines := []byte(`{"folder":"../../../corpus","question":"Which tomatoes ripen above 6,000 feet in Utah?"}`)
	in, to := *questions, *scores
	if in == "" {
		in, to = filepath.Join(t.TempDir(), "questions.jsonl"), filepath.Join(t.TempDir(), "scored.jsonl")
		if err := os.WriteFile(in, lines, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range fit(t, in, to) {
		if len(s.Seen.Features) == 0 && *questions == "" {
			t.Errorf("%q has no candidate", s.Question)
		}
	}
}

func fit(t *testing.T, in, to string) (all []scored) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	x := extract.New(extract.Config{})
	t.Cleanup(func() { must(x.Close()) })
	var s scored
	cfg := desk.Config{Extractor: x, Reasoner: extractive.Watching{Reasoner: extractive.New(), See: func(w extractive.Watched) { s.Seen = w }}}
	if !*plain {
		cfg.Embed = embed.Cached(bert.MiniLM(), embed.OpenDiskStore(t.TempDir(), 0))
	}
	d, err := desk.New(cfg)
	must(err)
	from, err := os.Open(in)
	must(err)
	defer from.Close()
	out, err := os.Create(to)
	must(err)
	libraries := map[string]eval.Library{}
	scan := bufio.NewScanner(from)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		s = scored{}
		must(json.Unmarshal(scan.Bytes(), &s.asked))
		lib := libraries[s.Folder]
		if lib == nil {
			lib, err = d.Open(t.Context(), filepath.Base(s.Folder), os.DirFS(s.Folder))
			must(err)
			t.Cleanup(func() { must(lib.Close()) })
			libraries[s.Folder] = lib
		}
		s.Result, err = lib.Ask(t.Context(), marchwarden.Request{Question: s.Question})
		must(err)
		must(json.NewEncoder(out).Encode(s))
		all = append(all, s)
	}
	must(scan.Err())
	must(out.Close())
	return all
}
