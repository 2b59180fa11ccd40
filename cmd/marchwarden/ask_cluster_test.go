package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// storeroom is an engine of which nothing but the evidence is asked for.
type storeroom struct {
	dispatch.Engine
	blobs blob.Store
}

func (s storeroom) Blobs() blob.Store { return s.blobs }

// TestRecordCostsNoAnswer settles runs whose records are lost, no records, or another run's: each
// is a warning that says so, whether a record could be kept here or not.
func TestRecordCostsNoAnswer(t *testing.T) {
	id := serve.NewTraceID()
	begun := func(of marchwarden.TraceID) string {
		return `{"step":1,"action":"start","timestamp":"2026-11-01T10:00:00Z","decision":"research","format":1,"trace_id":"` + of.String() +
			`","researcher":"files","mind":"extractive/1","engine":"local","version":"dev","request":{"question":"What?"},"limits":{"max_iterations":5,"token_budget":20000,"max_sources":10},"started_at":"2026-11-01T10:00:00Z"}` + "\n"
	}
	unread := "read the record of run " + id.String()
	for name, test := range map[string]struct{ record, warning, question string }{
		"lost":      {"", "get the record of run " + id.String(), ""},
		"no record": {"nonsense\n", unread, ""},
		"no start":  {strings.Replace(begun(id), `"start"`, `"plan"`, 1), unread, ""},
		"another's": {begun(serve.NewTraceID()), "is of another run", ""},
		"sound":     {begun(id), "", "What?"},
	} {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", kept ", kept), func(t *testing.T) {
				var said bytes.Buffer
				a := world(t, nil)
				a.Stderr, a.Now, a.Hide = &said, time.Now, secret.New()
				c, err := a.loadConfig()
				if err != nil {
					t.Fatal(err)
				}
				rec := &network.Records{Traces: trace.Nowhere("nowhere", errors.New("read-only")), Blobs: network.NewEvidence(nil, a.Hide)}
				if kept {
					if rec, err = a.OpenWorking(c); err != nil {
						t.Fatal(err)
					}
				}
				d := &network.Runner{Name: settings.PI, Host: &a.Host, Settings: c, Records: rec, Warn: a.warn}
				e := storeroom{blobs: blob.NewMem()}
				end := &dispatch.End{Status: dispatch.Done, Trace: blob.Of([]byte("it was there once"))}
				if test.record != "" {
					if end.Trace, err = e.blobs.Put(t.Context(), []byte(test.record)); err != nil {
						t.Fatal(err)
					}
				}
				start := d.BringHome(t.Context(), e, id, end, &marchwarden.Result{TraceID: id})
				if start.Request.Question != test.question || start.Researcher == "" {
					t.Errorf("%+v", start)
				}
				if !strings.Contains(said.String(), test.warning) || strings.Contains(said.String(), "another run") != (name == "another's") {
					t.Errorf("said %q, want %q", &said, test.warning)
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
