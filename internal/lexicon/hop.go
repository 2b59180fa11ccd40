package lexicon

// This part follows a question from one text to the next where no single text answers
// it. "In what county is the city where Harris W. Fawell was born?" needs a text on the
// man, which names the city, and then one on the city, which has hardly a word of the
// question. It finds the names that lead on, the query each of them is worth and how well
// another text takes one up, and puts a name into the question in the place of what it
// describes. It runs no search, reads no document and judges no answer.

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a lead is worth: what the sentence it stands in holds of the question, what
// its whole text does, and a little for standing early in it.
const (
	ownWeight  = 0.7
	textWeight = 0.5
	laterLoss  = 0.02
)

// What an offer gains that takes up a lead: for having the name at all, for being
// called by it, and for what it adds of the question to the text that led to it.
const (
	hopNamed  = 1.0
	hopTitled = 1.0
	hopAdds   = 3.0
)

// How much a text counts that is not about something the question names: one that a
// lead led to, of what that came from, and any other; and which share of a title must be
// called by a lead. A name that stands everywhere keeps this much of its weight.
const (
	onward     = 0.9
	aside      = 0.5
	mostly     = 0.6
	commonName = 0.3
)

// HopText is a stretch of something that was read, such as a passage.
type HopText struct {
	Source    string // what it stands in; a lead does not lead back there
	Title     string
	Sentences []string
}

// Lead is a name in a text that was read, worth a query of its own.
type Lead struct {
	Name   string
	Query  string // the name, and what its text lacks of the question
	Source string // of the text it was met in
	Weight float64

	stems []string
	run   string
	rest  []int // terms of the question that its text lacks
}

// Offer is a text as far as it is known before it is read.
type Offer struct {
	Source string
	Share  float64 // of the question that its title and snippet show, 0 to 1
	// Titled says that all words of its title stand in the question: it is about
	// something that the question names.
	Titled bool

	title []string
	run   string // its stems in order, between spaces
	holds []bool
}

// MultiHop is a question on its way through texts. It is not safe for concurrent use.
type MultiHop struct {
	q      *Question
	rarity []float64 // of each term
	total  float64
	shown  []map[string]bool // stems of what is known of the world
	small  map[string]bool   // words that stand there in small letters, and so are no names
}

// NewMultiHop begins a trail. Shown is what is known of the world that the question is
// asked in, such as titles and snippets of all hits so far: a word that stands
// everywhere in it says little.
func NewMultiHop(q *Question, shown []string) *MultiHop {
	t := &MultiHop{q: q, rarity: make([]float64, len(q.Terms)), small: map[string]bool{}}
	in := make([]float64, len(q.Terms))
	for _, s := range shown {
		held := TermSet(s)
		t.shown = append(t.shown, held)
		for w := range strings.FieldsSeq(s) {
			if r, _ := utf8.DecodeRuneInString(w); unicode.IsLower(r) {
				t.small[strings.TrimRight(w, ".,;:!?)\"'")] = true
			}
		}
		for i, tm := range q.Terms {
			if held[tm.Stem] {
				in[i]++
			}
		}
	}
	n := float64(len(shown))
	for i, tm := range q.Terms {
		t.rarity[i] = tm.Weight * math.Log(1+(n-in[i]+0.5)/(in[i]+0.5))
		t.total += t.rarity[i]
	}
	return t
}

// Offer weighs a text by its title and what is shown of it.
func (t *MultiHop) Offer(source, title, snippet string) Offer {
	whole := title + " \n" + snippet
	o := Offer{Source: source, title: Terms(bare(title)), run: " " + strings.Join(Terms(whole), " ") + " "}
	o.holds = t.holds(TermSet(whole))
	o.Share = t.share(o.holds)
	o.Titled = len(o.title) > 0 && !slices.ContainsFunc(o.title, func(s string) bool { return !t.q.Has(s) })
	return o
}

// Link is how well an offer takes up the best of the leads, and which one that
// is; 0 and nil where it has the name of none.
func (t *MultiHop) Link(o Offer, leads []Lead) (float64, *Lead) {
	best, by := 0.0, (*Lead)(nil)
	for i := range leads {
		l := &leads[i]
		if l.Source == o.Source || !strings.Contains(o.run, l.run) {
			continue
		}
		v := hopNamed + hopTitled*t.called(o.title, l.stems)
		gain := 0.0
		for _, k := range l.rest {
			if o.holds[k] {
				gain += t.rarity[k]
			}
		}
		v += hopAdds * gain / max(t.total, 1e-9)
		if v *= l.Weight; v > best {
			best, by = v, l
		}
	}
	return best, by
}

// called is how far a title is the name of a lead, together with words of the question:
// 1 for "Boston", and for "Wilmington International Airport" where the airport of
// Wilmington is asked for, less where other words stand in it; 0 without the name.
func (t *MultiHop) called(title, lead []string) float64 {
	if slices.ContainsFunc(lead, func(s string) bool { return !slices.Contains(title, s) }) {
		return 0
	}
	n := 0.0
	for _, s := range title {
		if slices.Contains(lead, s) || t.q.Has(s) {
			n++
		}
	}
	return n / float64(max(1, len(title)))
}

// rare is how much a name tells things apart, 0 to 1: one that stands in every text
// that was shown leads anywhere.
func (t *MultiHop) rare(stems []string) float64 {
	n, in := float64(len(t.shown)), 0.0
	for _, held := range t.shown {
		if !slices.ContainsFunc(stems, func(s string) bool { return !held[s] }) {
			in++
		}
	}
	return math.Log(1+(n-in+0.5)/(in+0.5)) / math.Log(1+(n+0.5)/0.5)
}

// Leads finds the names in texts that the question does not have, best first. The
// title of a text is one where the question describes its subject without naming it.
// What stands in texts about something that the question names counts most, then what
// these lead to; a text that merely has words of the question may be about anything.
func (t *MultiHop) Leads(read []HopText) []Lead {
	list := t.leads(read)
	trust := t.trust(read, list)
	for i := range list {
		l := &list[i]
		l.Weight *= trust[l.Source] * (commonName + (1-commonName)*t.rare(l.stems))
	}
	slices.SortStableFunc(list, func(a, b Lead) int { return cmp.Compare(b.Weight, a.Weight) })
	return list
}

// trust is how much a text is on the way, by source.
func (t *MultiHop) trust(read []HopText, leads []Lead) map[string]float64 {
	out := map[string]float64{}
	for _, text := range read {
		if t.aboutNamed(text.Title) {
			out[text.Source] = 1
		}
	}
	if len(out) == 0 {
		for _, text := range read {
			out[text.Source] = 1
		}
		return out
	}
	for range read { // as many steps as there can be
		grown := false
		for _, text := range read {
			title := Terms(bare(text.Title))
			for _, l := range leads {
				if v := onward * out[l.Source]; l.Source != text.Source && v > out[text.Source] && t.called(title, l.stems) >= mostly {
					out[text.Source] = v
					grown = true
				}
			}
		}
		if !grown {
			break
		}
	}
	for _, text := range read {
		out[text.Source] = max(out[text.Source], aside)
	}
	return out
}

// aboutNamed reports whether all words of a title stand in the question, and one of
// them in a name.
func (t *MultiHop) aboutNamed(title string) bool {
	stems := Terms(bare(title))
	return len(stems) > 0 && !slices.ContainsFunc(stems, func(s string) bool { return !t.q.Has(s) }) &&
		slices.ContainsFunc(t.q.Terms, func(tm Term) bool { return tm.Name && slices.Contains(stems, tm.Stem) })
}

func (t *MultiHop) leads(read []HopText) []Lead {
	var out []Lead
	seen := map[[2]string]bool{}
	for _, text := range read {
		whole := strings.Join(text.Sentences, " ")
		held := t.holds(TermSet(text.Title + " \n" + whole))
		share := t.share(held)
		var rest []int
		for i, h := range held {
			if !h {
				rest = append(rest, i)
			}
		}
		add := func(name string, weight float64) {
			if key := [2]string{text.Source, name}; !seen[key] && t.leadsOn(name) {
				seen[key] = true
				out = append(out, Lead{Name: name, Query: t.query(name, rest), Source: text.Source, Weight: weight, stems: Terms(name), run: " " + strings.Join(Terms(name), " ") + " ", rest: rest})
			}
		}
		add(bare(text.Title), share)
		names := Names(whole)
		for i, s := range text.Sentences {
			own := t.share(t.holds(TermSet(s + " \n" + text.Title)))
			for _, n := range names {
				if strings.Contains(s, n) {
					add(n, ownWeight*own+textWeight*share-laterLoss*float64(i))
				}
			}
		}
	}
	return out
}

// leadsOn reports a name with a word that the question lacks.
func (t *MultiHop) leadsOn(name string) bool {
	return len(name) > 2 && !t.small[strings.ToLower(name)] && slices.ContainsFunc(Terms(name), func(s string) bool {
		return !t.q.Has(s) && !timeWords[s] && !noNames[s]
	})
}

// query is a name with the words of the question that are still to be found,
// except those that only ask.
func (t *MultiHop) query(name string, rest []int) string {
	words := []string{name}
	for _, i := range rest {
		if tm := t.q.Terms[i]; !Light(tm.Stem) {
			words = append(words, tm.Text)
		}
	}
	return strings.Join(words, " ")
}

// holds says of each term whether one of the stems stands for it.
func (t *MultiHop) holds(stems map[string]bool) []bool {
	out := make([]bool, len(t.q.Terms))
	for i, tm := range t.q.Terms {
		for stem := range stems {
			out[i] = out[i] || Alike(tm, stem) > 0
		}
	}
	return out
}

func (t *MultiHop) share(holds []bool) float64 {
	sum := 0.0
	for i, h := range holds {
		if h {
			sum += t.rarity[i]
		}
	}
	return sum / max(t.total, 1e-9)
}

// bare is a title without what is added in brackets to tell it from others:
// "Brand (play)".
func bare(title string) string {
	if i := strings.Index(title, " ("); i > 0 {
		return title[:i]
	}
	return title
}

// What a word costs that neither text tells, within what is described.
const untold = -0.03

// nounReach is how many words before a name its noun may stand: "the town in which she".
const nounReach = 6

// PutName asks on with a name in the place of the words that describe it: "When was the
// company founded that owns Novair?" becomes "When was Rank founded?". Tells is how much
// of the question hangs on a stem that the text with the name has and the next lacks,
// less than 0 the other way round. It returns the words, and the question without them;
// nothing where no words describe the name.
func PutName(text, name string, tells func(stem string) float64) (described, asked string) {
	toks := Tokens(text)
	from, to, best := 0, -1, 0.0
	for i, tok := range toks {
		if !isArticle(tok) && (tok.Stop || tok.Text == strings.ToLower(tok.Text)) {
			continue // what is described begins with an article or a name
		}
		sum := 0.0
		for j := i; j < len(toks); j++ {
			v := tells(toks[j].Stem)
			if v == 0 {
				v = untold
			}
			if sum += v; sum > best && v > 0 {
				from, to, best = i, j, sum
			}
		}
	}
	if to < 0 {
		return "", ""
	}
	from, to = widen(text, toks, from, to)
	start, end := toks[from].Start, toks[to].End
	return text[start:end], text[:start] + name + text[end:]
}

func isArticle(t Token) bool { return articles[strings.ToLower(t.Text)] }

// widen takes in the noun that a description belongs to, and the end of its clause.
func widen(text string, toks []Token, from, to int) (int, int) {
	low := func(i int) string { return strings.ToLower(toks[i].Text) }
	if from > 0 && !isArticle(toks[from]) && isArticle(toks[from-1]) {
		from--
	}
	clause := isArticle(toks[from]) && from < to && !toks[from+1].Capital // the noun is there
	joined := false
	for k := from - 1; !clause && k > 0 && k >= from-nounReach; k-- {
		if n := from - k - 1; isArticle(toks[k]) {
			if clause = joined && n > 1 || !joined && (n == 1 || n == 2) && !toks[from-1].Stop; clause {
				from = k
			}
			break
		}
		joined = joined || joints[low(k)]
	}
	if owns := strings.HasPrefix(text[toks[to].End:], "'s ") || strings.HasPrefix(text[toks[to].End:], "’s "); owns {
		for to+1 < len(toks) && (!toks[to+1].Stop || low(to+1) == "of") {
			to++
		}
	} else if clause {
		for to+1 < len(toks) && !isArticle(toks[to+1]) && (toks[to+1].Stop || clauseEnds[low(to+1)]) {
			to++
		}
	}
	return from, to
}
