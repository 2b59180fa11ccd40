package confidence

import (
	"slices"
	"strings"
	"unicode"

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
	prints := map[*evidence.Source]*print{} // of those that had to be compared
	printOf := func(s *evidence.Source) *print {
		if prints[s] == nil {
			prints[s] = shingles(s.Text)
		}
		return prints[s]
	}
	for _, s := range cited {
		same := func(k *evidence.Source) bool {
			return s.Page.Origin == k.Page.Origin || s.Page.Text == k.Page.Text || printOf(s).likeness(printOf(k)) >= nearDuplicate
		}
		if !s.Page.Unchecked && !slices.ContainsFunc(kept, same) {
			kept = append(kept, s)
		}
	}
	return kept
}

// print are the hashes of runs of words of a text: of all, or of a long text of one in
// step.
type print struct {
	hashes map[uint64]bool
	step   uint64
}

// wholePrint is the longest text, in bytes, of which all runs are kept.
const wholePrint = 1 << 20

// shingles is the print of all runs of four words. Case makes no difference, nor do
// digits: copies of one text often differ in a date, a number or an id, and in nothing
// else.
func shingles(text string) *print {
	p := &print{hashes: map[uint64]bool{}, step: 1}
	if len(text) > wholePrint {
		p.step = 64
	}
	var last [4]uint64 // hashes of the last words
	n := 0
	for word := range strings.FieldsSeq(text) {
		last[n%4] = hashOf(word)
		if n++; n >= len(last) {
			p.add(last[n%4], last[(n+1)%4], last[(n+2)%4], last[(n+3)%4])
		}
	}
	if n < len(last) {
		p.add(last[:n]...)
	}
	return p
}

// The constants of FNV-1a.
const (
	hashBasis = 14695981039346656037
	hashPrime = 1099511628211
)

// hashOf is the hash of a word, with a run of digits as one.
func hashOf(word string) uint64 {
	h, before := uint64(hashBasis), rune(0)
	for _, r := range word {
		if r >= '0' && r <= '9' {
			r = '0'
		}
		if r != '0' || before != '0' {
			h = (h ^ uint64(unicode.ToLower(r))) * hashPrime
		}
		before = r
	}
	return h
}

// add keeps the hash of a run of words, if it is one of those that are kept.
func (p *print) add(words ...uint64) {
	h := uint64(hashBasis)
	for _, w := range words {
		h = (h ^ w) * hashPrime
		h ^= h >> 32
	}
	if h%p.step == 0 {
		p.hashes[h] = true
	}
}

// likeness is the share of common runs among all.
func (p *print) likeness(o *print) float64 {
	step := max(p.step, o.step)
	count := func(in map[uint64]bool, ok func(uint64) bool) (n int) {
		for h := range in {
			if h%step == 0 && ok(h) {
				n++
			}
		}
		return n
	}
	all := func(uint64) bool { return true }
	common := count(p.hashes, func(h uint64) bool { return o.hashes[h] })
	return float64(common) / float64(max(1, count(p.hashes, all)+count(o.hashes, all)-common))
}

// highSuffixes are the domains whose holders are checked before they get one:
// governments, universities, international bodies.
var highSuffixes = []string{".gov", ".mil", ".edu", ".int", ".gov.uk", ".ac.uk", ".europa.eu", ".gouv.fr", ".gc.ca", ".gov.au", ".edu.au", ".ac.jp", ".go.jp"}

// Authority is the class of one source. What its fetcher knows of its standing
// goes first. A local document (the user's own, or the embedded library) is
// medium, since the user chose to keep it, whatever address it gives itself; so
// are the rows of a database and the documents of a connector; a document from a checked domain is high; anything
// else is low, and so is what only a report tells of.
func Authority(p fetch.Page) marchwarden.Authority {
	switch {
	case p.Unchecked:
		return marchwarden.LowAuthority
	case p.Standing != "":
		return p.Standing
	case p.Source == "file", p.Source == "database", p.Source == "connector":
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
