package jet

import (
	"fmt"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, fit := range map[string]bool{
		"2.12.0": true, "2.15.2": true, "2.12.0-preview.1": true, "3.0.0": true,
		"2.11.9": false, "2.9.10": false, "1.99.0": false, "": false, "x.y": false, "2": false,
	} {
		if err := checkVersion(version); (err == nil) != fit {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestQueueNames(t *testing.T) {
	t.Parallel()
	for name, fit := range map[string]bool{
		"pi": true, "web-2": true, "A_b": true,
		"": false, "a.b": false, "*": false, ">": false, "a b": false, "ä": false, strings.Repeat("x", 65): false,
	} {
		if err := ValidQueue(name); (err == nil) != fit {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Every subject that is kept belongs to the stream that is asked for it.
func TestSubjectsAndStreams(t *testing.T) {
	t.Parallel()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	for subject, stream := range map[string]string{
		TaskSubject(id): StreamTask, CancelSubject(id): StreamTask, DoneSubject(id): StreamDone,
		LogSubject(id, id): StreamLog, WorkSubject("web", 2, "owner", id): StreamWork,
	} {
		if got := streamOf(subject); got != stream {
			t.Errorf("%s is in %s, not in %s", subject, got, stream)
		}
	}
	if got := SeenSubject(id, marchwarden.TraceID{}); got != "mw.seen."+id.String()+".*" {
		t.Error(got)
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
