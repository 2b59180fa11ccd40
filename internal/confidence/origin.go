package confidence

import (
	"hash/fnv"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// nearDuplicate is the share of common shingles from which two documents count
// as one text that was copied.
const nearDuplicate = 0.8

// origins keeps one source of each independent origin: pages of one publisher
// count once, and so do copies of one text on several sites. Six mirrors of one
// page are one origin. What only a report tells of corroborates nothing.
func origins(cited []*evidence.Source) []*evidence.Source {
	var kept []*evidence.Source
	var prints []map[uint64]bool
next:
	for _, s := range cited {
		if s.Page.Unchecked {
			continue
		}
		print := shingles(s.Text)
		for i, k := range kept {
			if s.Page.Origin == k.Page.Origin || s.Page.Text == k.Page.Text || jaccard(print, prints[i]) >= nearDuplicate {
				continue next
			}
		}
		kept, prints = append(kept, s), append(prints, print)
	}
	return kept
}

// digits are folded before texts are compared: copies of one text often differ in
// a date, a number or an id, and in nothing else.
var digits = regexp.MustCompile(`[0-9]+`)

// shingles are the hashes of all runs of four words.
func shingles(text string) map[uint64]bool {
	const n = 4
	words := strings.Fields(digits.ReplaceAllString(strings.ToLower(text), "0"))
	set := map[uint64]bool{}
	for i := range max(1, len(words)-n+1) {
		h := fnv.New64a()
		for _, w := range words[i:min(i+n, len(words))] {
			h.Write([]byte(w))
			h.Write([]byte{0})
		}
		set[h.Sum64()] = true
	}
	return set
}

func jaccard(a, b map[uint64]bool) float64 {
	common := 0
	for k := range a {
		if b[k] {
			common++
		}
	}
	return float64(common) / float64(max(1, len(a)+len(b)-common))
}

// highSuffixes are the domains whose holders are checked before they get one:
// governments, universities, international bodies.
var highSuffixes = []string{".gov", ".mil", ".edu", ".int", ".gov.uk", ".ac.uk", ".europa.eu", ".gouv.fr", ".gc.ca", ".gov.au", ".edu.au", ".ac.jp", ".go.jp"}

// Authority is the class of one source. What its fetcher knows of its standing
// goes first. A local document (the user's own, or the embedded library) is
// medium, since somebody chose to keep it, whatever address it gives itself; so
// are the rows of a database; a document from a checked domain is high; anything
// else is low, and so is what only a report tells of.
func Authority(p fetch.Page) marchwarden.Authority {
	switch {
	case p.Unchecked:
		return marchwarden.LowAuthority
	case p.Standing != "":
		return p.Standing
	case p.Source == "file", p.Source == "database":
		return marchwarden.MediumAuthority
	}
	host := "." + strings.ToLower(p.Origin)
	for _, s := range highSuffixes {
		if strings.HasSuffix(host, s) {
			return marchwarden.HighAuthority
		}
	}
	return marchwarden.LowAuthority
}

// authorityOf is the class of the middle one of the cited sources. Between two it is
// the class between theirs, or the lower one: a high and a low one are medium.
func authorityOf(cited []*evidence.Source) marchwarden.Authority {
	classes := []marchwarden.Authority{marchwarden.LowAuthority, marchwarden.MediumAuthority, marchwarden.HighAuthority}
	if len(cited) == 0 {
		return marchwarden.LowAuthority
	}
	var ranks []int
	for _, s := range cited {
		ranks = append(ranks, max(0, slices.Index(classes, Authority(s.Page))))
	}
	slices.Sort(ranks)
	return classes[(ranks[(len(ranks)-1)/2]+ranks[len(ranks)/2])/2]
}
