//go:build unix

package streams_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSixProcesses is the bar with processes of their own, one of which is stopped twice.
func TestSixProcesses(t *testing.T) {
	if !longer() {
		t.Skip("set MARCHWARDEN_TEST_CLUSTER=1")
	}
	t.Parallel()
	for _, n := range []int{10, 50} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s, p := serve(t, fmt.Sprintf("acme requests %d/s", n)), newProvider(t)
			var workers []*exec.Cmd
			for range 6 {
				c := exec.Command(os.Args[0])
				c.Env = append(os.Environ(), childEnv+"="+s.ClientURL()+" "+p.URL)
				c.Stderr = os.Stderr
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				workers = append(workers, c)
			}
			for range 2 {
				time.Sleep(childLasts / 4)
				_ = workers[0].Process.Signal(syscall.SIGSTOP)
				time.Sleep(700 * time.Millisecond)
				_ = workers[0].Process.Signal(syscall.SIGCONT)
			}
			for _, c := range workers {
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
			}
			report(t, p.arrivals(), float64(n), 0.8) // a sixth of the time ahead is lost at each stop
		})
	}
}
