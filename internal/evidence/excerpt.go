package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Excerpt cuts a raw_excerpt out of a text: the bytes at span, or, if they are
// more than marchwarden.MaxExcerptChars characters, as many of them as leave room
// for the cut mark, cut at a word boundary where one is near. Either way used is
// what was taken: excerpt is text[used] or text[used] + marchwarden.ExcerptCut. A
// span that is not in the text gives nothing.
func Excerpt(text string, span marchwarden.Span) (excerpt string, used marchwarden.Span) {
	if !span.In(len(text)) {
		return "", marchwarden.Span{}
	}
	if !longer(text[span.Start:span.End], marchwarden.MaxExcerptChars) {
		return text[span.Start:span.End], span
	}
	used, _ = fit(text, span, marchwarden.MaxExcerptChars-utf8.RuneCountInString(marchwarden.ExcerptCut))
	return text[used.Start:used.End] + marchwarden.ExcerptCut, used
}

func longer(s string, n int) bool {
	if len(s) <= n {
		return false
	}
	for range s {
		if n--; n < 0 {
			return true
		}
	}
	return false
}

// lookBack is how many characters a cut may give up to end at a word.
const lookBack = 80

// fit returns the longest part of span from its start that has at most n
// characters and ends with a word, and whether that is less than all of it. Where
// no word ends nearby it ends with a character and the marks that belong to it.
func fit(text string, span marchwarden.Span, n int) (marchwarden.Span, bool) {
	s := text[span.Start:span.End]
	if !longer(s, n) {
		return span, false
	}
	limit := 0
	for range n {
		_, w := utf8.DecodeRuneInString(s[limit:])
		limit += w
	}
	end := wordEnd(s, limit)
	return marchwarden.Span{Start: span.Start, End: span.Start + end}, true
}

func wordEnd(s string, limit int) int {
	from := limit
	for range lookBack {
		_, w := utf8.DecodeLastRuneInString(s[:from])
		from -= w
	}
	_, next := utf8.DecodeRuneInString(s[limit:])
	if at := strings.LastIndexFunc(s[from:limit+next], unicode.IsSpace); at >= 0 {
		if end := len(strings.TrimRightFunc(s[:from+at], unicode.IsSpace)); end > 0 {
			return end
		}
	}
	for end := limit; end > 0; {
		r, _ := utf8.DecodeRuneInString(s[end:])
		_, w := utf8.DecodeLastRuneInString(s[:end])
		if !unicode.Is(unicode.M, r) && r != '\u200d' {
			return end
		}
		end -= w
	}
	return limit
}

// Around widens the span of a sentence to whole neighbouring sentences of the
// same paragraph, those before and after it in turn, while the whole has at most
// maxChars characters. The passages are those of the text's Source. A span that
// is not one of their sentences is returned as it is.
func Around(text string, passages []Passage, sentence marchwarden.Span, maxChars int) marchwarden.Span {
	near, at := paragraphOf(passages, sentence)
	if at < 0 {
		return sentence
	}
	wide, before, after := sentence, near[:at], near[at+1:]
	for len(before)+len(after) > 0 {
		if n := len(before); n > 0 && !longer(text[before[n-1].Start:wide.End], maxChars) {
			wide.Start, before = before[n-1].Start, before[:n-1]
		} else {
			before = nil
		}
		if len(after) > 0 && !longer(text[wide.Start:after[0].End], maxChars) {
			wide.End, after = after[0].End, after[1:]
		} else {
			after = nil
		}
	}
	return wide
}

// Lead widens the span of a sentence of a passage to what it leads to: the lines below it up to a
// blank line, and more of them where code goes on, while the whole has at most maxChars characters.
// A sentence leads to something if it ends with a colon, and to code, where that is wanted, if code
// follows its paragraph. The span of any other is returned as it is.
func (s *Source) Lead(p *Passage, sentence marchwarden.Span, code bool, maxChars int) marchwarden.Span {
	text := s.Text[:min(len(s.Text), sentence.End+8*maxChars)] // more than can be shown, and no more
	below := len(text) - len(strings.TrimLeft(text[sentence.End:], " \t\n"))
	last := below >= p.Span.End
	if last && (p.Index == len(s.Passages) || s.Passages[p.Index].IsHeading || s.Passages[p.Index].Path != p.Path) {
		return sentence
	}
	first, rest, _ := strings.Cut(text[below:], "\n\n")
	second, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	toCode := IsCode(first) || IsCode(second)
	colon := strings.HasSuffix(text[sentence.Start:sentence.End], ":")
	if toCode && !code || !colon && (!last || !IsCode(first) || IsCode(p.Text)) {
		return sentence
	}
	wide := sentence
	for {
		block, _, _ := strings.Cut(text[below:], "\n\n")
		for line := range strings.Lines(block) {
			end := below + len(strings.TrimRight(line, " \t\n"))
			if longer(text[sentence.Start:end], maxChars) {
				return wide
			}
			wide.End = end
			below += len(line)
		}
		below = len(text) - len(strings.TrimLeft(text[below:], "\n"))
		if next, _, _ := strings.Cut(text[below:], "\n\n"); !IsCode(next) {
			return wide
		}
	}
}

// codeSigns are characters that code has many of, and prose few.
const (
	codeSigns = "(){}[]<>=;$#&|\\/_*`+@\""
	codeShare = 0.06
)

// IsCode reports a text that is code or a command rather than prose, a heading or a list: its first
// line and its end are not those of sentences, and signs are a good part of it.
func IsCode(text string) bool {
	text = strings.TrimSpace(text)
	line, _, _ := strings.Cut(text, "\n")
	if line == "" || strings.ContainsAny(line[len(line)-1:], ".!?:") || strings.ContainsAny(text[len(text)-1:], ".!?") || strings.HasPrefix(line, "#") || bullet(line) > 0 {
		return false
	}
	signs := 0
	for _, r := range text {
		if strings.ContainsRune(codeSigns, r) {
			signs++
		}
	}
	return strings.HasPrefix(line, "$ ") || float64(signs) >= codeShare*float64(len(text))
}

// paragraphOf returns the sentences of the paragraph that holds a sentence, and
// its place among them, or -1.
func paragraphOf(passages []Passage, sentence marchwarden.Span) ([]marchwarden.Span, int) {
	var near []marchwarden.Span
	number, at := 0, -1
	for _, p := range passages {
		if p.Paragraph != number {
			if at >= 0 {
				break
			}
			near, number = nil, p.Paragraph
		}
		for _, s := range p.Sentences {
			if s == sentence {
				at = len(near)
			}
			near = append(near, s)
		}
	}
	return near, at
}
