package lexicon

import (
	_ "embed"
	"fmt"
	"strings"
)

// StemSet is the set of the stems of the words of a list.
func StemSet(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[Stem(w)] = true
	}
	return set
}

// Lists are lists of words by their names.
type Lists map[string]string

// ReadLists reads a file of lists: a name, a colon and words, which go on over indented
// lines. A line that begins with # explains.
func ReadLists(file string) Lists {
	lists := Lists{}
	name := ""
	for line := range strings.Lines(file) {
		words := line
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if line[0] != '\t' {
			name, words, _ = strings.Cut(line, ":")
		}
		lists[name] = strings.TrimSpace(lists[name] + " " + strings.TrimSpace(words))
	}
	return lists
}

// Of is the list of a name. It panics where there is none: the file is part of the program.
func (l Lists) Of(name string) string {
	list, ok := l[name]
	if !ok {
		panic(fmt.Sprintf("no list of words is called %q", name))
	}
	return list
}

// Words is the set of the words of a list.
func (l Lists) Words(name string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(l.Of(name)) {
		set[w] = true
	}
	return set
}

// Stems is the set of the stems of the words of a list.
func (l Lists) Stems(name string) map[string]bool { return StemSet(l.Of(name)) }

//go:embed words.txt
var wordsFile string

// What each list holds is said in the file.
var (
	lists = ReadLists(wordsFile)

	stopWords  = lists.Words("stop")
	joining    = lists.Words("joining")
	ending     = lists.Words("ending")
	counting   = lists.Words("counting")
	labels     = lists.Words("labels")
	dangling   = lists.Words("dangling")
	exclaimed  = lists.Words("exclaimed")
	starters   = lists.Words("starters")
	zones      = lists.Words("zones")
	months     = lists.Words("months")
	weekdays   = lists.Words("weekdays")
	connectors = lists.Words("connectors")
	denials    = lists.Words("denials")
	harmless   = lists.Words("harmless")

	// units gives the normalised name of a unit as written. A form with a capital
	// is looked up as it is, others in lower case.
	units = readUnits(lists)

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

// readUnits makes a table of the lists that are called unit.
func readUnits(lists Lists) map[string]string {
	table := make(map[string]string)
	for name, forms := range lists {
		if unit, ok := strings.CutPrefix(name, "unit "); ok {
			for form := range strings.FieldsSeq(forms) {
				table[form] = unit
			}
		}
	}
	return table
}
