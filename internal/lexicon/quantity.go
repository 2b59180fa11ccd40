package lexicon

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Quantity is a number with its unit as a text states it.
type Quantity struct {
	Value float64 // with "thousand", "million" and so on multiplied in
	// Unit is the normalised unit, in the singular: "%", "day", "foot", "usd". A
	// length of time in years is "years", whereas "year" is a date: a bare number
	// from 1000 to 2100 of four digits. "date" is a day of a month, "decade" is
	// "1990s", "ordinal" is "5th", "time" is "5:30". A number without a unit has
	// "".
	Unit       string
	Text       string // text[Start:End]
	Start, End int
}

// Quantities returns the quantities of s in order. A number written as a word
// counts only before a unit ("two weeks"); of a range ("60 to 80 days") both ends
// are returned, with the unit. Figures that are part of a name ("COVID-19",
// "v1.2.3") are left out.
func Quantities(s string) []Quantity {
	p := quantityParser{s: s, tokens: Tokens(s), words: make(map[int]Number)}
	for _, n := range Spelled(s) {
		if !n.Loose {
			p.words[n.Start] = n
		}
	}
	var qs []Quantity
	for p.i < len(p.tokens) {
		p.scaled = 1
		q, ok := p.next()
		if !ok {
			continue
		}
		if n := len(qs); n > 0 && q.Start-qs[n-1].End <= longestRange && rangeFollows(s, qs[n-1]) {
			qs[n-1].inherit(q, p.scaled)
		}
		qs = append(qs, q)
	}
	return qs
}

// inherit gives the first end of a range the unit of the second, and its
// multiplier if it stated none.
func (q *Quantity) inherit(to Quantity, scale float64) {
	if to.Unit == "" || to.Unit == "year" || q.Unit != "" && q.Unit != "year" && q.Unit != to.Unit {
		return
	}
	q.Unit = to.Unit
	if q.Value < 1000 {
		q.Value *= scale
	}
}

// longestRange is how many bytes may stand between the two ends of a range.
const longestRange = 8

// rangeMark stands between the two ends of a range; "and" does so after "between".
var rangeMark = regexp.MustCompile(`^ *(?:to |or |[–—-]|(and ))[ $€£¥]*(?:\d|[ -]*(\pL+))`)

// rangeFollows reports whether q is the first end of a range.
func rangeFollows(s string, q Quantity) bool {
	m := rangeMark.FindStringSubmatch(s[q.End:])
	return m != nil && (m[1] == "" || strings.HasSuffix(strings.TrimRight(s[:q.Start], " "), "etween")) &&
		(m[2] == "" || small[strings.ToLower(m[2])] > 0)
}

// quantityParser reads the tokens of a text as quantities.
type quantityParser struct {
	s      string
	tokens []Token
	i      int
	scaled float64 // the multiplier of the quantity just read
	words  map[int]Number
}

// What may stand right before a number, and right after it.
var (
	glued     = regexp.MustCompile(`(?:\pL[-/.=]|[_#@])$`)  // the number is part of a name or a path
	minus     = regexp.MustCompile(`(?:^|[\s\pZ(])([-−])$`) // and no hyphen or range
	currency  = regexp.MustCompile(`(?:US\$|[$€£¥₹])$`)
	clockRest = regexp.MustCompile(`^:(\d\d)(?:\D|$)`)
	isoRest   = regexp.MustCompile(`^-\d\d-\d\d`)
	letters   = regexp.MustCompile(`[^\d.,].*$`)
	inches    = regexp.MustCompile(`^(?:[.,;)]|$)`) // "in" is the unit, not the preposition
	nextWord  = regexp.MustCompile(`^[ -]*\x{a0}?([\pL²³]*)`)
)

// upTo is the end of s[:i], long enough for what may stand before a number.
func upTo(s string, i int) string { return s[max(0, i-8):i] }

// next reads one token, and more if it begins a quantity. A date such as "2026-11-15"
// is read as its year.
func (p *quantityParser) next() (Quantity, bool) {
	t := p.tokens[p.i]
	p.i++
	if !t.Number {
		return p.spelled(t)
	}
	before, rest := upTo(p.s, t.Start), p.s[t.End:]
	suffix := letters.FindString(t.Text)
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(t.Text, suffix), ",", ""), 64)
	if err != nil || glued.MatchString(before) {
		return Quantity{}, false
	}
	q := Quantity{Value: v, Start: t.Start, End: t.End}
	if m := clockRest.FindStringSubmatch(rest); m != nil && v <= 24 {
		minutes, _ := strconv.ParseFloat(m[1], 64)
		q.Value, q.Unit, q.End = v+minutes/60, "time", t.End+3
		return p.done(q), true
	}
	if len(t.Text) == 4 && isoRest.MatchString(rest) {
		q.Unit, q.End = "year", t.End+6
		return p.done(q), true
	}
	if m := minus.FindStringSubmatch(before); m != nil {
		q.Value, q.Start = -v, t.Start-len(m[1])
	}
	if !p.suffix(&q, suffix) {
		return Quantity{}, false
	}
	return p.done(q), true
}

// done fills in the text and passes over the tokens it covers.
func (p *quantityParser) done(q Quantity) Quantity {
	q.Text = p.s[q.Start:q.End]
	for p.i < len(p.tokens) && p.tokens[p.i].Start < q.End {
		p.i++
	}
	return q
}

// suffix reads what follows the digits of a number, inside its token and after
// it. It is false if the token is a name after all ("3D").
func (p *quantityParser) suffix(q *Quantity, suffix string) bool {
	switch low := strings.ToLower(suffix); {
	case low == "":
		p.scaleAndUnit(q)
	case low == "s" && q.Value >= 100 && q.Value == float64(int(q.Value/10)*10):
		q.Unit = "decade"
	case low == "st" || low == "nd" || low == "rd" || low == "th":
		q.Unit = "ordinal"
	case low == "k" || low == "bn" || low == "m" && currency.MatchString(upTo(p.s, q.Start)):
		q.Value *= scales[low]
		p.scaled = scales[low]
		p.scaleAndUnit(q)
	case units[suffix] != "" || units[low] != "":
		q.Unit = cmp.Or(units[suffix], units[low])
	default:
		return false
	}
	return true
}

// scaleAndUnit reads "million", "%", "feet" and the like after a number, and a
// sign of currency before it.
func (p *quantityParser) scaleAndUnit(q *Quantity) {
	bare := true
	if word, end := wordAfter(p.s, q.End); len(word) > 2 && scales[strings.ToLower(word)] > 0 {
		p.scaled = scales[strings.ToLower(word)]
		q.Value *= p.scaled
		q.End = end
		bare = false
	}
	if sign := currency.FindString(upTo(p.s, q.Start)); sign != "" {
		q.Unit = currencies[sign]
		q.Start -= len(sign)
		return
	}
	if unit, end := p.unit(q.End); unit != "" {
		q.Unit, q.End = unit, end
		return
	}
	if bare && p.dayOfMonth(q) {
		q.Unit = "date"
		return
	}
	if digits := p.s[q.Start:q.End]; bare && len(digits) == 4 && q.Value >= 1000 && q.Value <= 2100 && strings.Trim(digits, "0123456789") == "" {
		q.Unit = "year"
	}
}

// unit reads a unit at i: "%", "°F", "square miles", "degrees Fahrenheit".
func (p *quantityParser) unit(i int) (string, int) {
	rest := strings.TrimLeft(p.s[i:], " \u00a0")
	at := len(p.s) - len(rest)
	for _, sign := range signUnits {
		if strings.HasPrefix(rest, sign[0]) && !wordAt(p.s, at+len(sign[0])) {
			return sign[1], at + len(sign[0])
		}
	}
	word, end := wordAfter(p.s, i)
	low := strings.ToLower(word)
	if prefix := compound[low]; prefix != "" {
		next, e := wordAfter(p.s, end)
		if unit := units[strings.ToLower(next)]; unit != "" {
			return prefix + unit, e
		}
	}
	if unit := cmp.Or(units[word], units[low]); unit != "" && (low != "in" || inches.MatchString(p.s[end:])) {
		return unit, end
	}
	return "", i
}

func (p *quantityParser) dayOfMonth(q *Quantity) bool {
	if q.Value < 1 || q.Value > 31 || q.End-q.Start > 2 {
		return false
	}
	after, _ := wordAfter(p.s, q.End)
	before := strings.TrimRight(p.s[:q.Start], " .")
	c := cutter{s: before}
	return months[after] || months[c.before(len(before))]
}

// spelled reads a number in words: "two weeks", "twenty-five percent". Without a
// multiplier or a unit it is none.
func (p *quantityParser) spelled(t Token) (Quantity, bool) {
	n, ok := p.words[t.Start]
	if !ok || small[strings.ToLower(t.Text)] == 0 {
		return Quantity{}, false
	}
	q := Quantity{Value: n.Value, Start: n.Start, End: n.End}
	if n.Last >= 100 {
		p.scaled = n.Last
	}
	p.scaleAndUnit(&q)
	if q.End == n.End && q.Unit == "" && n.Last < 100 && !rangeFollows(p.s, q) {
		return Quantity{}, false
	}
	return p.done(q), true
}

// wordAfter returns the word after i, past a space or hyphen, and its end.
func wordAfter(s string, i int) (string, int) {
	m := nextWord.FindStringSubmatchIndex(s[i:])
	return s[i+m[2] : i+m[3]], i + m[3]
}

// Number is a number in words. Last is what its last word says by itself; a loose one
// may be no number at all: "a second look".
type Number struct {
	Value, Last float64
	Span
	Loose bool
}

// Spelled returns the numbers that s writes as words, with a unit or without: "twelve",
// "twenty-one", "third", "two hundred", "a dozen", "twice". Half is 50, as a percentage.
func Spelled(s string) []Number {
	var out []Number
	for t := range eachToken(s) {
		w := strings.ToLower(t.Text)
		var before *Number // the number that this one continues
		if n := len(out); n > 0 && t.Start == out[n-1].End+1 && !out[n-1].Loose {
			before = &out[n-1]
		}
		one, scale, loose := small[w], scales[w], loosely[w]
		if w == "dozen" {
			scale = 12
		} else if len(w) <= 2 {
			scale = 0
		}
		ten := before != nil && before.Value >= 20 && before.Value < 100 && before.Last == before.Value
		switch {
		case before != nil && scale > 0:
			*before = Number{before.Value * scale, scale, Span{before.Start, t.End}, false}
		case ten && one > 0 && one < 10:
			*before = Number{before.Value + one, one, Span{before.Start, t.End}, false}
		case one+scale > 0:
			out = append(out, Number{one + scale, one + scale, Span{t.Start, t.End}, false})
		case loose > 0 && ten && loose < 10: // twenty-second
			out = append(out, Number{before.Value + loose, loose, Span{t.Start, t.End}, true})
		case loose > 0:
			out = append(out, Number{loose, loose, Span{t.Start, t.End}, true})
		}
	}
	return out
}

// Counted is a number of things in words: "1 name", "3 names".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Date is a day, a month or a year as a text names it. What the text leaves out is
// zero: "March 2024" has no day, "3 March" no year.
type Date struct{ Year, Month, Day int }

// String is the date as 2006-01-02, with zeros for what is missing.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// Fits reports whether two dates agree in every part that both name.
func (d Date) Fits(o Date) bool {
	same := func(a, b int) bool { return a == 0 || b == 0 || a == b }
	return same(d.Year, o.Year) && same(d.Month, o.Month) && same(d.Day, o.Day)
}

var monthNames = `(?i:(` + strings.ReplaceAll(WordList("months")+" "+WordList("short months"), " ", "|") + `)\b\.?)`

// dateForms are the ways in which dates are written.
var dateForms = []struct {
	form  *regexp.Regexp
	parts string // y, m, d: figures; M: the name of a month; in the order of the groups
}{
	{regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})`), "ymd"},
	{regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthNames + `,? (\d{4})\b`), "dMy"},
	{regexp.MustCompile(`\b` + monthNames + ` (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})\b`), "Mdy"},
	{regexp.MustCompile(`\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b`), "dmy"},
	{regexp.MustCompile(`\b(\d{4})-(\d{2})\b`), "ym"},
	{regexp.MustCompile(`\b` + monthNames + `,? (\d{4})\b`), "My"},
	{regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthNames), "dM"},
	{regexp.MustCompile(`\b` + monthNames + ` (\d{1,2})(?:st|nd|rd|th)?\b`), "Md"},
	{regexp.MustCompile(`\b((?:19|20)\d{2})\b`), "y"},
}

// FirstDate is the date that stands first in s, and where. Of two that begin at the
// same place the fuller one counts.
func FirstDate(s string) (Date, Span, bool) {
	var best Date
	at := Span{len(s), len(s)}
	for _, f := range dateForms {
		m := f.form.FindStringSubmatchIndex(s)
		if m == nil || m[0] >= at.Start {
			continue
		}
		if d, ok := dateOf(s, m, f.parts); ok {
			best, at = d, Span{m[0], m[1]}
		}
	}
	return best, at, best != Date{}
}

func dateOf(s string, m []int, parts string) (Date, bool) {
	var d Date
	for i, part := range []byte(parts) {
		text := s[m[2*i+2]:m[2*i+3]]
		n, _ := strconv.Atoi(text)
		switch part {
		case 'y':
			d.Year = n
		case 'm':
			d.Month = n
		case 'd':
			d.Day = n
		case 'M':
			d.Month = strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(text[:3]))/3 + 1
		}
	}
	if d.Month > 12 && d.Day <= 12 { // 3/25/2024 has the month first
		d.Month, d.Day = d.Day, d.Month
	}
	return d, d.Month <= 12 && d.Day <= 31 && (d.Year == 0 || d.Year >= 1000)
}
