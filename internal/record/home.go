// Package record looks after all records of one place: it finds what is damaged or
// missing and who needs it, repairs what can be, and removes what is old. What is in the
// record of one run is package run's, the files of the store are package blob's.
//
//	home.go    all records of one place, and what their traces mention
//	check.go   the report; what is damaged or missing, and who needs it
//	traces.go  the folder of traces: torn ones, empty ones, and what is none
//	repair.go  what can safely be done about it
//	files.go   the other files of a home: ledger, pins, folders, index, reports of drift
//	family.go  which traces belong together
//	gc.go      removing old families, and blobs that nothing mentions
//	text.go    a report for people
package record

import (
	"bytes"
	"context"
	"io"
	"regexp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Home is all records of one place, for those who check and clear them.
type Home struct {
	run.Store
	Shelf Shelf // the files behind Store.Blobs
	// Folder is the home folder, in which checks of sources are kept; "" has none.
	Folder string
	// Damaged is the folder to which damaged files are moved; it is made when needed.
	Damaged string
}

// Shelf is the files of a store, and the paths of what is among them and is none of them.
type Shelf interface {
	blob.Shelf
	Strays(context.Context) ([]string, error)
}

// text is all that is in the file of a trace, or was read of it before an error.
func (h Home) text(id marchwarden.TraceID) ([]byte, error) {
	f, err := h.Traces.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return text, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
}

var refShape = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// read reads a trace and calls mention for every hash in its bytes, also where it
// cannot be decoded. What a trace mentions is more than what its steps need, as far as this
// program understands them: a step of an action that only a later version knows, and a line
// that is damaged, still keep what they mention.
func (h Home) read(id marchwarden.TraceID, mention func(blob.Ref)) (*trace.Log, error) {
	text, err := h.text(id)
	for _, hash := range refShape.FindAll(text, -1) {
		if ref, err := blob.Parse(string(hash)); err == nil {
			mention(ref)
		}
	}
	if err != nil {
		return nil, err
	}
	return trace.Read(bytes.NewReader(text))
}
