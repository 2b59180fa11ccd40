package loop_test

import (
	"context"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// A run that could not look does not say that there is nothing, whatever its mind
// says; one that looked does.
func TestABlindRunDoesNotSayThereIsNothing(t *testing.T) {
	denied := marchwarden.Errorf(marchwarden.CodeDenied, "members only")
	missing := marchwarden.Errorf(marchwarden.CodeNotFound, "no such page")
	for _, tt := range []struct {
		name  string
		fault func(*lab)
		blind bool
	}{
		{"every search fails", func(l *lab) { l.engine.Err, l.engine.Errs["peas"] = denied, denied }, true},
		{"no page can be read", func(l *lab) { l.fetcher.Errs["doc1.md"], l.fetcher.Errs["doc2.md"] = denied, missing }, true},
		{"stopped at once", nil, true},
		{"the pages are gone", func(l *lab) { l.fetcher.Errs["doc1.md"], l.fetcher.Errs["doc2.md"] = missing, missing }, false},
		{"nothing is found", func(l *lab) { l.mind.plans = [][]string{{"pigs"}} }, false},
		{"one search fails, one finds nothing", func(l *lab) { l.mind.plans = [][]string{{"pigs", "peas"}}; l.engine.Errs["peas"] = denied }, false},
		{"what was read does not help", func(*lab) {}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, 2)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.fault == nil {
				cancel()
			} else {
				tt.fault(l)
			}
			l.mind.write = func(*reason.State) (reason.Draft, error) {
				return reason.Draft{Refusal: "There is nothing.", Gaps: []marchwarden.Gap{{Topic: "peas", Category: marchwarden.SourceNotFound, Detail: "nothing of peas"}}}, nil
			}
			res := l.run(t, ctx)
			said := false
			for _, g := range res.Gaps {
				said = said || g.Detail == "nothing of peas"
			}
			if said == tt.blind || strings.HasPrefix(res.Answer, "No source could be read") != tt.blind {
				t.Errorf("blind %v: %q, %+v", tt.blind, res.Answer, res.Gaps)
			}
		})
	}
}

// Searches that fail alike are one gap, which names them.
func TestSearchesThatFailAlike(t *testing.T) {
	l := newLab(t, 1)
	l.mind.plans = [][]string{{"peas", "pods"}, {"soil"}}
	l.engine.Err = marchwarden.Errorf(marchwarden.CodeUnavailable, "down")
	res := l.run(t, t.Context())
	var topics []string
	for _, g := range res.Gaps {
		if g.Category == marchwarden.AccessDenied {
			topics = append(topics, g.Topic)
		}
	}
	if len(topics) != 1 || !strings.Contains(topics[0], `"peas", "pods", "soil"`) {
		t.Errorf("%q", topics)
	}
}
