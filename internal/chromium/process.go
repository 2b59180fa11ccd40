package chromium

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

// Program is a browser to be started.
type Program struct {
	Path   string   // as Find gives it
	Args   []string // must have Flags among them
	Env    []string // all that it learns about this machine
	Stderr *os.File // where its own words go; nil throws them away
}

// Run starts the browser, has use talk to it and ends it. When Run returns, the whole process group is dead, and the wire that use had must not be used any more. A
// browser that is ended because ctx did gives the error of ctx, one that ended by itself a CodeUnavailable error with how it ended in the chain, and every
// other way the error of use.
//
// The browser is started from a thread that stays until it ended: the kernel ends it when its parent thread dies, and that must not happen before this process does.
func Run(ctx context.Context, program Program, use func(*Wire) error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- runHere(ctx, program, use)
	}()
	return <-done
}

func runHere(ctx context.Context, program Program, use func(*Wire) error) error {
	cmd := exec.Command(program.Path, program.Args...)
	cmd.Env = program.Env
	if program.Stderr != nil {
		cmd.Stderr = program.Stderr
	}
	ownGroup(cmd)
	out, in, err := start(ctx, cmd)
	if err != nil {
		return err
	}
	hangUp := func() { _, _ = out.Close(), in.Close() } // closing twice is no fault
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killGroup(cmd)
		hangUp() // should a child hold the other ends
	})
	w := newWire(out, in)
	err = use(w)
	w.end()
	if err == nil {
		_, _ = w.Send("", "Browser.close", struct{}{}) // if it does not get there, the browser is killed
	} else if !errors.Is(err, ErrGone) {
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
		return ctx.Err()
	case errors.Is(err, ErrGone):
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the browser ended without a document", Err: exitOf(waitErr),
			Hint: "run it by hand with --headless --dump-dom to see why; in a container its sandbox may not be allowed"}
	}
	return err
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
