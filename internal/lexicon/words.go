package lexicon

import (
	"embed"
	"fmt"
	"io/fs"
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
	err := fs.WalkDir(wordFiles, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := wordFiles.ReadFile(path)
		readLists(all, string(text))
		return err
	})
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
	signUnits = [][2]string{
		{"per cent", "%"}, {"degrees Fahrenheit", "fahrenheit"}, {"degrees F", "fahrenheit"}, {"degrees Celsius", "celsius"}, {"degrees C", "celsius"}, {"degrees Kelvin", "kelvin"},
		{"degree Fahrenheit", "fahrenheit"}, {"degree F", "fahrenheit"}, {"degree Celsius", "celsius"}, {"degree C", "celsius"}, {"-per-cent", "%"},
		{"°F", "fahrenheit"}, {"° F", "fahrenheit"}, {"°C", "celsius"}, {"° C", "celsius"}, {"℃", "celsius"}, {"℉", "fahrenheit"}, {"°", "degree"},
		{"%", "%"}, {"％", "%"}, {"‰", "‰"}, {"km/h", "kilometre per hour"}, {"sq mi", "square mile"}, {"sq. mi", "square mile"}, {"sq km", "square kilometre"}, {"sq ft", "square foot"},
	}

	// compound words stand before a unit and make it another one.
	compound = map[string]string{"square": "square ", "sq": "square ", "cubic": "cubic "}

	currencies = map[string]string{"US$": "usd", "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr"}

	scales = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "k": 1e3, "m": 1e6, "bn": 1e9}

	// small are the numbers that are one word.
	small = map[string]float64{
		"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
		"thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
		"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}

	// loosely are words that may stand for a number.
	loosely = map[string]float64{
		"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
		"once": 1, "single": 1, "twice": 2, "both": 2, "pair": 2, "double": 2, "half": 50,
	}
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
