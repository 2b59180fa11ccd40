package conflict

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

// A question for one thing that is not named further, and those for several.
var (
	asksOne  = regexp.MustCompile(`(?i)\b((what|which) (is|was) the( \w+){1,2} of|(by|for|in|of|to|from) (which|what)|which( \w+){1,3} (is|was|did|does|has|had))\b`)
	asksMany = regexp.MustCompile(`(?i)\b((what|which)( \w+)? (are|were|do|have)|what (types|kinds|sorts)|some|several|different|examples?|effects?|results?|purposes?|reasons?|meanings?)\b`)
)

// relation is a way to say something of a subject that has one value.
type relation struct {
	asks  *regexp.Regexp // the questions that it answers
	cues  []string       // stems that the value follows
	kind  kind
	link  string // the word that stands between, such as "by"; "" if any may
	loose bool   // other words may stand between
}

// relations are the facts of which a thing has one only. Where and when
// somebody lived, what was won or who took part is none: it may be said with
// many values.
var relations = []relation{
	{asks: asking("born|birth"), cues: stems("born birth birthdate"), kind: aDate, loose: true},
	{asks: asking("die|died|death"), cues: stems("died death"), kind: aDate, loose: true},
	{asks: asking("built|build|constructed|completed"), cues: stems("built constructed completed erected"), kind: aDate},
	{asks: asking("founded|established|formed|organi[sz]ed|introduced"), cues: stems("founded established formed organised organized introduced"), kind: aDate},
	{asks: asking("release|released|published"), cues: stems("released published"), kind: aDate},
	{asks: asking("feast"), cues: stems("feast memorial"), kind: aDate},
	{asks: asking("population|people|inhabitants"), cues: stems("population"), kind: aNumber},
	{asks: asking("director|directed"), cues: stems("directed film movie"), kind: aName, link: "by"},
	{asks: asking("architect|designed|designer"), cues: stems("designed"), kind: aName, link: "by"},
	{asks: asking("artist|album|singer|band"), cues: stems("album ep single record recorded performed painted"), kind: aName, link: "by"},
	{asks: asking("author|wrote|written|creator|created"), cues: stems("written created"), kind: aName, link: "by"},
	{asks: asking("founder"), cues: stems("founded established"), kind: aName, link: "by"},
	{asks: asking("composer|composed"), cues: stems("composed"), kind: aName, link: "by"},
	{asks: asking("located|location"), cues: stems("located situated"), kind: aName, link: "in"},
	{asks: asking("party"), cues: stems("member"), kind: aName, link: "of"},
	{asks: asking("father|mother|parents?"), cues: stems("son daughter"), kind: aName, link: "of"},
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
		if t.Number || t.Capital && i > 0 {
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
	case asksOne.MatchString(question) && !asksMany.MatchString(question):
		q.kinds = []kind{aName}
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

// namesakes reports whether two sentences speak of different things of the name that
// is asked about: "George King-Hall" and "Herbert King-Hall", "Lake Mills (Iowa)" and
// "Lake Mills (Wisconsin)".
func (q *inquiry) namesakes(a, b *statement, va, vb slot) bool {
	x, y := q.fuller(a, va, vb), q.fuller(b, va, vb)
	others, _ := q.others(a.scene.entry, b.scene.entry, va, vb)
	return others || len(x) > 0 && len(y) > 0 && inBoth(x, y) == 0
}

// fuller are the words that make the name asked about longer: names right beside it,
// and what stands in brackets after it. The values are none of them.
func (q *inquiry) fuller(s *statement, va, vb slot) []string {
	var out []string
	add := func(t lexicon.Token) {
		if !t.Stop && !q.subject[t.Stem] && !dated(t) && !slices.Contains(va.stems, t.Stem) && !slices.Contains(vb.stems, t.Stem) && !slices.Contains(q.terms, t.Stem) {
			out = append(out, t.Stem)
		}
	}
	for i, t := range s.toks {
		if !q.subject[t.Stem] || !t.Capital {
			continue
		}
		for j := i; j > 0 && s.joined(j) && s.text[s.toks[j-1].End:s.toks[j].Start] != ", "; j-- {
			add(s.toks[j-1])
		}
		rest := s.text[t.End:]
		if open := strings.TrimLeft(rest, " "); strings.HasPrefix(open, "(") {
			if end := strings.IndexByte(rest, ')'); end > 0 {
				for _, u := range s.toks[i+1:] {
					if u.End > t.End+end {
						break
					}
					add(u)
				}
			}
		}
	}
	return out
}

func (r relation) saidIn(s *statement) bool {
	return slices.ContainsFunc(r.cues, func(c string) bool { return s.words[c] })
}

// says reports whether a sentence has words for what is asked, as far as these are
// known.
func (q *inquiry) says(s *statement) bool {
	return len(q.ways) == 0 || slices.ContainsFunc(q.ways, func(r relation) bool { return r.link == "of" || r.saidIn(s) })
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
	return q.labelled(s)
}

// labelled is the value after a label that has a word of what is asked, as in the
// boxes of an encyclopaedia: "Architect Willis Irwin", "Feast: 15 January". There the
// subject stands elsewhere.
func (q *inquiry) labelled(s *statement) answer {
	for i, t := range s.toks[:max(0, len(s.toks)-1)] {
		next := s.toks[i+1]
		gap := strings.TrimSpace(s.text[t.End:next.Start])
		label := t.Capital || i > 0 && (s.toks[i-1].Capital || q.attribute(s.toks[i-1])) || gap == ":" || gap == "="
		if !label || !q.attribute(t) && !q.cue(t.Stem) || gap != "" && gap != ":" && gap != "=" {
			continue
		}
		if v := slotAt(s, i+1, i+2); q.wants(v.kind) && v.kind != aNoun && v.start == next.Start && !q.known(v) {
			return answer{v, t.Text}
		}
	}
	return answer{}
}

// attribute reports whether a word is one of the question's, other than those of names.
func (q *inquiry) attribute(t lexicon.Token) bool {
	return !t.Stop && !q.subject[t.Stem] && slices.Contains(q.terms, t.Stem)
}

// cue reports whether a word says what is asked.
func (q *inquiry) cue(stem string) bool {
	return slices.ContainsFunc(q.ways, func(r relation) bool { return slices.Contains(r.cues, stem) })
}

// known reports whether the question has a word of a value itself.
func (q *inquiry) known(v slot) bool { return inBoth(v.stems, q.terms) > 0 }

// lifespan is what stands in brackets after the name of a person.
var lifespan = regexp.MustCompile(`\(([^()]*\d{3,4})\s*[–—-]\s*([^()]*\d{3,4})\s*\)`)

// lived is the date of birth or death in "Name (1 May 1900 – 2 June 1970)".
func (q *inquiry) lived(r relation, s *statement) slot {
	if !r.loose {
		return slot{}
	}
	if v := r.counted(s); v.kind != 0 {
		return v
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

// counted is the year in "1972 births", the name of a category.
func (r relation) counted(s *statement) slot {
	for i := 1; i < len(s.toks); i++ {
		if w := s.toks[i].Text; (w == "births" || w == "deaths") && slices.Contains(r.cues, lexicon.Stem(w)) && isYear(s.toks[i-1].Text) {
			return slotAt(s, i-1, i)
		}
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

// made stand between a work and who it is by.
var made = words("released recorded performed made created")

// reach is how many tokens after the word that says it a value may stand.
const reach = 9

// value is the first one of the relation's kind from token i on. Of names in one
// phrase it is the last: "by American jazz musician Miles Davis".
func (r relation) value(s *statement, i int, subject map[string]bool) slot {
	if r.link != "" {
		for i < len(s.toks) && subject[s.toks[i].Stem] {
			i++ // the album "Title" by
		}
		for i < len(s.toks) && made[strings.ToLower(s.toks[i].Text)] {
			i++ // the album released by
		}
		if i >= len(s.toks) || s.toks[i].Text != r.link && !(r.link == "by" && s.toks[i].Text == "from") {
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
