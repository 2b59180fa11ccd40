package researcher_test

import (
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
)

// A run is made under the id that its caller has chosen, once.
func TestWhoChoosesTheID(t *testing.T) {
	chosen, err := marchwarden.ParseTraceID("00000000-0000-7000-8000-00000000c40e")
	if err != nil {
		t.Fatal(err)
	}
	for _, partOf := range []bool{false, true} {
		b := newBench(t, resumetest.Memory(t), garden(), false)
		b.lab.PartOf = partOf
		res, err := b.answer(marchwarden.WithTraceID(t.Context(), chosen), marchwarden.Request{Question: "What do peas like?"})
		if err != nil {
			t.Fatal(err)
		}
		if res.TraceID != chosen {
			t.Errorf("part of an investigation: %v; made under %s", partOf, res.TraceID)
		}
		// A second one that is told the same takes another name, rather than none.
		res, err = b.answer(marchwarden.WithTraceID(t.Context(), chosen), marchwarden.Request{Question: "What do peas like?"})
		if err != nil || res.TraceID == chosen || len(res.Warnings) > 0 {
			t.Errorf("%v, %v", res, err)
		}
	}
}
