package conflict

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// kind is the kind of a value.
type kind int

const (
	aDate kind = iota + 1
	aNumber
	aName
	aNoun
)

func (k kind) String() string {
	return [...]string{"value", "date", "number", "name", "kind"}[k]
}

// slot is a value in a sentence. The zero slot is none.
type slot struct {
	kind  kind
	text  string
	start int
	stems []string // of its words
}

// slotAt widens tokens [i,j) to the whole name, date or number that they are part
// of.
func slotAt(s *statement, i, j int) slot {
	for i < j && s.toks[i].Stop {
		i++
	}
	for i < j && s.toks[j-1].Stop {
		j--
	}
	if i == j {
		return slot{}
	}
	for i > 0 && s.joined(i) {
		i--
	}
	for j < len(s.toks) && s.joined(j) {
		j++
	}
	v := slot{text: s.text[s.toks[i].Start:s.toks[j-1].End], start: s.toks[i].Start}
	capitals, figures, stops := 0, 0, 0
	for k, t := range s.toks[i:j] {
		switch {
		case dated(t):
			figures++
			if !t.Number || isYear(t.Text) {
				v.kind = aDate
			}
		case t.Stop:
			stops++
		case t.Capital && i+k > 0:
			capitals++
		}
		if !t.Stop {
			v.stems = append(v.stems, t.Stem)
		}
	}
	switch {
	case strings.ContainsAny(v.text, "()[]:;/|"), figures > 0 && len(v.stems) > figures+1:
		return slot{} // more than a value
	case v.kind == aDate:
	case figures > 0 && capitals > 0 && s.toks[i].Capital:
		v.kind = aName // Boeing 747
	case figures > 0:
		v.kind = aNumber
	case 2*capitals >= len(v.stems) && capitals > 0 && stops <= 2:
		v.kind = aName
	case stops == 0 && j-i <= 3:
		v.kind = aNoun
	}
	return v
}

// joined reports whether tokens i-1 and i are of one value: parts of a date, or
// words of a name with nothing but a space, a comma or the dot of an initial
// between them.
func (s *statement) joined(i int) bool {
	a, b := s.toks[i-1], s.toks[i]
	switch s.text[a.End:b.Start] {
	case " ", "-", "–", ", ", " , ":
	case ". ":
		if len(a.Text) > 2 {
			return false
		}
	default:
		return false
	}
	if dated(a) || dated(b) {
		return dated(a) && dated(b)
	}
	return a.Capital && b.Capital && !a.Stop && !b.Stop
}

// dated reports whether a token may be part of a date or number.
func dated(t lexicon.Token) bool { return t.Number || t.Capital && calendar[strings.ToLower(t.Text)] }

func isYear(s string) bool {
	return len(s) == 4 && s >= "1000" && s <= "2100" && strings.Trim(s, "0123456789") == ""
}

// differ reports whether two values of one kind cannot both be the answer.
func differ(a, b slot) bool {
	if a.kind == 0 || a.kind != b.kind {
		return false
	}
	switch a.kind {
	case aNumber:
		x, y := lexicon.Quantities(a.text), lexicon.Quantities(b.text)
		return len(x) == 1 && len(y) == 1 && !near(x[0].Value, y[0].Value)
	case aDate:
		return dateOf(a).differs(dateOf(b))
	}
	return !slices.ContainsFunc(a.stems, func(s string) bool { return len(s) > 2 && slices.Contains(b.stems, s) })
}

// date is as much of a date as was stated; 0 is unknown.
type date struct{ year, month, day int }

// dateOf reads "8 February 1900", "February 8, 1900" and "1900-02-08", and the
// first year of "1900–1902".
func dateOf(v slot) date {
	var d date
	for _, s := range v.stems {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			d.month = cmp.Or(d.month, 1+slices.Index(months, s))
		case isYear(s):
			d.year = cmp.Or(d.year, n)
		case n > 31:
		case d.year > 0 && d.month == 0:
			d.month = n
		default:
			d.day = cmp.Or(d.day, n)
		}
	}
	return d
}

var months = stems("january february march april may june july august september october november december")

func (d date) differs(o date) bool {
	other := func(x, y int) bool { return x > 0 && y > 0 && x != y }
	return other(d.year, o.year) || other(d.month, o.month) || other(d.day, o.day)
}

// yearAt is the year that a value is of: the nearest one that the sentence names,
// or else the last one named before it, "" if there is none.
func (s *statement) yearAt(v slot) string {
	year, nearest := "", 0
	for _, t := range s.toks {
		if d := max(t.Start-v.start, v.start-t.Start); isYear(t.Text) && t.Start != v.start && (year == "" || d < nearest) {
			year, nearest = t.Text, d
		}
	}
	if year != "" {
		return year
	}
	for _, t := range lexicon.Tokens(s.source.Text[max(0, s.start-yearsBack):s.start]) {
		if isYear(t.Text) {
			year = t.Text
		}
	}
	return year
}

// yearsBack is how many bytes before a sentence a year is looked for.
const yearsBack = 300

// scene is the text around the sentences of one passage: what its document is
// about, and the passages next to it.
type scene struct {
	names map[string]bool // stems of names, and numbers
	asked []bool          // which of the question's words it has
	bears bool            // about half of them
	entry entry           // what its document is about, if that is an article
	dates map[date]bool   // whole ones
}

func newScene(src *evidence.Source, p evidence.Passage, asked []string, about entry) *scene {
	parts := []string{src.Page.Title, p.Heading}
	if p.Index > 2 {
		parts = append(parts, src.Passages[0].Text)
	}
	for _, n := range src.Passages[max(0, p.Index-2):min(len(src.Passages), p.Index+1)] {
		parts = append(parts, n.Text)
	}
	sc := &scene{names: map[string]bool{}, entry: about}
	all := map[string]bool{}
	toks := lexicon.Tokens(strings.Join(parts, "\n"))
	sc.dates = datesIn(toks)
	for _, t := range toks {
		if t.Stop {
			continue
		}
		all[t.Stem] = true
		if t.Number || t.Capital && !calendar[strings.ToLower(t.Text)] {
			sc.names[t.Stem] = true
		}
	}
	for _, w := range asked {
		sc.asked = append(sc.asked, all[w])
	}
	sc.bears = 2*count(asked, func(w string) bool { return all[w] })+1 >= len(asked)
	return sc
}

// ofOneThing reports whether two short sentences can be of one thing. "The price is
// 60 euros." does not say of what: what is asked about is named around both or
// around neither, and where there are names enough, they agree.
func (sc *scene) ofOneThing(o *scene) bool {
	common, poorer := sc.agreement(o, nil)
	return slices.Equal(sc.asked, o.asked) && (poorer < sceneFewest || float64(common) >= askedScene*float64(poorer))
}

// sameThing reports whether two values are said of the same thing, and of the same
// time if they are numbers: enough of the names and numbers around the sentences
// agree, the words of the question and the values aside, and the sentences
// themselves do not speak mostly of names that the other side does not know.
func (q *inquiry) sameThing(a, b *statement, va, vb slot, floor float64) bool {
	if !q.mayBeOne(a, b, va, vb) {
		return false
	}
	if _, valued := q.others(a.scene.entry, b.scene.entry, va, vb); valued {
		floor = copyScene
	}
	aside := q.aside(va, vb)
	common, poorer := a.scene.agreement(b.scene, aside)
	if poorer < sceneFewest {
		return q.alone(a, b, va, vb)
	}
	share := float64(common) / float64(poorer)
	namesA, unknownA := a.named(b, aside)
	namesB, unknownB := b.named(a, aside)
	names, unknown := namesA+namesB, unknownA+unknownB
	known := 4*unknown <= names
	if known && common >= sceneMany && floor < copyScene {
		floor -= knownBonus
	}
	return common >= sceneFewest && share >= floor && (2*unknown <= names || share >= copyScene) && (known || a.long == b.long)
}

// mayBeOne is false where two values are of different years, where a side has both of
// them, and where titles or names say that they are of different things.
func (q *inquiry) mayBeOne(a, b *statement, va, vb slot) bool {
	return sameMeasure(a, b, va, vb) && !a.holds(vb) && !b.holds(va) && q.sameTitles(a, b, va, vb) && !q.namesakes(a, b, va, vb)
}

// aside are words that say nothing about what two values are of.
func (q *inquiry) aside(va, vb slot) map[string]bool {
	out := map[string]bool{}
	for _, w := range slices.Concat(q.terms, va.stems, vb.stems) {
		out[w] = true
	}
	return out
}

// agree is the share of the names and numbers around two values that both sides have,
// 0 where these are few, or where the values cannot be said of the same thing.
func (q *inquiry) agree(a, b *statement, va, vb slot) float64 {
	if !q.mayBeOne(a, b, va, vb) {
		return 0
	}
	aside := q.aside(va, vb)
	common, poorer := a.scene.agreement(b.scene, aside)
	share := float64(common) / float64(max(1, poorer))
	around, within := q.called(a, b, aside)
	switch {
	case within:
		return 1 + share
	case around, a.scene.sameDate(b.scene, va, vb):
		return max(share, leastScene)
	case common < sceneFewest:
		return 0
	}
	return share
}

// alone reports whether two sentences that stand by themselves are of one thing: a
// name before the values is the same, both have most of the question's words, and
// neither has another word that is not in the other.
func (q *inquiry) alone(a, b *statement, va, vb slot) bool {
	same := func(s, o *statement, v slot) bool {
		for w := range s.words {
			if !o.words[w] && !slices.Contains(v.stems, w) {
				return false
			}
		}
		return q.single && 2*count(q.terms, func(w string) bool { return s.words[w] }) >= len(q.terms)
	}
	return inBoth(a.namesBefore(va), b.namesBefore(vb)) > 0 && same(a, b, va) && same(b, a, vb)
}

func count(list []string, is func(string) bool) (n int) {
	for _, w := range list {
		if is(w) {
			n++
		}
	}
	return n
}

func inBoth(a, b []string) int {
	return count(a, func(w string) bool { return slices.Contains(b, w) })
}

// sameTitles reports whether the titles of two documents allow that they speak of
// one thing: they have most words in common, or else both sentences name what is
// asked about. A value in its own document's title is what that is about, and no
// value.
func (q *inquiry) sameTitles(a, b *statement, va, vb slot) bool {
	ta, tb := titleOf(a.source), titleOf(b.source)
	if len(ta) == 0 || len(tb) == 0 {
		return true
	}
	if inBoth(va.stems, ta) > 0 && inBoth(vb.stems, tb) > 0 {
		return false
	}
	names := a.namesBefore(va)
	if len(q.subject) > 0 {
		names = slices.DeleteFunc(names, func(w string) bool { return !q.subject[w] })
	}
	return 2*inBoth(ta, tb) > min(len(ta), len(tb)) || inBoth(names, b.namesBefore(vb)) > 0
}

// titleOf are the words of a document's title; the name of its file is none.
func titleOf(src *evidence.Source) []string {
	title := src.Page.Title
	if file := path.Base(src.Page.Locator[strings.LastIndexByte(src.Page.Locator, ':')+1:]); title == file || title == strings.TrimSuffix(file, path.Ext(file)) {
		return nil
	}
	return lexicon.Terms(title)
}

func (s *statement) namesBefore(v slot) []string {
	var out []string
	for _, t := range s.toks {
		if t.Start < v.start && t.Capital && !t.Stop && !dated(t) {
			out = append(out, t.Stem)
		}
	}
	return out
}

// named counts the names in a sentence, and those of them that are not around the
// other. The labels of a table are no names beside a sentence.
func (s *statement) named(o *statement, aside map[string]bool) (names, unknown int) {
	if s.long && !o.long {
		return 0, 0
	}
	for _, w := range s.names {
		if !aside[w] {
			names++
			if !o.scene.names[w] {
				unknown++
			}
		}
	}
	return names, unknown
}

// agreement is how many names and numbers two scenes have in common, some aside,
// and how many the poorer one has.
func (sc *scene) agreement(o *scene, aside map[string]bool) (common, poorer int) {
	na, nb := 0, 0
	for w := range sc.names {
		if !aside[w] {
			na++
			if o.names[w] {
				common++
			}
		}
	}
	for w := range o.names {
		if !aside[w] {
			nb++
		}
	}
	return common, min(na, nb)
}
