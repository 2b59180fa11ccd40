package lexicon

import (
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The files of words hold lists by their names: a name, a colon and words, which go on
// over indented lines. A line that begins with # explains.
//
//go:embed words/*.txt
var wordFiles embed.FS

// lists are those of all files. The files are part of the program: one that cannot be
// read, or a name that stands twice, is a panic.
var lists = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	files, err := wordFiles.ReadDir("words")
	for _, f := range files {
		text, failed := wordFiles.ReadFile("words/" + f.Name())
		err = errors.Join(err, failed)
		readLists(all, string(text))
	}
	if err != nil {
		panic(err)
	}
	return all
})

func readLists(into map[string]string, text string) {
	name := ""
	for line := range strings.Lines(text) {
		words := line
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if line[0] != '\t' {
			name, words, _ = strings.Cut(line, ":")
			if _, twice := into[name]; twice {
				panic(fmt.Sprintf("two lists of words are called %q", name))
			}
		}
		into[name] = strings.TrimSpace(into[name] + " " + strings.TrimSpace(words))
	}
}

// WordList is the list of a name. It panics where there is none.
func WordList(name string) string {
	list, ok := lists()[name]
	if !ok {
		panic(fmt.Sprintf("no list of words is called %q", name))
	}
	return list
}

// WordSet is the set of the words of some lists.
func WordSet(names ...string) map[string]bool {
	set := make(map[string]bool)
	for _, name := range names {
		for w := range strings.FieldsSeq(WordList(name)) {
			set[w] = true
		}
	}
	return set
}

// StemSet is the set of the stems of the words of some lists.
func StemSet(names ...string) map[string]bool {
	set := make(map[string]bool)
	for w := range WordSet(names...) {
		set[Stem(w)] = true
	}
	return set
}

// What each list holds is said in the files.
var (
	stopWords  = WordSet("stop")
	joining    = WordSet("joining")
	ending     = WordSet("ending")
	counting   = WordSet("counting")
	labels     = WordSet("labels")
	dangling   = WordSet("dangling")
	exclaimed  = WordSet("exclaimed")
	starters   = WordSet("starters")
	zones      = WordSet("zones")
	months     = WordSet("months", "short months")
	weekdays   = WordSet("weekdays")
	connectors = WordSet("connectors")
	denials    = WordSet("denials")
	refusals   = StemSet("refusals")
	harmless   = WordSet("mere denials")

	lightWords   = StemSet("light")
	vagueWords   = StemSet("vague")
	aliases      = stemPairs(WordList("aliases"))
	degreeWord   = WordSet("degree")
	questionWord = WordSet("question")
	yesOrNo      = WordSet("yes or no")
	pronouns     = WordSet("pronouns")
	timeWords    = StemSet("months", "spans of time")
	noNames      = StemSet("scales", "weekdays")
	articles     = WordSet("articles")
	joints       = WordSet("joints")
	clauseEnds   = WordSet("clause ends")

	// units gives the normalised name of a unit as written. A form with a capital
	// is looked up as it is, others in lower case.
	units = readUnits()

	// signUnits are the units that are no words, or two, longest first.
	signUnits = pairs("signs of units")

	// compound words stand before a unit and make it another one.
	compound   = map[string]string{"square": "square ", "sq": "square ", "cubic": "cubic "}
	currencies = map[string]string{"US$": "usd", "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}

	scales  = numbers("scale numbers")
	small   = numbers("small numbers") // those that are one word
	loosely = numbers("loose numbers") // words that may stand for a number
)

func readUnits() map[string]string {
	table := make(map[string]string)
	for name, forms := range lists() {
		if unit, ok := strings.CutPrefix(name, "unit "); ok {
			for form := range strings.FieldsSeq(forms) {
				table[form] = unit
			}
		}
	}
	return table
}

// stemPairs is the set of pairs of stems, either way round, of a list such as
// "high low; rise fall".
func stemPairs(list string) map[[2]string]bool {
	set := map[[2]string]bool{}
	for pair := range strings.SplitSeq(list, ";") {
		a, b, _ := strings.Cut(strings.TrimSpace(pair), " ")
		sa, sb := Stem(a), Stem(b)
		set[[2]string{sa, sb}], set[[2]string{sb, sa}] = true, true
	}
	return set
}

// pairs are those of a list such as "per cent = %; mph = mile per hour".
func pairs(name string) [][2]string {
	var all [][2]string
	for pair := range strings.SplitSeq(WordList(name), ";") {
		a, b, _ := strings.Cut(pair, "=")
		all = append(all, [2]string{strings.TrimSpace(a), strings.TrimSpace(b)})
	}
	return all
}

func numbers(name string) map[string]float64 {
	table := map[string]float64{}
	for _, p := range pairs(name) {
		table[p[0]], _ = strconv.ParseFloat(p[1], 64) // tested
	}
	return table
}
