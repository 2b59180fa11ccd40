package evidence

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                    "plain",
		"  a \t\n b\u00a0\u2003c ": "a b c",
		"“a” ‘b’ „c‟ d’s 5′ 6″":        `"a" 'b' "c" d's 5' 6"`,
		"1–2 — −5 a‑b":                 "1-2 - -5 a-b",
		"so…":                          "so...",
		"co\u00adop ze\u200bro \ufeff": "coop zero",
		"\u202eabc\u202c":              "abc",
		"cafe\u0301":                   "café",
		"e\u00ad\u0301":                "é",
		"\u1100\u1161\u11a8":           "각",
		"\u212a":                       "K",
		"a\xffb":                       "a\ufffdb",
		"UPPER 123":                    "UPPER 123",
		"10²":                          "10²",
		"":                             "",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLocate(t *testing.T) {
	text := "The “great” garden — in Utah’s north — grew 6,000 toma\u00adtoes in 1990…\n\nIt did not\n  rain. Cafe\u0301 life. A notable cat, concatenate cat."
	for quote, want := range map[string]string{
		`"great" garden - in Utah's north`: "“great” garden — in Utah’s north",
		"6,000 tomatoes in 1990...":        "6,000 toma\u00adtoes in 1990…",
		"6,000 tomatoes in 1990":           "6,000 toma\u00adtoes in 1990",
		"It did not rain.":                 "It did not\n  rain.",
		"[...] It did not rain. [...]":     "It did not\n  rain.",
		"… It did not rain. …":             "It did not\n  rain.",
		"Café life":                        "Cafe\u0301 life",
		"  A notable cat ":                 "A notable cat",
		"concatenate":                      "concatenate",
		"...":                              "…",
	} {
		span, ok := Locate(text, quote)
		if !ok {
			t.Errorf("%q is not found", quote)
		} else if got := text[span.Start:span.End]; got != want {
			t.Errorf("%q is found as %q, want %q", quote, got, want)
		}
	}
	for _, quote := range []string{
		"", " ", "[...]x", "\u200b", "It did rain.", "It did not not rain.", "6,001 tomatoes", "the “great” garden", "Cafe life", "\u0301 life",
		"1990..", "1990.", "tomatoes in 1991", "The garden", "in 1990… rain",
	} {
		if span, ok := Locate(text, quote); ok {
			t.Errorf("%q is found as %q", quote, text[span.Start:span.End])
		}
	}
}

func TestLocatePrefersWholeWords(t *testing.T) {
	text := "concatenate the cat"
	if span, _ := Locate(text, "cat"); span.Start != strings.LastIndex(text, "cat") {
		t.Errorf("found at %d", span.Start)
	}
}

// bare is Fold without white space: the form in which Locate compares.
func bare(s string) string { return strings.ReplaceAll(Fold(s), " ", "") }

// checkLocate fails unless a span that was found folds to the quote.
func checkLocate(t interface{ Fatalf(string, ...any) }, text, quote string) bool {
	span, ok := Locate(text, quote)
	if !ok {
		return false
	}
	if !span.In(len(text)) {
		t.Fatalf("%q in %q: span %v", quote, text, span)
	}
	got, want := bare(text[span.Start:span.End]), bare(quote)
	if got != want && got != unmarked(want) {
		t.Fatalf("%q in %q: the text at %v folds to %q, not %q", quote, text, span, got, want)
	}
	if utf8.ValidString(text) && !utf8.ValidString(text[span.Start:span.End]) {
		t.Fatalf("%q in %q: span %v cuts a character", quote, text, span)
	}
	return true
}

// boundary reports whether text can be cut at i without cutting a character and
// its marks apart.
func boundary(text string, i int) bool {
	rest := strings.TrimLeftFunc(text[i:], dropped)
	return i == 0 || rest == "" || utf8.RuneStart(text[i]) && (rest[0] < utf8.RuneSelf || norm.NFC.PropertiesString(rest).BoundaryBefore())
}

func TestLocateFindsEverySubstring(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := document().Draw(t, "text")
		a := rapid.IntRange(0, len(text)).Draw(t, "a")
		b := rapid.IntRange(a, len(text)).Draw(t, "b")
		for !boundary(text, a) {
			a--
		}
		for !boundary(text, b) {
			b++
		}
		quote := text[a:b]
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 1:
			quote = Fold(quote)
		case 2:
			quote = "[...] " + norm.NFD.String(quote) + " …"
		}
		found := checkLocate(t, text, quote)
		if !found && unmarked(bare(quote)) != "" {
			t.Fatalf("%q is not found in %q", quote, text)
		}
	})
}

func TestLocateRejectsTampering(t *testing.T) {
	words := strings.Fields("when the first frost of the year 1994 came to the high valley all 27 farms had already brought in their 350 tons of late apples and nobody lost a tree that winter")
	text := strings.Join(words, " ")
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.IntRange(0, len(words)-4).Draw(t, "a")
		quote := append([]string(nil), words[a:rapid.IntRange(a+4, len(words)).Draw(t, "b")]...)
		at := rapid.IntRange(1, len(quote)-2).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			quote = append(quote[:at], append([]string{"not"}, quote[at:]...)...)
		case 1:
			quote = append(quote[:at], quote[at+1:]...)
		case 2:
			quote[at] = strings.Map(func(r rune) rune { return r ^ 1 }, quote[at]) // another digit, another letter
		case 3:
			quote[at] = strings.ToUpper(quote[at])
			if quote[at] == words[a+at] { // a number has no case
				return
			}
		}
		if _, ok := Locate(text, strings.Join(quote, " ")); ok {
			t.Fatalf("%q is found", quote)
		}
	})
}

func TestFoldIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(document(), rapid.String()).Draw(t, "text")
		if once := Fold(s); Fold(once) != once || !utf8.ValidString(once) {
			t.Fatalf("Fold(%q) = %q, and again %q", s, once, Fold(once))
		}
	})
}

// FuzzLocate holds the folding matcher to its promises on any bytes.
func FuzzLocate(f *testing.F) {
	f.Add("The “great” garden", `"great"`)
	f.Add("cafe\u0301 \u0301x", "caf\u00e9")
	f.Add("wait…", "wait..")
	f.Add("\u1100\u1161\u11a8", "\u1161")
	f.Add("e"+strings.Repeat("\u0301\u0323", 40), "e\u0301")
	f.Add("\xe2\u00ad\x82\xac", "€")
	f.Add("aaaaaaaaab", "aab")
	f.Fuzz(func(t *testing.T, text, quote string) {
		checkLocate(t, text, quote)
		if !checkLocate(t, text, text) && bare(text) != "" {
			t.Fatalf("%q is not found in itself", text)
		}
		if once := Fold(text); Fold(once) != once {
			t.Fatalf("Fold(%q) = %q, and again %q", text, once, Fold(once))
		}
	})
}

// A quote may begin and end anywhere in a long text.
func TestLocateAcrossPieces(t *testing.T) {
	bits := []string{"word", "Ünal", "e\u0301", "“so”", "…", "\u00ad", "\u200b", " ", "\n\n", "—", "x", "東京", "\xff", "of"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for b.Len() < 4<<10 {
			n := rapid.IntRange(0, len(bits)-1).Draw(t, "bit")
			b.WriteString(strings.Repeat(bits[n], rapid.IntRange(1, 60).Draw(t, "times")) + strconv.Itoa(b.Len()) + " ")
		}
		text := b.String()
		whole := Fold(text)
		from := rapid.IntRange(0, len(whole)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(whole)).Draw(t, "to")
		quote := strings.ToValidUTF8(whole[from:to], "")
		span, ok := Locate(text, quote)
		if !ok {
			// What begins or ends with a mark may begin or end inside one that was folded.
			if k := key(quote); k != "" && solid[k[0]] && k[0] != '.' && solid[k[len(k)-1]] && k[len(k)-1] != '.' {
				t.Fatalf("%q is not found", quote)
			}
			return
		}
		if got := key(text[span.Start:span.End]); got != key(quote) && got != unmarked(key(quote)) {
			t.Fatalf("found %q for %q", got, key(quote))
		}
	})
}
