package texts

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Citing is how many sentences of a text carry a citation.
type Citing struct {
	Sentences int `json:"sentences"` // that are counted
	Cited     int `json:"cited"`     // of these, with a citation
	Numbers   int `json:"numbers"`   // of these, with a number in their words
	// NumbersCited are those with a number and a citation.
	NumbersCited int `json:"numbers_cited"`
}

// Share is the part of the sentences that is cited; 0 if there are none.
func (c Citing) Share() float64 { return part(float64(c.Cited), float64(c.Sentences)) }

// minWords is how many words make a sentence that says something: shorter pieces are
// labels, openings of lists and the like.
const minWords = 6

// A mark is a number or a footnote in square brackets, or a link.
var (
	mark    = regexp.MustCompile(`\[\^?\d+(?:\s*[,;–-]\s*\d+)*\]|\[\^[\w-]+\]|\]\(\s*<?https?://|<?https?://\S+|【\d+[^】]*】`)
	fence   = regexp.MustCompile("^\\s*(```|~~~)")
	heading = regexp.MustCompile(`^\s{0,3}#{1,6}(\s|$)`)
	rule    = regexp.MustCompile(`^\s{0,3}([-*_]\s*){3,}$`)
	under   = regexp.MustCompile(`^\s{0,3}(=+|-+)\s*$`)
	listed  = regexp.MustCompile(`^\s*([-*+•]|\d{1,3}[.)])\s+`)
	footer  = regexp.MustCompile(`^\s*\[\^?[\w-]+\]:\s`)
	// A line that is only an entry of a source list: its number, then a title and an
	// address.
	entry = regexp.MustCompile(`^\s*(?:[-*+]\s+)?(?:\[\^?\d+\]|\d{1,3}[.)])\s.*https?://\S+\s*$`)
	// The headings over source lists.
	sources = regexp.MustCompile(`(?i)^[\s#*_:\d.]*(sources?|references?|bibliography|citations?|works cited|further reading|sources and references|references and sources|source list|list of sources)[\s*_:]*$`)
)

// CountCited counts the sentences of a Markdown text that carry a citation: a number or
// footnote in square brackets, or a link. Headings, tables, code, rules and source lists
// are left out, and so are pieces of fewer than six words. What follows a full stop
// directly, as in "so it is.[1]", belongs to the sentence before it.
func CountCited(markdown string) Citing {
	var c Citing
	for _, block := range prose(markdown) {
		for _, s := range lexicon.Sentences(block) {
			c.count(block[s.Start:s.End])
		}
	}
	return c
}

func (c *Citing) count(sentence string) {
	cited := mark.MatchString(sentence)
	plain := words(mark.ReplaceAllString(sentence, " "))
	if len(plain) < minWords {
		return
	}
	numbered := slices.ContainsFunc(plain, func(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) })
	c.Sentences++
	if cited {
		c.Cited++
	}
	if numbered {
		c.Numbers++
	}
	if numbered && cited {
		c.NumbersCited++
	}
}

func (c *Citing) plus(o Citing) {
	c.Sentences += o.Sentences
	c.Cited += o.Cited
	c.Numbers += o.Numbers
	c.NumbersCited += o.NumbersCited
}

// prose are the paragraphs and the items of lists of a Markdown text, a string each.
func prose(markdown string) (blocks []string) {
	var now []string
	flush := func() {
		if len(now) > 0 {
			blocks = append(blocks, strings.Join(now, "\n"))
			now = nil
		}
	}
	code, listing, level := false, false, 0
	for line := range strings.SplitSeq(markdown, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence.MatchString(line):
			code = !code
			flush()
		case code:
		case heading.MatchString(line) || sources.MatchString(line):
			flush()
			depth := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
			if sources.MatchString(line) {
				listing, level = true, depth
			} else if depth <= level || level == 0 { // what is below a source list belongs to it
				listing = false
			}
		case under.MatchString(line) && len(now) > 0: // the lines before it are a heading
			now = nil
		case trimmed == "" || rule.MatchString(line):
			flush()
		case listing || strings.HasPrefix(trimmed, "|") || footer.MatchString(line) || entry.MatchString(line):
			flush()
		case listed.MatchString(line):
			flush()
			now = append(now, listed.ReplaceAllString(line, ""))
		default:
			now = append(now, strings.TrimLeft(line, "> \t"))
		}
	}
	flush()
	return blocks
}
