package biblio

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var entries = []Entry{
	{Title: "Attention is not all: 50% of $x_i$ & more", Authors: People([]string{"Ann B. Bee", "Jan van der Berg", "Dee, Carl", "Plato", "Ōe Kenzaburō"}), MoreAuthors: 3,
		Published: "2024-01-03", Accessed: "2026-11-15", ArXiv: "2401.01234v2", DOI: "10.48550/arxiv.2401.01234", URL: "https://arxiv.org/abs/2401.01234v2"},
	{Title: "Frost and its dates", Authors: People([]string{"Ann Bee"}), Published: "2020-06", Accessed: "2026-11-15", Journal: "Journal of Frost & Snow", DOI: "10.1000/xyz_1(2)", URL: "https://doi.org/10.1000/xyz_1(2)"},
	{Title: "Last frost — 日本語 {draft}", Authors: []Name{{Literal: "Smith and Sons, Ltd"}}, Published: "2025-03-02", Accessed: "2026-11-15", Publisher: "www.example.org", URL: "https://example.org/frost?a=1&b=%7Bc%7D#x"},
	{Title: "Planting calendar", Accessed: "2026-11-15", Publisher: "embedded library", Locator: "embedded:utah_planting-calendar.md"},
	{Title: "SELECT count(*) FROM drugs — clinic.db", Published: "no date", Locator: "db:clinic.db?query=sha256:00ff"},
	{URL: "https://example.org/untitled"},
}

func written(t testing.TB, form func(io.Writer, []Entry) error, es []Entry) string {
	t.Helper()
	var b bytes.Buffer
	if err := form(&b, es); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	datatest.Golden(t, "testdata/sources.bib", written(t, BibTeX, entries), *update)
}

func TestNothing(t *testing.T) {
	if got := written(t, BibTeX, nil); got != "" {
		t.Errorf("no entries give %q", got)
	}
	got := written(t, BibTeX, []Entry{{}})
	for _, empty := range []string{"{}", `""`} {
		if strings.Contains(got, empty) {
			t.Errorf("an entry without fields gives %q", got)
		}
	}
}

// bibEntry is an entry as another program reads it.
type bibEntry struct {
	kind, key string
	fields    map[string]string
}

// readBib reads BibTeX as its manual has it: what is outside of entries is comment,
// braces are counted whether or not a backslash is before them.
func readBib(s string) ([]bibEntry, error) {
	var out []bibEntry
	for {
		i := strings.IndexByte(s, '@')
		if i < 0 {
			if strings.TrimSpace(s) != "" {
				return nil, fmt.Errorf("text between entries: %q", s)
			}
			return out, nil
		}
		if strings.TrimSpace(s[:i]) != "" {
			return nil, fmt.Errorf("text between entries: %q", s[:i])
		}
		kind, rest, _ := strings.Cut(s[i+1:], "{")
		body, after, err := balanced(rest)
		if err != nil {
			return nil, err
		}
		s = after
		key, fields, _ := strings.Cut(body, ",")
		e := bibEntry{kind, strings.TrimSpace(key), map[string]string{}}
		for strings.TrimSpace(fields) != "" {
			name, value, ok := strings.Cut(fields, "=")
			if !ok {
				return nil, fmt.Errorf("no field: %q", fields)
			}
			value = strings.TrimLeft(value, " ")
			if strings.HasPrefix(value, "{") {
				v, after, err := balanced(value[1:])
				if err != nil {
					return nil, err
				}
				value, fields = v, strings.TrimLeft(after, ", \n")
			} else {
				value, fields, _ = strings.Cut(value, ",")
			}
			name = strings.TrimSpace(name)
			if _, twice := e.fields[name]; twice || !regexp.MustCompile(`^[a-zA-Z]+$`).MatchString(name) {
				return nil, fmt.Errorf("field %q", name)
			}
			e.fields[name] = value
		}
		out = append(out, e)
	}
}

// balanced cuts s at the brace that closes one before it.
func balanced(s string) (inside, after string, err error) {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return s[:i], s[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("a brace is not closed: %q", s)
}

// latex is what LaTeX shows for a value.
func latex(s string) string {
	for {
		inner, ok := strings.CutPrefix(s, "{")
		if !ok {
			break
		}
		in, after, err := balanced(inner)
		if err != nil || after != "" || strings.HasPrefix(in, `\text`) && !strings.ContainsAny(in, "{}") {
			break
		}
		s = in
	}
	commands := map[string]string{`{\textbackslash}`: `\`, `{\textbraceleft}`: "{", `{\textbraceright}`: "}", `{\textasciitilde}`: "~", `{\textasciicircum}`: "^", `\&`: "&", `\%`: "%", `\$`: "$", `\#`: "#", `\_`: "_"}
	return regexp.MustCompile(`\{\\text[a-z]+\}|\\.`).ReplaceAllStringFunc(s, func(m string) string {
		if c, ok := commands[m]; ok {
			return c
		}
		return "COMMAND(" + m + ")"
	})
}

var hostileText = rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("{}\\\"@,=%#$&_~^ \r\n\tab\u2028\u202eER-é"))),
	rapid.SampledFrom([]string{"ER  - ", "\r\nER  - \r\nTY  - JOUR\r\nTI  - evil", "@comment{x}", "}, title = {evil}", "\\}", "\\", "{", "}}", "a and b", "others", "A, B", "Smith, John, Jr.", "\\input{/etc/passwd}", "title\n@misc{evil, title={x}}"}))

func hostileName(t *rapid.T) Name {
	if rapid.Bool().Draw(t, "literal") {
		return Name{Literal: hostileText.Draw(t, "name")}
	}
	return Name{Family: hostileText.Draw(t, "family"), Given: hostileText.Draw(t, "given")}
}

// TestReadsBack says that nothing breaks out of its field and nothing is lost.
func TestReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		es := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Entry {
			return Entry{Title: hostileText.Draw(t, "title"), Authors: rapid.SliceOfN(rapid.Custom(hostileName), 0, 3).Draw(t, "authors"),
				MoreAuthors: rapid.IntRange(0, 2).Draw(t, "more"), Published: rapid.SampledFrom([]string{"", "2024", "2024-02", "2024-02-30", "2024-02-03", "\n2024"}).Draw(t, "date"),
				Publisher: hostileText.Draw(t, "publisher"), Journal: hostileText.Draw(t, "journal"), DOI: hostileText.Draw(t, "doi"), ArXiv: hostileText.Draw(t, "arxiv"),
				URL: hostileText.Draw(t, "url"), Locator: hostileText.Draw(t, "locator")}
		}), 1, 3).Draw(t, "entries")
		readBack(t, es)
	})
}

func readBack(t *rapid.T, es []Entry) {
	form := func(f func(io.Writer, []Entry) error) string {
		var b bytes.Buffer
		if err := f(&b, es); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	bib, err := readBib(form(BibTeX))
	if err != nil || len(bib) != len(es) {
		t.Fatalf("BibTeX: %d entries, %v\n%s", len(bib), err, form(BibTeX))
	}
	keys := map[string]bool{}
	for i, e := range es {
		e = e.fold()
		if keys[bib[i].key] || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(bib[i].key) {
			t.Fatalf("the key is %q", bib[i].key)
		}
		keys[bib[i].key] = true
		for what, pair := range map[string][2]string{
			"BibTeX title":   {e.Title, latex(bib[i].fields["title"])},
			"BibTeX journal": {e.Journal, latex(bib[i].fields["journal"])}, "BibTeX publisher": {e.Publisher, latex(bib[i].fields["organization"])}, "BibTeX locator": {e.Locator, latex(bib[i].fields["howpublished"])},
			"BibTeX URL": {urlEscapes.Replace(e.URL), bib[i].fields["url"]},
		} {
			if pair[0] != pair[1] {
				t.Fatalf("%s: %q reads %q", what, pair[0], pair[1])
			}
		}
		var names []string
		for _, n := range e.Authors {
			names = append(names, n.String())
		}
		if got := bibNames(bib[i].fields["author"]); !slices.Equal(got, names) {
			t.Fatalf("BibTeX authors: %q read %q from %q", names, got, bib[i].fields["author"])
		}
	}
}

// A name that the form would split or turn around is written as it is spoken.
func TestNamesThatAreNotTakenApart(t *testing.T) {
	for _, tt := range []struct {
		name Name
		bib  string
	}{
		{Name{Family: "Bee", Given: "Ann"}, "{Bee, Ann}"},
		{Name{Family: "Simon and Schuster", Given: "Ann"}, "{{Ann Simon and Schuster}}"},
		{Name{Family: "Bee", Given: "Others"}, "{{Others Bee}}"},
		{Name{Family: "Bee, Jr.", Given: "Ann"}, "{{Ann Bee, Jr.}}"},
		{Name{Family: "Bee", Given: "Ann, Dr."}, "{{Ann, Dr. Bee}}"},
	} {
		es := []Entry{{Title: "T", Authors: []Name{tt.name}}}
		if got := written(t, BibTeX, es); !strings.Contains(got, "author = "+tt.bib+",") && !strings.Contains(got, "author = "+tt.bib+"\n") {
			t.Errorf("%+v: want %s in\n%s", tt.name, tt.bib, got)
		}
	}
}

// bibNames splits authors at the "and" outside of braces and turns "family, given"
// around; "others" is not an author.
func bibNames(s string) []string {
	var out []string
	depth, from := 0, 0
	add := func(name string) {
		switch family, given, ok := strings.Cut(name, ", "); {
		case name == "" || name == "others":
		case ok && !strings.HasPrefix(name, "{"):
			out = append(out, latex(given+" "+family))
		default:
			out = append(out, latex(name))
		}
	}
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 && strings.HasPrefix(s[i:], " and ") {
			add(s[from:i])
			from = i + len(" and ")
		}
	}
	add(s[from:])
	return out
}

func TestKeysAreStable(t *testing.T) {
	keys := func(all ...Entry) (out []string) {
		used := map[string]bool{}
		for _, e := range all {
			out = append(out, e.fold().key(used))
		}
		return out
	}
	one, other := keys(entries...), keys(entries[3], entries[0])
	if one[0] != other[1] || one[3] != other[0] {
		t.Error("a key depends on what else is in the list")
	}
	twice := keys(entries[0], entries[0], entries[0])
	if twice[1] != twice[0]+"-2" || twice[2] != twice[0]+"-3" {
		t.Errorf("the keys of equal entries are %q", twice)
	}
}

func TestNames(t *testing.T) {
	got := People([]string{"Ann B. Bee", "Jan van der Berg", "Dee, Carl", "Plato", " ", "Smith, John, Jr.", "A\nB"})
	want := []Name{{"Bee", "Ann B.", ""}, {"van der Berg", "Jan", ""}, {"Dee", "Carl", ""}, {Literal: "Plato"}, {Literal: "Smith, John, Jr."}, {"B", "A", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("people (-want +got):\n%s", diff)
	}
	for line, want := range map[string][]string{
		"": nil, "Ann Bee": {"Ann Bee"}, "Ann Bee, Carl Dee": {"Ann Bee", "Carl Dee"}, "Bee, Ann": {"Bee, Ann"}, "Ann Bee, Carl Dee and 3 more": {"Ann Bee", "Carl Dee"}, "The Times, London Office, UK": {"The Times, London Office, UK"},
	} {
		var got []string
		names, more := Byline(line)
		for _, n := range names {
			got = append(got, n.String())
		}
		if !slices.Equal(got, want) || (more == 3) != strings.HasSuffix(line, "3 more") {
			t.Errorf("%q is by %q and %d more, want %q", line, got, more, want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteFails(t *testing.T) {
	if err := BibTeX(full{}, entries); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("the error is %v", err)
	}
}
