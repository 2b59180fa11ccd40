package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// grace is how long the browser may take to end by itself once it was told to; so it clears up its own children.
const grace = time.Second

// program is a browser to be started.
type program struct {
	Path   string   // as Find gives it
	Args   []string // must have Flags among them
	Env    []string // all that it learns about this machine
	Stderr *os.File // where its own words go; nil throws them away
}

// run starts the browser, has use talk to it and ends it. The wire that use had must not be used any more when it returns. A
// browser that is ended because ctx did gives the error of ctx, one that ended by itself an error with how it ended, and every
// other way the error of use. Should this process die, the browser loses its pipe, and ends.
func run(ctx context.Context, what program, use func(*wire) error) error {
	cmd := exec.Command(what.Path, what.Args...)
	cmd.Env = what.Env
	if what.Stderr != nil {
		cmd.Stderr = what.Stderr
	}
	out, in, err := start(ctx, cmd)
	if err != nil {
		return err
	}
	hangUp := func() { _, _ = out.Close(), in.Close() } // closing twice is no fault
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		_ = cmd.Process.Kill() // its children end when they lose it
		hangUp()               // should a child hold the other ends
	})
	w := newWire(out, in)
	err = use(w)
	close(w.ended)
	if err == nil {
		_, _ = w.Send("", "Browser.close", struct{}{}) // if it does not get there, the browser is killed
	} else if !errors.Is(err, errGone) {
		_ = cmd.Process.Kill() // there is nothing to wait for
	}
	overdue := time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
	waitErr := cmd.Wait()
	overdue.Stop()
	if !stop() {
		<-killed
	}
	hangUp()
	w.reading.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errGone):
		return fmt.Errorf("the browser ended: %w", exitOf(waitErr))
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
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return errors.New(exit.ProcessState.String())
	}
	return err
}
