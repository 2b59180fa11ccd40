package support

import (
	"strings"
	"unicode"
)

// little are the words that plain overlap leaves out.
var little = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields("a an the of in on at to for and or is are was were be been by with from as that this it its he she they his her their which who") {
		m[w] = true
	}
	return m
}()

// overlap is the baseline: the share of a claim's words, each once and as they are
// spelled, that stand anywhere in the evidence.
func overlap(claim string, excerpts []string) float64 {
	held := map[string]bool{}
	for _, x := range excerpts {
		for _, w := range spelled(x) {
			held[w] = true
		}
	}
	seen := map[string]bool{}
	got := 0
	for _, w := range spelled(claim) {
		if little[w] || seen[w] {
			continue
		}
		seen[w] = true
		if held[w] {
			got++
		}
	}
	return float64(got) / float64(max(1, len(seen)))
}

func spelled(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}
