package verify

import (
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// inquiry is a question as far as it says what would answer it.
type inquiry struct {
	terms   []string        // stems of its words, each once
	subject map[string]bool // those of names: what is asked about
	about   string          // the first of the names as written
	kinds   []kind          // what may answer it
	single  bool            // one value answers it
	ways    []relation      // how sentences say the answer
	effort  int             // see effortCap
}

var (
	asksDate   = regexp.MustCompile(`(?i)\b(when|(what|which) (year|date|day|month|century|decade)|(release|birth|death|founding|opening) date|date of)\b`)
	asksNumber = regexp.MustCompile(`(?i)\b(how (many|much|long|tall|high|big|large|old|far|deep|wide|heavy|fast)|population|number of|median|average|percentage|percent|length|height|size|area|distance|weight|depth)\b`)
	asksName   = regexp.MustCompile(`(?i)\b(who|whom|whose|where|(what|which) (country|state|city|town|county|province|region|person|team|company)|(what|which) (is|was) the( \w+)? (name|capital|author|artist|director|founder|leader|president|owner|winner))\b`)
	asksSort   = regexp.MustCompile(`(?i)\b(what|which)( is| was| are| were)?( the)?( \w+)? (sport|genre|profession|occupation|job|position|party|format|religion|language|type|kind|nationality|medium|ideology|colou?r|material|species)\b`)
)

// relation is a way to say something of a subject that has one value.
type relation struct {
	asks  *regexp.Regexp // the questions that it answers
	cues  []string       // stems that the value follows
	kind  kind
	by    bool // "by" stands between
	loose bool // other words may stand between
}

// relations are the facts of which a thing has one only. Where and when
// somebody lived, what was won or who took part is none: it may be said with
// many values.
var relations = []relation{
	{asks: asking("born|birth"), cues: stems("born birth"), kind: aDate, loose: true},
	{asks: asking("die|died|death"), cues: stems("died death"), kind: aDate, loose: true},
	{asks: asking("built|build|constructed|completed"), cues: stems("built constructed completed erected"), kind: aDate},
	{asks: asking("founded|established|formed|organi[sz]ed|introduced"), cues: stems("founded established formed organised organized introduced"), kind: aDate},
	{asks: asking("release|released|published"), cues: stems("released published"), kind: aDate},
	{asks: asking("feast"), cues: stems("feast memorial"), kind: aDate},
	{asks: asking("population|people|inhabitants"), cues: stems("population"), kind: aNumber},
	{asks: asking("director|directed"), cues: stems("directed"), kind: aName, by: true},
	{asks: asking("architect|designed|designer"), cues: stems("designed"), kind: aName, by: true},
	{asks: asking("artist|album|singer|band"), cues: stems("album"), kind: aName, by: true},
	{asks: asking("author|wrote|written"), cues: stems("written"), kind: aName, by: true},
}

func asking(words string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + words + `)\b`) }

func stems(list string) []string {
	var out []string
	for w := range strings.FieldsSeq(list) {
		out = append(out, lexicon.Stem(w))
	}
	return out
}

func inquire(question string) *inquiry {
	q := &inquiry{subject: map[string]bool{}, single: true}
	if names := lexicon.Names(question); len(names) > 0 {
		q.about = names[0]
	}
	for i, t := range lexicon.Tokens(question) {
		if t.Stop || slices.Contains(q.terms, t.Stem) {
			continue
		}
		q.terms = append(q.terms, t.Stem)
		if (t.Capital || t.Number) && i > 0 {
			q.subject[t.Stem] = true
		}
	}
	switch {
	case asksDate.MatchString(question):
		q.kinds = []kind{aDate}
	case asksNumber.MatchString(question):
		q.kinds = []kind{aNumber}
	case asksName.MatchString(question):
		q.kinds = []kind{aName}
	case asksSort.MatchString(question):
		q.kinds = []kind{aName, aNoun}
	default:
		q.kinds, q.single = []kind{aName, aDate, aNumber}, false
	}
	for _, r := range relations {
		if q.single && q.wants(r.kind) && r.asks.MatchString(question) {
			q.ways = append(q.ways, r)
		}
	}
	return q
}

// spend reports whether there is effort left for comparing so many words.
func (q *inquiry) spend(words int) bool {
	q.effort += words + 500 // what is around the sentences counts too
	return q.effort <= effortCap
}

func (q *inquiry) wants(k kind) bool { return slices.Contains(q.kinds, k) }

// weight is how much of the question two sentences have: what both of them say of
// it counts most.
func (q *inquiry) weight(a, b *statement) int {
	n := 0
	for _, w := range q.terms {
		if a.words[w] || b.words[w] {
			n++
		}
	}
	for _, r := range q.ways {
		if r.saidIn(a) && r.saidIn(b) {
			n += 2 * len(q.terms)
		}
	}
	return n
}

func (r relation) saidIn(s *statement) bool {
	return slices.ContainsFunc(r.cues, func(c string) bool { return s.words[c] })
}

// says reports whether a sentence has words for what is asked, as far as these are
// known.
func (q *inquiry) says(s *statement) bool {
	return len(q.ways) == 0 || slices.ContainsFunc(q.ways, func(r relation) bool { return r.saidIn(s) })
}

// names reports whether a value is one word after the name that is asked about,
// and so part of it: "the Property Act 1870".
func (q *inquiry) names(s *statement, v slot) bool {
	if len(v.stems) > 1 {
		return false
	}
	i := slices.IndexFunc(s.toks, func(t lexicon.Token) bool { return t.Start == v.start })
	return i > 0 && q.subject[s.toks[i-1].Stem] && s.text[s.toks[i-1].End:v.start] == " "
}

// answer is what a sentence answers a question with: the zero answer is none.
type answer struct {
	slot
	cue string // the word that says what the value is, as written
}

// answer finds the value that a sentence gives for what is asked.
func (q *inquiry) answer(s *statement) answer {
	if q.about == "" {
		return answer{}
	}
	for _, r := range q.ways {
		if v := q.lived(r, s); v.kind != 0 {
			return answer{v, r.cues[0]}
		}
		for i, t := range s.toks {
			if !slices.Contains(r.cues, t.Stem) || !q.saidOfSubject(s, i) {
				continue
			}
			if v := r.value(s, i+1, q.subject); v.kind != 0 {
				return answer{v, t.Text}
			}
		}
	}
	return answer{}
}

// lifespan is what stands in brackets after the name of a person.
var lifespan = regexp.MustCompile(`\(([^()]*\d{3,4})\s*[–—-]\s*([^()]*\d{3,4})\s*\)`)

// lived is the date of birth or death in "Name (1 May 1900 – 2 June 1970)".
func (q *inquiry) lived(r relation, s *statement) slot {
	if !r.loose {
		return slot{}
	}
	m := lifespan.FindStringSubmatchIndex(s.text)
	if m == nil {
		return slot{}
	}
	from, to := m[2], m[3]
	if r.cues[0] == lexicon.Stem("died") {
		from, to = m[4], m[5]
	}
	named, first := false, -1
	for i, t := range s.toks {
		if t.End <= m[0] {
			named = named || q.subject[t.Stem]
		}
		if first < 0 && t.Start >= from && t.End <= to && dated(t) {
			first = i
		}
	}
	if !named || first < 0 {
		return slot{}
	}
	if v := slotAt(s, first, first+1); v.kind == aDate {
		return v
	}
	return slot{}
}

// saidOfSubject reports whether the words before token i name the subject, or
// nobody and hardly anything: "it was", "the present building was".
func (q *inquiry) saidOfSubject(s *statement, i int) bool {
	named, said := false, 0
	for k, t := range s.toks[:i] {
		if q.subject[t.Stem] {
			return true
		}
		if !t.Stop {
			named = named || t.Capital && k > 0
			said++
		}
	}
	return !named && said <= 2
}

// fillers may stand between a word and its value.
var fillers = words("total estim about approxim rough around day")

// reach is how many tokens after the word that says it a value may stand.
const reach = 9

// value is the first one of the relation's kind from token i on. Of names in one
// phrase it is the last: "by American jazz musician Miles Davis".
func (r relation) value(s *statement, i int, subject map[string]bool) slot {
	if r.by {
		for i < len(s.toks) && subject[s.toks[i].Stem] {
			i++ // the album "Title" by
		}
		if i >= len(s.toks) || s.toks[i].Text != "by" {
			return slot{}
		}
		i++
	}
	var found slot
	for j := i; j < min(len(s.toks), i+reach); j++ {
		t, gap := s.toks[j], s.text[s.toks[j-1].End:s.toks[j].Start]
		fits := r.kind == aName && t.Capital && !t.Stop || r.kind != aName && dated(t)
		switch {
		case strings.ContainsAny(gap, ";."), found.kind != 0 && (t.Stop || strings.ContainsAny(gap, ",()")):
			return found
		case strings.HasSuffix(strings.TrimSpace(gap), "["): // a note mark
		case fits:
			if v := slotAt(s, j, j+1); v.kind == r.kind {
				if found = v; r.kind != aName {
					return found
				}
			}
		case !r.loose && r.kind != aName && !t.Stop && !fillers[t.Stem]:
			return found
		}
	}
	return found
}
