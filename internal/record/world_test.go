package record_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/investigate"
)

// place is a home folder with its records.
type place struct {
	path   string
	traces *trace.Dir
	blobs  *dir.Store
}

func open(tb testing.TB, path string) *place {
	tb.Helper()
	traces, err := trace.OpenDir(filepath.Join(path, "traces"), time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	blobs, err := dir.Open(filepath.Join(path, "blobs"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = traces.Close(); _ = blobs.Close() })
	return &place{path: path, traces: traces, blobs: blobs}
}

func (p *place) home() record.Home {
	return record.Home{Store: run.Store{Traces: p.traces, Blobs: p.blobs}, Shelf: p.blobs}
}

func (p *place) trace(id marchwarden.TraceID) string {
	return filepath.Join(p.path, "traces", id.String()+".jsonl")
}

func (p *place) blob(ref blob.Ref) string {
	return filepath.Join(p.path, "blobs", "sha256", ref.Hex()[:2], ref.Hex()[2:])
}

var notes = map[string]string{
	"garden.md": "# The garden\n\nIron chlorosis turns the leaves of the maple yellow between green veins. The boathouse lamp was repaired by Marta Lindqvist in May 2021.\n",
	"roof.md":   "# The roof\n\nThe roof of the shed was tiled with 412 larch shingles in 2019. The carpenter Olof Berg charged 3,200 crowns.\n",
	"pump.md":   "# The pump\n\nThe pump in the well was made by Hallberg in Gothenburg. It lifts 40 litres of water a minute.\n",
}

var questions = []string{
	"Who repaired the lamp of the boathouse?",
	"How many shingles does the roof have?",
	"Who made the pump, and what turns the leaves yellow?",
	"What did the carpenter charge?",
}

// investigated makes a home with an investigation of each question in it.
func investigated(tb testing.TB, ask ...string) (*place, []*run.Run) {
	tb.Helper()
	path, library := tb.TempDir(), tb.TempDir()
	for name, text := range notes {
		write(tb, filepath.Join(library, name), []byte(text))
	}
	inv, err := investigate.Open(investigate.Config{Home: path, Library: []string{library}, Version: "test", WordsAlone: true})
	if err != nil {
		tb.Fatal(err)
	}
	defer inv.Close()
	var ids []marchwarden.TraceID
	for _, q := range ask {
		res, err := inv.Research(context.Background(), marchwarden.Request{Question: q, Depth: marchwarden.Shallow}, nil)
		if err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, res.TraceID)
	}
	p := open(tb, path)
	var runs []*run.Run
	for _, id := range ids {
		run, err := p.home().Load(id)
		if err != nil {
			tb.Fatal(err)
		}
		runs = append(runs, run)
	}
	return p, runs
}

// stands verifies a finished run and runs it again.
func stands(p *place, id marchwarden.TraceID) error {
	ctx := context.Background()
	run, err := p.home().Load(id)
	if err != nil {
		return err
	}
	want, res, err := p.home().Result(ctx, run)
	if err != nil {
		return err
	}
	report, err := verify.Check(ctx, p.blobs, res)
	if err != nil || !report.OK() {
		return fmt.Errorf("verify: %v, %w", report, err)
	}
	var got []byte
	if run.Start.Investigation == nil {
		again, rerunErr := researcher.Again(ctx, run.Log, p.blobs, nil)
		got, err = again.Got, rerunErr
	} else {
		_, got, err = pi.Again(ctx, run.Log, p.blobs, pi.Minds{Planner: func(id string) pi.Planner { return pi.PlannerFor(id, derive.New()) }, Writer: researcher.Mind})
	}
	if err != nil {
		return fmt.Errorf("rerun: %w", err)
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("the rerun gives another result")
	}
	return nil
}

func check(tb testing.TB, p *place, o record.CheckOptions) *record.Report {
	tb.Helper()
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	r, err := p.home().Check(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func describe(r *record.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s: %s; needed by %v; %s\n", f.Kind, f.Object, f.Problem, f.NeededBy, f.Remedy)
	}
	return b.String()
}

func write(tb testing.TB, path string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func full() bool { return os.Getenv("MARCHWARDEN_TEST_FULL") != "" }
