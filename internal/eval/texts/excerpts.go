package texts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// topPassages is how many passages of the ranking are measured, as many as those who
// made the data do.
const topPassages = 5

func excerptsSuite() eval.Suite {
	return eval.Suite{
		Name: "excerpts", Title: "chunking evaluation: what is cited and what is ranked first, character by character",
		Files:   []string{"excerpts/chunking-eval-corpora.tar.gz", "excerpts/chunking-eval-questions.jsonl.gz"},
		Licence: "MIT", Measures: "exact spans: character recall, precision, IoU",
		Bars: []eval.Bar{
			{Metric: "cited recall"}, {Metric: "cited precision"}, {Metric: "cited iou"},
			{Metric: "ranked recall"}, {Metric: "ranked precision"}, {Metric: "ranked iou"},
		},
		Open: openExcerpts,
	}
}

// asked is a row of the questions.
type asked struct {
	Corpus     string `json:"corpus_id"`
	Question   string `json:"question"`
	References []struct {
		Content string `json:"content"`
		Start   int    `json:"start_index"`
		End     int    `json:"end_index"`
	} `json:"references"`
}

// goal is a question and where its answer stands in its corpus.
type goal struct {
	corpus, question string
	gold             []stretch
}

// stretch is a part of a text, from one of its characters to before another. Only
// characters that leave ink are counted: white space is not the same in a file and in
// the text that was read from it, and says nothing.
type stretch struct{ from, to int }

// corpus is a document, as its file is and as it is read.
type corpus struct {
	raw, text string
	// before is how many characters with ink stand before each byte of the text that
	// was read.
	before  []int
	set     *evidence.Set
	library eval.Library
}

type excerpts struct {
	corpora map[string]*corpus
	goals   map[string]goal
	ids     []string
}

func openExcerpts(ctx context.Context, env eval.Env) (_ eval.Session, err error) {
	files, err := eval.Tar(env.Data, "excerpts/chunking-eval-corpora.tar.gz", func(name string) bool { return strings.HasSuffix(name, ".md") })
	if err != nil {
		return nil, err
	}
	rows, err := eval.Rows[asked](env.Data, "excerpts/chunking-eval-questions")
	if err != nil {
		return nil, err
	}
	x := extract.New(extract.Config{})
	defer func() { err = errors.Join(err, x.Close()) }()
	e := &excerpts{corpora: map[string]*corpus{}, goals: map[string]goal{}}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name[strings.LastIndexByte(f.Name, '/')+1:], ".md")
		if e.corpora[name], err = readCorpus(ctx, x, name, string(f.Data)); err != nil {
			return nil, err
		}
		if e.corpora[name].library, err = env.Desk.Open(ctx, name, eval.Docs{name + ".txt": string(f.Data)}.FS()); err != nil {
			return nil, err
		}
	}
	for i, r := range rows {
		id := fmt.Sprintf("%s-%03d", r.Corpus, i)
		if e.goals[id], err = e.goal(r); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeMalformed, "chunking-eval question %d", i)
		}
		e.ids = append(e.ids, id)
	}
	return e, nil
}

// readCorpus reads a document as the library does, and makes sure that nothing but
// white space is lost on the way: else its offsets would mean something else.
func readCorpus(ctx context.Context, x *extract.Extractor, name, raw string) (*corpus, error) {
	doc, err := x.Extract(ctx, name+".txt", []byte(raw))
	if err != nil {
		return nil, err
	}
	c := &corpus{raw: raw, text: doc.Text, before: inkBefore(doc.Text), set: &evidence.Set{}}
	if a, b := inkBefore(raw), c.before; a[len(a)-1] != b[len(b)-1] {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "corpus %s has %d characters, of which %d are read", name, a[len(a)-1], b[len(b)-1])
	}
	c.set.Add(fetch.Page{Locator: name}, doc.Text)
	return c, nil
}

// inkBefore is, for each byte of a text and its end, how many characters with ink begin
// before it.
func inkBefore(s string) []int {
	out := make([]int, len(s)+1)
	n, next := 0, 0
	for i, r := range s {
		for ; next <= i; next++ {
			out[next] = n
		}
		if !unicode.IsSpace(r) {
			n++
		}
	}
	for ; next <= len(s); next++ {
		out[next] = n
	}
	return out
}

// at is where a span of the text that was read is.
func (c *corpus) at(s marchwarden.Span) stretch { return stretch{c.before[s.Start], c.before[s.End]} }

// goal turns the offsets of a row, which count the characters of the file, into
// stretches.
func (e *excerpts) goal(r asked) (goal, error) {
	c, ok := e.corpora[r.Corpus]
	if !ok {
		return goal{}, fmt.Errorf("there is no corpus %q", r.Corpus)
	}
	g := goal{corpus: r.Corpus, question: clipped(r.Question)}
	before := inkBefore(c.raw)
	for _, ref := range r.References {
		start, end := offset(c.raw, ref.Start), offset(c.raw, ref.End)
		if start >= end || c.raw[start:end] != ref.Content {
			return goal{}, fmt.Errorf("characters %d to %d of %s are not what the row says", ref.Start, ref.End, r.Corpus)
		}
		g.gold = append(g.gold, stretch{before[start], before[end]})
	}
	return g, nil
}

// clipped is a question of a length that may be asked.
func clipped(q string) string {
	if r := []rune(q); len(r) > marchwarden.MaxQuestionChars {
		return string(r[:marchwarden.MaxQuestionChars])
	}
	return q
}

// offset is the byte at which the nth character of a text begins.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func (e *excerpts) Cases() []string { return e.ids }

func (e *excerpts) Close() error {
	var errs []error
	for _, c := range e.corpora {
		errs = append(errs, c.library.Close())
	}
	return errors.Join(errs...)
}

func (e *excerpts) Run(ctx context.Context, id string) (eval.Row, error) {
	g := e.goals[id]
	c := e.corpora[g.corpus]
	row := eval.Row{Group: g.corpus, Values: map[string]float64{}}
	res, err := c.library.Ask(ctx, marchwarden.Request{Question: g.question})
	if err != nil {
		return row, err
	}
	var cited []stretch
	for _, ct := range res.Citations {
		if ct.Span == nil || !ct.Span.In(len(c.text)) || !strings.HasPrefix(c.text[ct.Span.Start:], strings.TrimSuffix(ct.RawExcerpt, marchwarden.ExcerptCut)) {
			return row, marchwarden.Errorf(marchwarden.CodeInternal, "an excerpt of %s is not where its span says", ct.Locator)
		}
		cited = append(cited, c.at(*ct.Span))
	}
	overlap(&row, "cited", cited, g.gold)
	row.Values["confidence"] = float64(res.Confidence)
	if len(res.Citations) > 0 {
		row.Values["right"] = 0
		if row.Values["cited recall"] > 0 {
			row.Values["right"] = 1
		}
	}
	var ranked []stretch
	for _, p := range c.set.Rank(lexicon.Terms(g.question), topPassages) {
		ranked = append(ranked, c.at(p.Span))
	}
	overlap(&row, "ranked", ranked, g.gold)
	return row, nil
}

// overlap puts how much two sets of stretches have in common.
func overlap(row *eval.Row, whose string, got, gold []stretch) {
	a, b := covered(got), covered(gold)
	both := 0.0
	for i := range a {
		if b[i] {
			both++
		}
	}
	na, nb := float64(len(a)), float64(len(b))
	row.Values[whose+" recall"] = part(both, nb)
	row.Values[whose+" precision"] = part(both, na)
	row.Values[whose+" iou"] = part(both, na+nb-both)
}

// covered are the characters that lie in a stretch.
func covered(list []stretch) map[int]bool {
	in := map[int]bool{}
	for _, s := range list {
		for i := s.from; i < s.to; i++ {
			in[i] = true
		}
	}
	return in
}

func (e *excerpts) Score(rows []eval.Row) []eval.Metric {
	var out []eval.Metric
	for _, name := range []string{"cited recall", "cited precision", "cited iou", "ranked recall", "ranked precision", "ranked iou"} {
		out = append(out, eval.Mean(name, rows))
	}
	return out
}
