//go:build unix

package bert

import (
	"syscall"
	"time"
)

// processorTime is what the process has used so far, which on a busy machine says
// more than the time that passed.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
