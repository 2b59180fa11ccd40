// Package biblio writes cited sources for reference managers, as BibTeX, and for people, on one line
// each. It owns those forms, their escaping and the keys of the entries; which sources there are, and
// what is known of them, is its caller's.
//
// Every text is brought onto one line without control characters first
// (plaintext.Fold), and read back from BibTeX it is that text again, whatever it
// holds. What is not known is left out.
package biblio

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Entry is one source. Fields that are zero are left out.
type Entry struct {
	Title       string
	Authors     []Name
	MoreAuthors int    // how many authors there are beyond those
	Published   string // 2006-01-02, 2006-01 or 2006; anything else is left out
	Accessed    string // 2006-01-02
	Publisher   string // who is behind it
	Journal     string // where a paper was published
	DOI         string // without a prefix
	ArXiv       string // "2401.01234v2"
	URL         string // http or https
	Locator     string // of what has no URL
}

// Name is an author: a person with a family name, or a Literal that is not taken
// apart.
type Name struct {
	Family  string
	Given   string
	Literal string
}

// String is the name as it is spoken.
func (n Name) String() string {
	return strings.TrimSpace(cmp.Or(n.Literal, n.Given+" "+n.Family))
}

var moreAuthors = regexp.MustCompile(`\s+and (\d{1,6}) more$`)

// Byline reads authors on one line, as a page gives them. The names are not taken apart, for their
// parts are unknown: "Bee, Ann" may be one author and "Ann Bee, Carl Dee" two. It gives the names
// and how many more there are.
func Byline(line string) ([]Name, int) {
	line = plaintext.Fold(line)
	more := 0
	if m := moreAuthors.FindStringSubmatch(line); m != nil {
		more, _ = strconv.Atoi(m[1]) // six digits at most
		line = strings.TrimSuffix(line, m[0])
	}
	if line == "" {
		return nil, 0
	}
	parts := strings.Split(line, ", ")
	if slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(strings.TrimSpace(p), " ") }) {
		parts = []string{line}
	}
	names := make([]Name, len(parts))
	for i, p := range parts {
		names[i] = Name{Literal: strings.TrimSpace(p)}
	}
	return names, more
}

// People reads the names of persons, the family name last or before a comma. What
// stands in small letters before a family name belongs to it: "Jan van der Berg".
func People(names []string) []Name {
	var out []Name
	for _, n := range names {
		if n = plaintext.Fold(n); n != "" {
			out = append(out, person(n))
		}
	}
	return out
}

func person(name string) Name {
	family, given, ok := strings.Cut(name, ",")
	if family, given = strings.TrimSpace(family), strings.TrimSpace(given); ok {
		if family == "" || given == "" || strings.Contains(given, ",") {
			return Name{Literal: name}
		}
		return Name{Family: family, Given: given}
	}
	words := strings.Fields(name)
	if len(words) < 2 {
		return Name{Literal: name}
	}
	at := len(words) - 1
	for i, w := range words[1 : len(words)-1] {
		if unicode.IsLower([]rune(w)[0]) {
			at = i + 1
			break
		}
	}
	return Name{Family: strings.Join(words[at:], " "), Given: strings.Join(words[:at], " ")}
}

// fold brings all texts of an entry onto one line each and drops what is empty.
func (e Entry) fold() Entry {
	for _, s := range []*string{&e.Title, &e.Published, &e.Accessed, &e.Publisher, &e.Journal, &e.DOI, &e.ArXiv, &e.URL, &e.Locator} {
		*s = plaintext.Fold(*s)
	}
	var names []Name
	for _, n := range e.Authors {
		n = Name{plaintext.Fold(n.Family), plaintext.Fold(n.Given), plaintext.Fold(n.Literal)}
		if n.Family == "" || n.Literal != "" { // half a name is not taken apart
			n = Name{Literal: n.String()}
		}
		if n != (Name{}) {
			names = append(names, n)
		}
	}
	e.Authors = names
	return e
}

// date is a date, and how much of it is known: nothing, the year, the month or the day.
func date(s string) (t time.Time, known int) {
	for i, layout := range []string{"2006", "2006-01", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 0 {
			return t, i + 1
		}
	}
	return time.Time{}, 0
}

// key is made of who, when and a hash of where, so it is the same in every list that the source is
// in; entries that cannot be told apart are numbered. The entry is folded.
func (e Entry) key(used map[string]bool) string {
	base := e.who()
	if t, known := date(e.Published); known > 0 {
		base += t.Format("2006")
	}
	base += "-" + e.hash()
	key := base
	for n := 2; used[key]; n++ {
		key = fmt.Sprintf("%s-%d", base, n)
	}
	used[key] = true
	return key
}

// who is a word for who is behind a source, of small ASCII letters and digits.
func (e Entry) who() string {
	candidates := []string{strings.TrimPrefix(e.Publisher, "www.")}
	if len(e.Authors) > 0 {
		candidates = []string{cmp.Or(e.Authors[0].Family, e.Authors[0].Literal), candidates[0]}
	}
	for _, c := range candidates {
		word := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(c))
		if word != "" {
			return word[:min(len(word), 20)]
		}
	}
	return "source"
}

func (e Entry) hash() string {
	h := sha256.New()
	for _, part := range []string{"marchwarden bibliography key", cmp.Or(e.ArXiv, e.DOI, e.URL, e.Locator, e.Title)} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Reference writes an entry on one line as IEEE has it: who, what, where, when it was published and
// when it was read, and behind all that its address, which is apart if it is of the web. What is
// not known is left out.
func (e Entry) Reference() (line, address string) {
	e = e.fold()
	at := cmp.Or(e.URL, e.Locator)
	if e.DOI != "" {
		at = "https://doi.org/" + e.DOI
	}
	where := cmp.Or(e.Journal, e.Publisher)
	if site, err := url.Parse(e.URL); err == nil && where == "" {
		where = site.Hostname()
	}
	if e.ArXiv != "" && e.Journal == "" {
		where = "arXiv:" + e.ArXiv
	}
	title := cmp.Or(e.Title, where, "Untitled")
	if title == where {
		where = ""
	}
	var said []string
	if who := e.names(); who != "" {
		said = append(said, who+",")
	}
	rest := slices.DeleteFunc([]string{where, dated(e.Published)}, func(s string) bool { return s == "" })
	if len(rest) > 0 {
		said = append(said, "“"+title+",”", stopped(strings.Join(rest, ", ")))
	} else {
		said = append(said, "“"+stopped(title)+"”")
	}
	if read := dated(e.Accessed); read != "" {
		said = append(said, "Accessed: "+read+".")
	}
	if e.URL != "" || e.DOI != "" {
		return strings.Join(append(said, "[Online]. Available:"), " "), at
	}
	if at != "" {
		said = append(said, stopped(at))
	}
	return strings.Join(said, " "), ""
}

// stopped is a text that ends a sentence.
func stopped(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// dated is a date with as much of it as is known.
func dated(s string) string {
	t, known := date(s)
	return strings.Replace(t.Format([]string{"", "2006", "Jan. 2006", "Jan. 2, 2006"}[known]), "May.", "May", 1)
}

// mostNames is how many authors are named before "et al.".
const mostNames = 6

// names are the authors, each with initials before the family name.
func (e Entry) names() string {
	var all []string
	for _, n := range e.Authors[:min(len(e.Authors), mostNames)] {
		n.Given = initials(n.Given)
		all = append(all, n.String())
	}
	switch n := len(all); {
	case n < len(e.Authors) || e.MoreAuthors > 0 && n > 0:
		return strings.Join(all, ", ") + ", et al."
	case n > 2:
		return strings.Join(all[:n-1], ", ") + ", and " + all[n-1]
	}
	return strings.Join(all, " and ")
}

func initials(given string) string {
	var out []string
	for w := range strings.FieldsSeq(given) {
		out = append(out, string([]rune(w)[:1])+".")
	}
	return strings.Join(out, " ")
}

// bibtexEscapes make the characters that LaTeX takes for commands stand for
// themselves. Braces are written as commands: BibTeX counts the others, escaped or
// not. All else stays as it is, in UTF-8.
var bibtexEscapes = strings.NewReplacer(
	`\`, `{\textbackslash}`, `{`, `{\textbraceleft}`, `}`, `{\textbraceright}`, `~`, `{\textasciitilde}`, `^`, `{\textasciicircum}`,
	`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
)

// urlEscapes are what could end a field that is otherwise written as it is.
var urlEscapes = strings.NewReplacer(`\`, "%5C", "{", "%7B", "}", "%7D", " ", "%20", `"`, "%22")

// kind is what BibTeX calls a source.
func (e Entry) kind() string {
	switch {
	case e.Journal != "":
		return "article"
	case e.URL != "" && e.DOI == "" && e.ArXiv == "":
		return "online"
	}
	return "misc"
}

// BibTeX writes entries for BibTeX and biblatex: an article where the journal is
// known, else misc for a paper, a file or data and online for a page. Text fields are
// escaped for LaTeX; doi, eprint and url are as they are, as those programs want them.
// A title is in double braces, so that styles leave its capitals alone.
func BibTeX(w io.Writer, entries []Entry) error {
	var b strings.Builder
	used := map[string]bool{}
	for i, e := range entries {
		e = e.fold()
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "@%s{%s", e.kind(), e.key(used))
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, ",\n  %s = %s", name, value)
			}
		}
		field("title", braced(braced(bibtexEscapes.Replace(e.Title))))
		field("author", braced(e.bibtexAuthors()))
		field("journal", braced(bibtexEscapes.Replace(e.Journal)))
		published, known := date(e.Published)
		for _, part := range [][2]string{{"year", "{2006}"}, {"month", "Jan"}, {"day", "{2}"}}[:known] {
			field(part[0], strings.ToLower(published.Format(part[1])))
		}
		field("organization", braced(bibtexEscapes.Replace(e.Publisher)))
		field("doi", braced(urlEscapes.Replace(e.DOI)))
		if e.ArXiv != "" {
			field("eprint", braced(urlEscapes.Replace(e.ArXiv)))
			field("archivePrefix", "{arXiv}")
		}
		field("url", braced(urlEscapes.Replace(e.URL)))
		field("howpublished", braced(bibtexEscapes.Replace(e.Locator)))
		if _, known := date(e.Accessed); known == 3 {
			field("urldate", braced(e.Accessed))
		}
		b.WriteString("\n}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func braced(s string) string {
	if s == "" {
		return ""
	}
	return "{" + s + "}"
}

// joins are the words that part names for BibTeX.
var joins = regexp.MustCompile(`(?i)(^|\s)(and|others)(\s|$)`)

// bibtexAuthors are the authors with "and" between them. What is not "family, given"
// in so many plain words is in braces, where BibTeX does not look for such.
func (e Entry) bibtexAuthors() string {
	var out []string
	for _, n := range e.Authors {
		family, given := bibtexEscapes.Replace(n.Family), bibtexEscapes.Replace(n.Given)
		plain := n.Literal == "" && given != "" && !strings.ContainsAny(family+given, `,{}\`) && !joins.MatchString(n.Family+" "+n.Given)
		if plain {
			out = append(out, family+", "+given)
		} else {
			out = append(out, braced(bibtexEscapes.Replace(n.String())))
		}
	}
	if e.MoreAuthors > 0 && len(out) > 0 {
		out = append(out, "others")
	}
	return strings.Join(out, " and ")
}
