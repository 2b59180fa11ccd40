package scholar

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The sizes of what is taken from an index, in characters.
const (
	maxLine     = 400
	maxAbstract = 12_000
	maxAuthors  = 50
)

// Line makes text from outside one line of at most n characters and an ellipsis: no
// control and format characters, single spaces, none before the ellipsis. Markup is
// left as it is, which search.PlainText would take out: "a<b" may be mathematics.
func Line(s string, n int) string {
	s = plaintext.Fold(s)
	if r := []rune(s); len(r) > n {
		s = strings.TrimSpace(string(r[:n])) + "…"
	}
	return s
}

// lines is Line for each of a list, without what is empty, at most n of them.
func lines(list []string, n int) []string {
	var out []string
	for _, s := range list {
		if s = Line(s, maxLine); s != "" && len(out) < n {
			out = append(out, s)
		}
	}
	return out
}

var (
	blockTag = regexp.MustCompile(`(?i)<\s*/?\s*(?:jats:)?(?:p|title|sec|list|list-item|disp-formula|break)\b[^<>]*>`)
	otherTag = regexp.MustCompile(`<\s*[/!?]?\s*[A-Za-z][^<>]*>`)
)

// plainMarkup is the text of an abstract in JATS or HTML, paragraphs apart.
func plainMarkup(s string) string {
	const longest = 64 << 10
	s = strings.ToValidUTF8(s[:min(len(s), longest)], "")
	s = otherTag.ReplaceAllString(blockTag.ReplaceAllString(s, "\n\n"), "")
	var paragraphs []string
	left := maxAbstract
	for p := range strings.SplitSeq(html.UnescapeString(s), "\n\n") {
		if p = Line(p, max(left, 0)); p != "" && left > 0 {
			paragraphs = append(paragraphs, p)
			left -= utf8.RuneCountInString(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// fromPositions writes the text that an inverted index describes: each word with
// the places it stands at. What is no such index gives "".
func fromPositions(raw json.RawMessage) string {
	const most = 5000
	var index map[string][]int
	if len(raw) == 0 || json.Unmarshal(raw, &index) != nil {
		return ""
	}
	words := make([]string, most)
	for word, at := range index {
		for _, n := range at {
			if n >= 0 && n < most && (words[n] == "" || word < words[n]) { // two words cannot stand at one place
				words[n] = word
			}
		}
	}
	return Line(html.UnescapeString(otherTag.ReplaceAllString(strings.Join(words, " "), "")), maxAbstract)
}

// MarkRetracted puts before the title of a paper that it was taken back, unless
// the publisher did.
func MarkRetracted(title string) string {
	if takenBack.MatchString(title) {
		return title
	}
	return "RETRACTED: " + title
}

// Hits makes what an index found into hits that keep the promises of
// search.Engine for q: locators that ParseID reads, each once, text on one line,
// filter and known dates enforced, scored by their order, at most q.Limit. A paper
// counts as being at the host of its ID.
func Hits(found []search.Hit, q search.Query) []search.Hit {
	var hits []search.Hit
	seen := map[string]bool{}
	for _, h := range found {
		id, ok := ParseID(h.Locator)
		if !ok || seen[id.Locator()] || !q.Filter.Allows(id.Host()) || len(hits) >= q.Limit {
			continue
		}
		date := plaintext.Date(h.Published)
		if date != "" && (q.Since != "" && date < q.Since || q.Until != "" && date > q.Until) {
			continue
		}
		seen[id.Locator()] = true
		hits = append(hits, search.Hit{
			Locator: id.Locator(), Title: Line(search.PlainText(h.Title), 300), Snippet: Line(search.PlainText(h.Snippet), 600),
			Published: date, Score: 1 / float64(1+len(hits)),
		})
	}
	return hits
}
