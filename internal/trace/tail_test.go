package trace

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A tail that reads a trace in any two halves gives the steps that Read gives, each once,
// and reads on at the line that it had not whole.
func TestTailReadsOn(t *testing.T) {
	whole := threeLines(t)
	log, err := Read(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		var tail Tail
		first, err := tail.Next(bytes.NewReader(whole[:cut]))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if want := int64(bytes.LastIndexByte(whole[:cut], '\n') + 1); tail.Offset() != want || tail.Lines() != len(first) {
			t.Fatalf("cut at %d: it reads on at %d after %d lines, want %d", cut, tail.Offset(), tail.Lines(), want)
		}
		rest, err := tail.Next(bytes.NewReader(whole[tail.Offset():]))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if diff := cmp.Diff(log.Steps, append(first, rest...)); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

// A changed line is refused for good, after what stands before it; a reader that fails is
// not the trace's fault.
func TestTailOfWhatIsWrong(t *testing.T) {
	lines := strings.SplitAfter(string(threeLines(t)), "\n")
	var tail Tail
	broken := errors.New("for a moment")
	if _, err := tail.Next(iotest.ErrReader(broken)); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Fatal(err)
	}
	if steps, err := tail.Next(strings.NewReader(lines[0] + "{\"st\n")); err != nil || len(steps) != 1 {
		t.Fatalf("a line that is none, at the end: %d steps, %v", len(steps), err)
	}
	changed := strings.Replace(lines[2], "\"step\":3", "\"step\":3,\"x\":1", 1)
	steps, err := tail.Next(strings.NewReader(lines[1] + changed))
	if len(steps) != 1 || !errors.Is(err, marchwarden.CodeCorrupt) || !strings.Contains(err.Error(), "trace line 3") {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	if steps, again := tail.Next(strings.NewReader(lines[2])); len(steps) != 0 || again != err {
		t.Errorf("it reads on: %d steps, %v", len(steps), again)
	}
}
