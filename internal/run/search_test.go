package run_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

func library(t *testing.T) *world {
	w := newWorld(t)
	w.add(past{question: "What makes the leaves of maples yellow?", answer: "Iron *chlorosis* makes leaves yellow [1]. It is well-known in the U.S. since 1990 \\[sic\\] [2].", citations: 2})           // 1
	w.add(past{question: "Which trees suffer?", answer: "Maples, and oaks, suffer from chlorosis of **iron** [1]. Yellowing begins between veins, said O’Brien [1].", citations: 1})                     // 2
	w.add(past{question: "鉄欠乏とは何ですか", answer: "鉄欠乏は葉を黄色くします。"})                                                                                                                                          // 3
	w.add(past{question: "Что такое торф?", answer: "Торф — это почва из мха. Cafés in Århus sell none."})                                                                                               // 4
	w.add(past{question: "<script>alert(1)</script> \x1b[31m; DROP TABLE runs", answer: "\u202eevil\u202c [click](javascript:alert(1)) ![x](http://evil.example/beacon) `rm -rf` \xff\xfe 🙂 C++"})       // 5
	w.add(past{question: "How much?", answer: "The pump costs 6,000 crowns, 3.5 % more. " + strings.Repeat("Nothing is here. ", 400) + "At the very end stands a walrus. " + strings.Repeat("x ", 200)}) // 6
	w.add(past{question: "empty"})                                                                                                                                                                       // 7
	w.add(past{question: "Maples again?", answer: strings.Repeat("maple ", 9), cut: true})                                                                                                               // 8
	return w
}

func TestWords(t *testing.T) {
	t.Parallel()
	w := library(t)
	h, all := w.open(), []int{8, 7, 6, 5, 4, 3, 2, 1}
	for query, want := range map[string][]int{
		"!!!":              all, // there is no word in it
		"chlorosis":        {2, 1},
		"maple":            {8, 2, 1},
		"maples yellow":    {2, 1},
		"YELLOWED leaf":    nil,
		"leaves yellowing": {1},
		"the of chlorosis": {2, 1}, // too common to count
		"the of":           {1},    // unless there is nothing else
		"iron walrus":      nil,
		"walruses":         {6},
		`"iron chlorosis"`: {2, 1}, // quotes are no words
		`""`:               {8, 7, 6, 5, 4, 3, 2, 1},
		"   ":              {8, 7, 6, 5, 4, 3, 2, 1},
		"sic":              {1},
		"鉄":                {3},
		"Торф":             {4},
		"торф мха":         {4},
		"cafés":            {4},
		"cafe\u0301s":      {4},
		"århus":            {4},
		"6000 crowns":      {6},
		"3.5":              {6},
		"1990":             {1},
		"u.s.":             {1},
		"C++":              {5},
		"script alert":     {5},
		"evil":             {5},
		"beacon":           nil, // an address is not said
		"click":            {5},
		"drop; table--":    {5},
		"🙂 walrus":         {6},                      // what is no word counts only alone
		"\xff\xfe":         {8, 7, 6, 5, 4, 3, 2, 1}, // there is nothing in it
		`" " "`:            {8, 7, 6, 5, 4, 3, 2, 1},
		"empty":            {7},
	} {
		if got, _ := find(t, h, run.Query{Words: query}); !cmp.Equal(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}

// The beginning of an answer is shown, no longer than it should be, and not cut within a character.
func TestShown(t *testing.T) {
	t.Parallel()
	w := library(t)
	w.add(past{question: "long", answer: strings.Repeat("鉄欠乏は葉を", 300) + "黄色く" + strings.Repeat("します", 300)})
	h := w.open()
	for query, want := range map[string]string{"": "The pump costs 6,000", "walrus": "The pump costs"} {
		entries, _, err := h.Find(context.Background(), run.Query{Words: query}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if n := utf8.RuneCountInString(e.Answer); n > 402 || !utf8.ValidString(e.Answer) {
				t.Errorf("%q: %d characters: %q", query, n, e.Answer)
			}
			if e.ID == idOf(6) && !strings.Contains(e.Answer, want) {
				t.Errorf("%q: %q", query, e.Answer)
			}
		}
	}
	if e := one(t, w.open(), idOf(1)); e.Answer != "Iron chlorosis makes leaves yellow. It is well-known in the U.S. since 1990 [sic]." {
		t.Errorf("plain: %q", e.Answer)
	}
	if e := one(t, w.open(), idOf(5)); strings.ContainsAny(e.Answer, "\u202e\u202c\x1b") || strings.Contains(e.Answer, "http") || strings.Contains(e.Answer, "javascript") {
		t.Errorf("plain: %q", e.Answer)
	}
}
