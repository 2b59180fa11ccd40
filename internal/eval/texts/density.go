package texts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// The metrics of the suite.
const (
	oursPlain     = "our sentences cited, without a model"
	oursModel     = "our sentences cited, with a model"
	peerCited     = "peer's sentences cited"
	peerNumbers   = "peer's sentences with a number cited"
	peerMedian    = "peer's median report"
	articlesCited = "encyclopaedia's sentences cited"
)

func densitySuite() eval.Suite {
	return eval.Suite{
		Name: "density", Title: "share of sentences with a citation: our answers about FreshWiki articles, a peer's reports, the articles themselves",
		Files:   []string{"multidoc/freshwiki.jsonl.gz", "reports/odr-gpt-4.1.jsonl.gz"},
		Licence: "CC BY-SA; MIT", Measures: "citation density",
		Bars: []eval.Bar{
			{Metric: oursPlain, AtLeast: 1, Known: "open_deep_research with gpt-4.1 38.9 %, claude-sonnet-4 41.6 %, gpt-5 42.2 %"},
			{Metric: oursModel, AtLeast: 0.95, Known: "as above"},
			{Metric: peerCited, Known: "38.9 % by an earlier count"},
			{Metric: peerNumbers, Known: "49.4 % by an earlier count"},
		},
		Open: openDensity,
	}
}

// density is the suite with its data read.
type density struct {
	library  eval.Library
	articles map[string]eval.Article
	reports  map[string]string
	ids      []string
}

func openDensity(ctx context.Context, env eval.Env) (eval.Session, error) {
	articles, err := eval.Rows[eval.Article](env.Data, eval.FreshWiki)
	if err != nil {
		return nil, err
	}
	reports, err := eval.Rows[struct{ Prompt, Article string }](env.Data, "reports/odr-gpt-4.1")
	if err != nil {
		return nil, err
	}
	d := &density{articles: map[string]eval.Article{}, reports: map[string]string{}}
	docs := eval.Docs{}
	for i, a := range articles {
		id := fmt.Sprintf("%03d", i)
		d.articles[id] = a
		docs[id+".md"] = a.Markdown()
		d.ids = append(d.ids, "ours-"+id, "article-"+id)
	}
	for i, r := range reports {
		if !latin(r.Article) {
			continue // the counts that are known are of those that are
		}
		id := fmt.Sprintf("%03d", i)
		d.reports[id] = r.Article
		d.ids = append(d.ids, "peer-"+id)
	}
	slices.Sort(d.ids)
	d.library, err = env.Desk.Open(ctx, "freshwiki", docs.FS())
	return d, err
}

// citing counts the sentences of an article and those with a reference.
func citing(a eval.Article) (c Citing) {
	var walk func([]eval.Section)
	walk = func(list []eval.Section) {
		for _, s := range list {
			for _, st := range s.Content {
				one := Citing{}
				one.count(st.Sentence)
				if one.Sentences > 0 && one.Cited == 0 && len(st.Refs) > 0 {
					one.Cited, one.NumbersCited = 1, one.Numbers
				}
				c.plus(one)
			}
			walk(s.Sections)
		}
	}
	walk(a.Content)
	return c
}

// latin reports whether a text is written in Latin letters, nearly all of them.
func latin(s string) bool {
	letters, other := 0, 0
	for _, r := range s {
		if unicode.IsLetter(r) {
			letters++
			if !unicode.Is(unicode.Latin, r) {
				other++
			}
		}
	}
	return other*10 < letters
}

func (d *density) Cases() []string { return d.ids }

func (d *density) Close() error { return d.library.Close() }

func (d *density) Run(ctx context.Context, id string) (eval.Row, error) {
	kind, n, _ := strings.Cut(id, "-")
	row := eval.Row{Group: n, Values: map[string]float64{}}
	switch kind {
	case "ours":
		err := d.ask(ctx, &row, d.articles[n])
		return row, err
	case "article":
		put(&row, "article", citing(d.articles[n]))
	default:
		put(&row, "peer", CountCited(d.reports[n]))
	}
	return row, nil
}

func put(row *eval.Row, whose string, c Citing) {
	row.Values[whose+" sentences"], row.Values[whose+" cited"] = float64(c.Sentences), float64(c.Cited)
	row.Values[whose+" numbers"], row.Values[whose+" numbers cited"] = float64(c.Numbers), float64(c.NumbersCited)
}

// ask asks for what an article is about, and counts the answer.
func (d *density) ask(ctx context.Context, row *eval.Row, a eval.Article) error {
	res, err := d.library.Ask(ctx, marchwarden.Request{Question: "What is known about " + a.Title + "?"})
	if err != nil {
		return err
	}
	if len(res.Citations) == 0 {
		row.Note = "refused" // there is nothing that needs a citation
		return nil
	}
	whose := "model"
	if strings.HasPrefix(res.CostMetadata.ModelID, "extractive/") {
		whose = "plain"
	}
	put(row, whose, CountCited(res.Answer))
	return nil
}

func (d *density) Score(rows []eval.Row) (out []eval.Metric) {
	share := func(name, cited, of string) {
		a, _ := sum(rows, cited)
		b, n := sum(rows, of)
		if n > 0 {
			out = append(out, eval.Metric{Name: name, Value: part(a, b), N: int(b)})
		}
	}
	share(oursPlain, "plain cited", "plain sentences")
	share(oursModel, "model cited", "model sentences")
	share(peerCited, "peer cited", "peer sentences")
	share(peerNumbers, "peer numbers cited", "peer numbers")
	share(articlesCited, "article cited", "article sentences")
	var each []float64
	for _, r := range rows {
		if n := r.Values["peer sentences"]; n > 0 {
			each = append(each, r.Values["peer cited"]/n)
		}
	}
	if len(each) > 0 {
		slices.Sort(each)
		out = append(out, eval.Metric{Name: peerMedian, Value: (each[(len(each)-1)/2] + each[len(each)/2]) / 2, N: len(each)})
	}
	return out
}
