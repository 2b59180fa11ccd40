package trace

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const childDir = "TRACE_TEST_CHILD_DIR"

// TestMain turns the test binary into the process that is to be killed when its
// environment says so.
func TestMain(m *testing.M) {
	if path := os.Getenv(childDir); path != "" {
		if err := appendForEver(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	holdLimit = 50 * time.Millisecond
	os.Exit(m.Run())
}

// appendForEver appends to the one trace of a folder and says which step was
// acknowledged.
func appendForEver(path string) error {
	d, err := OpenDir(path, time.Now)
	if err != nil {
		return err
	}
	ids, err := d.List()
	if err != nil {
		return err
	}
	w, log, err := d.Append(ids[0])
	if err != nil {
		return err
	}
	for n := len(log.Steps) + 1; ; n++ {
		if err := w.Append(&Message{Head: Head{Decision: decision(n)}, Iteration: n}); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// decision is the text of the nth step, of a length that varies.
func decision(n int) string { return strings.Repeat(strconv.Itoa(n)+" ", 1+n*37%400) }

// However often a process is killed at its work, what was acknowledged is there
// and the trace goes on.
func TestNothingAcknowledgedIsLostToKill(t *testing.T) {
	d := newDir(t)
	id := testID(t, 1)
	w, err := d.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged, torn := 0, 0
	rnd := rand.New(rand.NewPCG(1, 2))
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		acknowledged = max(acknowledged, killed(t, d.Path(), time.Duration(rnd.IntN(30_000))*time.Microsecond))
		log, err := d.Load(id)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if log.Torn > 0 {
			torn++
		}
		if len(log.Steps) < acknowledged {
			t.Fatalf("round %d: %d steps were acknowledged, %d are there", round, acknowledged, len(log.Steps))
		}
		for i, s := range log.Steps {
			if m := s.(*Message); m.Iteration != i+1 || m.Decision != decision(i+1) {
				t.Fatalf("round %d: step %d is another: %+v", round, i+1, m)
			}
		}
	}
	if acknowledged < rounds {
		t.Errorf("only %d steps were acknowledged in %d rounds: the test proves little", acknowledged, rounds)
	}
	t.Logf("%d steps acknowledged, %d torn lines met", acknowledged, torn)
}

// killed runs the child, kills it that long after its first step and returns the
// last step it acknowledged.
func killed(t *testing.T, path string, after time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+path)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	last := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			break // the number itself was cut
		}
		if last == 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		last = n
	}
	if last == 0 {
		t.Fatalf("the child acknowledged nothing: %s", said.String())
	}
	return last
}
