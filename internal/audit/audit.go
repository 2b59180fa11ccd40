// Package audit checks a result as anybody could: against the stored bytes, against its
// record and those of its rihlas, and against a rerun. It prints every check as it is made. What makes a citation stand is package verify's to say, and what became of the text
// of its source is package drift's.
//
//	audit.go     checks, printed and counted; a bundle: its bytes, its reruns
//	result.go    a result and its record
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Records are where runs are looked up: a home or a bundle.
type Records struct {
	Load  func(marchwarden.TraceID) (*trace.Log, error)
	Blobs blob.Store
}

// Audit prints checks as they are made and counts them. It is for one result. Print and Warn are
// required.
type Audit struct {
	Print func(line string) error // a check
	Warn  func(message string)

	// Version is that of this program, and Rerun executes a run again on its record. Only
	// bundles need them.
	Version string
	Rerun   func(context.Context, *trace.Log, blob.Store) (want, got []byte, err error)

	stood  int
	failed []string // the problems, in order
	err    error    // the first failure to print
}

func (a *Audit) check(what, problem string) {
	mark := "✓"
	if problem == "" {
		a.stood++
	} else {
		mark = "✗"
		what += ": " + problem
		a.failed = append(a.failed, problem)
	}
	a.print("%s %s", mark, what)
}

func (a *Audit) print(format string, args ...any) {
	if a.err == nil {
		a.err = a.Print(term.CleanLine(fmt.Sprintf(format, args...)))
	}
}

// close says what it comes to, and fails if anything did not stand.
func (a *Audit) close(ctx context.Context, id marchwarden.TraceID) error {
	if err := ctx.Err(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify")
	}
	if len(a.failed) > 0 {
		const most = 3
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "%d of %d checks failed: %s",
			len(a.failed), len(a.failed)+a.stood, strings.Join(a.failed[:min(most, len(a.failed))], "; "))
	}
	a.print("everything stands: %s of %s", term.Plural(a.stood, "check"), id)
	return marchwarden.Wrap(a.err, marchwarden.CodeUnavailable, "print the verdicts")
}

// Bundle checks everything about a bundle: its bytes, that its runs give the same results again, and then
// what Result checks of any run.
func (a *Audit) Bundle(ctx context.Context, b *bundle.Bundle) error {
	report, err := b.Verify(ctx)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify the bundle")
	}
	for _, p := range report.Problems {
		a.check("bundle", p)
	}
	id := b.About.TraceID
	if !report.OK() {
		return a.close(ctx, id)
	}
	a.check(fmt.Sprintf("%s members of the bundle match their hashes, and nothing else is in it", term.Count(report.Members)), "")
	if report.Signed {
		a.print("- it was signed by an earlier version; the signature is not checked")
	}
	a.reruns(ctx, report.Run, b.Blobs())
	for _, away := range b.About.Elsewhere {
		a.print("- the trace %s is kept by %s and is not inside", away.TraceID, away.Researcher)
	}
	rec := Records{b.Load, b.Blobs()}
	for r := report.Run.Before; r != nil; r = r.Before {
		if r.Log.Latest() == nil {
			continue
		}
		a.print("- the run that it follows: %s", r.ID)
		if err := a.result(ctx, rec, r.ID, nil); err != nil {
			return err
		}
	}
	return a.Result(ctx, rec, id, nil)
}

// reruns executes the runs again on their records. Those of another version may
// come out otherwise; that is said and counts neither way.
func (a *Audit) reruns(ctx context.Context, run *run.Run, blobs blob.Store) {
	for _, r := range run.All() {
		if r.Log.Complete() == nil || ctx.Err() != nil {
			continue
		}
		what := "the rerun of " + r.ID.String()
		want, got, err := a.Rerun(ctx, r.Log, blobs)
		other := r.Start.Version != a.Version
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && bytes.Equal(want, got):
			a.check(what+" is identical", "")
		case other && err != nil:
			a.print("- %s cannot be made by this version, %s; the run was made by version %s", what, a.Version, r.Start.Version)
		case errors.Is(err, marchwarden.CodeUnsupported):
			a.print("- %s cannot be made here: %v", what, err)
		case other:
			a.print("- %s gives another result with version %s; the run was made by version %s", what, a.Version, r.Start.Version)
		case err != nil:
			a.check(what, err.Error())
		default:
			a.check(what, "gives another result: "+replay.Difference(want, got))
		}
	}
}

// MaxResultBytes bounds a result read from a file, and what is read from stdin.
const MaxResultBytes = 64 << 20

// ResultFile reads the result that arg names, piped if that is stdin, or gives nil when
// arg is an id.
func ResultFile(arg string, piped []byte) (*marchwarden.Result, error) {
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
		return nil, settings.Invalid("FILE", hint, fmt.Sprintf("%q holds no result", arg))
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
		return nil, settings.Invalid("FILE", "", fmt.Sprintf("%q cannot be read: %s", arg, durable.Cause(err)))
	}
	defer f.Close()
	return settings.ReadLimited(f, MaxResultBytes, "result")
}
