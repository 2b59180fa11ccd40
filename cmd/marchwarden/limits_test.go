//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// limitWorld is a rack that counts what its services are asked.
type limitWorld struct {
	*rack
	work    []string // the flags of the worker
	limited []string // the services that are limited
	// allowed is what the limits allow of each in a day: less than the questions take. A
	// day's limit fails at once instead of waiting.
	allowed int
}

// newLimitWorld has questions for the web and a model.
func newLimitWorld(t *testing.T) *limitWorld {
	w := &limitWorld{rack: newRack(t), work: []string{"--researchers", "web", "--model", "openai/gpt-test"}, limited: []string{"openai", "searxng"}, allowed: 2}
	var questions strings.Builder
	for _, q := range []string{webtest.Startups, "What are ideal crops for a garden in Utah?", aboutBoats} {
		fmt.Fprintf(&questions, "{\"question\": %q}\n", q)
	}
	write(t, filepath.Join(w.dir, "questions.jsonl"), questions.String())
	return w
}

// rules are the limits, each after a flag if there is one.
func (w *limitWorld) rules(flag ...string) (out []string) {
	for _, service := range w.limited {
		out = append(append(out, flag...), fmt.Sprintf("%s requests %d/day", service, w.allowed))
	}
	return out
}

// submit asks all questions, and holds what was asked of the services to what is allowed.
// One that was not asked at all would prove nothing.
func (w *limitWorld) submit(t *testing.T, flags ...string) {
	t.Helper()
	out, err := w.spec(w.home(t), append([]string{"submit", "--file", "questions.jsonl", "--quiet"}, flags...)...).run(0)
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile(filepath.Join(w.dir, "questions.results.jsonl"))
	if err != nil || strings.Count(string(results), "\n") != 3 {
		t.Fatalf("%v: %s\n%s", err, results, out.stderr)
	}
	asked := map[string]int{"openai": len(w.models.Turns()), "searxng": len(w.site.Queries())}
	for _, service := range w.limited {
		if n := asked[service]; n < 1 || n > w.allowed {
			t.Errorf("%s was asked %d times, want 1 to %d", service, n, w.allowed)
		}
	}
}

// What the settings limit holds for all questions of a submission together.
func TestLimitsOfSubmit(t *testing.T) {
	t.Parallel()
	w := newLimitWorld(t)
	w.env = append(w.env, "MARCHWARDEN_LIMITS="+strings.Join(w.rules(), ", "))
	w.submit(t, w.work...)
}

// What a hub limits holds for all that its workers do.
func TestLimitsOfACluster(t *testing.T) {
	t.Parallel()
	w := newLimitWorld(t)
	hub := w.background(t, `hub \S+ at (nats://[0-9.:]+);`, append([]string{"hub", "--listen", "127.0.0.1:0"}, w.rules("--limit")...)...)
	w.background(t, `worker (\S+) serves`, append([]string{"worker", "--engine", hub}, w.work...)...)
	w.submit(t, "--engine", hub)
}

// background runs the program in a home of its own until the end of the test, and returns
// what the first group of an expression matches in what it says.
func (r *rack) background(t *testing.T, until string, args ...string) string {
	t.Helper()
	spec := r.spec(r.home(t), args...)
	cmd, said, ended := exec.Command(spec.program, spec.args...), &noted{}, make(chan struct{})
	cmd.Env, cmd.Dir, cmd.Stderr = slices.Clone(spec.env), spec.dir, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // killed, or it says why not
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // or it has ended
		<-ended
	})
	want, found := regexp.MustCompile(until), ""
	eventually(t, until, func() bool {
		select {
		case <-ended:
			t.Fatalf("it ended: %s", said)
		default:
		}
		m := want.FindStringSubmatch(said.String())
		if m != nil {
			found = m[1]
		}
		return m != nil
	})
	return found
}
