package scholar

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestParse(t *testing.T) {
	papers, err := parse([]byte(atom(`<id>http://arxiv.org/abs/hep-th/9901001v3</id><title> On
  strings &lt;i&gt; &#x202e;</title><summary>We show $p&lt;q$
 and more.</summary><published>1999-01-02T03:04:05Z</published><updated>2000-02-03T00:00:00Z</updated>
 <author><name>A. Author</name><arxiv:affiliation>X</arxiv:affiliation></author><author><name>  </name></author><author><name>B</name></author>
 <arxiv:doi>10.48550/arXiv.hep-th/9901001 10.1103/PhysRevD.1; 10.1103/2</arxiv:doi><arxiv:journal_ref>Phys. Rev. D 1</arxiv:journal_ref><arxiv:comment>12 pages</arxiv:comment>
 <arxiv:primary_category term="hep-th"/><category term="gr-qc"/><category term="hep-th"/>`,
		`<id>nonsense</id><title>x</title>`, `<id>http://arxiv.org/abs/2401.00001v1</id>`)))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := ParseID("hep-th/9901001v3")
	want := []Preprint{{
		ID: id, Versioned: "hep-th/9901001v3", Title: "On strings <i>", Summary: "We show $p<q$ and more.", Authors: []string{"A. Author", "B"},
		Published: "1999-01-02", Updated: "2000-02-03", DOI: "10.1103/physrevd.1", Journal: "Phys. Rev. D 1", Comment: "12 pages", Categories: []string{"hep-th", "gr-qc"},
	}}
	if diff := cmp.Diff(want, papers, cmp.Comparer(func(a, b ID) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithdrawn(t *testing.T) {
	for comment, want := range map[string]bool{
		"This paper has been withdrawn by the author due to an error in Lemma 2": true,
		"Withdrawn by arXiv admins": true, "withdrawn": true, "The submission was withdrawn.": true,
		"Superseded; the withdrawn amount of fluid is measured": false, "12 pages": false, "": false, "We study withdrawn patients": false,
	} {
		if got := (Preprint{Comment: comment}).Withdrawn(); got != want {
			t.Errorf("%q: %v", comment, got)
		}
	}
}

// hostileFeeds are answers that no client should have to read.
var hostileFeeds = map[string]string{
	"entity bomb":      `<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00001v1</id><title>&c;</title></entry></feed>`,
	"outside entity":   `<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY x SYSTEM "file:///etc/passwd">]><feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00001v1</id><title>&x;</title></entry></feed>`,
	"deep":             `<feed xmlns="http://www.w3.org/2005/Atom">` + strings.Repeat("<entry>", 200_000),
	"deep and closed":  `<feed xmlns="http://www.w3.org/2005/Atom"><entry>` + strings.Repeat("<a>", 50_000) + strings.Repeat("</a>", 50_000) + `</entry></feed>`,
	"another document": `<html><body>Sign in</body></html>`,
	"another feed":     `<feed><entry><id>http://arxiv.org/abs/2401.00001v1</id><title>x</title></entry></feed>`,
	"cut":              atom("<id>http://arxiv.org/abs/2401.00001v1</id>")[:250],
	"other charset":    `<?xml version="1.0" encoding="utf-7"?><feed xmlns="http://www.w3.org/2005/Atom"></feed>`,
	"not UTF-8":        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>\xff\xfe</title></feed>",
	"only bad entries": atom("<id>ftp://x</id>", "<title>x</title>"),
	"empty":            "",
	"JSON":             `{"feed": []}`,
}

func TestHostileFeeds(t *testing.T) {
	for name, body := range hostileFeeds {
		start := time.Now()
		papers, err := parse([]byte(body))
		if marchwarden.CodeOf(err) != marchwarden.CodeMalformed || len(papers) != 0 || len(err.Error()) > 300 || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %d papers, %v in %v", name, len(papers), err, time.Since(start))
		}
	}
	var many []string
	for range 3000 {
		many = append(many, "<id>http://arxiv.org/abs/2401.00001v1</id><title>"+strings.Repeat("x", 2000)+"</title>"+strings.Repeat("<author><name>N</name></author>", 60))
	}
	papers, err := parse([]byte(atom(many...)))
	if err != nil || len(papers) > maxEntries || len([]rune(papers[0].Title)) > maxLine+1 || len(papers[0].Authors) != maxAuthors || papers[0].More != 10 {
		t.Errorf("%v, %d papers", err, len(papers))
	}
	_, err = parse([]byte(atom("<id>http://arxiv.org/api/errors#x</id><title>Error</title><summary>bad\x07 query &#x1b;[31m" + strings.Repeat("x", 500) + "</summary>")))
	if err == nil || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
}

// FuzzParse: whatever is sent, what comes out is clean and bounded, or there is an
// error with a code.
func FuzzParse(f *testing.F) {
	for _, body := range hostileFeeds {
		f.Add([]byte(body[:min(len(body), 2000)]))
	}
	f.Add([]byte(atom("<id>http://arxiv.org/abs/2401.00001v1</id><title>x</title><summary>y</summary><author><name>z</name></author><arxiv:doi>10.1000/x</arxiv:doi>")))
	f.Fuzz(func(t *testing.T, body []byte) {
		papers, err := parse(body)
		if code := marchwarden.CodeOf(err); err != nil && code != marchwarden.CodeMalformed && code != marchwarden.CodeUnavailable {
			t.Fatalf("%v", err)
		}
		if len(papers) > maxEntries {
			t.Fatalf("%d papers", len(papers))
		}
		for _, p := range papers {
			for _, s := range append([]string{p.Title, p.Summary, p.Journal, p.Comment, p.DOI}, append(p.Authors, p.Categories...)...) {
				if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("%q", s)
				}
			}
			if again, ok := ParseID(p.ID.Locator()); !ok || again != p.ID || p.Title == "" {
				t.Fatalf("%+v", p)
			}
		}
	})
}
