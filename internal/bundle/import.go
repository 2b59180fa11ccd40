package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Imported is what came into a home.
type Imported struct {
	Run  *run.Run
	New  []marchwarden.TraceID // traces that were not there before, the run's own last
	Kept []marchwarden.TraceID // those that were
}

// mark is the content of the file that marks a trace as Foreign. It stands beside the
// trace, which itself is kept to the byte.
const mark = "{\n  \"format\": 1\n}\n"

// Import puts a bundle into a home. It verifies it first and puts nothing if it is
// not whole. The blobs come first, then the traces, each marked as foreign, the
// run's own last: whatever ends it in the middle, no trace is there in part or
// without its blobs, and importing again goes on. A trace of the same id with other
// content is never replaced: that is CodeDenied. Several imports of the same bundle
// may go on at once.
func (b *Bundle) Import(ctx context.Context, dst run.Store) (Imported, error) {
	report, err := b.Verify(ctx)
	if err != nil {
		return Imported{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify the bundle")
	}
	if !report.OK() {
		return Imported{}, marchwarden.Errorf(marchwarden.CodeCorrupt, "%s", report.Problems[0])
	}
	in := Imported{Run: report.Run}
	err = dst.Traces.Import(func(put func(string, []byte) error) error { return b.bring(ctx, &in, dst, put) })
	if err != nil {
		return Imported{}, err
	}
	return in, nil
}

// bring puts what is missing there, while no other import does.
func (b *Bundle) bring(ctx context.Context, in *Imported, dst run.Store, put func(string, []byte) error) error {
	for _, r := range slices.Backward(in.Run.All()) { // rihlas first
		switch err := b.same(dst, r.ID); {
		case marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
			in.New = append(in.New, r.ID)
		case err != nil:
			return err
		default:
			in.Kept = append(in.Kept, r.ID)
		}
	}
	for _, ref := range in.Run.Refs() {
		content, err := b.payload(blobName(ref))
		if err != nil {
			return err
		}
		if _, err := dst.Blobs.Put(ctx, content); err != nil {
			return unwritten(err, in.Run.ID, "the evidence store")
		}
	}
	if err := blob.Settle(ctx, dst.Blobs, in.Run.Refs()...); err != nil { // it may be in memory alone
		return unwritten(err, in.Run.ID, "the evidence store")
	}
	if err := b.place(in, put); err != nil {
		return unwritten(err, in.Run.ID, dst.Traces.Path())
	}
	return nil
}

// Brought reports whether this import is the one that brought the run.
func (in Imported) Brought() bool { return slices.Contains(in.New, in.Run.ID) }

// unwritten is the error of what cannot be written, without names of temporary files.
func unwritten(err error, id marchwarden.TraceID, what string) error {
	var why syscall.Errno
	if !errors.As(err, &why) {
		return fmt.Errorf("import %s: %w", id, err)
	}
	e := &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("import %s: %s cannot be written", id, what), Err: why}
	if errors.Is(why, fs.ErrPermission) || why == syscall.EROFS {
		e.Hint = "set MARCHWARDEN_HOME to a folder that can be written"
	}
	return e
}

// same makes sure that a trace is there with the content that the bundle has.
func (b *Bundle) same(dst run.Store, id marchwarden.TraceID) error {
	log, err := dst.Traces.Load(id)
	if err != nil {
		return err
	}
	there, err := traceBytes(dst, &run.Run{ID: id, Log: log})
	if err != nil {
		return err
	}
	lines, err := b.payload(traceName(id))
	if err != nil {
		return err
	}
	if !bytes.Equal(there, lines) {
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: fmt.Sprintf("trace %s is here already, with other content", id),
			Hint: "import it into another home: MARCHWARDEN_HOME=DIR marchwarden import …"}
	}
	return nil
}

// place writes the new traces, each at once or not at all, after its mark. What a failure leaves
// is whole in itself, and importing again goes on from there.
func (b *Bundle) place(in *Imported, put func(string, []byte) error) error {
	for _, id := range in.New {
		lines, err := b.payload(traceName(id))
		if err == nil {
			err = put(id.String()+trace.ForeignSuffix, []byte(mark))
		}
		if err == nil {
			err = put(id.String()+traceSuffix, lines)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
