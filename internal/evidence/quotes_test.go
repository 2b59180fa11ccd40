package evidence

import (
	"encoding/json"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// The bars: how many honest quotes must be accepted, and how many tampered ones
// may be.
const (
	honestBar   = 0.999
	tamperedBar = 0.0005
)

// quotesPerPage bounds the sentences that are tried of one page.
const quotesPerPage = 50

// everyday is which pages are read in the everyday form: one of so many.
const everyday = 10

// webPage is a stored page and what people marked on it as its text.
type webPage struct {
	name   string
	text   string
	marked []string
}

// TestQuotes tries quotes on real pages, as the extractor stores them. Honest
// ones are sentences as they are, as models retype them, and as people marked
// them on the page; a marked one counts if its letters and digits are in the
// stored text at all, for what was not stored cannot be quoted. Tampered ones are
// five kinds of small lies. All pages are read where MARCHWARDEN_TEST_FULL is set.
func TestQuotes(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("quotes: skipped with -short and -race, which tell nothing new about them")
	}
	t.Parallel()
	x := extract.New(extract.Config{})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	report := new(strings.Builder)
	report.WriteString("# set kind share-accepted; compared within 0.0005\n")
	all := tally{}
	for _, set := range []struct {
		name  string
		pages []webPage
	}{{"readability", readabilityPages(t, x)}, {"trafilatura", trafilaturaPages(t, x)}} {
		seen := tally{}
		for _, p := range set.pages {
			tryPage(t, p, seen)
		}
		for kind, c := range seen {
			all[kind] = all[kind].plus(c)
		}
		seen.write(t, report, set.name)
	}
	all.write(t, report, "both")
	datatest.GoldenNumbers(t, "testdata/quotes.txt", report.String(), 0.0005, *update)
}

// tally counts quotes by their kind.
type tally map[string]count

type count struct{ tried, accepted int }

func (c count) share() float64 { return float64(c.accepted) / float64(c.tried) }

func (c count) plus(o count) count { return count{c.tried + o.tried, c.accepted + o.accepted} }

// write reports the shares and holds each kind to its bar.
func (y tally) write(t *testing.T, report *strings.Builder, set string) {
	t.Helper()
	honest, tampered := count{}, count{}
	for _, kind := range names(y) {
		c := y[kind]
		if c.tried < 10 || datatest.Full() && c.tried < 200 {
			t.Errorf("%s: only %d quotes that are %s", set, c.tried, kind)
		}
		if strings.HasPrefix(kind, "honest") {
			honest = honest.plus(c)
			if c.share() < honestBar {
				t.Errorf("%s: %d of %d quotes that are %s are accepted", set, c.accepted, c.tried, kind)
			}
		} else {
			tampered = tampered.plus(c)
			if c.share() > tamperedBar {
				t.Errorf("%s: %d of %d quotes that are %s are accepted", set, c.accepted, c.tried, kind)
			}
		}
		fmt.Fprintf(report, "%s %s %.5f\n", set, kind, c.share())
		t.Logf("%-11s %-17s %5d of %5d accepted", set, kind, c.accepted, c.tried)
	}
	t.Logf("%-11s honest %d of %d, tampered %d of %d", set, honest.accepted, honest.tried, tampered.accepted, tampered.tried)
}

// tryPage tries the quotes of one page.
func tryPage(t *testing.T, p webPage, seen tally) {
	try := func(kind, quote string) {
		span, ok := Locate(p.text, quote)
		c := count{tried: 1}
		if ok {
			c.accepted = 1
			if got, want := bare(p.text[span.Start:span.End]), bare(quote); got != want && got != unmarked(want) {
				t.Errorf("%s: %q is found as %q", p.name, quote, got)
			}
		}
		seen[kind] = seen[kind].plus(c)
		if honest := strings.HasPrefix(kind, "honest"); ok != honest {
			t.Logf("%s: %s quote %q: accepted is %v", p.name, kind, quote, ok)
		}
	}
	plain := " " + strings.Join(strings.Fields(p.text), " ") + " "
	sentences := sentencesOf(p)
	for i, s := range sentences {
		try("honest-verbatim", s)
		try("honest-retyped", retyped(s, i))
		for kind, quote := range tampered(p, sentences, i) {
			// What the page says elsewhere, word for word, is no lie.
			if quote != "" && !strings.Contains(plain, " "+quote+" ") {
				try(kind, quote)
			}
		}
	}
	stored := lettersOf(p.text)
	for _, s := range p.marked {
		if l := lettersOf(s); len(l) >= 20 && strings.Contains(stored, l) {
			try("honest-marked", s)
		}
	}
}

// sentencesOf picks sentences of a page that are long enough to say something,
// spread by chance.
func sentencesOf(p webPage) []string {
	var all []string
	for _, passage := range Split(p.text) {
		for _, s := range passage.Sentences {
			if text := p.text[s.Start:s.End]; len(strings.Fields(text)) >= 6 && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int {
		return strings.Compare(fmt.Sprint(order(p.name, a)), fmt.Sprint(order(p.name, b)))
	})
	return all[:min(len(all), quotesPerPage)]
}

// retyped is a quote as models write it: marks in ASCII, white space as it falls,
// decomposed letters, cut marks at the ends.
func retyped(s string, i int) string {
	ascii := strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "…", "...", "\u00a0", " ", "\u00ad", "", "\u200b", "")
	switch i % 4 {
	case 0:
		return ascii.Replace(s)
	case 1:
		return ascii.Replace(strings.Join(strings.Fields(s), "\n  "))
	case 2:
		return norm.NFD.String(ascii.Replace(s))
	}
	words := strings.Fields(s)
	return "… " + strings.Join(words[1:len(words)-1], " ") + " [...]"
}

// tampered is a quote changed in five ways. A way that a quote has no place for
// gives "".
func tampered(p webPage, sentences []string, i int) map[string]string {
	words := quotable(sentences[i])
	at := 1 + int(order(p.name, sentences[i])%uint64(len(words)-2)) // neither the first nor the last
	change := func(with ...string) string {
		return strings.Join(slices.Concat(words[:at], with, words[at+1:]), " ")
	}
	other := quotable(sentences[(i+1)%len(sentences)])
	out := map[string]string{
		"tampered-dropped": change(),
		"tampered-not":     change("not", words[at]),
		"tampered-name":    renamed(p, words),
		"tampered-number":  renumbered(strings.Join(words, " ")),
	}
	if len(sentences) > 1 {
		out["tampered-stitched"] = strings.Join(append(slices.Clone(words[:len(words)/2+1]), other[len(other)/2:]...), " ")
	}
	return out
}

// quotable is the words of a sentence without an ellipsis and the like at its
// ends: a word dropped beside one is a word cut off.
func quotable(sentence string) []string {
	words := strings.Fields(sentence)
	for len(words) > 3 && lettersOf(words[len(words)-1]) == "" {
		words = words[:len(words)-1]
	}
	for len(words) > 3 && lettersOf(words[0]) == "" {
		words = words[1:]
	}
	return words
}

// renumbered changes the last digit of a text.
func renumbered(s string) string {
	at := strings.LastIndexAny(s, "0123456789")
	if at < 0 {
		return ""
	}
	return s[:at] + string('0'+(s[at]-'0'+1)%10) + s[at+1:]
}

// renamed puts another name of the page in the place of one, or, if there is none,
// changes the case of a word.
func renamed(p webPage, words []string) string {
	names := lexicon.Names(p.text[:min(len(p.text), 4000)])
	for k := 1; k < len(words)-1; k++ {
		r := []rune(words[k])
		if !unicode.IsLetter(r[0]) {
			continue
		}
		out := slices.Clone(words)
		if unicode.IsUpper(r[0]) {
			for _, name := range names {
				if name != words[k] && !strings.Contains(words[k], name) {
					out[k] = name
					return strings.Join(out, " ")
				}
			}
		}
		if up := unicode.ToUpper(r[0]); up != r[0] && k > 2 {
			out[k] = string(up) + string(r[1:])
			return strings.Join(out, " ")
		}
	}
	return ""
}

// lettersOf is a text without anything but letters and digits, in one case: a
// loose test of whether it is there at all, that owes nothing to Fold.
func lettersOf(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFC.String(s))
}

// readabilityPages are 122 pages; the sentences of the expected article were
// marked.
func readabilityPages(t *testing.T, x *extract.Extractor) []webPage {
	files := untar(t, "pages/readability.tar.gz")
	var pages []webPage
	n := 0
	for _, name := range names(files) {
		dir, base := path.Split(name)
		if base != "source.html" {
			continue
		}
		if n++; n%everyday != 0 && !datatest.Full() {
			continue
		}
		doc, err := x.Extract(t.Context(), "http://fakehost/test/page.html", files[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		marked := sentencesOf(webPage{name: dir, text: readOff(string(files[dir+"expected.html"]))})
		pages = append(pages, webPage{dir, doc.Text, marked})
	}
	return pages
}

var (
	blockTags = regexp.MustCompile(`(?i)</?(p|div|br|li|ul|ol|h[1-6]|table|tbody|tr|td|th|blockquote|pre|section|article|figure|figcaption|header|footer|dl|dt|dd|hr|aside|main)\b[^>]*>`)
	otherTags = regexp.MustCompile(`(?s)<!--.*?-->|<[^>]*>`)
)

// readOff is the text of simple HTML, found without the extractor.
func readOff(page string) string {
	page = blockTags.ReplaceAllString(strings.Join(strings.Fields(page), " "), "\n\n")
	return html.UnescapeString(otherTags.ReplaceAllString(page, ""))
}

// trafilaturaPages are 90 pages in many languages with strings that people marked.
func trafilaturaPages(t *testing.T, x *extract.Extractor) []webPage {
	files := untar(t, "pages/trafilatura-sample.tar.gz")
	var marks map[string]struct {
		File string
		With []string
	}
	if err := json.Unmarshal(files["evaldata.json"], &marks); err != nil {
		t.Fatal(err)
	}
	var pages []webPage
	for n, address := range names(marks) {
		if n%everyday != 0 && !datatest.Full() {
			continue
		}
		m := marks[address]
		doc, err := x.Extract(t.Context(), m.File, files["html/"+m.File])
		if err != nil {
			t.Errorf("%s: %v", m.File, err)
			continue
		}
		pages = append(pages, webPage{name: m.File, text: doc.Text, marked: m.With})
	}
	return pages
}

// names are the keys of a map, sorted.
func names[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
