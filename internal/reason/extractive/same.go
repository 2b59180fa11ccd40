package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// Two questions are asked of a pair of sentences. May the source of one be cited
// for the other? Only if it says that sentence: see saysSame. And need it be said,
// where the other is? Not if it adds nothing of weight: see repeats. A share of
// common words answers neither: "Harn beat Lowick" and "Lowick beat Harn" have all
// of theirs in common.

// saysSame reports that two sentences are one sentence: the same written words and
// signs in the same order, "the" and the marks around a word aside. A sentence
// that contains the other and more does not count, since the rest may take back
// what it contains. A sentence with a word such as "it" is the same only if the
// one before it is.
func (r *reading) saysSame(a, b int) bool {
	for {
		sa, sb := &r.sents[a], &r.sents[b]
		if a == b {
			return true
		}
		if !slices.Equal(written(sa.text), written(sb.text)) {
			return false
		}
		if !points(sa.toks) {
			return true
		}
		if a, b = sa.prev, sb.prev; a < 0 || b < 0 {
			return false
		}
	}
}

// written are the words of a sentence as they stand, with their signs: "-5", "$5"
// and "C++" keep theirs. The first letter is in lower case, where a sentence has a
// capital whatever its first word is.
func written(text string) []string {
	var out []string
	for _, w := range strings.Fields(flat(text)) {
		w = strings.TrimRight(strings.TrimLeft(w, `"“”([`), `.,;:!"“”)]`)
		if w != "" && w != "the" && (w != "The" || len(out) > 0) {
			out = append(out, strings.ReplaceAll(w, "’", "'"))
		}
	}
	if len(out) > 0 {
		r, n := utf8.DecodeRuneInString(out[0])
		if second, _ := utf8.DecodeRuneInString(out[0][n:]); !unicode.IsUpper(second) {
			out[0] = string(unicode.ToLower(r)) + out[0][n:]
		}
	}
	return out
}

// pointing are words that stand for something outside their sentence.
var pointing = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`it its itself he him his she her hers they them their theirs this these those such here there
		we us our ours i me my mine you your today yesterday tomorrow now both former latter above below same`) {
		m[w] = true
	}
	return m
}()

func points(toks []lexicon.Token) bool {
	return slices.ContainsFunc(toks, func(t lexicon.Token) bool { return pointing[strings.ToLower(t.Text)] && (t.Stop || !t.Capital) }) || leans(toks)
}

// repeats reports that saying both sentences would say one thing twice: most of
// their words are the same, all words of one stand in the other in their order,
// and what the longer one adds is no name, number, denial or word that turns the
// sense. Whatever has a word in the place of another is said beside it: which words
// are opposites, no list tells. Of two sentences in the same words that point at
// something else, the second is said where the one before it can be said too.
func (r *reading) repeats(a, b int) bool {
	sa, sb := &r.sents[a], &r.sents[b]
	if slices.Equal(written(sa.text), written(sb.text)) {
		return !leans(sa.toks) || sa.prev < 0 || sb.prev < 0 || r.saysSame(a, b)
	}
	switch {
	case r.similar(a, b) < alikeFloor, lexicon.Negated(sa.text) != lexicon.Negated(sb.text), signs(sa.text) != signs(sb.text), points(sa.toks), points(sb.toks):
		return false
	}
	long, short := telling(sa.toks), telling(sb.toks)
	if len(long) < len(short) {
		long, short = short, long
	}
	for _, t := range long {
		if len(short) > 0 && same(t, short[0]) {
			short = short[1:]
		} else if weighs(t) {
			return false
		}
	}
	return len(short) == 0
}

// weighs reports a word that makes a sentence another one when it is added.
func weighs(t lexicon.Token) bool {
	word := strings.ToLower(t.Text)
	return t.Number || t.Capital || t.Stop && !joining[word] || numberWords[t.Stem] || siblings[t.Stem] > 0 || turning[t.Stem] || strings.HasSuffix(word, "ly")
}

// turning are words that change what the words beside them say, adverbs on -ly aside.
var turning = question.StemSet(`almost alleged anti claim claimed denied deny disputed doubt doubtful ex fail failed fake false fictional former half hoped
	if less likely maybe mock non once planned proposed pseudo quasi rejected reported rumour semi supposed untrue wrong`)

// signs are what a text has beside words that changes their sense: the sign of a
// currency, of a share, of less than nothing.
func signs(text string) string {
	var out []rune
	before := ' '
	for _, r := range text {
		switch {
		case unicode.IsSymbol(r), strings.ContainsRune("%‰/#&", r):
			out = append(out, r)
		case unicode.IsDigit(r) && strings.ContainsRune("-–", before):
			out = append(out, '-')
		}
		before = r
	}
	return string(out)
}

// joining are words that only tie others to a sentence.
var joining = map[string]bool{"of": true, "in": true, "on": true, "at": true, "for": true, "with": true, "to": true, "and": true, "as": true, "that": true, "which": true, "also": true}

// telling are the words of a sentence without its articles. "A" inside a sentence
// is a name, as in "Treatment A".
func telling(toks []lexicon.Token) []lexicon.Token {
	var out []lexicon.Token
	for i, t := range toks {
		switch w := strings.ToLower(t.Text); {
		case w == "the" || w == "an", w == "a" && (i == 0 || !t.Capital), w == "also":
			continue
		}
		out = append(out, t)
	}
	return out
}

// same compares two words as written, their case aside: a stem may be that of two
// words, as of universe and university.
func same(a, b lexicon.Token) bool {
	return strings.EqualFold(a.Text, b.Text) && a.Stop == b.Stop || a.Number && a.Stem == b.Stem
}

// similar is the share of content words two sentences have in common, of the
// longer one.
func (r *reading) similar(a, b int) float64 {
	in := map[int]bool{}
	for k, t := range r.sents[a].toks {
		if !t.Stop {
			in[r.sents[a].ids[k]] = true
		}
	}
	common, other := 0, map[int]bool{}
	for k, t := range r.sents[b].toks {
		id := r.sents[b].ids[k]
		if t.Stop || other[id] {
			continue
		}
		other[id] = true
		if in[id] {
			common++
		}
	}
	return float64(common) / float64(max(1, len(in), len(other)))
}

// siblings are words of one kind, of which a sentence that has another has not
// the one that is asked.
var siblings = func() map[string]int {
	m := map[string]int{}
	for i, group := range []string{
		"second minute hour day week month year decade century", "first second third fourth fifth sixth seventh eighth ninth tenth last",
		"two three four five six seven eight nine ten eleven twelve hundred thousand million billion", "north south east west northern southern eastern western central",
		"red green blue yellow white black brown grey orange purple", "winter spring summer autumn fall", "january february march april may june july august september october november december",
		"man woman boy girl men women boys girls", "son daughter father mother brother sister wife husband uncle aunt", "foot metre meter mile kilometre kilometer inch yard",
		"english french german italian spanish dutch russian chinese japanese american british polish portuguese scottish irish norse roman greek",
		"europe asia africa america australia", "king queen prince duke emperor earl count pope bishop", "catholic protestant muslim jewish christian orthodox",
		"increase decrease", "oxygen hydrogen nitrogen carbon helium", "gas liquid solid", "monday tuesday wednesday thursday friday saturday sunday",
	} {
		for _, w := range strings.Fields(group) {
			m[lexicon.Stem(w)] = i + 1
		}
	}
	return m
}()

// antonyms are pairs of stems of which a sentence that answers has not the one
// where the question has the other.
var antonyms = question.StemPairs(`increase decrease; rise fall; high low; higher lower; highest lowest; more less; most least; many few; large small; largest smallest;
	first last; early late; earlier later; earliest latest; before after; north south; east west; northern southern; eastern western; begin end; start end;
	win lose; won lost; allow forbid; allow prohibit; permit ban; legal illegal; support oppose; accept reject; success failure; succeed fail; rich poor;
	strong weak; old new; young old; oldest youngest; long short; longest shortest; tall short; heavy light; hot cold; warm cool; wet dry; public private;
	male female; men women; man woman; always never; often rarely; reliable unreliable; reliably rarely; common rare; possible impossible; include exclude;
	internal external; inner outer; upper lower; positive negative; gain loss; gain lose; import export; urban rural; major minor; maximum minimum;
	majority minority; parent child; friend enemy; attack defend; enter leave; join leave; give receive; buy sell; teacher student; king queen; left right;
	same different; similar different; safe dangerous; healthy sick; expand contract; grow shrink; create destroy; build destroy; empty full; open close; fast slow;
	fastest slowest; best worst; better worse; good bad; primary secondary; liberal conservative;
	accelerate decelerate; attract repel; absorb emit; absorb release; active passive; adult child; alive dead; ally enemy; ancient modern; appear disappear; arrive depart; ascend descend;
	asleep awake; backward forward; birth death; bottom top; brave coward; ceiling floor; centralized decentralized; combine separate; connect disconnect; constant variable; constructive destructive;
	cheap expensive; clean dirty; day night; deep shallow; defeat victory; defend attack; demand supply; dependent independent; develop destroy; discourage encourage; divide unite; employed unemployed;
	ended began; enable prevent; establish abolish; even odd; exterior interior; extinct living; fertile barren; finite infinite; flexible rigid; formal informal; gather scatter; guilty innocent; heat cool;
	hire fire; horizontal vertical; ignore consider; immigrate emigrate; inferior superior; innate adaptive; input output; inside outside; land sea; least greatest; legal unlawful; local global; loose tight;
	love hate; lower raise; lowered raised; minimal maximal; natural artificial; obey disobey; offense defense; parallel perpendicular; part whole; peace war; permanent temporary; plural singular;
	poverty wealth; predator prey; presence absence; present absent; producer consumer; profit loss; push pull; reduce increase; reduce expand; rejected approved; remember forget; remove add; rise decline; rough smooth;
	rural city; sell purchase; send receive; shorter longer; shrink expand; single multiple; slave free; slowly quickly; smart stupid; solid liquid; stable unstable; stationary moving; stop start; stop continue; strengthen weaken;
	surface underground; thick thin; thicker thinner; uniform varied; unlike similar; unite separate; vanish appear; voluntary forced; wake sleep; weakest strongest; wide narrow; wild domestic; within outside; zenith nadir; direct indirect; easy difficult; simple complex; near far`)

// opposed reports an antonym, and another word of one kind, in the sentence in
// place of a term that its window lacks.
func (r *reading) opposed(i int, window []float64) (antonym, sibling float64) {
	s := &r.sents[i]
	for t, tm := range r.q.Terms {
		if window[t] > 0 {
			continue
		}
		kind := siblings[tm.Stem]
		for _, id := range s.ids {
			stem := r.stems[id]
			if antonyms[[2]string{tm.Stem, stem}] || negativeOf(tm.Stem, stem) {
				antonym = 1
			}
			if kind > 0 && siblings[stem] == kind && !r.q.Has(stem) {
				sibling = 1
			}
		}
	}
	return antonym, sibling
}

// negativeOf reports that one word is the other with a negative prefix.
func negativeOf(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) < 4 {
		return false
	}
	for _, p := range []string{"un", "in", "im", "ir", "il", "non", "dis", "anti"} {
		if strings.HasPrefix(a, p) && a[len(p):] == b {
			return true
		}
	}
	return false
}
