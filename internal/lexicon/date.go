package lexicon

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

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
