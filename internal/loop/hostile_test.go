package loop_test

import (
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The titles of what was left come from whoever wrote them: a gap names them
// without what a reader could follow or a terminal would obey.
func TestTitlesOfWhatIsLeftAreCleaned(t *testing.T) {
	l := newLab(t, 3)
	one := 1
	l.req.Constraints = &marchwarden.Constraints{MaxSources: &one}
	l.engine.Hits["peas"][1].Title = "Peas ![x](https://evil.example/p.png) \x1b[31mred \u202eback"
	l.engine.Hits["peas"][2].Title = "\u200b " + strings.Repeat("long ", 200)
	res := l.run(t, t.Context())
	g := gap(res, marchwarden.BudgetExhausted)
	if g == nil || !strings.HasPrefix(g.Topic, "Peas x [31mred back; long long") || len(g.Topic) > 300 || strings.ContainsAny(g.Topic, "\x1b\u202e\u200b") {
		t.Errorf("%+q", g)
	}
}
