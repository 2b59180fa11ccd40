package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Bundle checks everything about a bundle: its bytes, its signature, that its runs give the
// same results again, and then what Result checks of any run. It must be signed with one of
// the keys in by, if there are any.
func (a *Audit) Bundle(ctx context.Context, b *bundle.Bundle, by []bundle.PublicKey) error {
	report, err := b.Verify(ctx, by...)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify the bundle")
	}
	for _, p := range report.Problems {
		a.check("bundle", p.String())
	}
	id := b.About.TraceID
	if !report.OK() {
		return a.close(ctx, id)
	}
	a.check(fmt.Sprintf("%s members of the bundle match their hashes, and nothing else is in it", term.Count(report.Members)), "")
	a.signature(report.Signature, len(by) > 0)
	a.reruns(ctx, report.Run, b.Blobs())
	for _, away := range b.About.Elsewhere {
		a.print("- the trace of rihla %s is kept by %s and is not inside", away.TraceID, away.Researcher)
	}
	return a.Result(ctx, Records{b.Load, b.Blobs()}, id, nil)
}

// signature says who signed a bundle.
func (a *Audit) signature(s *bundle.Signature, asked bool) {
	if s == nil {
		a.print("- the bundle is not signed")
		return
	}
	words := fmt.Sprintf("signed by %s at %s", s.By.Fingerprint(), s.SignedAt.Format("2006-01-02 15:04:05 MST"))
	if s.Comment != "" {
		words += fmt.Sprintf(": %q", plaintext.Clip(s.Comment, 200))
	}
	if !asked {
		a.print("- %s (a key you did not name; --by KEY.pub names one)", words)
		return
	}
	a.check(words, "")
}

// reruns executes the runs again on their records. Those of another version may
// come out otherwise; that is said and counts neither way.
func (a *Audit) reruns(ctx context.Context, run *run.Run, blobs blob.Store) {
	for _, r := range run.All() {
		if r.Log.Complete() == nil || ctx.Err() != nil {
			continue
		}
		what := "the rerun of " + r.ID.String()
		want, got, err := a.cfg.Rerun(ctx, r.Log, blobs)
		other := r.Start.Version != a.cfg.Version
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && bytes.Equal(want, got):
			a.check(what+" is identical", "")
		case other && err != nil:
			a.print("- %s cannot be made by this version, %s; the run was made by version %s", what, a.cfg.Version, r.Start.Version)
		case errors.Is(err, marchwarden.CodeUnsupported):
			a.print("- %s cannot be made here: %v", what, err)
		case other:
			a.print("- %s gives another result with version %s; the run was made by version %s", what, a.cfg.Version, r.Start.Version)
		case err != nil:
			a.check(what, err.Error())
		default:
			a.check(what, "gives another result: "+replay.Difference(want, got))
		}
	}
}
