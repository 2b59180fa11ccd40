//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestZZMem(t *testing.T) {
	era := os.Getenv("ZZERA")
	w := newHTTPWorld(t)
	a := system()
	log := &noted{}
	env := map[string]string{}
	for _, e := range w.spec(w.home(t)).env {
		k, v, _ := strings.Cut(e, "=")
		env[k] = v
	}
	a.stdout, a.stderr, a.dir = log, log, w.dir
	a.env = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	a.environ = func() []string { return nil }
	a.userHome = func() (string, error) { return env["HOME"], nil }
	go run(t.Context(), a, []string{"serve", "files", "--http", "127.0.0.1:0", "--library", "notes", "--model", "openai/gpt-test", "--max-calls", "200", "--rate", "100000"})
	var url string
	eventually(t, "serve", func() bool {
		if m := servingAt.FindStringSubmatch(log.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	began := time.Now()
	var wg sync.WaitGroup
	l := &load{}
	for i := range 50 {
		c := newHost(t, url, "", era)
		wg.Go(func() {
			for n := 0; time.Since(began) < 50*time.Second; n++ {
				l.sent.Add(1)
				if _, err := c.research(t.Context(), map[string]any{"question": fmt.Sprintf("%s %d %d?", aboutBoats, i, n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 2 {
		time.Sleep(20 * time.Second)
		runtime.GC()
		f, _ := os.Create(fmt.Sprintf("/tmp/mw-http/heap%d.pb", i))
		pprof.Lookup("heap").WriteTo(f, 0)
		f.Close()
		fmt.Println(l.sent.Load())
	}
	wg.Wait()
}
