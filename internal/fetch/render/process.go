package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// grace is how long the browser may take to end by itself once its output is complete; so it clears up its own children.
const grace = time.Second

// run starts the browser and returns what it writes. When run returns, the whole process group is dead.
//
// The browser is started from a thread that stays until it ended: the kernel ends it when its parent thread dies, and that must not happen before this process does.
func (r *Renderer) run(ctx context.Context, args, env []string) ([]byte, error) {
	type outcome struct {
		out []byte
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		out, err := r.runHere(ctx, args, env)
		done <- outcome{out, err}
	}()
	o := <-done
	return o.out, o.err
}

func (r *Renderer) runHere(ctx context.Context, args, env []string) ([]byte, error) {
	cmd := exec.Command(r.cfg.Chromium, args...)
	cmd.Env = env
	ownGroup(cmd)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start browser: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start browser: %w", err)
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killGroup(cmd)
	})
	out, readErr := io.ReadAll(io.LimitReader(stdout, r.cfg.MaxBytes+1))
	tooLarge := int64(len(out)) > r.cfg.MaxBytes
	if tooLarge || readErr != nil {
		killGroup(cmd)
	}
	overdue := time.AfterFunc(grace, func() { killGroup(cmd) })
	waitErr := cmd.Wait()
	overdue.Stop()
	if !stop() {
		<-killed
	}
	killGroup(cmd) // what the browser left behind
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case tooLarge:
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "the document is over %d bytes", r.cfg.MaxBytes)
	case readErr != nil:
		return nil, fmt.Errorf("read from browser: %w", readErr)
	case len(out) == 0 && waitErr != nil:
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the browser ended without a document", Err: exitOf(waitErr),
			Hint: "run it by hand with --headless --dump-dom to see why; in a container its sandbox may not be allowed"}
	}
	return out, nil
}

func exitOf(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(exit.ProcessState.String())
	}
	return err
}
