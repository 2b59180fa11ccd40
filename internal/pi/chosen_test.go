package pi_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// listening is a crew that notes which run each journey is told to make.
type listening struct {
	*crew
	mu   sync.Mutex
	told []marchwarden.TraceID
}

func (l *listening) Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	id, _ := marchwarden.ChosenTraceID(ctx)
	l.mu.Lock()
	l.told = append(l.told, id)
	l.mu.Unlock()
	return l.crew.Dispatch(ctx, member, req, sink)
}

// The run of a rihla has its id before the researcher can have done anything: whoever
// goes on finds it, whenever the investigation was cut off.
func TestARihlaIsToldWhichRunToMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("files", "web"))
		l := &listening{crew: s.crew}
		_, err := pi.New(pi.Config{Lab: researcher.Lab{Traces: s.Traces, Blobs: s.Blobs, Version: "test", Now: time.Now, NewID: resumetest.TheID}, Dispatcher: l, Minds: s.minds}).
			Research(t.Context(), marchwarden.Request{Question: crewQuestion}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var written []marchwarden.TraceID
		for _, step := range s.Log(t).Steps {
			if r, ok := step.(*trace.Rihla); ok {
				written = append(written, r.TraceID)
			}
		}
		if len(written) < 2 || len(written) != len(l.told) {
			t.Fatalf("%d rihlas are recorded, %d were sent", len(written), len(l.told))
		}
		for _, id := range l.told {
			if !id.Valid() || !slices.Contains(written, id) {
				t.Errorf("told %q, of %v", id, written)
			}
		}
	})
}

// An investigation is made under the id that its caller has chosen, and tells it to
// nobody whom it asks.
func TestTheInvestigationsIDIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chosen, err := marchwarden.ParseTraceID("00000000-0000-4000-8000-00000000c40e")
		if err != nil {
			t.Fatal(err)
		}
		s := newStudy(t, resumetest.Memory(t), newCrew("files", "web"))
		l := &listening{crew: s.crew}
		p := pi.New(pi.Config{Lab: researcher.Lab{Traces: s.Traces, Blobs: s.Blobs, Version: "test", Now: time.Now, NewID: resumetest.TheID}, Dispatcher: l, Minds: s.minds})
		for i, want := range []bool{true, false} { // an id that is taken is not used again
			res, err := p.Research(marchwarden.WithTraceID(t.Context(), chosen), marchwarden.Request{Question: crewQuestion}, nil)
			if err != nil || (res.TraceID == chosen) != want || len(res.Warnings) > 0 {
				t.Errorf("run %d: %v, %v", i+1, res, err)
			}
		}
		if slices.Contains(l.told, chosen) {
			t.Errorf("a researcher was told the id of the investigation: %v", l.told)
		}
	})
}
