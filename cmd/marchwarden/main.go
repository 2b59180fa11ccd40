// Command marchwarden asks researchers and shows what they found.
//
// The package owns flags, the environment, the clock, ids, the streams and exit codes,
// and it is the only place that does. main.go turns errors into exit codes, root.go
// builds the tree of commands, terminal.go prints, and each command has a constructor
// with its flags and its work.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// The exit codes, as every help text states them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// app is a command at work: its streams, and the program behind them.
type app struct {
	network.Host
	stdin  io.Reader
	stdout io.Writer

	// flags are what flags say in the place of settings.
	flags map[string]settings.Flag
	// json says that the outcome is wanted as JSON.
	json bool
	// reader is who reads stderr.
	reader listener
	// look says how to write to a stream, where a test decides; nil looks at the stream.
	look func(io.Writer) term.Style
}

// loadConfig reads the settings. The app learns what to hide.
func (a *app) loadConfig() (*settings.Settings, error) {
	from := a.Source()
	from.Flags = a.flags
	c, err := settings.Load(from)
	if err != nil {
		return nil, err
	}
	if a.Hide != nil {
		a.Hide.Learn(append(c.Hidden(a.Env), client.LoginSecrets(c.LoginsPath())...)...)
	}
	return c, nil
}

func main() {
	ctx, stop := interruptible(context.Background())
	code := command(ctx, system(), os.Args[1:])
	stop()
	os.Exit(code)
}

// system is the app of a real process.
func system() *app {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // a deleted working directory: there is no .env in it either
	}
	return (&app{
		stdin: os.Stdin, stdout: os.Stdout,
		Host: network.Host{Env: os.LookupEnv, Environ: os.Environ, Self: selfPath, Dir: dir, UserHome: os.UserHomeDir, Now: time.Now, NewID: serve.NewTraceID, Stderr: os.Stderr},
	}).ready()
}

// ready lets the researchers of the program speak by its streams.
func (a *app) ready() *app {
	a.Version, a.Say, a.Log = programVersion(), a.warn, a.logger
	a.Host.Note = func(line string) { a.note("%s", line) }
	return a
}

// errInterrupted is why a context ended that a signal ended.
var errInterrupted = errors.New("interrupted")

// interruptible ends the context at the first SIGINT, SIGTERM or SIGHUP, so that a run
// can hand over what it has, and the process at the second.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	stops := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup means it
		stops = append(stops, syscall.SIGHUP)
	}
	signal.Notify(signals, stops...)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel(errInterrupted)
		if _, ok := <-signals; ok {
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// command executes one command line and returns its exit code. It is the only place
// that turns errors into codes and writes them, and the door of all that is printed:
// no secret of the settings passes it.
func command(ctx context.Context, a *app, args []string) int {
	a.Hide = secret.New(settings.EarlySecrets(a.Env, args)...)
	stdout, stderr := a.Hide.Writer(a.stdout), a.Hide.Writer(a.Stderr)
	a.stdout, a.Stderr = stdout, stderr
	code := execute(ctx, a, args)
	if err := errors.Join(stdout.Flush(), stderr.Flush()); err != nil && code == exitOK {
		return exitFailed // stderr is gone: there is nowhere to report to
	}
	return code
}

func execute(ctx context.Context, a *app, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if told, is := errors.AsType[verdict](err); is {
		return int(told)
	}
	said := err
	if errors.Is(err, syscall.ENOSPC) && marchwarden.HintOf(err) == "" {
		said = &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: err.Error(), Hint: "make room on the disk"}
	}
	a.complain(said)
	return exitCode(ctx, err)
}

// invalid makes the error of an argument, flag or setting that is wrong.
var invalid = settings.Invalid

// verdict is the exit code of a command that did its work and whose finding is no
// failure: it was printed, and there is nothing to complain about.
type verdict int

func (v verdict) Error() string { return "exit status " + strconv.Itoa(int(v)) }

func exitCode(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case marchwarden.CodeOf(err) == marchwarden.CodeCanceled && errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted
	case errors.Is(err, marchwarden.CodeInvalid):
		return exitUsage
	}
	return exitFailed
}

// outStyle and errStyle look at the two streams.
func (a *app) outStyle() term.Style { return a.style(a.stdout) }
func (a *app) errStyle() term.Style { return a.style(a.Stderr) }

// forPrograms is stdout for JSON. A person who looks at it on a terminal gets the same
// JSON with escapes in place of what would act there.
func (a *app) forPrograms() io.Writer {
	if a.outStyle().Width > 0 {
		return term.JSON(a.stdout)
	}
	return a.stdout
}

func (a *app) style(w io.Writer) term.Style {
	if a.look != nil {
		return a.look(w)
	}
	never, _ := a.Env("NO_COLOR")
	name, _ := a.Env("TERM")
	if door, ok := w.(*secret.Writer); ok {
		w = door.Unwrap()
	}
	f, _ := w.(*os.File) // nil is no terminal
	return term.Detect(f, never != "", name)
}

// selfPath is the program that is running, by the name that it was started by if
// that is the same file.
func selfPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	called, err := exec.LookPath(os.Args[0])
	if err == nil {
		called, err = filepath.Abs(called)
	}
	a, errA := os.Stat(called)
	b, errB := os.Stat(exe)
	if errors.Join(err, errA, errB) == nil && os.SameFile(a, b) {
		return called, nil
	}
	return exe, nil
}
