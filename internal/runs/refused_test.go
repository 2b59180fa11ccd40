package runs_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// What is refused leaves nothing behind: its deadline ends nothing and writes nothing.
func TestRefusedResumeLeavesTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release := gate()
		dir := t.TempDir()
		d := open(t, runs.Config{Dir: dir, Researcher: g})
		defer release()
		r := begin(t, d, alice, ask, asTask)
		r.Cancel() // and its research has not returned
		path := filepath.Join(dir, r.ID().String()+".json")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(as(alice), time.Second)
		defer cancel()
		_, err = d.Begin(ctx, runs.Asked{Request: resume(r.ID())})
		want(t, err, marchwarden.CodeUnavailable, "is still going on")
		time.Sleep(time.Minute)
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("the record was\n%sand is\n%s%v", before, after, err)
		}
	})
}

// A run that was cancelled is not resumed, even if its process ended before it did.
func TestCancelledBeforeTheEnd(t *testing.T) {
	g, release := gate()
	dir, copied := t.TempDir(), t.TempDir()
	d := open(t, runs.Config{Dir: dir, Researcher: g})
	r := begin(t, d, alice, ask, asTask)
	r.Cancel()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	release()
	d = open(t, runs.Config{Dir: copied, Researcher: research(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
		t.Error("a cancelled run goes on")
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "no")
	})})
	again := find(t, d, alice, r.ID())
	status(t, again, runs.Cancelled)
	d.Recover()
	<-again.Done()
	status(t, again, runs.Cancelled)
}
