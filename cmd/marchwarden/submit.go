package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const submitHelp = `Ask all questions of a file, one JSON object a line, and write one line for
each into a file of results, in the order in which they are done:

  {"question": "What grows in Utah?", "depth": "shallow", "id": "utah"}

question is needed; context, depth, constraints and id (a name of your own) may
be left out. If any line is wrong, nothing is asked.

Run it again after a crash, a reboot or Ctrl-C, and it goes on: what is in the
results is not asked again, and nothing that was paid for is paid twice. A
question that failed has a line with its error, and is not tried again. Asked of
other folders, another database, other researchers or another model, it is
another question.

Without --engine the work is done in this process, on this machine, and every
run is recorded in the home folder. With it the questions go to a cluster,
whose workers decide what is searched; --records brings their records home,
too, and 'marchwarden watch TRACE-ID' a single one.

EXIT STATUS
  0    every question has its answer
  1    some questions failed, or the work could not go on
  2    wrong usage or bad input; nothing was asked
  130  interrupted; running it again goes on`

const submitExamples = `  marchwarden submit --file questions.jsonl
  marchwarden submit --file questions.jsonl --library ~/papers --parallel 8
  marchwarden submit --file questions.jsonl --engine nats://hub1:4222 --priority low
  jq -r 'select(.status == "done") | .result.answer' questions.results.jsonl`

type submitOptions struct {
	desk      network.Options
	engine    string
	file, out string
	priority  string
	window    int
	parallel  int
	maxRihlas optionalInt
	records   bool
	quiet     bool
}

// The most of a submission.
const (
	defaultWindow   = 64
	maxWindow       = 10_000
	defaultParallel = 4
)

func newSubmit(a *app) *cobra.Command {
	var o submitOptions
	cmd := &cobra.Command{
		Use: "submit --file QUESTIONS.jsonl", Short: "ask all questions of a file; safe to run again", Long: submitHelp, Example: submitExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runSubmit(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "the `FILE` of questions, one JSON object a line")
	f.StringVar(&o.out, "out", "", "the `FILE` of results (default beside the questions, as NAME.results.jsonl)")
	f.StringVar(&o.priority, "priority", priorityNames[dispatch.Normal], "`HOW` urgent: "+strings.Join(priorityNames, ", "))
	f.IntVar(&o.window, "window", defaultWindow, "submit at most `N` questions that are not done")
	f.IntVar(&o.parallel, "parallel", defaultParallel, "work on `N` questions at once, where the work is done here")
	f.BoolVar(&o.records, "records", false, "bring the records of a cluster home, too")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	engineFlag(f, &o.engine)
	f.StringVar(&o.desk.Researcher, "researcher", "", "ask just the researcher `NAME` (default pi, the investigator)")
	f.StringSliceVar(&o.desk.Researchers, "researchers", nil, "`LIST` of the researchers that the investigator may send")
	f.StringSliceVar(&o.desk.AllowEgress, "allow-egress", nil, "`LIST` of researchers whose findings others may be told")
	f.Var(&o.maxRihlas, "max-rihlas", "send at most `N` rihlas for one question")
	f.StringVar(&o.desk.Timeout, "timeout", "", "end the research of one question after this `TIME`, such as 90s")
	workFlags(f, &o.desk)
	complete(cmd, "priority", priorityNames...)
	return cmd
}

var priorityNames = []string{"urgent", "normal", "low"}

// check refuses what is wrong with the options by themselves.
func (o *submitOptions) check() (like dispatch.Task, err error) {
	like.Priority = dispatch.Priority(slices.Index(priorityNames, o.priority))
	name := cmp.Or(o.desk.Researcher, settings.PI)
	like.Wishes = dispatch.Wishes{AllowEgress: o.desk.AllowEgress}
	like.Queue, like.Wishes.Only = network.WorkerFor(name, o.desk.Researchers)
	switch {
	case o.file == "":
		return like, invalid("--file", "for example: marchwarden submit --file questions.jsonl", "is missing")
	case like.Priority < 0:
		return like, invalid("--priority", "", fmt.Sprintf("must be %s, not %q", settings.Either(priorityNames), plaintext.Clip(o.priority, 40)))
	case o.window < 1 || o.window > maxWindow:
		return like, invalid("--window", "", fmt.Sprintf("must be from 1 to %d, not %d", maxWindow, o.window))
	case o.parallel < 1 || o.parallel > network.MaxParallel:
		return like, invalid("--parallel", "", fmt.Sprintf("must be from 1 to %d, not %d", network.MaxParallel, o.parallel))
	case !settings.MemberName.MatchString(name):
		return like, invalid("--researcher", "", fmt.Sprintf("%q is no name of a researcher", plaintext.Clip(name, 40)))
	case name != settings.PI && (len(o.desk.Researchers) > 0 || len(o.desk.AllowEgress) > 0 || o.maxRihlas.v != nil):
		return like, invalid("--researcher", "leave out one of them", "asks one researcher alone, and goes without --researchers, --allow-egress and --max-rihlas")
	}
	if n := o.maxRihlas.v; n != nil {
		if like.Wishes.MaxRihlas = *n; *n < 1 || *n > network.MaxRihlas {
			return like, invalid("--max-rihlas", "", fmt.Sprintf("must be from 1 to %d, not %d", network.MaxRihlas, *n))
		}
	}
	if o.out == "" {
		o.out = strings.TrimSuffix(o.file, filepath.Ext(o.file)) + ".results.jsonl"
	}
	return like, checkOut(o.out)
}

func (a *app) runSubmit(ctx context.Context, o submitOptions) error {
	like, err := o.check()
	if err != nil {
		return err
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	at, err := c.EngineURLFor(o.engine)
	if err != nil {
		return err
	}
	var means []string
	if at == "" {
		means, err = a.means(c, o.desk)
	} else if err = workElsewhere(c, o.desk, "this"); err == nil {
		like.Within, err = flagTime("--timeout", o.desk.Timeout, false)
	}
	if err != nil {
		return err
	}
	like.Owner = a.owner()
	all, err := a.questions(c, o.file, like, means)
	if err != nil {
		return err
	}
	done, err := openResults(o.out)
	if err != nil {
		return err
	}
	defer done.Close()
	left := slices.DeleteFunc(slices.Clone(all), func(q question) bool { return done.has(q.task) })
	n := len(all)
	if len(left) == 0 {
		return a.submitted(n, done.failedOf(all), o)
	}
	e, err := a.openSubmission(ctx, c, at, o)
	if err != nil {
		return errors.Join(err, done.discard())
	}
	s := &submission{a: a, cfg: c, like: like, work: e, out: done, window: o.window, tally: a.newTally(c, n, len(left), o.quiet), charged: chargedBefore(c)}
	err = s.run(ctx, left)
	s.tally.close()
	if err := errors.Join(err, e.Close()); err != nil && ctx.Err() == nil {
		return &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: fmt.Sprintf("%d of %d questions are done", s.tally.done, n), Err: err, Hint: cmp.Or(marchwarden.HintOf(err), "run the same command again to go on")}
	}
	if ctx.Err() != nil && s.tally.done < n {
		hint := "run the same command again to go on"
		if at != "" {
			hint += "; what was submitted continues in the cluster"
		}
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: fmt.Sprintf("%d of %d questions are done", s.tally.done, n), Err: errInterrupted, Hint: hint}
	}
	return a.submitted(n, done.failedOf(all), o)
}

// submitted says how a submission ended that has a line for every question, whichever
// run wrote it.
func (a *app) submitted(all, failed int, o submitOptions) error {
	a.note("%s in %s", term.Plural(all, "result"), o.out)
	if failed > 0 {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("%d of %d questions failed", failed, all), Hint: "their lines in " + o.out + " say why"}
	}
	return nil
}

// questions reads the file of questions.
func (a *app) questions(c *settings.Settings, path string, like dispatch.Task, means []string) ([]question, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, invalid("--file", "", fmt.Sprintf("%q cannot be read: %s", path, durable.Cause(err)))
	}
	defer f.Close()
	all, other, err := readQuestions(f, path)
	if err != nil {
		return nil, err
	}
	if len(other) > 0 {
		a.warn("these fields of the questions are ignored: " + plaintext.Clip(strings.Join(other, ", "), 200))
	}
	for i := range all {
		if all[i].req.Depth == "" {
			all[i].req.Depth = marchwarden.Depth(c.Text(settings.Depth))
		}
		all[i].req.Question, all[i].req.Context = a.Hide.Text(all[i].req.Question), a.Hide.Text(all[i].req.Context)
	}
	return all, nameTasks(all, like, means)
}

// handBack is how long what is under way may continue when a submission is interrupted; its next
// run resumes it either way.
const handBack = 500 * time.Millisecond
