package report

import (
	"regexp"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// sentence is a piece of the answer that ends in markers, or the rest of a paragraph
// that has none.
type sentence struct {
	text  string // plain, on one line
	cited []int  // the numbers of its markers, each that of a citation
	claim int    // the number of the claim that it is, from one; 0 for none
}

// token is what an answer is read by: an escaped character, a marker, or neither.
var token = regexp.MustCompile("\\\\[!-/:-@\\[-`{-~]|\\[(\\d{1,9})\\]")

// breaks are the blank lines between paragraphs.
var breaks = regexp.MustCompile(`\n[ \t]*\n\s*`)

// sentences are the paragraphs of an answer as sentences. An answer is Markdown as
// the gate of package verify writes it: paragraphs of sentences, escaped, with
// markers behind them. Any other markup is text here. What looks like a marker and
// has no citation is text, too.
func sentences(res *marchwarden.Result) [][]sentence {
	var out [][]sentence
	claims := &claimFinder{claims: res.Claims}
	for _, paragraph := range breaks.Split(strings.TrimSpace(res.Answer), -1) {
		if ss := split(paragraph, len(res.Citations)); len(ss) > 0 {
			for i := range ss {
				ss[i].claim = claims.find(ss[i].text)
			}
			out = append(out, ss)
		}
	}
	return out
}

// split reads one paragraph.
func split(paragraph string, citations int) []sentence {
	var out []sentence
	var now sentence
	var text strings.Builder
	end := func() {
		if now.text = plaintext.Fold(text.String()); now.text != "" || len(now.cited) > 0 {
			out = append(out, now)
		}
		now = sentence{}
		text.Reset()
	}
	say := func(s string) {
		if len(now.cited) > 0 && strings.TrimSpace(s) != "" {
			end()
		}
		text.WriteString(s)
	}
	at := 0
	for _, m := range token.FindAllStringSubmatchIndex(paragraph, -1) {
		say(paragraph[at:m[0]])
		at = m[1]
		if m[2] < 0 { // escaped
			say(paragraph[m[0]+1 : m[1]])
			continue
		}
		if n, _ := strconv.Atoi(paragraph[m[2]:m[3]]); n >= 1 && n <= citations {
			now.cited = append(now.cited, n)
			continue
		}
		say(paragraph[m[0]:m[1]])
	}
	say(paragraph[at:])
	end()
	return out
}

// claimFinder gives sentences the numbers of their claims, which come in the same
// order; one that is said twice is found twice.
type claimFinder struct {
	claims []marchwarden.Claim
	next   int
}

func (f *claimFinder) find(text string) int {
	for k := range f.claims {
		i := (f.next + k) % len(f.claims)
		if plaintext.Fold(f.claims[i].Text) == text {
			f.next = i + 1
			return i + 1
		}
	}
	return 0
}
