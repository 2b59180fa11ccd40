package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

const verifyHelp = `Check a result against the stored bytes: every excerpt at its place in the
stored text, every claim and marker against the citations, every citation
against what the recorded run fetched, and every stored piece of that run
against its hash. Of an investigation the runs of its researchers are checked
too, as far as they are recorded here.

How the claims were judged is shown, and they are judged again, without a
language model: one that its excerpts contradict or say nothing of does not
stand. What the judge merely cannot confirm is no failure.

With --online the web servers and registries are asked, too, whether what the
citations point to is there: pages answered or gone, DOIs and arXiv ids
registered or absent, papers retracted. What could not be checked, because
servers are down, is unchecked: it is shown and is no failure. Only locators of
the web and of papers are sent.

The argument is a trace ID, a file with a result as JSON, a bundle that
'marchwarden export' wrote, or - for either on stdin. A bundle is checked alone:
every byte of it, its signature, that its runs give the same results again, and
then its citations. That needs no home, no settings and, without --online, no
network.

` + idHelp + `

EXIT STATUS
  0    everything stands; with --online, locators may be unchecked
  1    something does not stand, or cannot be read; it is named
  2    wrong usage or bad input
  130  interrupted`

type verifyOptions struct {
	live   bool
	online bool
	db     string
	by     []string
}

func newVerify(a *app) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify ID | FILE.json | FILE.mwz | -", Short: "check every citation against the stored bytes", Long: verifyHelp,
		Example: "  marchwarden verify last\n  marchwarden verify result.json\n  marchwarden verify --online last\n  marchwarden verify --by colleague.pub answer.mwz\n  marchwarden ask --json \"…\" | marchwarden verify -",
		Args:    argCount(1, 1, "one trace id or file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return stopped(cmd.Context(), unfinishedCheck, a.runVerify(cmd.Context(), o, args[0]))
		},
	}
	cmd.Flags().BoolVar(&o.live, "live", false, "also run the queries behind citations of a database again, and compare the rows")
	cmd.Flags().BoolVar(&o.online, "online", false, "also ask whether the cited pages and papers are still there, and whether papers were retracted")
	cmd.Flags().StringVar(&o.db, "db", "", "the database at `URL` for --live (default MARCHWARDEN_DB)")
	cmd.Flags().StringArrayVar(&o.by, "by", nil, byUsage)
	return cmd
}

// stopped is the error of a command, in plain words if it says no more than that the
// user ended it; message is what that leaves.
func stopped(ctx context.Context, message string, err error) error {
	ended := marchwarden.CodeOf(err) == marchwarden.CodeCanceled || errors.Is(err, context.Canceled)
	if !ended || errors.Is(err, errInterrupted) || !errors.Is(context.Cause(ctx), errInterrupted) {
		return err
	}
	return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: message, Err: errInterrupted}
}

const unfinishedCheck = "the check is not complete"

// maxResultBytes bounds a result read from a file, and what is read from stdin.
const maxResultBytes = 64 << 20

func (a *app) runVerify(ctx context.Context, o verifyOptions, arg string) error {
	if isBundle(arg) {
		return a.verifyBundle(ctx, o, arg, nil)
	}
	var piped []byte
	if arg == "-" {
		var err error
		piped, err = a.readStdin(ctx, maxResultBytes, "stdin")
		if errors.Is(err, marchwarden.CodeInvalid) {
			return invalid("FILE", "give the path of the file", fmt.Sprintf("stdin holds more than %d bytes", maxResultBytes))
		}
		if err != nil {
			return err
		}
		if isZip(piped) {
			return a.verifyBundle(ctx, o, arg, piped)
		}
	}
	if len(o.by) > 0 {
		return invalid("--by", "", "is for bundles")
	}
	if o.db != "" && !o.live {
		return invalid("--db", "", "is for --live")
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	fromFile, err := resultFile(arg, piped)
	if err != nil {
		return err
	}
	rec, err := a.OpenKept(c)
	if err != nil {
		return err
	}
	defer rec.Close()
	if fromFile != nil {
		return (&verdicts{a: a}).result(ctx, shelfOf(rec), checking{fromFile, fromFile.TraceID, c, o}) // it may have no run here
	}
	id, err := findTrace(rec.Traces, arg)
	if err != nil {
		return err
	}
	return (&verdicts{a: a}).result(ctx, shelfOf(rec), checking{nil, id, c, o})
}

// resultFile reads the result that arg names, piped if that is stdin, or gives nil when
// arg is an id.
func resultFile(arg string, piped []byte) (*marchwarden.Result, error) {
	if _, err := marchwarden.ParseTraceID(arg); err == nil || arg == "last" {
		return nil, nil
	}
	data := piped
	if arg != "-" {
		var err error
		if data, err = readResult(arg); data == nil || err != nil {
			return nil, err
		}
	}
	const hint = "give a trace id, or a file written by 'marchwarden ask --json' or by --out NAME.json"
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeOf(err), Field: "FILE", Message: fmt.Sprintf("%q", arg), Err: err, Hint: hint}
	}
	if res.Answer == "" && len(res.Citations) == 0 && !res.TraceID.Valid() {
		return nil, invalid("FILE", hint, fmt.Sprintf("%q holds no result", arg))
	}
	return res, nil
}

// readResult reads the file of that name; nil when arg is neither a file nor the name
// of one.
func readResult(arg string) ([]byte, error) {
	info, err := os.Stat(arg)
	if (err != nil || !info.Mode().IsRegular()) && !strings.HasSuffix(arg, ".json") {
		return nil, nil
	}
	f, err := durable.OpenRegular(arg)
	if err != nil {
		return nil, invalid("FILE", "", fmt.Sprintf("%q cannot be read: %s", arg, durable.Cause(err)))
	}
	defer f.Close()
	return network.ReadLimited(f, maxResultBytes, "result")
}

// checking is what is to be checked: a given result or nil, and its run.
type checking struct {
	res *marchwarden.Result
	id  marchwarden.TraceID
	cfg *settings.Settings
	o   verifyOptions
}

// result checks what the trace stored, then the result: the given one, or the
// recorded one. A given result without a trace here is checked alone.
func (v *verdicts) result(ctx context.Context, rec shelf, what checking) error {
	res, id := what.res, what.id
	log, err := rec.load(id)
	switch {
	case err == nil:
		v.a.reportTorn(id, log)
		v.blobs(ctx, "the run", log, rec.blobs)
	case res != nil && errors.Is(err, marchwarden.CodeNotFound):
		v.a.warn("the run of this result is not recorded here; only its citations are checked")
	default:
		return err
	}
	if log != nil {
		kept := v.recorded(ctx, id, log, rec.blobs)
		if kept != nil && res != nil {
			v.compare(kept, res)
		}
		if res == nil {
			res = kept
		}
	}
	if res == nil {
		return v.close(ctx, id)
	}
	report, err := checked(ctx, rec.blobs, res)
	if err != nil {
		return err
	}
	v.report(report)
	v.support(log, res)
	if log != nil {
		wrong, err := verify.CheckPlaces(ctx, rec.blobs, log, res)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeCanceled, "check the places")
		}
		for _, f := range append(verify.CheckFetched(log, res), wrong...) {
			v.check(f.Name()+" "+f.Locator, f.Problem)
		}
		v.rihlas(ctx, rec, log, res)
	}
	if what.o.live {
		if err := v.live(ctx, what.cfg, network.Options{Choice: marchwarden.Choice{DB: what.o.db}}, rec.blobs, res); err != nil {
			return err
		}
	}
	if what.o.online {
		if err := v.online(ctx, what.cfg, res); err != nil {
			return err
		}
	}
	return v.close(ctx, id)
}

// verdicts prints checks as they are made and counts them.
type verdicts struct {
	a      *app
	stood  int
	failed []string // the problems, in order
	err    error    // the first failure to print
}

func (v *verdicts) check(what, problem string) {
	mark := "✓"
	if problem == "" {
		v.stood++
	} else {
		mark = "✗"
		what += ": " + problem
		v.failed = append(v.failed, problem)
	}
	v.print("%s %s", mark, what)
}

func (v *verdicts) print(format string, args ...any) {
	if v.err == nil {
		_, v.err = fmt.Fprintln(v.a.stdout, term.CleanLine(fmt.Sprintf(format, args...)))
	}
}

// blobs reads every stored piece that the trace of what refers to, once, and names
// those that are not what their hash says.
func (v *verdicts) blobs(ctx context.Context, what string, log *trace.Log, store blob.Store) {
	seen := map[blob.Ref]bool{}
	bad := 0
	for _, s := range log.Steps {
		for _, ref := range trace.Refs(s) {
			if seen[ref] || ctx.Err() != nil {
				continue
			}
			seen[ref] = true
			if _, err := store.Get(ctx, ref); err != nil && ctx.Err() == nil {
				bad++
				v.check(fmt.Sprintf("%s, step %d (%s)", what, s.Header().Step, s.Header().Action), naming(ref, err))
			}
		}
	}
	if bad == 0 && ctx.Err() == nil {
		v.check(fmt.Sprintf("%s stored pieces of %s match their hashes", term.Count(len(seen)), what), "")
	}
}

// rihlas checks the runs of an investigation's researchers that are recorded here.
func (v *verdicts) rihlas(ctx context.Context, rec shelf, whole *trace.Log, res *marchwarden.Result) {
	own := run.FactsOf(whole.Steps).Own(ctx, rec.blobs)
	for i, r := range res.Rihlas {
		what := fmt.Sprintf("rihla %d (%s)", i+1, r.Researcher)
		log, err := rec.load(r.TraceID)
		ours := slices.ContainsFunc(own, func(o *trace.RihlaComplete) bool { return o.TraceID == r.TraceID })
		if !r.TraceID.Valid() || errors.Is(err, marchwarden.CodeNotFound) && !ours {
			continue // of a researcher that is not ours, or that did not come back
		}
		if err != nil {
			v.check(what, err.Error())
			continue
		}
		v.blobs(ctx, what, log, rec.blobs)
		wrong, err := verify.CheckPlaces(ctx, rec.blobs, log, res)
		for _, f := range wrong {
			v.check(f.Name()+" "+f.Locator, f.Problem)
		}
		if err != nil {
			return // ctx is over, and the caller finds out
		}
		if log.Latest() == nil {
			v.check(what, "its run did not end")
		}
	}
}

// naming is an error that surely contains the blob it is about.
func naming(ref blob.Ref, err error) string {
	if strings.Contains(err.Error(), ref.String()) {
		return err.Error()
	}
	return ref.String() + ": " + err.Error()
}

// recorded is the result that the run ended with, or nil after saying why not.
func (v *verdicts) recorded(ctx context.Context, id marchwarden.TraceID, log *trace.Log, store blob.Store) *marchwarden.Result {
	done := log.Latest()
	if done == nil {
		v.check("result", "the run did not end, so there is none to check")
		return nil
	}
	if log.Complete() == nil {
		v.print("- the run went on after this result, and was cut off: 'marchwarden resume' resumes it")
	}
	data, err := store.Get(ctx, done.Result)
	if err != nil {
		return nil // said with the stored pieces
	}
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		v.check("result", err.Error())
		return nil
	}
	if res.TraceID != id {
		v.check("result", fmt.Sprintf("the one recorded is of another run, %s", res.TraceID))
	}
	cost := res.CostMetadata
	if done.Citations != len(res.Citations) || done.Confidence != res.Confidence || done.TokensUsed != cost.TokensUsed || done.Iterations != cost.IterationsRun {
		v.check("result", "the last step of the trace has other numbers than the result")
	}
	return res
}

// compare holds a given result against the recorded one.
func (v *verdicts) compare(kept, given *marchwarden.Result) {
	want, err := marchwarden.EncodeResult(kept)
	if err != nil {
		v.check("result", err.Error())
		return
	}
	handed := *given
	handed.CheckedAt = nil // was added since
	got, err := marchwarden.EncodeResult(&handed)
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case !bytes.Equal(want, got):
		problem = "it is not: " + difference(want, got)
	}
	v.check("the result is the one that was recorded", problem)
}

// close says what it comes to, and fails if anything did not stand.
func (v *verdicts) close(ctx context.Context, id marchwarden.TraceID) error {
	if err := ctx.Err(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify")
	}
	if len(v.failed) > 0 {
		const most = 3
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "%d of %d checks failed: %s",
			len(v.failed), len(v.failed)+v.stood, strings.Join(v.failed[:min(most, len(v.failed))], "; "))
	}
	v.print("everything stands: %s of %s", term.Plural(v.stood, "check"), id)
	return marchwarden.Wrap(v.err, marchwarden.CodeUnavailable, "print the verdicts")
}
