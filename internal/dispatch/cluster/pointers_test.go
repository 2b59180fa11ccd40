package cluster_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/dispatchtest"
)

// publish writes what the holder of a client's key may write, by another way than Submit.
func publish(t *testing.T, e *cluster.Engine, subject, data string) {
	t.Helper()
	if _, _, err := e.Conn().Publish(t.Context(), streams.Message{Subject: subject, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

func queued(t *testing.T, e *cluster.Engine, subject string) bool {
	t.Helper()
	_, found, err := e.Conn().Last(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A pointer leads a worker to a task of its own queue, in its own place, or nowhere.
func TestPointersFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 15*time.Second)
	e, g := w.open(t, "one"), newGate()
	files, usual := dispatchtest.Task("files"), dispatchtest.Task("web")
	if err := e.Submit(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(usual)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, e, streams.TaskSubject(usual.ID), string(spec))
	badName, noTask := dispatchtest.ID(), dispatchtest.ID()
	publish(t, e, streams.TaskSubject(badName), `{"id":"`+badName.String()+`","queue":"a b"}`)
	publish(t, e, streams.TaskSubject(noTask), "{")
	forged := map[string]string{
		"of another queue":      streams.WorkSubject("web", int(files.Priority), files.Owner, files.ID),
		"of a less urgent band": streams.WorkSubject("web", int(dispatch.Urgent), usual.Owner, usual.ID),
		"of no queue":           streams.WorkSubject("web", int(dispatch.Normal), "", badName),
		"unreadable":            streams.WorkSubject("web", int(dispatch.Normal), "", noTask),
	}
	badEnd := dispatchtest.Task("web")
	if err := e.Submit(t.Context(), badEnd); err != nil {
		t.Fatal(err)
	}
	publish(t, e, streams.DoneSubject(badEnd.ID), "{")
	for _, subject := range forged {
		publish(t, e, subject, "")
	}
	work(t, e, 4, g.handle)
	for what, subject := range forged {
		eventually(t, "dropped the pointer to a task "+what, func() bool { return !queued(t, e, subject) })
	}
	if _, err := e.Look(t.Context(), badName); !errors.Is(err, marchwarden.CodeCorrupt) {
		t.Errorf("a task of no queue: %v", err)
	}
	for _, task := range []dispatch.Task{files, badEnd} {
		if !queued(t, e, cluster.WorkSubject(task)) {
			t.Errorf("task %s, of another queue or with a damaged end, does not wait any more", task.ID)
		}
	}
	if err := e.Requeue(t.Context(), usual); err != nil { // as the steward does
		t.Fatal(err)
	}
	if task := g.next(t); task.ID != usual.ID {
		t.Errorf("task %s of the queue %s was begun", task.ID, task.Queue)
	}
	close(g.let)
	ended(t, e, usual)
}
