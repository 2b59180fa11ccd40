package term

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"github.com/rivo/uniseg"
)

func TestProgressLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := NewProgress(&b, Style{Width: 50}, true, time.Now)
		for i := range 1000 {
			p.Event(marchwarden.Event{Stage: marchwarden.StageIndex, Message: "notes.md\x1b[31m\r\nnext", Done: i + 1, Total: 1000})
			time.Sleep(time.Millisecond)
		}
		p.Event(marchwarden.Event{Stage: marchwarden.StageSynthesize, Message: strings.Repeat("長", 100)})
		time.Sleep(time.Second)
		synctest.Wait()
		p.Close()
		p.Close()
		p.Event(marchwarden.Event{Stage: marchwarden.StageDone})

		got := b.String()
		if !strings.HasSuffix(got, erase) {
			t.Errorf("the line is not erased at the end: %q", got)
		}
		drawings := strings.Split(got, erase)
		drawings = drawings[1 : len(drawings)-1]
		if n := len(drawings); n < 10 || n > 12 {
			t.Errorf("%d drawings in a second and a bit: %q", n, drawings)
		}
		if want := "marchwarden: indexing · 1 of 1,000 · notes.md ne…"; drawings[0] != want {
			t.Errorf("first drawing is %q, want %q", drawings[0], want)
		}
		if last := drawings[len(drawings)-1]; !strings.HasPrefix(last, "marchwarden: writing the answer · 長") || !strings.HasSuffix(last, "…") {
			t.Errorf("the last event is not what stood there: %q", last)
		}
		for _, d := range drawings {
			if uniseg.StringWidth(d) > 49 || firstControl(d) >= 0 || strings.ContainsAny(d, "\n\t") {
				t.Errorf("bad drawing %q", d)
			}
		}
	})
}

func TestProgressClosedWhilePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := NewProgress(&b, Style{}, true, time.Now)
		p.Event(marchwarden.Event{Stage: marchwarden.StagePlan})
		p.Event(marchwarden.Event{Stage: marchwarden.StageSearch})
		p.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if want := erase + "marchwarden: planning" + erase; b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	})
}

func TestProgressPlain(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Style{Color: true}, false, time.Now)
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
marchwarden: indexing · 201 of 450
marchwarden: indexing · 401 of 450
marchwarden: Planning 3 queries
marchwarden: searching · iteration 1 · tomatoes
marchwarden: reading · iteration 1
marchwarden: searching · iteration 2
marchwarden: later · new
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestProgressConcurrent(t *testing.T) {
	for _, live := range []bool{true, false} {
		var b bytes.Buffer
		p := NewProgress(&b, Style{Width: 80}, live, time.Now)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 {
					p.Event(marchwarden.Event{Stage: marchwarden.StageFetch, Iteration: g, Message: fmt.Sprint(i)})
				}
			})
		}
		wg.Wait()
		p.Close()
		if b.Len() == 0 {
			t.Error("nothing was written")
		}
	}
}
