// Package multihop measures questions that no single document answers: whether all the
// documents that are needed are read, whether single facts are found, and how a question
// is cut into parts. It owns three suites, multihop, multihop-rag and fanoutqa, and the
// plain ranking that stands beside ours in the same run. It follows no hop itself: the
// researcher does.
package multihop

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Suites are the suites of this package.
func Suites() []eval.Suite { return []eval.Suite{pooled(), rag(), fanout()} }

// most is how many documents may be read, and how many hits count.
const most = 8

// The metrics of multihop: the share of the questions of which all needed paragraphs are
// among eight documents, those that were read and those that one search finds. The ratio
// is that of what was read to the plain ranking, which is the textbook's.
const (
	allRead   = "all evidence read"
	allEngine = "all evidence, one search"
	allPlain  = "all evidence, one search of plain BM25"
	overPlain = "read : plain BM25"
	perAsked  = "documents read per question"
	allCited  = "all evidence cited, two hops" // of questions that need two paragraphs
)

func pooled() eval.Suite {
	return eval.Suite{
		Name: "multihop", Title: "HotpotQA and MuSiQue, 100 each, all paragraphs as one library",
		Files:   []string{"multidoc/hotpot100.jsonl.gz", "multidoc/musique100-hippo.jsonl.gz"},
		Licence: "CC BY-SA 4.0, CC BY 4.0", Measures: "all needed paragraphs among eight documents read",
		Bars: []eval.Bar{
			{Metric: overPlain, AtLeast: 2},
			{Metric: allRead, Known: "plain BM25 in this run"},
		},
		Open: openPooled,
	}
}

// hop is a question that no single paragraph answers.
type hop struct {
	set, question string
	gold          []string // names of the paragraphs that are needed together
}

// pool is one library of all paragraphs of two sets, and their questions.
type pool struct {
	docs  eval.Docs
	names map[string]string // by title and text
	texts []string          // in the order of their names
	hops  []hop
	lib   eval.Library
	plain *metric.BM25 // over title and text alike
}

func (p *pool) add(title, body string) string {
	key := title + "\n" + body
	if n, ok := p.names[key]; ok {
		return n
	}
	n := fileName(len(p.names))
	p.names[key] = n
	p.docs[n] = page(title, body)
	p.texts = append(p.texts, key)
	return n
}

// fileName is the name of a paragraph by its number.
func fileName(n int) string { return fmt.Sprintf("%04d.md", n) }

// page is a document with its title.
func page(title, body string) string { return fmt.Sprintf("---\ntitle: %q\n---\n%s\n", title, body) }

func openPooled(ctx context.Context, env eval.Env) (eval.Session, error) {
	p := &pool{docs: eval.Docs{}, names: map[string]string{}}
	if err := p.hotpot(env.Data); err != nil {
		return nil, err
	}
	if err := p.musique(env.Data); err != nil {
		return nil, err
	}
	p.plain = metric.NewBM25(p.texts, plainWords)
	var err error
	p.lib, err = env.Desk.Open(ctx, "pool", p.docs.FS())
	return p, err
}

func (p *pool) hotpot(d eval.Data) error {
	rows, err := eval.Rows[struct {
		Question string
		Context  [][2]any // title, sentences
		Facts    [][]any  `json:"supporting_facts"`
	}](d, "multidoc/hotpot100")
	for _, r := range rows {
		h := hop{set: "HotpotQA", question: strings.TrimSpace(r.Question)}
		for _, c := range r.Context {
			title, _ := c[0].(string)
			sentences, _ := c[1].([]any)
			var body strings.Builder
			for _, s := range sentences {
				fmt.Fprint(&body, s)
			}
			name := p.add(title, strings.TrimSpace(body.String()))
			if slices.ContainsFunc(r.Facts, func(f []any) bool { return len(f) > 0 && f[0] == c[0] }) {
				h.gold = append(h.gold, name)
			}
		}
		p.hops = append(p.hops, h)
	}
	return err
}

func (p *pool) musique(d eval.Data) error {
	rows, err := eval.Rows[struct {
		Question   string
		Paragraphs []struct {
			Title      string
			Text       string `json:"paragraph_text"`
			Supporting bool   `json:"is_supporting"`
		}
	}](d, "multidoc/musique100-hippo")
	for _, r := range rows {
		h := hop{set: "MuSiQue", question: strings.TrimSpace(r.Question)}
		for _, c := range r.Paragraphs {
			if name := p.add(c.Title, strings.TrimSpace(c.Text)); c.Supporting {
				h.gold = append(h.gold, name)
			}
		}
		p.hops = append(p.hops, h)
	}
	return err
}

// plainWords are the words of a text as they stand, in lower case: no stems, and no list
// of common words.
func plainWords(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Cases are the questions by set and number.
func (p *pool) Cases() []string {
	var out []string
	for i, h := range p.hops {
		out = append(out, fmt.Sprintf("%s-%d", h.set, i))
	}
	return out
}

// Run asks one question, and searches for it once.
func (p *pool) Run(ctx context.Context, id string) (eval.Row, error) {
	i := slices.Index(p.Cases(), id)
	if i < 0 {
		return eval.Row{}, fmt.Errorf("there is no case %q", id)
	}
	h := p.hops[i]
	hits, err := p.lib.Engine().Search(ctx, search.Query{Text: h.question, Limit: most})
	if err != nil {
		return eval.Row{}, err
	}
	var first []string
	for _, hit := range hits {
		first = append(first, fileOf(hit.Locator))
	}
	watched, read := eval.Watch(ctx)
	res, err := p.lib.Ask(watched, marchwarden.Request{Question: h.question, Depth: marchwarden.Deep, Constraints: &marchwarden.Constraints{MaxSources: new(most)}})
	if err != nil {
		return eval.Row{}, err
	}
	var got []string
	for _, l := range read() {
		if name := fileOf(l); !slices.Contains(got, name) {
			got = append(got, name)
		}
	}
	if len(got) > most {
		return eval.Row{}, fmt.Errorf("%d documents were read for %q", len(got), h.question)
	}
	var plain []string
	for _, n := range p.plain.Rank(h.question, most) {
		plain = append(plain, fileName(n))
	}
	values := map[string]float64{
		allRead: h.held(got), allEngine: h.held(first), allPlain: h.held(plain), perAsked: float64(len(got)),
		"confidence": float64(res.Confidence),
	}
	if len(h.gold) == 2 {
		var cited []string
		for _, c := range res.Citations {
			cited = append(cited, fileOf(c.Locator))
		}
		values[allCited] = h.held(cited)
	}
	return eval.Row{ID: id, Group: h.set, Values: values, Note: h.lacking(got)}, nil
}

// fileOf is the name of the file that a locator names.
func fileOf(locator string) string {
	locator, _, _ = strings.Cut(locator, "#")
	return path.Base(locator[strings.LastIndexByte(locator, ':')+1:])
}

// held is 1 where all that is needed is there.
func (h hop) held(got []string) float64 {
	if h.lacking(got) != "" {
		return 0
	}
	return 1
}

// lacking names what is needed and is not there.
func (h hop) lacking(got []string) string {
	var out []string
	for _, g := range h.gold {
		if !slices.Contains(got, g) {
			out = append(out, g)
		}
	}
	return strings.Join(out, " ")
}

// Score is the shares for both sets together and each alone.
func (p *pool) Score(rows []eval.Row) []eval.Metric {
	var out []eval.Metric
	for _, set := range []string{"", "HotpotQA", "MuSiQue"} {
		of := rows
		if set != "" {
			of = slices.DeleteFunc(slices.Clone(rows), func(r eval.Row) bool { return r.Group != set })
			set += ": "
		}
		if len(of) == 0 {
			continue
		}
		read, engine, plain := eval.Mean(allRead, of), eval.Mean(allEngine, of), eval.Mean(allPlain, of)
		for _, m := range []eval.Metric{read, eval.Mean(allCited, of), engine, plain} {
			m.Name = set + m.Name
			out = append(out, m)
		}
		out = append(out, eval.Metric{Name: set + overPlain, Value: read.Value * float64(read.N) / max(1, plain.Value*float64(plain.N)), N: read.N})
	}
	return append(out, eval.Mean(perAsked, rows))
}

// Close frees the index.
func (p *pool) Close() error { return p.lib.Close() }
