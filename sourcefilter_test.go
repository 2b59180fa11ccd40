package marchwarden_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// What is excluded is so by any of its names, whatever else allows it.
func TestSourceFilterExcludes(t *testing.T) {
	for _, c := range []struct {
		filter  string
		names   []string
		allowed bool
	}{
		{"!example.com", []string{"usu.edu"}, true},
		{"!example.com", []string{"notexample.com"}, true},
		{"!example.com", []string{"notes.md"}, true},
		{"!example.com", []string{"WWW.example.com."}, false},
		{"!example.com", []string{"usu.edu", "example.com"}, false},
		{".edu,!www.usu.edu", []string{"usu.edu"}, true},
		{".edu,!www.usu.edu", []string{"a.www.usu.edu"}, false},
		{".edu,!www.usu.edu", []string{"nasa.gov"}, false},
	} {
		f, err := marchwarden.ParseSourceFilter(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if f.Allows(c.names...) != c.allowed || f.String() != c.filter {
			t.Errorf("filter %q allows %q: %v, want %v", f, c.names, !c.allowed, c.allowed)
		}
	}
	for _, bad := range []string{"!", "!!example.com", "! ", "!a b"} {
		if _, err := marchwarden.ParseSourceFilter(bad); err == nil {
			t.Errorf("the filter %q is taken", bad)
		}
	}
}

func TestSourceFilterAllows(t *testing.T) {
	for _, c := range []struct {
		filter  string
		allowed []string
		refused []string
	}{
		{"", []string{"anything.example", "", "a b"}, nil},
		{" \t", []string{"anything.example"}, nil},
		{"nasa.gov",
			[]string{"nasa.gov", "www.nasa.gov", "a.b.nasa.gov", "NASA.GOV", "Www.Nasa.Gov", "nasa.gov.", "www.nasa.gov."},
			[]string{"notnasa.gov", "nasa.gov.example", "nasa.govx", "gov", "nasa", "nasa-gov", "", ".", "nasa.gov/evil", "nasa.gov:443", "nasa.gov.."}},
		{".gov",
			[]string{"nasa.gov", "x.y.gov", "NASA.GOV.", "report.gov"},
			[]string{"gov", "notgov", "agov", "gov.uk", "nasa.gov.evil.example"}},
		{"edu", []string{"usu.edu", "edu", "www.usu.edu"}, []string{"edu.example.com", "notedu"}},
		{".pdf,.md", []string{"report.pdf", "Notes.MD", "résumé.pdf"}, []string{"report.pdfx", "pdf", "report.txt"}},
		{"NASA.gov , .EDU", []string{"nasa.gov", "mit.edu"}, []string{"example.com"}},
		{"nasa.gov.", []string{"nasa.gov", "www.nasa.gov", "nasa.gov."}, []string{"notnasa.gov"}},
		{"bücher.example",
			[]string{"bücher.example", "BÜCHER.example", "www.bücher.example", "xn--bcher-kva.example", "www.XN--bcher-kva.example."},
			[]string{"bucher.example", "bücherx.example", "xn--bcher-kva.example.com", "xbücher.example"}},
		{"xn--bcher-kva.example", []string{"bücher.example", "xn--bcher-kva.example"}, []string{"bcher.example"}},
		{".рф", []string{"пример.рф", "xn--e1afmkfd.xn--p1ai"}, []string{"пример.рус"}},
		{"例え.テスト", []string{"xn--r8jz45g.xn--zckzah", "www.例え.テスト"}, []string{"例.テスト"}},
		{"straße.example", []string{"xn--strae-oqa.example"}, []string{"strasse.example"}},
		{"한국", []string{"xn--3e0b707e", "a.한국"}, []string{"한국a"}},
		{"my_host.local", []string{"my_host.local"}, []string{"my-host.local"}},
	} {
		f, err := marchwarden.ParseSourceFilter(c.filter)
		if err != nil {
			t.Errorf("ParseSourceFilter(%q): %v", c.filter, err)
			continue
		}
		for _, n := range c.allowed {
			if !f.Allows(n) {
				t.Errorf("filter %q refuses %q", c.filter, n)
			}
		}
		for _, n := range c.refused {
			if f.Allows(n) {
				t.Errorf("filter %q allows %q", c.filter, n)
			}
		}
		if all := slices.Concat(c.refused, c.allowed); len(c.allowed) > 0 && !f.Allows(all...) {
			t.Errorf("filter %q refuses a source that has one allowed name among %q", c.filter, all)
		}
		again, err := marchwarden.ParseSourceFilter(f.String())
		if err != nil || again.String() != f.String() {
			t.Errorf("filter %q does not come back from its own text %q: %q, %v", c.filter, f, again, err)
		}
	}
	f, _ := marchwarden.ParseSourceFilter(".gov")
	if f.Allows() {
		t.Error("a filter allows a source without a name")
	}
}

// The work grows with the text and not with its square, whatever the text.
func TestSourceFilterOfOneHugeLabel(t *testing.T) {
	var b strings.Builder
	for r := 'Ѐ'; b.Len() < 60_000; r++ {
		if unicode.IsLetter(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	began := time.Now()
	f, err := marchwarden.ParseSourceFilter(b.String())
	if err != nil || !f.Allows(b.String()) || f.Allows(b.String()[2:]) {
		t.Errorf("a huge label does not match itself alone: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestSourceFilterRefusesOtherText(t *testing.T) {
	for _, s := range []string{
		",", ".gov,", ",.gov", ".gov,,.edu", ".", "..", "-", "_", ".-", "a..b", ".gov..", "https://nasa.gov", "nasa.gov/path", "nasa.gov:443", "*.gov",
		".gov .edu", ".gov;.edu", "a@b", "a\x00b", "a\nb", "a\x1b[31m", "a\u0085b", "a\u202eb", "a\u200bb", "a\xffb", "\ufffd", "a\u2028b", "\"gov\"", "not .gov", "😀.example",
	} {
		f, err := marchwarden.ParseSourceFilter(s)
		var e *marchwarden.Error
		if err == nil || !f.Empty() {
			t.Errorf("ParseSourceFilter(%q) = %q, %v, want an error", s, f, err)
		} else if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != "constraints.source_filter" || e.Hint == "" {
			t.Errorf("ParseSourceFilter(%q): %+v", s, err)
		}
	}
	_, err := marchwarden.ParseSourceFilter(strings.Repeat("a b", 100))
	if len(err.Error()) > 200 {
		t.Errorf("the error repeats the whole filter: %v", err)
	}
}
