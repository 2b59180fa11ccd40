package loop_test

import (
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// A large document is cut into passages, and its words are read, within the time to
// gather: what does not fit is left out, and said to be.
func TestALargeDocumentEndsAtTheDeadline(t *testing.T) {
	l := newLab(t, 1)
	l.fetcher.Texts["doc1.md"] = strings.Repeat("Peas of any kind like cool soil. They are sown early.\n\n", 400_000)
	l.wall = 100 * time.Millisecond
	res := l.run(t, t.Context())
	if len(res.Citations) > 0 || !res.CostMetadata.BudgetExhausted || gap(res, marchwarden.BudgetExhausted) == nil {
		t.Errorf("%d citations, exhausted %v, gaps %+v", len(res.Citations), res.CostMetadata.BudgetExhausted, res.Gaps)
	}
	for _, s := range l.log(t).Steps {
		if s, ok := s.(*trace.FetchComplete); ok && s.Error == "" {
			t.Errorf("the document was read to its end: %+v", s)
		}
	}
}
