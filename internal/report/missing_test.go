package report

import (
	"bytes"
	"io"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// A report says once, at the end of its answer, what was not found; a short answer has its gaps further down.
func TestReportsSayWhatWasNotFound(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Report) error{
		"reading":  func(w io.Writer, r *Report) error { return Reading(w, term.Style{Width: 100}, r, Options{}) },
		"markdown": Markdown,
		"html":     HTML,
	} {
		r := sample(t, plain)
		r.Result.Gaps[0].Topic = "frost in Atlantis"
		claims := r.Result.Claims
		for _, report := range []bool{false, true} {
			r.Result.Blocks = []marchwarden.Block{{Type: marchwarden.Paragraph, Claims: claims}}
			if report {
				r.Result.Blocks = append([]marchwarden.Block{{Type: marchwarden.Heading, Level: 2, Text: "Frost"}}, r.Result.Blocks...)
			}
			var b bytes.Buffer
			if err := write(&b, r); err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(b.String(), "Nobody knows about 2030")
			gaps, further := strings.Index(rest, "frost in Atlantis"), strings.Index(rest, "Two dates are given")
			if further < 0 {
				further = strings.Index(rest, "two dates are given")
			}
			if n := strings.Count(b.String(), "frost in Atlantis"); n != 1 || gaps < 0 || further < 0 || (gaps < further) != report || strings.Contains(rest, "What was not found") != report {
				t.Errorf("%s, a report %v: %d times, at %d and %d of\n%s", name, report, n, gaps, further, rest)
			}
		}
	}
}
