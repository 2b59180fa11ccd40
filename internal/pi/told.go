package pi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// mark is a marker, as it stands after a sentence.
var mark = regexp.MustCompile(`\[(\d{1,4})\]`)

// claimsOf are the claims of a result; where it lists none, the sentences of its answer that have markers.
func claimsOf(res *marchwarden.Result) []marchwarden.Claim {
	if len(res.Claims) > 0 {
		return res.Claims
	}
	var out []marchwarden.Claim
	for _, sp := range lexicon.Sentences(res.Answer) {
		lead, rest := leading(res.Answer[sp.Start:sp.End])
		if len(out) > 0 {
			out[len(out)-1].Citations = cite(out[len(out)-1].Citations, lead)
		}
		if text := strings.TrimSpace(mark.ReplaceAllString(rest, "")); text != "" {
			out = append(out, marchwarden.Claim{Text: text, Citations: cite(nil, numbers(rest)), Support: marchwarden.Unchecked})
		}
	}
	return slices.DeleteFunc(out, func(c marchwarden.Claim) bool { return len(c.Citations) == 0 })
}

// leading parts the markers that a sentence begins with from the rest: they belong to the sentence before it.
func leading(sentence string) (lead []int, rest string) {
	rest = strings.TrimSpace(sentence)
	for {
		at := mark.FindStringIndex(rest)
		if at == nil || at[0] != 0 {
			return lead, rest
		}
		lead, rest = append(lead, numbers(rest[:at[1]])...), strings.TrimSpace(rest[at[1]:])
	}
}

func numbers(text string) []int {
	var out []int
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // at most four digits
		out = append(out, n)
	}
	return out
}

func cite(list, more []int) []int {
	for _, n := range more {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// breaks reports whether a claim begins a paragraph of an answer.
func breaks(answer, claim string) bool {
	i := strings.Index(answer, claim)
	return i == 0 || i >= 2 && answer[i-2:i] == "\n\n"
}

// placed is the locator of a closest passage, with its place in the document if a report says it.
func placed(c marchwarden.Closest, res *marchwarden.Result) string {
	for _, o := range res.Closest {
		document, _ := verify.CutPlace(o.Locator)
		if document == c.Locator && o.ContentHash == c.ContentHash && o.Span != nil && c.Span != nil && *o.Span == *c.Span {
			return o.Locator
		}
	}
	return c.Locator
}
