package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const byUsage = "the bundle must be signed with the key whose public half is in `KEY.pub`; one of them if given several times"

// shelf is where runs are looked up: a home or a bundle.
type shelf struct {
	load  func(marchwarden.TraceID) (*trace.Log, error)
	blobs blob.Store
}

// bundleFile is an open bundle and who must have signed it. Close it when done.
type bundleFile struct {
	*bundle.Bundle
	io.Closer
	by []bundle.PublicKey
}

// isBundle reports whether an argument names a bundle: by its name, or by how the
// file begins.
func isBundle(path string) bool {
	if strings.HasSuffix(strings.ToLower(path), bundle.Suffix) {
		return true
	}
	f, err := durable.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(zipHead))
	_, err = f.ReadAt(head, 0)
	return err == nil && isZip(head)
}

// zipHead is how a zip with something in it begins.
const zipHead = "PK\x03\x04"

func isZip(data []byte) bool { return bytes.HasPrefix(data, []byte(zipHead)) }

// openBundle opens a bundle and the keys that --by names. It reads those files and
// nothing else.
func openBundle(path string, by []string) (*bundleFile, error) {
	keys, err := readPublicKeys(by)
	if err != nil {
		return nil, err
	}
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, invalid("FILE", "", fmt.Sprintf("%q cannot be read: %s", path, durable.Cause(err)))
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at %s", path), f.Close())
	}
	b, err := bundle.Open(f, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s is not a bundle that stands: %w", path, err), f.Close())
	}
	return &bundleFile{b, f, keys}, nil
}

// pipedBundle is openBundle for one that came on stdin and is in memory.
func pipedBundle(data []byte, by []string) (*bundleFile, error) {
	keys, err := readPublicKeys(by)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("stdin is not a bundle that stands: %w", err)
	}
	return &bundleFile{b, io.NopCloser(nil), keys}, nil
}

// verifyBundle is verify for a bundle: the file at path, or what was piped in. It needs
// no configuration and no home, writes nothing, and uses the network only if it is told to.
func (a *app) verifyBundle(ctx context.Context, o verifyOptions, path string, piped []byte) error {
	if o.live || o.db != "" {
		return invalid("--live", "import it first: marchwarden import FILE.mwz", "is not for bundles")
	}
	var file *bundleFile
	var err error
	if piped == nil {
		file, err = openBundle(path, o.by)
	} else {
		file, err = pipedBundle(piped, o.by)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return a.checkBundle(ctx, file, o)
}

// checkBundle checks everything about a bundle: its bytes, its signature, that its
// runs give the same results again, and then what verify checks of any run.
func (a *app) checkBundle(ctx context.Context, file *bundleFile, o verifyOptions) error {
	v := &verdicts{a: a}
	report, err := file.Verify(ctx, file.by...)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify the bundle")
	}
	for _, p := range report.Problems {
		v.check("bundle", p.String())
	}
	id := file.About.TraceID
	if !report.OK() {
		return v.close(ctx, id)
	}
	v.check(fmt.Sprintf("%s members of the bundle match their hashes, and nothing else is in it", term.Count(report.Members)), "")
	v.signature(report.Signature, len(file.by) > 0)
	v.reruns(ctx, report.Run, file.Blobs())
	for _, away := range file.About.Elsewhere {
		v.print("- the trace of rihla %s is kept by %s and is not inside", away.TraceID, away.Researcher)
	}
	return v.result(ctx, shelf{file.Load, file.Blobs()}, checking{id: id, o: o})
}

// signature says who signed a bundle.
func (v *verdicts) signature(s *bundle.Signature, asked bool) {
	if s == nil {
		v.print("- the bundle is not signed")
		return
	}
	words := fmt.Sprintf("signed by %s at %s", s.By.Fingerprint(), s.SignedAt.Format("2006-01-02 15:04:05 MST"))
	if s.Comment != "" {
		words += fmt.Sprintf(": %q", plaintext.Clip(s.Comment, 200))
	}
	if !asked {
		v.print("- %s (a key you did not name; --by KEY.pub names one)", words)
		return
	}
	v.check(words, "")
}

// reruns executes the runs again on their records. Those of another version may
// come out otherwise; that is said and counts neither way.
func (v *verdicts) reruns(ctx context.Context, run *run.Run, blobs blob.Store) {
	done := map[marchwarden.TraceID]bool{}
	for _, r := range run.All() {
		if done[r.ID] || r.Log.Complete() == nil || ctx.Err() != nil {
			continue
		}
		done[r.ID] = true
		what := "the rerun of " + r.ID.String()
		again, err := rerunOf(ctx, r.Log, blobs, network.BuiltinVectors)
		other := r.Start.Version != programVersion()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && again.Same():
			v.check(what+" is identical", "")
		case other && err != nil:
			v.print("- %s cannot be made by this version, %s; the run was made by version %s", what, programVersion(), r.Start.Version)
		case errors.Is(err, marchwarden.CodeUnsupported):
			v.print("- %s cannot be made here: %v", what, err)
		case other:
			v.print("- %s gives another result with version %s; the run was made by version %s", what, programVersion(), r.Start.Version)
		case err != nil:
			v.check(what, err.Error())
		default:
			v.check(what, "gives another result: "+difference(again.Want, again.Got))
		}
	}
}

func shelfOf(r *network.Records) shelf { return shelf{r.Traces.Load, r.Blobs} }
