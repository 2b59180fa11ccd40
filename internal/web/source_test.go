package web

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
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

// The page of a source marks what it is cited for, and leads to what else is cited from it.
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
		has(t, got, fmt.Sprintf(`%s<mark id="c%d">%s</mark>%s`, text[:s[0]], n+1, text[s[0]:s[1]], text[s[1]:]))
		for k := range spans {
			has(t, got, fmt.Sprintf(`%s#c%d"`, path(id, fmt.Sprintf("/source/%d", k+1)), k+1))
		}
	}
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
		if status != 200 || len(got) < wholeChars || len(got) > 4*wholeChars+200_000 {
			t.Errorf("%d: %d bytes", status, len(got))
		}
		if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") {
			t.Error("a character is cut")
		}
		has(t, got, fmt.Sprintf(`<mark id="c%d">ěščřžýáíé</mark>`, i+1), "as much as is shown")
	}
}
