package report

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"golang.org/x/net/html"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func markdownOf(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMarkdownGolden(t *testing.T) {
	datatest.Golden(t, "testdata/report.md", markdownOf(t, sample(t, plain)), *update)
	r := &Report{Result: &marchwarden.Result{Answer: "No stored document answers this question."}}
	datatest.Golden(t, "testdata/empty.md", markdownOf(t, r), *update)
	r = &Report{Question: "How do the grains compare?", Result: wired(t)}
	datatest.Golden(t, "testdata/blocks-ieee.md", markdownOf(t, r), *update)
}

// readers are what Markdown is read with: CommonMark alone, and as on the sites of
// code, with addresses made into links.
var readers = map[string]goldmark.Markdown{
	"commonmark": goldmark.New(),
	"gfm":        goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList)),
}

// made is the tree that a reader makes of a report.
func made(t testing.TB, reader goldmark.Markdown, source string) *html.Node {
	t.Helper()
	var out bytes.Buffer
	if err := reader.Convert([]byte(source), &out); err != nil {
		t.Fatal(err)
	}
	doc, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// shape is the elements of a document in their order, with where links lead.
func shape(doc *html.Node) []string {
	var out []string
	for _, n := range elements(doc) {
		out = append(out, strings.TrimSpace(n.Data+" "+attribute(n, "href")))
	}
	return out
}

// TestMarkdownIsInert compares what readers make of a report with hostile texts to
// what they make of the same one with tame texts: not one element may differ.
func TestMarkdownIsInert(t *testing.T) {
	for name, reader := range readers {
		// What is tame in the place of a payload: as many lines in excerpts.
		for _, p := range payloads {
			tame := strings.Join(slices.Repeat([]string{"word"}, 1+strings.Count(strings.TrimSpace(p), "\n")), "\n")
			if strings.Contains(p, "\n\n") {
				tame = strings.Map(func(r rune) rune {
					if r == '\n' {
						return r
					}
					return 'w'
				}, strings.TrimSpace(p))
			}
			for _, plant := range []func(text, p string) string{
				func(text, p string) string { return text + " " + p },
				func(text, p string) string { return p + " " + text },
				func(_, p string) string { return p },
			} {
				planted := func(p string) string {
					r := sample(t, func(s string) string { return plant(s, p) })
					source := markdownOf(t, r)
					r.Result.Blocks = hostileBlocks(plant("text", p)).Blocks
					return source + "\n\n" + markdownOf(t, r)
				}
				source := planted(p)
				doc, want := made(t, reader, source), made(t, reader, planted(tame))
				if diff := cmp.Diff(shape(want), shape(doc)); diff != "" {
					t.Fatalf("%s, %q (-tame +hostile):\n%s\n%s", name, p, diff, source)
				}
				for _, n := range elements(doc, "img", "script", "iframe", "svg", "input", "form", "style", "link", "meta", "object") {
					t.Errorf("%s, %q: there is a <%s>", name, p, n.Data)
				}
			}
		}
	}
}

// TestMarkdownReadsAsWritten says that escaping loses nothing: a text is the same to
// who reads the report as it was in the result.
func TestMarkdownReadsAsWritten(t *testing.T) {
	for name, reader := range readers {
		for _, p := range payloads {
			r := sample(t, plain)
			r.Question = p
			r.Result.Claims[0].Text = p
			doc := made(t, reader, markdownOf(t, r))
			title, _, _ := strings.Cut(strings.TrimPrefix(markdownOf(t, r), "---\ntitle: '"), "'\nsubtitle: ")
			if got := textOf(made(t, reader, strings.ReplaceAll(title, "''", "'"))); strings.TrimSpace(got) != plaintext.Fold(p) {
				t.Errorf("%s: the title reads %q, want %q", name, got, plaintext.Fold(p))
			}
			if got := textOf(elements(doc, "ol")[0]); !strings.Contains(got, plaintext.Fold(p)) {
				t.Errorf("%s: the claims read %q, want %q in it", name, got, plaintext.Fold(p))
			}
		}
	}
}
