// Command marchwarden asks researchers and shows what they found.
//
// The package owns flags, configuration, the environment, the clock, ids, the
// streams and exit codes, and it is the only place that does. main.go turns
// errors into exit codes, config.go finds every setting and where it came from,
// wire.go puts the parts together, and each command has a file of its own: an
// options struct, a constructor for its flags, and a plain run function.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client/login"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
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

// app is the world outside, as the commands see it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)
	environ        func() []string
	self           func() (string, error) // the path of this program
	dir            string                 // the working directory, where .env is
	userHome       func() (string, error) // the home folder of the user
	now            func() time.Time
	newID          func() marchwarden.TraceID

	// logFormat is the persistent flag --log-format; "" leaves it to the settings.
	logFormat string
	// noColor is the setting, once the settings are read.
	noColor bool
	// home is the home folder, once the settings are read.
	home string
	// reader is who reads stderr.
	reader listener
	// hide knows the secrets of the settings, and takes them out of what is printed
	// and stored. Nil knows none.
	hide *secret.Redactor
	// limits are what this process shares of providers with the others that work for its
	// engine; nil where there is none.
	limits func(key string) dispatch.Limiter
	// look says how to write to a stream, where a test decides; nil looks at the stream.
	look func(io.Writer) term.Style
	// tracer sends spans to a collector, once research begins and if OTEL_* says so; traced
	// says that it was asked. Several desks may be open at once: it is not asked again.
	tracer *telemetry.Tracer
	traced bool
}

// source is where the settings of this program are read from.
func (a *app) source() settings.Source {
	return settings.Source{Env: a.env, Dir: a.dir, UserHome: a.userHome, Warn: a.warn, LogFormat: a.logFormat}
}

// loadConfig reads the settings. The app learns about colour, the home folder and what to hide.
func (a *app) loadConfig() (*settings.Settings, error) {
	c, err := settings.Load(a.source())
	if c != nil {
		a.home = c.Home()
	}
	if err != nil {
		return nil, err
	}
	a.noColor = c.On(settings.NoColor)
	if a.hide != nil {
		a.hide.Learn(append(c.Hidden(a.env), login.Secrets(c.LoginsPath())...)...)
	}
	return c, nil
}

func main() {
	ctx, stop := interruptible(context.Background())
	code := run(ctx, system(), os.Args[1:])
	stop()
	os.Exit(code)
}

// system is the app of a real process.
func system() *app {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // a deleted working directory: there is no .env in it either
	}
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.LookupEnv, environ: os.Environ, self: selfPath, dir: dir, userHome: os.UserHomeDir,
		now: time.Now, newID: serve.NewTraceID,
	}
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

// run executes one command line and returns its exit code. It is the only place
// that turns errors into codes and writes them, and the door of all that is printed:
// no secret of the settings passes it.
func run(ctx context.Context, a *app, args []string) int {
	a.hide = secret.New(settings.EarlySecrets(a.env, args)...)
	stdout, stderr := a.hide.Writer(a.stdout), a.hide.Writer(a.stderr)
	a.stdout, a.stderr = stdout, stderr
	code := execute(ctx, a, args)
	if err := errors.Join(stdout.Flush(), stderr.Flush()); err != nil && code == exitOK {
		return exitFailed // nobody is left to be told
	}
	return code
}

func execute(ctx context.Context, a *app, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	a.endTracing()
	if err == nil {
		return exitOK
	}
	var told verdict
	if errors.As(err, &told) {
		return int(told)
	}
	a.complain(a.advised(err))
	return exitCode(ctx, err)
}

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

// invalid makes the error of an argument, flag or setting that is wrong.
func invalid(field, hint, message string) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: message, Hint: hint}
}

// outStyle and errStyle look at the two streams. NO_COLOR is honoured even where
// the settings could not be read.
func (a *app) outStyle() term.Style { return a.style(a.stdout) }
func (a *app) errStyle() term.Style { return a.style(a.stderr) }

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
	if door, ok := w.(*secret.Writer); ok {
		w = door.Unwrap()
	}
	f, _ := w.(*os.File)
	never, _ := a.env("NO_COLOR")
	name, _ := a.env("TERM")
	return term.Detect(f, a.noColor || never != "", name)
}
