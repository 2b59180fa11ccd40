package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// printingTo is an audit whose checks and words go to two writers.
func printingTo(out, said io.Writer) *Audit {
	return &Audit{
		Print: func(line string) error { _, err := fmt.Fprintln(out, line); return err },
		Warn:  func(message string) { fmt.Fprintln(said, message) },
	}
}

// A run that another version made and that this one cannot make again says so, and is
// no failure; one of this version is.
func TestRerunsOfAnotherVersion(t *testing.T) {
	id, err := marchwarden.ParseTraceID("00000000-0000-7000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		version string
		failed  int
		want    string
	}{
		{"v0.0.1", 0, "- the rerun of " + id.String() + " cannot be made by this version, v2; the run was made by version v0.0.1\n"},
		{"v2", 1, "✗ the rerun of " + id.String() + ": lost"},
	} {
		start := &trace.Start{TraceID: id, Version: tt.version}
		var out bytes.Buffer
		v := printingTo(&out, &out)
		v.Version = "v2"
		v.Rerun = func(context.Context, *trace.Log, blob.Store) ([]byte, []byte, error) {
			return nil, nil, errors.New("lost")
		}
		v.reruns(t.Context(), &run.Run{ID: id, Start: start, Log: &trace.Log{Steps: []trace.Step{start, &trace.Complete{}}}}, blob.NewMem())
		if len(v.failed) != tt.failed || !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("version %s: %d failed\n%s", tt.version, len(v.failed), out.String())
		}
	}
}
