//go:build unix

package client

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that closes its ears, ignores being told to end and has children is
// ended with all of them.
func TestNoProcessIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	var said lockedBuffer
	far := target(t, "deaf")
	far.Stderr = &said
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the dialer gives up before this does
		for ctx.Err() == nil && !strings.HasSuffix(said.String(), "\n") {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	if _, err := testDialer().Dial(ctx, far); err == nil {
		t.Fatal("it answered")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(said.String(), "sleeper ")))
	if err != nil {
		t.Fatalf("%v in %q", err, said.String())
	}
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// zombie tells whether a process has ended and was not waited for, where that can be known.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
