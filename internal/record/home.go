// Package record looks after all records of one place: it finds what is damaged or
// missing and who needs it, repairs what can be, and removes what is old. What is in the
// record of one run is package run's, the files of the store are package blob's.
//
//	home.go       all records of one place, and what their traces mention
//	check.go      what is damaged or missing, and who needs it
//	strays.go     what is in their folders and is no run, or no longer a whole one
//	repair.go     what can safely be done about it
//	family.go     which traces belong together
//	files.go      the other files of a home: ledger, pins, folders, index, reports of drift
//	text.go       a report for people
//	gc.go         removing old families, and blobs that nothing mentions
package record

import (
	"bytes"
	"context"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Home is all records of one place, for those who check and clear them.
type Home struct {
	run.Store
	Shelf blob.Shelf // the files behind Store.Blobs
	// Folder is the home folder, in which checks of sources are kept; "" has none.
	Folder string
	// Damaged is the folder to which damaged files are moved; it is made when needed.
	Damaged string
	// Strays lists what is in the evidence store and is none of its files; nil lists
	// nothing.
	Strays func(context.Context) ([]string, error)
}

// read reads a trace and calls mention for every hash in its bytes, also where it
// cannot be decoded. A trace that cannot be read has a log that is nil.
func (h Home) read(id marchwarden.TraceID, mention func(blob.Ref)) (*trace.Log, error) {
	f, err := h.Traces.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &mentions{found: mention}
	log, err := trace.Read(io.TeeReader(f, m))
	if err != nil {
		log = nil
	}
	if _, rest := io.Copy(m, f); rest != nil && err == nil {
		err = marchwarden.Wrap(rest, marchwarden.CodeUnavailable, "read trace %s", id)
	}
	return log, err
}

// mentions finds the hashes in what is written to it. What a trace mentions is more
// than what its steps need, as far as this program understands them: a step of an
// action that only a later version knows, and a line that is damaged, still keep
// what they mention.
type mentions struct {
	found func(blob.Ref)
	rest  []byte // of what was written: may be the beginning of a hash
}

const (
	refMark = "sha256:"
	refLen  = len(refMark) + 64
)

func (m *mentions) Write(p []byte) (int, error) {
	text := append(m.rest, p...)
	at := 0
	for {
		i := bytes.Index(text[at:], []byte(refMark))
		if i < 0 {
			at = max(at, len(text)-len(refMark)+1)
			break
		}
		if at += i; at+refLen > len(text) {
			break
		}
		if ref, err := blob.Parse(string(text[at : at+refLen])); err == nil {
			m.found(ref)
		}
		at += len(refMark)
	}
	m.rest = append(m.rest[:0:0], text[at:]...)
	return len(p), nil
}

// whatOf is what a step was about, in a word.
func whatOf(s trace.Step) string {
	switch s := s.(type) {
	case *trace.FetchComplete:
		return s.URL
	case *trace.Evidence:
		return s.Locator
	case *trace.SearchComplete:
		return s.Query
	case *trace.RihlaComplete:
		return s.Researcher
	case *trace.ModelComplete:
		return s.Prompt
	case *trace.EmbedComplete:
		return s.Model
	}
	return ""
}
