package render

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// grace is how long the browser may take to end by itself once it was told to; so it clears up its own children.
const grace = time.Second

// run starts the browser, has use talk to it and ends it. When run returns, the whole process group is dead.
//
// The browser is started from a thread that stays until it ended: the kernel ends it when its parent thread dies, and that must not happen before this process does.
func (r *Renderer) run(ctx context.Context, args, env []string, use func(*wire) (Page, error)) (Page, error) {
	type outcome struct {
		page Page
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		page, err := r.runHere(ctx, args, env, use)
		done <- outcome{page, err}
	}()
	o := <-done
	return o.page, o.err
}

func (r *Renderer) runHere(ctx context.Context, args, env []string, use func(*wire) (Page, error)) (Page, error) {
	cmd := exec.Command(r.cfg.Chromium, args...)
	cmd.Env = env
	ownGroup(cmd)
	out, in, err := start(ctx, cmd)
	if err != nil {
		return Page{}, err
	}
	hangUp := func() { _, _ = out.Close(), in.Close() } // closing twice is no fault
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killGroup(cmd)
		hangUp() // should a child hold the other ends
	})
	// A document is at most six times as long when every character of it is escaped; what else the browser says is short.
	w := newWire(out, in, 6*r.cfg.MaxBytes+1<<20)
	page, err := use(w)
	w.end()
	if err == nil {
		_, _ = w.send("", "Browser.close", struct{}{}) // if it does not get there, the browser is killed
	} else if !errors.Is(err, errGone) {
		killGroup(cmd) // there is nothing to wait for
	}
	overdue := time.AfterFunc(grace, func() { killGroup(cmd) })
	waitErr := cmd.Wait()
	overdue.Stop()
	if !stop() {
		<-killed
	}
	killGroup(cmd) // what the browser left behind
	hangUp()
	w.reading.Wait()
	switch {
	case ctx.Err() != nil:
		return Page{}, ctx.Err()
	case errors.Is(err, errGone):
		return Page{}, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the browser ended without a document", Err: exitOf(waitErr),
			Hint: "run it by hand with --headless --dump-dom to see why; in a container its sandbox may not be allowed"}
	}
	return page, err
}

// start starts the browser with a pipe for commands, as its file 3, and one for answers, as its file 4. The caller closes the ends that it gets.
func start(ctx context.Context, cmd *exec.Cmd) (out, in *os.File, err error) {
	theirIn, out, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start browser: %w", err)
	}
	in, theirOut, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), out.Close()
		return nil, nil, fmt.Errorf("start browser: %w", err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err = ctx.Err(); err == nil {
		err = cmd.Start()
	}
	_, _ = theirIn.Close(), theirOut.Close() // the browser has its own by now
	if err != nil {
		_, _ = out.Close(), in.Close()
		return nil, nil, fmt.Errorf("start browser: %w", err)
	}
	return out, in, nil
}

func exitOf(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return errors.New(exit.ProcessState.String())
	}
	return err
}
