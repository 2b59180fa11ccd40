//go:build unix

package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// TestToldToEnd sends SIGTERM to a server that has calls of both eras under way: they get what
// there is, nothing new is let in, and no call is left.
func TestToldToEnd(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	s := w.serve(t, home, servings["pi"]...)
	held := w.hold(6) // two investigations that have asked others already, and can end on no answer of theirs
	type got struct {
		era string
		res *marchwarden.Result
		err error
		at  time.Time
	}
	answers := make(chan got, len(bothEras))
	for _, era := range bothEras {
		c := newHost(t, s.url, "", era)
		go func() {
			res, err := c.research(t.Context(), map[string]any{"question": webtest.Startups})
			answers <- got{era, res, err, time.Now()}
		}()
	}
	arrives(t, held)
	children := len(childrenOf(s.cmd.Process.Pid))
	ready := watchReady(t, s)
	told := time.Now()
	s.endBy(t, syscall.SIGTERM)
	ended := time.Since(told)
	for range bothEras {
		a := <-answers
		if a.err != nil {
			t.Errorf("%s: %v", a.era, a.err)
			continue
		}
		if took := a.at.Sub(told); took > 8*time.Second || // 2 s are promised, on a machine that is not busy
			!a.res.CostMetadata.BudgetExhausted {
			t.Errorf("%s: answered after %v: %+v", a.era, took, a.res.CostMetadata)
		}
		w.verified(t, home, a.res.TraceID.String())
		t.Logf("%s: %v after the signal: %d citations, %d gaps", a.era, a.at.Sub(told).Round(time.Millisecond), len(a.res.Citations), len(a.res.Gaps))
	}
	before, during, after := ready()
	if before == 0 || during == 0 || after != 0 {
		t.Errorf("/readyz was 200 %d times, then 503 %d times, then 200 %d times", before, during, after)
	}
	w.deserted(t)
	t.Logf("%d children; the server ended %v after the signal; /readyz 200 %d times, then 503 %d times", children, ended.Round(time.Millisecond), before, during)
}

// watchReady asks /readyz over and over. The function that it returns waits until the server is
// gone, and says how often it was 200 before the first 503, 503, and 200 after that.
func watchReady(t *testing.T, s *served) func() (before, during, after int) {
	t.Helper()
	var wg sync.WaitGroup
	var before, during, after int
	seen := make(chan struct{})
	client := &http.Client{Transport: &http.Transport{}}
	wg.Go(func() {
		defer client.CloseIdleConnections()
		for {
			resp, err := client.Get(strings.TrimSuffix(s.url, "/mcp") + "/readyz")
			if err != nil {
				return
			}
			resp.Body.Close()
			switch {
			case resp.StatusCode != http.StatusOK:
				during++
			case during > 0:
				after++
			default:
				if before++; before == 1 {
					close(seen)
				}
			}
		}
	})
	arrives(t, seen)
	return func() (int, int, int) {
		wg.Wait()
		return before, during, after
	}
}

// TestGone has clients go away in the middle of a call: the work is stopped, and what there
// was can be read.
func TestGone(t *testing.T) {
	t.Parallel()
	eras := []string{eraModern}
	if longTests() {
		eras = bothEras // one of the earlier protocol may come back for ten seconds
	}
	for _, era := range eras {
		w := newHTTPWorld(t)
		home := w.home(t)
		s := w.serve(t, home, servings["web"]...)
		held := w.hold(3)
		c := newHost(t, s.url, "", era)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.research(ctx, map[string]any{"question": webtest.Startups})
			done <- err
		}()
		arrives(t, held)
		left := time.Now()
		leave()
		<-done
		records, err := filepath.Glob(filepath.Join(home, ".marchwarden", "runs", "*.json"))
		if err != nil || len(records) != 1 {
			t.Fatalf("%q, %v", records, err)
		}
		id := strings.TrimSuffix(filepath.Base(records[0]), ".json")
		eventually(t, "the work is stopped", func() bool {
			record, err := os.ReadFile(records[0])
			return err == nil && strings.Contains(string(record), `"ended":`)
		})
		took := time.Since(left)
		text, err := newHost(t, s.url, "", era).read(t.Context(), "marchwarden://result/"+id)
		if err != nil {
			t.Fatal(err)
		}
		res, err := marchwarden.DecodeResult([]byte(text))
		if err != nil || !res.CostMetadata.BudgetExhausted || len(res.Citations) == 0 {
			t.Errorf("%v: what there was: %+v", err, res)
		}
		if len(w.models.Turns()) != 3 {
			t.Errorf("%d turns of the model after the client had gone", len(w.models.Turns())-3)
		}
		t.Logf("%s: stopped %v after the client had gone, with %d citations", era, took.Round(time.Millisecond), len(res.Citations))
		s.endBy(t, syscall.SIGTERM)
	}
}
