//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestFrontEnds ends a server whose researcher is a cluster while the model thinks: the
// record can be read as far as it is, and the task goes on to its end without the server.
func TestFrontEnds(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	hub := w.background(t, `hub \S+ at (nats://[0-9.:]+);`, "hub", "--listen", "127.0.0.1:0")
	w.background(t, `worker (\S+) serves`, "worker", "--engine", hub, "--researchers", "web", "--model", "openai/gpt-test")
	s := w.serve(t, w.home(t), "pi", "--engine", hub)
	held := w.hold(4)
	c := newHost(t, s.url, "", eraModern)
	c.tasks = true
	id := c.beginTask(t, webtest.Startups)
	arrives(t, held)
	text, err := c.read(t.Context(), "marchwarden://trace/"+id)
	if err != nil || !strings.HasSuffix(text, "\n") || strings.Count(text, "\n") < 2 {
		t.Errorf("%v: the record of a task under way: %q", err, text)
	}
	s.endBy(t, syscall.SIGTERM)
	w.hold(0)
	out, err := w.spec(w.home(t), "follow", "--engine", hub, "--json", id).run(0)
	if err != nil || out.code != exitOK {
		t.Fatalf("%v: exit %d: %s", err, out.code, out.stderr)
	}
	res, err := marchwarden.DecodeResult(out.stdout)
	if err != nil || res.CostMetadata.BudgetExhausted || len(res.Citations) == 0 {
		t.Errorf("%v: it did not go on: %+v", err, res)
	}
}
