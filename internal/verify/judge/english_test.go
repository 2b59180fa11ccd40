package judge

import (
	"slices"
	"strings"
	"testing"
)

func TestPlainly(t *testing.T) {
	for s, want := range map[string]string{
		"in a fortnight":                 "in two weeks",
		"at half past nine":              "at 9:30",
		"at a quarter to eleven":         "at 10:45",
		"by 8 p.m":                       "by 20:00",
		"on 2029-12-01":                  "on 1 December 2029",
		"12 Sept":                        "12 September",
		"Fri 11–20":                      "Friday 11–20",
		"after half an hour":             "after 30 minutes",
		"for three decades":              "for 30 years",
		"nine in ten":                    "90 percent",
		"a fifth less":                   "20 percent less",
		"£35 at 5 °C":                    "35 pounds at 5 degrees Celsius",
		"the second quarter, to be sure": "the second quarter, to be sure",
	} {
		if got := plainly(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range [][2]string{{"bought", "purchas"}, {"kept", "keep"}, {"renew", "extend"}, {"kid", "child"}} {
		if !alike(c[0], c[1]) {
			t.Errorf("%s is not like %s", c[0], c[1])
		}
	}
	if !opposite("reject", "accept") || opposite("accept", "approv") || alike("dog", "cat") {
		t.Error("opposites")
	}
}

// TestFlips: what turns a claim round, and what does not.
func TestFlips(t *testing.T) {
	const table = "| Vaccine | Doses | Price |\n|---|---|---|\n| Typhoid | 3 | 12 |\n| Rabies | 2 | 72 |\n| Yellow fever | 1 | 69 |"
	for _, c := range []struct {
		claim, text, want string
	}{
		{"Raspberries are less hardy than blackberries.", "Blackberries are less hardy than raspberries.", "the other way round"},
		{"Raspberries are hardier than blackberries.", "Blackberries are less hardy than raspberries.", ""},
		{"The bay passed from flat 9 to flat 3.", "The bay passes from flat 3 to flat 9.", "the other way round"},
		{"The offer was rejected by the board.", "The board accepted the offer.", "the opposite"},
		{"The water is unsafe to drink.", "The water is not safe to drink.", ""},
		{"Rabies costs 69.", table, "another value"},
		{"The town was named after a bishop.", "The view that the town was named after a bishop is dated.", "tell of it"},
		{"It takes 14 days.", "It takes two weeks.", ""},
	} {
		flips := newPair(c.claim, plain(c.text)).look().flips
		if c.want == "" && len(flips) > 0 || c.want != "" && !slices.ContainsFunc(flips, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%q by %q: %q, want %q", c.claim, c.text, flips, c.want)
		}
	}
}
