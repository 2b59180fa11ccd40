//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestACrowdAtOnce has many callers ask at the same moment: all are answered, in turn or
// at once, and none costs more than a megabyte.
func TestACrowdAtOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	callers := 12
	if longTests() {
		callers = 1000
	}
	pi := []string{"pi", "--library", "notes", "--model", "openai/gpt-test", "--max-wall", "never"}
	servers := map[string][]string{"pi": pi, "pi at once": append(slices.Clone(pi), "--max-calls", fmt.Sprint(callers))}
	if longTests() {
		servers["web"] = append(slices.Clone(servings["web"]), "--max-wall", "never")
	}
	for name, args := range servers {
		t.Run(name, func(t *testing.T) {
			w := newHTTPWorld(t)
			question := webtest.Startups
			if strings.HasPrefix(name, "pi") {
				w.env = append(w.env, "MARCHWARDEN_ONLINE=false") // files is all there is
				question = aboutBoats
			}
			s := w.serve(t, w.home(t), args...)
			first := newHost(t, s.url, "", eraModern)
			if _, err := first.research(t.Context(), map[string]any{"question": question}); err != nil {
				t.Fatal(err)
			}
			memory := func() (kb int) {
				for _, pid := range append(childrenOf(s.cmd.Process.Pid), s.cmd.Process.Pid) {
					_, most := residentKB(pid)
					kb += most
				}
				return kb
			}
			before := memory()
			l := &load{ids: map[marchwarden.TraceID]bool{}}
			began := time.Now()
			var wg sync.WaitGroup
			for i := range callers {
				c := newHost(t, s.url, "", eraModern)
				wg.Go(func() { l.ask(t.Context(), c, fmt.Sprintf("%s Caller %d asks.", question, i)) })
			}
			wg.Wait()
			more := (memory() - before) / callers
			times := sortedTimes(l.took)
			t.Logf("%d calls at once: %d answered in %v, p50 %v; %d kB each", callers, len(l.took), time.Since(began).Round(time.Millisecond), percentile(times, 50).Round(time.Millisecond), more)
			if len(l.took) != callers {
				t.Errorf("%d of %d calls were answered: %.600q", len(l.took), callers, l.fails)
			}
			if more > 1<<10 && longTests() { // what one call costs at all is in few of them
				t.Errorf("a call takes %d kB", more)
			}
			s.endBy(t, syscall.SIGTERM)
		})
	}
}
