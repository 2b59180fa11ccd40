package extractive

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// term is one content word of the question.
type term struct {
	stem   string
	text   string
	weight float64 // how much of the question hangs on it, before rarity
	name   bool    // part of a proper name
	number bool
	also   []string // stems that say the same in the idiom it stands in
}

// part is one thing that is asked. A plain question has exactly one part.
type part struct {
	label string // for people
	query string // for the engine
	stems []string
	kind  kind
	// subject holds stems that a part without a subject of its own has from the
	// first part; what answers it must be about them.
	subject []string
	// from and to are set for a stretch of time; such a part is covered by a
	// sentence that is dated within it.
	from, to int
}

// question is what the words of a request ask for.
type question struct {
	topic   string // as it was asked, for people
	text    string // the same without addresses, whose words ask for nothing
	kind    kind
	focus   string   // stem of the noun after what, which or how many; "" if none
	asked   string   // stem of X in "What is the X of Y"; "" if none
	owner   []string // stems of Y in the same
	terms   []term   // each once, in order of appearance
	order   []int    // the terms as they follow each other, indexes into terms
	parts   []part
	names   []string
	phrases []string // quoted
	negated bool
	broad   bool            // asks for an overview rather than a fact
	soft    map[string]bool // stems of the context: they refocus
	known   map[string]bool // sentences of the context, folded
	given   []string        // names in the context
}

// lightWords are words that questions use to ask rather than to say what they
// are about. A source that answers need not repeat them.
var lightWords = stemSet(`name names named type types kind kinds sort form forms way ways thing things term terms word words
	call called known use used uses using happen happened happens occur occurred take took taken make made makes
	main major important example examples number amount many much give given gave get gets got become became
	year years date time times day people person group groups place part parts following include includes included
	describe described explain mean means meaning refer referred refers consider considered believe believed
	think thought say said tell show find found say claim come came go went want need did
	different other another certain particular specific reason reasons cause purpose result role idea
	list overview summary comprehensive brief compare comparison difference differences versus`)

// aliases are pairs of stems that name the same thing often enough for a
// sentence with one to answer a question with the other.
var aliases = stemPairs(`found establish; found create; start begin; start commence; begin origin; die death; born birth; country nation;
	big large; large great; reign rule; rule govern; kill death; buy purchase; build construct; build built; writer author; write wrote;
	job occupation; locate situate; locate lie; cause due; cause lead; win victory; win won; defeat beat; invent create; invent develop;
	area region; region territory; amount quantity; leader head; lead led; teach taught; film movie; car automobile; doctor physician;
	speak language; money fund; cost price; rich wealth; poor poverty; war conflict; fight battle; army troop; city town; end finish; end conclude;
	old age; tall height; high height; long length; wide width; deep depth; heavy weight; far distance; hot heat; strong strength; bear bore;
	sell sold; buy bought; think thought; grow grew; grow growth; know known; hold held; leave left; send sent; spend spent; bring brought;
	choose chose; choose chosen; speak spoke; take took; give gave; become became; run ran; rise rose; fall fell; see saw; go went; come came;
	begin began; begin begun; drive drove; eat ate; fly flew; draw drew; break broke; catch caught; fight fought; get got; hear heard; lay laid; make made; mean meant;
	sing sang; sink sank; stand stood; steal stole; strike struck; swim swam; throw threw; understand understood; wear wore; drink drank; freeze froze; hide hid; shoot shot;
	sleep slept; tell told; say said; teach taught; seek sought; shrink shrank; spread spread; wake woke; weave wove; bind bound; breed bred; build built; burn burnt; deal dealt;
	feed fed; flee fled; forbid forbade; forget forgot; forgive forgave; grind ground; hang hung; lend lent; ring rang; shake shook; shine shone; slide slid; spin spun; swear swore; tear tore; withdraw withdrew;
	keep kept; lose lost; pay paid; feel felt; meet met; fast speed; quick speed; percent percentag; british britain; french franc; german germani;
	america american; europ european; english england; forbid prohibit; forbid ban; prohibit ban; prohibition forbid; prohibition ban; coin introduce; coin name; ideal best; ideal suit; best suit; safe safeti; use employ; need requir; allow permit; show display; help assist;
	store keep; write author; wrote author; eu european; eu union; uk british; uk kingdom; treat cure; treat remedy; plant sow; plant transplant; live habitat; live inhabit; population inhabitant`)

// idioms are phrases of which one word alone says little. Where the question has
// the phrase, its last word is also found in the other words.
var idioms = []struct {
	phrase *regexp.Regexp
	also   []string
}{
	{regexp.MustCompile(`(?i)\b(?:tak(?:e|es|en|ing)|took|com(?:e|es|ing)|came|go(?:es|ing)?|went|put|brought|enter(?:s|ed|ing)?)\s+(?:into\s+)?(effect|force)\b`),
		lexicon.Terms("effect force apply application")},
}

// vague are the words an overview is asked for with.
var vague = stemSet(`ideal best history overview comprehensive summary guide introduction advice tips options benefits advantages
	disadvantages risks effects impact pros cons factors considerations trends state landscape survey strategies`)

func stemSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[lexicon.Stem(w)] = true
	}
	return set
}

func stemPairs(list string) map[[2]string]bool {
	set := map[[2]string]bool{}
	for pair := range strings.SplitSeq(list, ";") {
		a, b, _ := strings.Cut(strings.TrimSpace(pair), " ")
		sa, sb := lexicon.Stem(a), lexicon.Stem(b)
		set[[2]string{sa, sb}], set[[2]string{sb, sa}] = true, true
	}
	return set
}

var (
	quoted  = regexp.MustCompile(`["“”]([^"“”]{2,80})["“”]`)
	spanned = regexp.MustCompile(`(?i)\b(?:from|between)\s+(?:the\s+)?(\d{4})(s?)\s+(?:to|and|until|through|till)\s+(?:the\s+)?(\d{4}|present|today|now)(s?)`)
	compare = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:compare|contrast)\s+(.+?)\s+(?:and|with|to|versus|vs\.?)\s+(.+?)[.?!]*$`)
	differ  = regexp.MustCompile(`(?i)\bdifferences?\s+between\s+(.+?)\s+and\s+(.+?)[.?!]*$`)
	clauses = regexp.MustCompile(`(?i)[?;]\s*|,?\s+and\s+(?:also\s+)?(?:(?:in|at|for|by|to|of|on|from)\s+)?(what|who|when|where|why|how|which|whose|is|are|was|were|does|do|did|can|should|will)\b`)
)

// analyse reads a question. thisYear closes periods that run to the present.
func analyse(text, context string, thisYear int) question {
	q := question{
		topic: strings.TrimSpace(unlabelled(text)), text: strings.TrimSpace(unlabelled(unaddressed(text))),
		soft: map[string]bool{}, known: map[string]bool{},
	}
	q.parts = periods(q.text, thisYear)
	subject := q.text
	if len(q.parts) > 1 { // the parts hold the years
		subject = spanned.ReplaceAllString(q.text, " ")
	}
	toks := lexicon.Tokens(subject)
	q.kind, q.focus = kindOf(lexicon.Tokens(firstClause(subject)))
	if differ.MatchString(subject) {
		q.kind, q.focus = kindCompare, ""
	}
	q.asked, q.owner = attribute(lexicon.Tokens(firstClause(subject)))
	q.names = questionNames(subject, toks)
	q.addTerms(toks)
	if len(q.parts) < 2 {
		q.parts = partsOf(q, subject)
	}
	for _, m := range quoted.FindAllStringSubmatch(q.text, -1) {
		q.phrases = append(q.phrases, m[1])
	}
	q.negated = lexicon.Negated(q.text)
	q.broad = q.isBroad()
	around := unaddressed(context)
	for _, s := range lexicon.Terms(around) {
		if !inQuestion(&q, s) {
			q.soft[s] = true
		}
	}
	q.given = lexicon.Names(around)
	for _, sp := range lexicon.Sentences(context) {
		q.known[plain(context[sp.Start:sp.End])] = true
	}
	return q
}

// located is a web address, or that of a file, with the quotes around it. The mark
// that ends a sentence is not part of it.
var located = regexp.MustCompile(`(?i)["“”]\s*` + bareAddress + `\s*["“”]|\b` + bareAddress)

const bareAddress = `(?:https?|ftps?|file)://[^\s<>"“”]*[^\s<>"“”.,;:!?)\]}'’]`

// unaddressed is a text without its addresses: they say where to look, and the
// loop reads them; a source that answers need not hold their words.
func unaddressed(text string) string { return located.ReplaceAllString(text, " ") }

// label is a number that counts questions rather than asks: "… in Utah? no. 4".
var label = regexp.MustCompile(`(?i)\?\s*[(\[#,;:-]*\s*(?:(?:number|no|nr|question|version|try|part)\b[.:]?\s*)?#?\d{1,6}[)\].]*\s*$`)

// unlabelled is a question without such a number behind it.
func unlabelled(text string) string { return label.ReplaceAllString(text, "?") }

// firstClause is the part of the text that is asked first.
func firstClause(text string) string {
	for _, c := range splitClauses(text) {
		if len(newPart(c).stems) > 0 {
			return c
		}
	}
	return text
}

// questionNames are runs of capitalised words. In a question written wholly in
// capitals or in title case nothing stands out, so it has no names.
func questionNames(text string, toks []lexicon.Token) []string {
	capitals, content := 0, 0
	for _, t := range toks {
		if t.Stop || t.Number {
			continue
		}
		content++
		if t.Capital {
			capitals++
		}
	}
	if content > 3 && capitals == content {
		return nil
	}
	var names []string
	for i := 0; i < len(toks); i++ {
		if !toks[i].Capital || toks[i].Stop || (i == 0 && lightWords[toks[i].Stem]) {
			continue
		}
		j := i
		for j+1 < len(toks) && toks[j+1].Capital && !toks[j+1].Stop && strings.TrimSpace(text[toks[j].End:toks[j+1].Start]) == "" {
			j++
		}
		if i == 0 && j == 0 && len(toks) > 1 { // a first word is a capital anyway
			continue
		}
		if n := text[toks[i].Start:toks[j].End]; !slices.Contains(names, n) {
			names = append(names, n)
		}
		i = j
	}
	return names
}

func (q *question) addTerms(toks []lexicon.Token) {
	inName := map[string]bool{}
	for _, n := range q.names {
		for _, t := range lexicon.Tokens(n) {
			inName[t.Stem] = true
		}
	}
	at := map[string]int{}
	for i, t := range toks {
		if t.Stop || questionWord[strings.ToLower(t.Text)] || strings.EqualFold(wordAt(toks, i-1), "how") && degreeWord[strings.ToLower(t.Text)] {
			continue
		}
		k, ok := at[t.Stem]
		if !ok {
			k = len(q.terms)
			at[t.Stem] = k
			w := 1.0
			switch {
			case inName[t.Stem]:
				w = 1.3
			case t.Number && strings.EqualFold(wordAt(toks, i-1), "number"): // "number 4" may be a label
				w = 0.35
			case t.Number:
				w = 1.3
			case lightWords[t.Stem]:
				w = 0.35
			case vague[t.Stem]:
				w = 0.6
			}
			q.terms = append(q.terms, term{stem: t.Stem, text: t.Text, weight: w, name: inName[t.Stem], number: t.Number && w > 1})
		}
		q.order = append(q.order, k)
	}
	for _, id := range idioms {
		if m := id.phrase.FindStringSubmatch(q.text); m != nil {
			if k, ok := at[lexicon.Stem(m[1])]; ok {
				q.terms[k].also = id.also
			}
		}
	}
}

// degreeWord follows "how" and asks for a number.
var degreeWord = map[string]bool{"many": true, "much": true, "long": true, "far": true, "tall": true, "high": true, "old": true, "big": true, "large": true, "fast": true,
	"deep": true, "wide": true, "heavy": true, "often": true, "hot": true, "cold": true, "late": true, "early": true, "soon": true, "small": true, "close": true, "strong": true}

var questionWord = map[string]bool{"who": true, "whom": true, "whose": true, "when": true, "where": true, "why": true, "how": true, "what": true, "which": true}

func (q *question) isBroad() bool {
	if len(q.parts) > 1 || q.kind == kindCompare {
		return true
	}
	for _, t := range q.terms {
		if vague[t.stem] && !t.name {
			return true
		}
	}
	return q.kind == kindList && len(q.terms) <= 6
}

// partsOf splits a question into what it asks. Each part carries the words it
// shares with the whole only where it has no subject of its own.
func partsOf(q question, text string) []part {
	for _, re := range []*regexp.Regexp{compare, differ} {
		if m := re.FindStringSubmatch(text); m != nil {
			if a, b := newPart(m[1]), newPart(m[2]); len(a.stems) > 0 && len(b.stems) > 0 {
				a.kind, b.kind = kindDefine, kindDefine // what each of them is
				return []part{a, b}
			}
		}
	}
	var ps []part
	for _, c := range splitClauses(text) {
		p := newPart(c)
		if len(p.stems) == 0 {
			continue
		}
		if len(ps) > 0 && (len(p.stems) < 2 || refersBack(c)) { // "… and why does it fail?" asks about the first subject
			p = p.about(q, ps[0])
		}
		p.kind, _ = kindOf(lexicon.Tokens(c))
		ps = append(ps, p)
	}
	if len(ps) == 0 {
		return []part{newPart(text)}
	}
	return ps
}

// refersBack reports a pronoun that stands for what was named before, in a
// clause that names nothing itself.
func refersBack(clause string) bool {
	back := false
	for i, t := range lexicon.Tokens(clause) {
		switch strings.ToLower(t.Text) {
		case "it", "its", "they", "them", "their", "he", "him", "his", "she", "her":
			back = true
		}
		if i > 0 && t.Capital && !t.Stop {
			return false
		}
	}
	return back
}

// about gives a part without a subject the names of the question, or else the
// words of the first part; a definition names its subject by all its words.
func (p part) about(q question, first part) part {
	subject := strings.Join(q.names, " ")
	if subject == "" || first.kind == kindDefine {
		subject = first.query
	}
	whole := newPart(subject + " " + p.query)
	whole.label, whole.subject = p.label, newPart(subject).stems
	return whole
}

// onlyIn reports whether no other part than p asks for the stem.
func (q *question) onlyIn(p int, stem string) bool {
	for o, pt := range q.parts {
		if o != p && slices.Contains(pt.stems, stem) {
			return false
		}
	}
	return true
}

func splitClauses(text string) []string {
	var out []string
	from := 0
	for _, m := range clauses.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, strings.TrimSpace(text[from:m[0]]))
		from = m[1]
		if m[2] >= 0 {
			from = m[2]
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

func newPart(s string) part {
	p := part{label: strings.Trim(s, " .?!,;")}
	var words []string
	for _, t := range lexicon.Tokens(s) {
		if t.Stop || questionWord[strings.ToLower(t.Text)] || slices.Contains(p.stems, t.Stem) {
			continue
		}
		p.stems = append(p.stems, t.Stem)
		words = append(words, t.Text)
	}
	p.query = strings.Join(words, " ")
	return p
}

// periods cuts "from the 1950s to 2026" into decades. Less than a decade, or more
// than thirteen, is left whole.
func periods(text string, thisYear int) []part {
	m := spanned.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	from, _ := strconv.Atoi(m[1])
	to, err := strconv.Atoi(m[3])
	if err != nil {
		to = thisYear
	} else if m[4] == "s" {
		to += 9
	}
	if from >= to || to-from > 130 || to-from < 10 {
		return nil
	}
	subject := newPart(spanned.ReplaceAllString(text, " "))
	subject.dropLight()
	var ps []part
	for d := from / 10 * 10; d <= to; d += 10 {
		ps = append(ps, part{
			label: fmt.Sprintf("%s: %ds", subject.query, d),
			query: fmt.Sprintf("%s %ds", subject.query, d),
			stems: append(slices.Clone(subject.stems), fmt.Sprintf("%ds", d)),
			from:  max(d, from), to: min(d+9, to),
		})
	}
	return ps
}

// dropLight removes the words a part is asked with and keeps what it is about.
func (p *part) dropLight() {
	var keep, stems []string
	for _, w := range strings.Fields(p.query) {
		if s := lexicon.Stem(w); !lightWords[s] && !vague[s] {
			keep, stems = append(keep, w), append(stems, s)
		}
	}
	if len(keep) > 0 {
		p.query, p.stems = strings.Join(keep, " "), stems
	}
}

// plain is a sentence for comparison: its words in lower case, single-spaced.
func plain(s string) string {
	toks := lexicon.Tokens(s)
	words := make([]string, len(toks))
	for i, t := range toks {
		words[i] = strings.ToLower(t.Text)
	}
	return strings.Join(words, " ")
}
