package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	ones     = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty")
	calendar = strings.Fields("January February March April May June July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
)

// count is a number of one word or of digits, or 0.
func count(s string) int {
	if strings.EqualFold(s, "a") {
		return 1
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return max(0, slices.Index(ones, strings.ToLower(s)))
}

// long is the name of a month or of a day of the week in full.
func long(short string) string {
	for _, name := range calendar {
		if strings.HasPrefix(name, short) {
			return name
		}
	}
	return short
}

// sayings are other ways to write numbers, times and dates, and how they become the plain
// one. What a function does not know it gives back as "".
var sayings = []struct {
	is    *regexp.Regexp
	plain func(g []string) string
}{
	{regexp.MustCompile(`\b(\d{4})-(\d\d)-(\d\d)\b`), func(g []string) string {
		if m := count(g[2]); m >= 1 && m <= 12 {
			return fmt.Sprintf("%d %s %s", count(g[3]), calendar[m-1], g[1])
		}
		return ""
	}},
	{regexp.MustCompile(`\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\b\.?(,? ?[\d–-])`), func(g []string) string { return long(g[1]) + g[2] }},
	{regexp.MustCompile(`\b(\d{1,2}) (Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b`), func(g []string) string { return g[1] + " " + long(g[2]) }},
	{regexp.MustCompile(`(?i)\b(\d{1,2})(?:[.:](\d\d))? ?([ap])\.?m\b`), func(g []string) string {
		h := count(g[1]) % 12
		if g[3] == "p" || g[3] == "P" {
			h += 12
		}
		return fmt.Sprintf("%d:%02d", h, count(g[2]))
	}},
	{regexp.MustCompile(`(?i)\b(half|(?:a )?quarter) (past|to) (\w+)\b`), func(g []string) string {
		h, m := count(g[3]), 30
		if !strings.EqualFold(g[1], "half") {
			m = 15
		}
		if h < 1 || h > 24 {
			return ""
		}
		if strings.EqualFold(g[2], "to") {
			h, m = h-1, 60-m
		}
		return fmt.Sprintf("%d:%02d", h, m)
	}},
	{regexp.MustCompile(`([£€$])(\d[\d,.]*\d|\d)`), func(g []string) string {
		return g[2] + map[string]string{"£": " pounds", "€": " euros", "$": " dollars"}[g[1]]
	}},
	{regexp.MustCompile(`(\d) ?°C\b`), func(g []string) string { return g[1] + " degrees Celsius" }},
	{regexp.MustCompile(`(?i)\b(?:noon|midday)\b`), func([]string) string { return "12:00" }},
	{regexp.MustCompile(`(?i)\b(three[- ]quarters of|half|a quarter of) an hour\b`), func(g []string) string {
		return map[string]string{"t": "45", "h": "30", "a": "15"}[strings.ToLower(g[1][:1])] + " minutes"
	}},
	{regexp.MustCompile(`(?i)\bhalf a year\b`), func([]string) string { return "six months" }},
	{regexp.MustCompile(`(?i)\bhalf a dozen\b`), func([]string) string { return "six" }},
	{regexp.MustCompile(`(?i)\b(?:a |one )?fortnight\b`), func([]string) string { return "two weeks" }},
	{regexp.MustCompile(`(?i)\b(\w+) decades?\b`), func(g []string) string {
		if n := count(g[1]); n > 0 {
			return fmt.Sprintf("%d years", 10*n)
		}
		return ""
	}},
	{regexp.MustCompile(`(?i)\b(\w+) (?:in|out of) (?:every )?(ten|five|four|two|twenty)\b`), func(g []string) string {
		if n, of := count(g[1]), count(g[2]); n > 0 && n < of {
			return fmt.Sprintf("%d percent", 100*n/of)
		}
		return ""
	}},
	{regexp.MustCompile(`(?i)\b(a|one|two|three) (tenth|fifth|quarter|third)s? (of|off|less|more|cheaper)\b`), func(g []string) string {
		return fmt.Sprintf("%d percent %s", 100*count(g[1])/map[string]int{"tenth": 10, "fifth": 5, "quarter": 4, "third": 3}[strings.ToLower(g[2])], g[3])
	}},
}

// plainly writes the sayings of a text in the plain way.
func plainly(s string) string {
	for _, one := range sayings {
		s = one.is.ReplaceAllStringFunc(s, func(was string) string {
			if now := one.plain(one.is.FindStringSubmatch(was)); now != "" {
				return now
			}
			return was
		})
	}
	return s
}
