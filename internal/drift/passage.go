package drift

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

const (
	// alike is the least share of words that two passages have in common if one is a
	// wording of the other.
	alike = 0.5
	// maxPlaces is at how many places of a page a passage is tried.
	maxPlaces = 8
)

// Quote is what a citation says to stand in its source.
func Quote(c marchwarden.Citation) string {
	return strings.TrimSpace(strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut))
}

// stands reports whether an excerpt stands in a text, as evidence.Locate finds it
// and so that no word and no number goes on beyond its ends: "10" does not stand in
// "100" nor in "10.5". With inside, an end within a word will do.
func stands(text, excerpt string, inside bool) bool {
	for from, tries := 0, 0; tries < maxPlaces; tries++ {
		span, ok := evidence.Locate(text[from:], excerpt)
		if !ok {
			return false
		}
		span.Start, span.End = span.Start+from, span.End+from
		word, number := goesOn(text, span)
		if inside || !word && !number {
			return true
		}
		if word && span.Start > from {
			return false // Locate found no whole words anywhere
		}
		from = span.End
	}
	return false
}

// goesOn reports whether a word, or a number, goes on beyond an end of the span. A point
// or comma between digits belongs to their number.
func goesOn(s string, span marchwarden.Span) (word, number bool) {
	before, first := lastTwo(s[:span.Start]), firstTwo(s[span.Start:span.End])
	last, after := lastTwo(s[span.Start:span.End]), firstTwo(s[span.End:])
	word = wordRune(before[1]) && wordRune(first[0]) || wordRune(last[1]) && wordRune(after[0])
	number = unicode.IsDigit(before[0]) && isMark(before[1]) && unicode.IsDigit(first[0]) ||
		unicode.IsDigit(last[1]) && isMark(after[0]) && unicode.IsDigit(after[1])
	return word, number
}

func isMark(r rune) bool { return r == '.' || r == ',' }

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// lastTwo and firstTwo are the characters at the ends of a text, 0 for none.
func lastTwo(s string) (two [2]rune) {
	for i := 1; i >= 0 && s != ""; i-- {
		r, n := utf8.DecodeLastRuneInString(s)
		two[i], s = r, s[:len(s)-n]
	}
	return two
}

func firstTwo(s string) (two [2]rune) {
	for i := 0; i < 2 && s != ""; i++ {
		r, n := utf8.DecodeRuneInString(s)
		two[i], s = r, s[n:]
	}
	return two
}

// nearest are the sentences of a text that are most like an excerpt, byte for byte; none
// if too little of it is there. They are found by the words in common, wherever they
// stand and in whatever order.
func nearest(text, excerpt string) (string, bool) {
	own, most := StemsOf(excerpt), len(lexicon.Sentences(excerpt))
	least := min(2, max(1, len(own.Words())))
	sentences := lexicon.Sentences(text)
	best, span := 0.0, lexicon.Span{}
	for i, first := range sentences {
		words := StemsOf(text[first.Start:first.End])
		if own.Like(words, least) == 0 {
			continue
		}
		for j := i; j < min(i+most, len(sentences)); j++ {
			words = append(words, StemsOf(text[sentences[j].Start:sentences[j].End])...)
			slices.Sort(words)
			words = slices.Compact(words)
			if like := own.Like(words, least); like > best {
				best, span = like, lexicon.Span{Start: first.Start, End: sentences[j].End}
			}
		}
	}
	return strings.TrimSpace(text[span.Start:span.End]), best >= alike
}

// Op is what happened to words.
type Op string

// The operations.
const (
	Same    Op = "same"
	Removed Op = "removed"
	Added   Op = "added"
)

// Edit is a stretch of words with one thing happened to it.
type Edit struct {
	Op   Op     `json:"op"`
	Text string `json:"text"`
}

// maxCells bounds the work of a diff; what is larger differs as a whole.
const maxCells = 4 << 20

// Diff says how one passage became another, word by word, with as many words kept as
// can be. Words are the same if they fold to the same; white space does not count.
// The edits hold the words of both as they are, one space apart.
func Diff(was, now string) []Edit {
	a, b := strings.Fields(was), strings.Fields(now)
	if len(a)*len(b) > maxCells {
		return []Edit{{Removed, strings.Join(a, " ")}, {Added, strings.Join(b, " ")}}
	}
	fa, fb := folded(a), folded(b)
	// common[i][j] is how many words a[i:] and b[j:] have in common, in order.
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if fa[i] == fb[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var edits []Edit
	add := func(op Op, text string) {
		if last := len(edits) - 1; last >= 0 && edits[last].Op == op {
			edits[last].Text += " " + text
			return
		}
		edits = append(edits, Edit{op, text})
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && fa[i] == fb[j]:
			add(Same, b[j])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			add(Removed, a[i])
			i++
		default:
			add(Added, b[j])
			j++
		}
	}
	return edits
}

func folded(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = evidence.Fold(w)
	}
	return out
}

// Stems are the words that say what a text is about, and its numbers, in order and each once.
type Stems []string

// StemsOf are those of a text.
func StemsOf(text string) Stems {
	var stems Stems
	for _, t := range lexicon.Tokens(text) {
		if !t.Stop {
			stems = append(stems, t.Stem)
		}
	}
	slices.Sort(stems)
	return slices.Compact(stems)
}

// Words are those without the numbers, which are what a text says about what it is about.
func (a Stems) Words() Stems {
	return slices.DeleteFunc(slices.Clone(a), func(stem string) bool { return unicode.IsDigit(firstTwo(stem)[0]) })
}

// Like is the share of stems that two texts have in common, 0 for fewer than least.
func (a Stems) Like(b Stems, least int) float64 {
	shared := 0
	for _, stem := range a {
		if _, ok := slices.BinarySearch(b, stem); ok {
			shared++
		}
	}
	if shared < least {
		return 0
	}
	return 2 * float64(shared) / float64(len(a)+len(b))
}
