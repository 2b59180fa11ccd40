package question

import (
	"regexp"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// lightWords are words that questions use to ask rather than to say what they
// are about. A source that answers need not repeat them.
var lightWords = StemSet(`name names named type types kind kinds sort form forms way ways thing things term terms word words
	call called known use used uses using happen happened happens occur occurred take took taken make made makes
	main major important example examples number amount many much give given gave get gets got become became
	year years date time times day people person group groups place part parts following include includes included
	describe described explain mean means meaning refer referred refers consider considered believe believed
	think thought say said tell show find found say claim come came go went want need did
	different other another certain particular specific reason reasons cause purpose result role idea
	list overview summary comprehensive brief compare comparison difference differences versus`)

// aliases are pairs of stems that name the same thing often enough for a
// sentence with one to answer a question with the other.
var aliases = StemPairs(`found establish; found create; start begin; start commence; begin origin; die death; born birth; country nation;
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

// inForce is the phrase "come into force", of which the last word alone says little;
// forceWords are the other words for it.
var (
	inForce    = regexp.MustCompile(`(?i)\b(?:tak(?:e|es|en|ing)|took|com(?:e|es|ing)|came|go(?:es|ing)?|went|put|brought|enter(?:s|ed|ing)?)\s+(?:into\s+)?(effect|force)\b`)
	forceWords = lexicon.Terms("effect force apply application")
)

// vagueWords are the words an overview is asked for with.
var vagueWords = StemSet(`ideal best history overview comprehensive summary guide introduction advice tips options benefits advantages
	disadvantages risks effects impact pros cons factors considerations trends state landscape survey strategies`)

// StemSet is the set of the stems of words that are parted by spaces.
func StemSet(words string) map[string]bool { return lexicon.StemSet(words) }

// StemPairs is the set of pairs of stems, either way round, of a list such as
// "high low; rise fall".
func StemPairs(list string) map[[2]string]bool {
	set := map[[2]string]bool{}
	for pair := range strings.SplitSeq(list, ";") {
		a, b, _ := strings.Cut(strings.TrimSpace(pair), " ")
		sa, sb := lexicon.Stem(a), lexicon.Stem(b)
		set[[2]string{sa, sb}], set[[2]string{sb, sa}] = true, true
	}
	return set
}

// degreeWord follows "how" and asks for a number.
var degreeWord = lexicon.WordSet("many much long far tall high old big large fast deep wide heavy often hot cold late early soon small close strong")

var questionWord = lexicon.WordSet("who whom whose when where why how what which")

// monthWords are words for a part of the year, or for a stretch of years.
var monthWords = StemSet("january february march april may june july august september october november december century spring summer autumn winter decade")

// Alike is how well a word of a source stands for a term: 1 for the same stem,
// less for a known alias and for a word of the same family (conquer, conquest).
func Alike(t Term, stem string) float64 {
	switch {
	case t.Stem == stem:
		return 1
	case t.Number:
		return 0
	case aliases[[2]string{t.Stem, stem}], slices.Contains(t.Also, stem), t.Name && misspelt(t.Stem, stem):
		return 0.75
	case sameFamily(t.Stem, stem):
		return 0.7
	}
	return 0
}

// sameFamily compares beginnings: most of the shorter word, and at least five
// letters of it, begin both.
func sameFamily(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 5 || len(b)-len(a) > 4 {
		return false
	}
	n := 0
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n >= 5 && len(a)-n <= 1 && len(b)-n <= 4
}

// misspelt reports that two long words differ by one letter: left out, put in,
// another (also one with an accent), or two in the wrong order.
func misspelt(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 6 || len(y)-len(x) > 1 || x[0] != y[0] {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if i == len(x) || slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// Light reports the stem of a word that questions use to ask rather than to say
// what they are about.
func Light(stem string) bool { return lightWords[stem] }

// Vague reports the stem of a word that asks for an overview.
func Vague(stem string) bool { return vagueWords[stem] }

// Months reports the stem of a word for a part of the year or a stretch of years.
func Months(stem string) bool { return monthWords[stem] }
