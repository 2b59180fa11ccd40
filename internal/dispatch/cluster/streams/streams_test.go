package streams

import (
	"fmt"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Every subject that is kept belongs to the stream that is asked for it.
func TestSubjectsAndStreams(t *testing.T) {
	t.Parallel()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	for subject, stream := range map[string]string{
		TaskSubject(id): StreamTask, CancelSubject(id, 0): StreamTask, CancelSubject(id, 7): StreamTask, DoneSubject(id): StreamDone,
		LogSubject(id, id): StreamLog, WorkSubject("web", 2, "owner", id): StreamWork,
	} {
		if got := streamOf(subject); got != stream {
			t.Errorf("%s is in %s, not in %s", subject, got, stream)
		}
	}
	for subject, fit := range map[string]bool{CancelSubject(id, 0): true, CancelSubject(id, 7): true, TaskSubject(id): false, "mw.cancel.all": false} {
		if got, ok := ParseCancel(subject); ok != fit || fit && got != id {
			t.Errorf("%s is a wish to cancel %s: %v", subject, got, ok)
		}
	}
}

func TestOwnersAreSpread(t *testing.T) {
	t.Parallel()
	var count [Lanes]int
	for i := range 1000 {
		count[laneOf(fmt.Sprint("owner-", i))]++
	}
	for lane, n := range count {
		if n < 60 {
			t.Errorf("lane %d has %d of 1000 owners", lane, n)
		}
	}
}

func TestParseLane(t *testing.T) {
	t.Parallel()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	for subject, fit := range map[string]bool{
		WorkSubject("web", 2, "owner", id): true, WakeSubject("web", 2, laneOf("owner")): true,
		ConsumerConfig("web", 2, laneOf("owner"), 0).FilterSubject: true,
		"mw.work.web.p3.0.x": false, "mw.work.web.p-1.0.x": false, "mw.work.web.p0.8.x": false, "mw.work.web.p0.x.x": false, "mw.work.web.p0.0": false, "": false,
	} {
		queue, band, lane, ok := ParseLane(subject)
		if ok != fit || fit && (queue != "web" || band != 2 || lane != laneOf("owner")) {
			t.Errorf("%q: %q, %d, %d, %v", subject, queue, band, lane, ok)
		}
	}
}
