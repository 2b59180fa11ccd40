// Command marchwarden-lab measures Marchwarden and makes what it ships: suites on public
// data and what they say, the table of confidence, the small models and the packed
// weights. It is for people who change the program, and is no part of it: the program
// imports nothing of package eval.
//
// The package owns flags and printing; models, vectors and settings are opened as the
// program opens them, by package network. main.go turns errors into exit codes, desk.go
// puts together what is measured, folders.go starts the program itself,
// and each command has a file of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

const rootHelp = `Measure Marchwarden on public data, and make what it ships: the table of
confidence, the small models and the packed weights.

The data is no part of the program. It is looked for in the folder that --data
names; 'marchwarden-lab list' shows what is found there. Nothing of it is ever
written. A run without --model needs no network and no key.

Settings are those of marchwarden: the environment, .env, config.yaml in the
home folder. Vectors are made as they say.

EXIT STATUS
  0    done
  1    failed
  2    wrong usage or bad input
  130  interrupted`

const rootExamples = `  marchwarden-lab list --data ~/data
  marchwarden-lab run squad2 --limit 500
  marchwarden-lab compare before.json after.json`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process
	l := newLab(args)
	root := newRoot(l)
	began := false
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	l.style(os.Stderr).Error(l.stderr, err)
	flushed := errors.Join(l.stdout.Flush(), l.stderr.Flush())
	switch {
	case err == nil && flushed == nil:
		return 0
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, marchwarden.CodeCanceled)):
		return 130
	case !began || errors.Is(err, marchwarden.CodeInvalid):
		return 2
	}
	return 1
}

func newRoot(l *lab) *cobra.Command {
	root := &cobra.Command{
		Use: "marchwarden-lab", Short: "measure Marchwarden, and make what it ships", Long: rootHelp, Example: rootExamples,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
	}
	root.SetOut(l.stdout)
	root.SetErr(l.stderr)
	root.AddCommand(newList(l), newRun(l), newCompare(l), newTable(l), newDensity(l), newTrain(l), newPack())
	return root
}

// lab is the world outside, as the commands see it. What is printed and stored goes
// through Hide, which knows the secrets of the settings.
type lab struct {
	network.Host
	stdout, stderr *secret.Writer
}

func newLab(args []string) *lab {
	hide := secret.New(settings.EarlySecrets(os.LookupEnv, args)...)
	l := &lab{stdout: hide.Writer(os.Stdout), stderr: hide.Writer(os.Stderr)}
	say := func(line string) { l.note("%s", line) }
	l.Host = network.Host{
		Env: os.LookupEnv, Environ: os.Environ, Self: os.Executable, Dir: ".", UserHome: os.UserHomeDir, Now: time.Now, NewID: serve.NewTraceID,
		Stderr: l.stderr, Version: version(), Hide: hide, Say: say, Note: say,
		Log: func(*settings.Settings) *slog.Logger { return slog.New(slog.NewTextHandler(l.stderr, nil)) },
	}
	if dir, err := os.Getwd(); err == nil {
		l.Dir = dir
	}
	return l
}

// load reads the settings. What they keep secret is hidden from then on.
func (l *lab) load() (*settings.Settings, error) {
	c, err := settings.Load(l.Source())
	if err == nil {
		l.Hide.Learn(c.Hidden(l.Env)...)
	}
	return c, err
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

func (l *lab) style(f *os.File) term.Style {
	return term.Detect(f, os.Getenv("NO_COLOR") != "", os.Getenv("TERM"))
}

// table prints rows.
func (l *lab) table(head []string, rows [][]string) error {
	return l.style(os.Stdout).Table(l.stdout, head, rows)
}

// note writes a line for people to stderr.
func (l *lab) note(format string, args ...any) {
	fmt.Fprintf(l.stderr, "%s%s\n", term.Prefix, term.CleanLine(fmt.Sprintf(format, args...)))
}

// printf prints for people.
func (l *lab) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(l.stdout, format, args...)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print")
}

// json prints v for programs, with text as it is; on a terminal with escapes in place of
// what would act there.
func (l *lab) json(v any) error {
	var w io.Writer = l.stdout
	if l.style(os.Stdout).Width > 0 {
		w = term.JSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return marchwarden.Wrap(enc.Encode(v), marchwarden.CodeUnavailable, "print JSON")
}

// progress shows how far something is, nothing when quiet.
func (l *lab) progress(name string, quiet bool) *term.Bar {
	if quiet {
		return term.NewBar(io.Discard, name, term.ProgressConfig{Now: time.Now})
	}
	st := l.style(os.Stderr)
	return term.NewBar(l.stderr, name, term.ProgressConfig{Style: st, Live: st.Width > 0, Now: time.Now})
}

// invalid makes the error of an argument or flag that is wrong.
func invalid(field, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// write replaces a file, whole or not at all, which every user may read.
func write(path string, content []byte) error {
	err := durable.ReplaceFile(path, content)
	if err == nil {
		err = os.Chmod(path, 0o644)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", path)
}
