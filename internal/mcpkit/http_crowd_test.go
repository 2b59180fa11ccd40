package mcpkit

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// TestOnePanicAmongMany lets one of a hundred calls panic, in the research or in what is
// around it, while all of them are under way: the others get their answers, and the
// server serves on.
func TestOnePanicAmongMany(t *testing.T) {
	calls := 30
	if datatest.Full() {
		calls = 100
	}
	for _, where := range []string{"research", "around"} {
		for _, era := range eras {
			t.Run(where+"/"+era, func(t *testing.T) {
				var inside atomic.Int64
				all := make(chan struct{})
				s, log := newTestServer(t, scripted(func(ctx context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
					if inside.Add(1) == int64(calls) {
						close(all)
					}
					<-all
					if where == "research" && req.Question == "boom" {
						panic("boom in the research")
					}
					return sample(req.Question + " [1]"), nil
				}), func(c *Config) {
					c.MaxConcurrent = calls
					c.text = func(r *marchwarden.Result) string {
						if where == "around" && strings.HasPrefix(r.Answer, "boom") {
							panic("boom around it")
						}
						return r.Answer
					}
				})
				url := listen(t, s, 0)
				said := make([]string, calls)
				var wg sync.WaitGroup
				for i := range calls {
					cs := dialAt(t, url, era, nil)
					wg.Go(func() {
						question := fmt.Sprintf("question %d", i)
						if i == 22 {
							question = "boom"
						}
						said[i] = toolText(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": question}}))
					})
				}
				wg.Wait()
				good := 0
				for i, text := range said {
					switch want := fmt.Sprintf("error=false question %d [1]", i); {
					case text == want:
						good++
					case i != 22 || strings.Contains(text, "boom"):
						t.Errorf("call %d: %s", i, text)
					}
				}
				after := toolText(dialAt(t, url, era, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "and now?"}}))
				if good != calls-1 || after != "error=false and now? [1]" || !strings.Contains(log.String(), "panicked") {
					t.Errorf("%d of %d finished; afterwards %s; the log: %.300s", good, calls, after, log)
				}
				t.Logf("%d of %d finished; the one that panicked got: %s", good, calls, said[22])
			})
		}
	}
}

// heapNow is what is in use after a collection.
func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAbandonedSessions opens sessions and forgets them. When their time is over nothing
// of them is left.
func TestAbandonedSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	const at = 4
	abandoned := 400
	if datatest.Full() {
		abandoned = 2000
	}
	s, _ := newTestServer(t, echo)
	url := listen(t, s, time.Second)
	link := &http.Transport{MaxIdleConnsPerHost: at}
	client := &http.Client{Transport: link}
	defer link.CloseIdleConnections()
	open := func(n int) {
		var wg sync.WaitGroup
		for range at {
			wg.Go(func() {
				for range n / at {
					hello(t, client, url)
				}
			})
		}
		wg.Wait()
	}
	gone := func() bool { return sessions(s) == 0 }
	open(abandoned) // tables that have grown keep their size
	settles(t, "the first sessions end", gone)
	goroutines, heap := runtime.NumGoroutine(), heapNow()

	began := time.Now()
	var most, mostGoroutines atomic.Int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			most.Store(max(most.Load(), int64(sessions(s))))
			mostGoroutines.Store(max(mostGoroutines.Load(), int64(runtime.NumGoroutine())))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	open(abandoned)
	made := time.Since(began)
	settles(t, "all sessions end", gone)
	close(stop)
	watch.Wait()
	settles(t, "goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	// A session that stays holds kilobytes; pools and tables of the runtime come and go by less than this.
	const noise = 1 << 20
	after := heapNow()
	for range 20 {
		if after <= heap+noise {
			break
		}
		time.Sleep(100 * time.Millisecond)
		after = heapNow()
	}
	t.Logf("%d sessions opened in %v: at most %d at once, with %d goroutines; goroutines %d before, %d after; heap %d KB before, %d KB after",
		abandoned, made.Round(time.Millisecond), most.Load(), mostGoroutines.Load(), goroutines, runtime.NumGoroutine(), heap>>10, after>>10)
	if after > heap+noise {
		t.Errorf("the heap grew by %d KB", (after-heap)>>10)
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if len(s.lines.back) > 0 || most.Load() < int64(abandoned)/20 {
		t.Errorf("%d are left; at most %d sessions were open", len(s.lines.back), most.Load())
	}
}

// sessions is how many are open. A request that has none counts as one while it is answered.
func sessions(s *Server) int { return len(slices.Collect(s.mcp.Sessions())) }
