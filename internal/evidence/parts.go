package evidence

import (
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// contents marks lists of the headings of the text: they say what it is about, as headings do.
func (b *builder) contents() {
	heads := map[string]bool{}
	for _, p := range b.passages {
		if p.IsHeading {
			heads[strings.Trim(p.Text, "# ")] = true
		}
	}
	for i := range b.passages {
		p := &b.passages[i]
		p.IsHeading = p.IsHeading || p.Columns == nil && !slices.ContainsFunc(p.Sentences, func(s marchwarden.Span) bool {
			line := b.text[s.Start:s.End]
			return !heads[line[bullet(line):]]
		})
	}
}

// setting is a line that gives a value to a name: "port: 8087 # behind the proxy".
var setting = regexp.MustCompile(`^\s*(?:- )?[\w.-]+(?::| ?=) ?\S`)

// settings are the lines of a paragraph of settings, or none.
func settings(text string, p lexicon.Span) []lexicon.Span {
	first, _, _ := strings.Cut(text[p.Start:p.End], "\n")
	if !strings.ContainsAny(first, ":=#") {
		return nil
	}
	var out []lexicon.Span
	at := p.Start
	for line := range strings.Lines(text[p.Start:p.End]) {
		inner := strings.TrimSpace(line)
		from := at + strings.Index(line, inner)
		at += len(line)
		if !setting.MatchString(line) && !strings.HasPrefix(inner, "#") {
			return nil
		}
		out = append(out, lexicon.Span{Start: from, End: from + len(inner)})
	}
	return out
}

// indent is how far a paragraph is set in, in columns.
func indent(text string, p lexicon.Paragraph) int {
	n := 0
	for _, r := range text[strings.LastIndexByte(text[:p.Start], '\n')+1 : p.Start] {
		n++
		if r == '\t' {
			n = (n + 7) / 8 * 8
		}
	}
	return n
}

var optionLike = regexp.MustCompile(`^-(,|-?\w)`)

// isTerm reports an option that what follows, set in further, explains, as in manuals.
func isTerm(text string, p, next lexicon.Paragraph) bool {
	line := text[p.Start:p.End]
	return line[0] == '-' && len(line) <= 100 && optionLike.MatchString(line) && !strings.Contains(line, "\n") && next.Block <= p.Block+1 && indent(text, next) > indent(text, p)
}
