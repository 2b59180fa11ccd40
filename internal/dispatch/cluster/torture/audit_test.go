//go:build linux

package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// errand is one task of a test: a run about a plot.
type errand struct {
	ID   marchwarden.TraceID `json:"id"`
	Plot int                 `json:"plot"`
}

// finding is what an audit found about a task.
type finding struct {
	ID       marchwarden.TraceID `json:"id"`
	Status   dispatch.Status     `json:"status"`
	Worker   string              `json:"worker"`
	Essence  string              `json:"essence"` // of the result
	Claims   []claimed           `json:"claims"`
	Lines    int                 `json:"lines"`
	Ends     int                 `json:"ends"` // in the journal
	Done     int                 `json:"done"` // copies of the end
	Resumed  int                 `json:"resumed"`
	Retried  int                 `json:"retried"` // steps that were under way when a worker was lost
	Bytes    int                 `json:"bytes"`
	Stall    time.Duration       `json:"stall"` // the longest time between two entries
	Stalled  string              `json:"stalled,omitempty"`
	Problems []string            `json:"problems,omitempty"`
}

// claimed is a time at which a worker took the task.
type claimed struct {
	Worker string    `json:"worker"`
	At     time.Time `json:"at"`
	Lines  int       `json:"lines"` // that were there by then
}

// entry is one message of a journal.
type entry struct {
	kind, worker string
	body         []byte
	at           time.Time
}

// clock is how moments are told.
const clock = "15:04:05.00"

// auditor looks at what a cluster keeps, past the engine.
type auditor struct {
	engine dispatch.Engine
	js     jetstream.JetStream
}

// all reads a stream from its leader: the entries of each subject, in order.
func (a *auditor) all(ctx context.Context, stream string) (map[string][]entry, error) {
	s, err := a.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return nil, nil
	}
	messages := make([]*jetstream.RawStreamMsg, state.LastSeq-state.FirstSeq+1)
	var g errgroup.Group
	g.SetLimit(16)
	for i := range messages {
		g.Go(func() (err error) {
			messages[i], err = a.message(ctx, s, state.FirstSeq+uint64(i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found := map[string][]entry{}
	for _, m := range messages {
		if m != nil {
			found[m.Subject] = append(found[m.Subject], entry{m.Header.Get(kindHeader), m.Header.Get(workerHeader), m.Data, m.Time})
		}
	}
	return found, nil
}

// message reads one message, again if the hubs are not at peace yet; nil if there is none.
func (a *auditor) message(ctx context.Context, s jetstream.Stream, seq uint64) (*jetstream.RawStreamMsg, error) {
	for tries := 10; ; tries-- {
		one, cancel := context.WithTimeout(ctx, 3*time.Second)
		m, err := s.GetMsg(one, seq)
		cancel()
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return nil, nil
		case err == nil || tries == 0:
			return m, err
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// audit holds the journals, ends and results of tasks against each other.
func (a *auditor) audit(ctx context.Context, errands []errand) ([]finding, error) {
	journals, err := a.all(ctx, logStream)
	if err != nil {
		return nil, err
	}
	ends, err := a.all(ctx, doneStream)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, e := range errands {
		f := finding{ID: e.ID, Done: len(ends["mw.done."+e.ID.String()])}
		if err := a.look(ctx, &f, journals[fmt.Sprintf("mw.log.%s.%s", e.ID, e.ID)]); err != nil {
			f.Problems = append(f.Problems, err.Error())
		}
		out = append(out, f)
	}
	return out, nil
}

// look fills in what is found about one task.
func (a *auditor) look(ctx context.Context, f *finding, journal []entry) error {
	var raw bytes.Buffer
	for i, e := range journal {
		if before := journal[max(0, i-1)]; e.at.Sub(before.at) > f.Stall {
			f.Stall = e.at.Sub(before.at)
			f.Stalled = fmt.Sprintf("after entry %d, a %s of %s at %s, before a %s of %s", i, before.kind, before.worker, before.at.Format(clock), e.kind, e.worker)
		}
		f.Bytes += len(e.body)
		switch e.kind {
		case "line":
			if f.Ends > 0 {
				f.Problems = append(f.Problems, "a line after the end")
			}
			f.Lines++
			raw.Write(e.body)
		case "claim":
			f.Claims = append(f.Claims, claimed{e.worker, e.at, f.Lines})
		case "end":
			f.Ends++
		}
	}
	state, err := a.engine.Look(ctx, f.ID)
	if err != nil {
		return err
	}
	f.Status, f.Worker = state.Status, state.Worker
	if state.End == nil {
		return errors.New("it has no end")
	}
	return a.sealed(ctx, f, state.End, raw.Bytes())
}

// sealed holds what was put away of a finished task against its journal.
func (a *auditor) sealed(ctx context.Context, f *finding, end *dispatch.End, journal []byte) error {
	if end.Status != dispatch.Done {
		return fmt.Errorf("it ended as %s: %s: %s", end.Status, end.Code, end.Message)
	}
	blobs := a.engine.Blobs()
	record, err := blobs.Get(ctx, end.Trace)
	if err != nil {
		return err
	}
	if !bytes.Equal(record, journal) {
		return fmt.Errorf("the sealed record has %d bytes, the lines of the journal %d", len(record), len(journal))
	}
	log, err := trace.Read(bytes.NewReader(record))
	if err != nil {
		return err
	}
	if log.Torn != 0 || log.Complete() == nil {
		return fmt.Errorf("the record is not closed: %d torn bytes", log.Torn)
	}
	for i, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Start:
			if i > 0 {
				return fmt.Errorf("line %d begins the run anew", i+1)
			}
		case *trace.Resume:
			f.Resumed++
		case trace.Recorded:
			if s.Record().Retried {
				f.Retried++
			}
		}
	}
	return result(ctx, f, blobs, end.Result, log)
}

// result holds a result against the record: rerun, it gives the same bytes.
func result(ctx context.Context, f *finding, blobs blob.Store, ref blob.Ref, log *trace.Log) error {
	encoded, err := blobs.Get(ctx, ref)
	if err != nil {
		return err
	}
	again, err := researcher.Again(ctx, log, blobs, nil)
	if err != nil {
		return err
	}
	if !again.Same() || !bytes.Equal(bytes.TrimSpace(again.Want), bytes.TrimSpace(encoded)) {
		return fmt.Errorf("the rerun, the record and the result differ:\n%s\n%s\n%s", again.Got, again.Want, encoded)
	}
	var res marchwarden.Result
	if err := json.Unmarshal(encoded, &res); err != nil {
		return err
	}
	if res.TraceID != f.ID {
		return fmt.Errorf("the result is that of %s", res.TraceID)
	}
	what, err := essence(&res)
	f.Essence = string(what)
	return err
}
