package web

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/page"
)

// Every citation of a real answer is shown in its stored text, to the byte.
func TestEvidence(t *testing.T) {
	w := newWorld(t, nil)
	b := w.local()
	res := w.investigation()
	mark := regexp.MustCompile(`<mark id="excerpt">([^<]*)</mark>`)
	for i, c := range res.Citations {
		n := fmt.Sprint(i + 1)
		for _, rest := range []string{"/panel?source=" + n, "?source=" + n} {
			status, text := b.get(path(res.TraceID, rest))
			m := mark.FindStringSubmatch(text)
			if status != 200 || m == nil || html.UnescapeString(m[1]) != c.RawExcerpt {
				t.Errorf("%s: %d %q, not %q", rest, status, m, c.RawExcerpt)
			}
			has(t, text, c.ContentHash)
		}
		_, text := b.get(path(res.TraceID, "/source/"+n))
		has(t, text, `<mark id="c`+n+`">`+html.EscapeString(c.RawExcerpt))
	}
	for _, n := range []string{"0", "-1", fmt.Sprint(len(res.Citations) + 1), "99999999999999999999", "x", "1x", "%00"} {
		for _, rest := range []string{"/panel?source=" + n, "/source/" + n} {
			status, text := b.get(path(res.TraceID, rest))
			if status != 404 {
				t.Errorf("%s: %d", rest, status)
			}
			has(t, text, "the answer has no such source")
		}
		if status, text := b.get(path(res.TraceID, "?source="+n)); status != 200 || !strings.Contains(text, `data-preview="1"`) { // the first, which the reader did not choose
			t.Errorf("the answer with source %s: %d", n, status)
		}
	}
	if status, _ := b.get(path(res.TraceID, "/panel")); status != 404 {
		t.Errorf("no number: %d", status)
	}
	if status, text := b.get(path(res.TraceID, "?support=%3Cscript%3E")); status != 200 || strings.Contains(text, "<script>\"") {
		t.Errorf("%d", status)
	}
}

func TestOverlappingExcerpts(t *testing.T) {
	w := newWorld(t, nil)
	text := "0123456789abcdefghij"
	spans := [][2]int{{2, 8}, {5, 12}, {5, 12}, {6, 7}, {12, 14}, {0, 20}}
	var res marchwarden.Result
	for _, s := range spans {
		res.Citations = append(res.Citations, w.cite(text, s[0], s[1]))
	}
	id := w.written(1, res)
	b := w.local()
	for n, s := range spans {
		_, got := b.get(path(id, fmt.Sprintf("/source/%d", n+1)))
		has(t, got, fmt.Sprintf(`<mark id="c%d">%s</mark>`, n+1, text[s[0]:s[1]])) // the one that was asked for is whole
		for k := range spans {
			if c := strings.Count(got, fmt.Sprintf(`id="c%d"`, k+1)); c != 1 {
				t.Errorf("source %d: excerpt %d is there %d times", n+1, k+1, c)
			}
		}
	}
}

// The pieces are the text, each number is there once, and what is marked is what is cited.
func TestMarked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat("héllo wörld ", 3)
		var cited []marchwarden.Citation
		for range rapid.IntRange(1, 6).Draw(t, "excerpts") {
			a := rapid.IntRange(0, len(text)-1).Draw(t, "start")
			b := rapid.IntRange(a+1, len(text)).Draw(t, "end")
			cited = append(cited, marchwarden.Citation{ContentHash: "h", Span: &marchwarden.Span{Start: a, End: b}})
		}
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := rapid.IntRange(from, len(text)).Draw(t, "to")
		n := rapid.IntRange(1, len(cited)).Draw(t, "n")
		pieces := marked(text, from, to, cited, n)
		at := from
		numbers := map[int]int{}
		for _, p := range pieces {
			if text[at:at+len(p.Text)] != p.Text {
				t.Fatalf("%+v is not the text", pieces)
			}
			for i := at; i < at+len(p.Text); i++ {
				within := slices.ContainsFunc(cited, func(c marchwarden.Citation) bool { return c.Span.Start <= i && i < c.Span.End })
				if within != p.Mark {
					t.Fatalf("byte %d is marked %t: %+v", i, p.Mark, pieces)
				}
			}
			at += len(p.Text)
			if p.Number > 0 {
				numbers[p.Number]++
			}
		}
		if at != to {
			t.Fatalf("it ends at %d: %+v", at, pieces)
		}
		for i, c := range cited {
			want := 0
			if c.Span.Start < to && c.Span.End > from {
				want = 1
			}
			if numbers[i+1] != want {
				t.Fatalf("excerpt %d is there %d times: %+v", i+1, numbers[i+1], pieces)
			}
		}
		if s := cited[n-1].Span; s.Start >= from && s.End <= to && !slices.Contains(pieces, page.Piece{Text: text[s.Start:s.End], Number: n, Mark: true}) {
			t.Fatalf("excerpt %d is not whole: %+v", n, pieces)
		}
	})
}

// Of a text that is too long a part around the excerpt is shown, cut between characters.
func TestALongText(t *testing.T) {
	w := newWorld(t, nil)
	text := strings.Repeat("ěščřžýáíé ", 300_000) // 5.7 MB, of two bytes a character
	var res marchwarden.Result
	places := []int{0, len(text) / 20 / 2 * 19, len(text) - 19}
	for _, at := range places {
		res.Citations = append(res.Citations, w.cite(text, at, at+18))
	}
	id := w.written(1, res)
	b := w.local()
	for i := range places {
		status, got := b.get(path(id, fmt.Sprintf("/source/%d", i+1)))
		if status != 200 || len(got) < maxWhole || len(got) > maxWhole+200_000 {
			t.Errorf("%d: %d bytes", status, len(got))
		}
		if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") {
			t.Error("a character is cut")
		}
		has(t, got, fmt.Sprintf(`<mark id="c%d">ěščřžýáíé</mark>`, i+1), "as much as is shown")
	}
	for _, at := range []int{0, 1, 1000, len(text) / 2, len(text)/2 + 1, len(text) - 1} {
		from, to := around(text, at)
		if from > at || to < at || to-from < maxWhole-4 || to-from > maxWhole+4 || !utf8.RuneStart(text[from]) || to < len(text) && !utf8.RuneStart(text[to]) {
			t.Errorf("around %d: %d to %d", at, from, to)
		}
	}
}

// What is kept is bounded.
func TestCache(t *testing.T) {
	c := cache[int, int]{room: 8}
	has := func(n int) bool {
		got, ok := c.find(n)
		return ok && got == n
	}
	for i := range 20 {
		c.put(i, i)
	}
	if len(c.kept) > 8 || !has(19) || has(0) {
		t.Errorf("%d are kept", len(c.kept))
	}
	c.forget(func(n int) bool { return n == 19 })
	if has(19) || !has(18) {
		t.Errorf("%v", c.kept)
	}
}
