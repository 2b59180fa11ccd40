package run_test

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// What rihlas use that have not reported yet is counted while the investigation runs.
func TestCostSoFar(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(past{rihla: true, model: priced, in: 500000, cut: true})
	w.add(past{question: "under way", model: priced, in: 1000, cut: true, rihlas: []marchwarden.Rihla{{Researcher: "web", TraceID: idOf(1)}, {Researcher: "web"}}})
	h := w.open()
	for _, ask := range []func() (run.Entry, error){
		func() (run.Entry, error) { return one(t, h, idOf(2)), nil },
		func() (run.Entry, error) { return w.open().One(context.Background(), idOf(2)) },
	} {
		e, err := ask()
		if err != nil || e.Tokens != 501000 || e.CostUSD == nil || math.Abs(*e.CostUSD-1.002) > 1e-9 || !cmp.Equal(e.Researchers, []string{"web"}) {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
