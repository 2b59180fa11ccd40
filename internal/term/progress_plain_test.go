package term

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestPlain(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressConfig{Style: Style{Color: true}, Now: time.Now})
	for i := range 450 {
		p.Event(marchwarden.Event{Stage: marchwarden.StageIndex, Done: i + 1, Total: 450})
	}
	p.Event(marchwarden.Event{Stage: marchwarden.StagePlan, Message: "Planning 3 queries\x1b[2J"})
	for range 3 { // parallel gathering: the stages alternate
		p.Event(marchwarden.Event{Stage: marchwarden.StageSearch, Iteration: 1, Message: "tomatoes"})
		p.Event(marchwarden.Event{Stage: marchwarden.StageFetch, Iteration: 1})
	}
	p.Event(marchwarden.Event{Stage: marchwarden.StageSearch, Iteration: 2})
	p.Event(marchwarden.Event{Stage: "later\x1b[1m", Message: "new"})
	p.Close()
	want := `marchwarden: indexing · 1 of 450
marchwarden: Planning 3 queries
marchwarden: searching · iteration 1 · tomatoes
marchwarden: reading · iteration 1
marchwarden: searching · iteration 2
marchwarden: later · new
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPlainOfRihlas(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressConfig{Now: time.Now})
	p.Event(of(0, "", marchwarden.StagePlan, "2 rihlas"))
	for i := range 3 {
		p.Event(of(1, "files", marchwarden.StageSearch, fmt.Sprint("query ", i)))
		p.Event(of(2, "web\x1b[1m\nhost", marchwarden.StageSearch, fmt.Sprint("query ", i)))
	}
	p.Event(of(2, "web", marchwarden.StageDone, "4 citations, confidence 0.70"))
	p.Event(of(2, "web", marchwarden.StageDone, "3 of 4 citations stand"))
	p.Event(of(2, "web", marchwarden.StageDone, "again"))
	p.Event(of(1, "", marchwarden.StageDone, "failed: it is not there"))
	p.Event(of(0, "", marchwarden.StageSynthesize, ""))
	p.Close()
	want := `marchwarden: planning · 2 rihlas
marchwarden: [1 files] searching · query 0
marchwarden: [2 web host] searching · query 0
marchwarden: [2 web] done · 4 citations, confidence 0.70
marchwarden: [2 web] done · 3 of 4 citations stand
marchwarden: [1] done · failed: it is not there
marchwarden: writing the answer
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A caller hears what there is to hear every few seconds.
func TestPlainAfterASilence(t *testing.T) {
	var b bytes.Buffer
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	p := NewProgress(&b, ProgressConfig{Now: func() time.Time { return now }})
	p.Event(of(1, "web", marchwarden.StagePlan, "sent"))
	for _, said := range []string{"5s", "10s"} {
		now = now.Add(5 * time.Second)
		p.Event(of(1, "web", marchwarden.StagePlan, "silent for "+said))
		p.Event(of(1, "web", marchwarden.StagePlan, "at the same time"))
	}
	p.Close()
	want := "marchwarden: [1 web] planning · sent\nmarchwarden: [1 web] planning · silent for 5s\nmarchwarden: [1 web] planning · silent for 10s\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
