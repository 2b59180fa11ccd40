package runs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// A caller who asks without end loses their own records, and no other's.
func TestNobodyLosesRecordsByWhatOthersAsk(t *testing.T) {
	x := &shelf{records: map[marchwarden.TraceID]known{}}
	start := time.Unix(1e9, 0)
	const others, surplus = 20, 100
	for n := range maxRecords + others + surplus {
		rec := recordOf(n, start.Add(time.Duration(n)*time.Second))
		if n < others { // and theirs are the oldest
			rec.Owner = "token:bob"
		}
		x.add(known{record: rec})
	}
	gone := x.expired("", start.Add(-time.Hour))
	if len(gone) != surplus {
		t.Fatalf("%d are to go", len(gone))
	}
	for i, rec := range gone {
		if rec.Owner == "token:bob" {
			t.Fatalf("record %d of Bob is to go", i)
		}
	}
}

// Where the records are is not for callers to know: a disk that fails is told without
// its paths, and the log has them.
func TestWhatTheDiskSaysIsNotToldToCallers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	var log strings.Builder
	begun := make(chan struct{})
	d, err := Open(Config{Dir: dir, Now: time.Now, Name: "web", Log: slog.New(slog.NewTextHandler(&log, nil)),
		Researcher: waiting(begun)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := access.With(t.Context(), access.Principal{ID: "token:alice", Scopes: access.Scopes()})
	call, err := d.Begin(ctx, Asked{Request: marchwarden.Request{Question: "What?"}})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, marchwarden.CodeUnavailable) || strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), string(filepath.Separator)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = d.Begin(ctx, Asked{Request: marchwarden.Request{Question: "What?"}, Keep: true})
	check("a new task", err)
	_, err = d.Begin(ctx, Asked{Request: marchwarden.Request{Resume: call.ID().String()}, Keep: true})
	check("a call that is to be a task", err)
	call.Cancel()
	<-call.Done()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "cannot be recorded") {
		t.Errorf("the log: %s", log.String())
	}
}

// waiting is a researcher that says when it has begun, and ends when it is stopped.
type waiting chan struct{}

func (w waiting) Research(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	close(w)
	<-ctx.Done()
	return nil, ctx.Err()
}
