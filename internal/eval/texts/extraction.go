package texts

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

func extractionSuite() eval.Suite {
	return eval.Suite{
		Name: "extraction", Title: "text of web pages: the pages of readability and a sample of those of trafilatura",
		Files:   []string{"pages/readability.tar.gz", "pages/trafilatura-sample.tar.gz"},
		Licence: "Apache-2.0", Measures: "HTML extraction: F1 of words, and of texts that must and must not be there",
		Bars: []eval.Bar{
			{Metric: "readability word f1", Known: "go-readability alone, which the set was made with, .997"},
			{Metric: "trafilatura f1", Known: "on the whole set: trafilatura (Python) .924, go-trafilatura .899, go-readability alone .874, readability-lxml .826, newspaper4k .801"},
		},
		Open: openExtraction,
	}
}

// page is one case: the page and what is known of its text.
type page struct {
	name          string
	raw           []byte
	expected      string // the text, or
	with, without []string
}

type extraction struct {
	extractor *extract.Extractor
	pages     map[string]page
	ids       []string
}

func openExtraction(_ context.Context, env eval.Env) (eval.Session, error) {
	e := &extraction{extractor: extract.New(extract.Config{}), pages: map[string]page{}}
	if err := errors.Join(e.readability(env.Data), e.trafilatura(env.Data)); err != nil {
		return nil, errors.Join(err, e.extractor.Close())
	}
	e.ids = slices.Sorted(maps.Keys(e.pages))
	return e, nil
}

// contents are the files of an archive by their clean name.
func contents(data eval.Data, name string) (map[string][]byte, error) {
	list, err := eval.Tar(data, name, nil)
	out := make(map[string][]byte, len(list))
	for _, f := range list {
		out[path.Clean(f.Name)] = f.Data
	}
	return out, err
}

func (e *extraction) readability(data eval.Data) error {
	files, err := contents(data, "pages/readability.tar.gz")
	if err != nil {
		return err
	}
	for name, raw := range files {
		dir, base := path.Split(name)
		want, ok := files[dir+"expected.html"]
		if base != "source.html" || !ok {
			continue
		}
		e.pages["readability-"+path.Clean(dir)] = page{name: "http://fakehost/test/page.html", raw: raw, expected: plainText(string(want))}
	}
	return nil
}

func (e *extraction) trafilatura(data eval.Data) error {
	files, err := contents(data, "pages/trafilatura-sample.tar.gz")
	if err != nil {
		return err
	}
	var known map[string]struct {
		File          string
		With, Without []string
	}
	if err := json.Unmarshal(files["evaldata.json"], &known); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read evaldata.json of the trafilatura sample")
	}
	for _, k := range known {
		raw, ok := files["html/"+k.File]
		if !ok {
			return marchwarden.Errorf(marchwarden.CodeMalformed, "the trafilatura sample has no page %s", k.File)
		}
		e.pages["trafilatura-"+strings.TrimSuffix(k.File, ".html")] = page{name: k.File, raw: raw, with: k.With, without: k.Without}
	}
	return nil
}

// Of the expected documents, which are plain and well formed, this is all that is no text.
var (
	unseen = regexp.MustCompile(`(?is)<!--.*?-->|<(script|style|noscript|template)\b.*?</(script|style|noscript|template)\s*>`)
	inLine = regexp.MustCompile(`(?i)</?(a|b|i|em|strong|span|code|sub|sup|small|u|s|font|abbr|cite|q|mark)(\s[^>]*)?>`)
	tag    = regexp.MustCompile(`(?s)</?[a-zA-Z!][^>]*>`)
)

// plainText is the text of an expected document, with a break at every element that is
// not set within a line.
func plainText(source string) string {
	source = inLine.ReplaceAllString(unseen.ReplaceAllString(source, "\n"), "")
	return html.UnescapeString(tag.ReplaceAllString(source, "\n"))
}

func (e *extraction) Cases() []string { return e.ids }

func (e *extraction) Close() error { return e.extractor.Close() }

func (e *extraction) Run(ctx context.Context, id string) (eval.Row, error) {
	p := e.pages[id]
	row := eval.Row{Values: map[string]float64{}}
	doc, err := e.extractor.Extract(ctx, p.name, p.raw)
	if ctx.Err() != nil {
		return row, ctx.Err()
	}
	if err != nil { // a page that cannot be read has no text
		row.Note = err.Error()
	}
	if strings.HasPrefix(id, "readability-") {
		row.Values["readability word f1"] = wordF1(p.expected, doc.Text)
		return row, nil
	}
	text := flat(doc.Text)
	tally := func(list []string, there string, gone string) {
		for _, s := range list {
			if strings.Contains(text, flat(s)) {
				row.Values[there]++
			} else {
				row.Values[gone]++
			}
		}
	}
	tally(p.with, "tp", "fn")
	tally(p.without, "fp", "tn")
	row.Values["trafilatura page f1"] = f1(row.Values["tp"], row.Values["fp"], row.Values["fn"])
	return row, nil
}

// flat is a text with single spaces.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

func f1(tp, fp, fn float64) float64 { return part(2*tp, 2*tp+fp+fn) }

func (e *extraction) Score(rows []eval.Row) []eval.Metric {
	var out []eval.Metric
	if m := eval.Mean("readability word f1", rows); m.N > 0 {
		out = append(out, m)
	}
	page := eval.Mean("trafilatura page f1", rows)
	if page.N == 0 {
		return out
	}
	tp, _ := sum(rows, "tp")
	fp, _ := sum(rows, "fp")
	fn, _ := sum(rows, "fn")
	tn, _ := sum(rows, "tn")
	return append(out,
		eval.Metric{Name: "trafilatura f1", Value: f1(tp, fp, fn), N: page.N},
		eval.Metric{Name: "trafilatura must be there", Value: part(tp, tp+fn), N: page.N},
		eval.Metric{Name: "trafilatura must not be there", Value: part(tn, tn+fp), N: page.N},
		page)
}
