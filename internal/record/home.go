package record

import (
	"bytes"
	"context"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Home is all records of one place, for those who check and clear them.
type Home struct {
	Store
	Shelf blob.Shelf // the files behind Store.Blobs
	// Damaged is the folder to which damaged files are moved; it is made when needed.
	Damaged string
	// Strays lists what is in the evidence store and is none of its files; nil lists
	// nothing.
	Strays func(context.Context) ([]string, error)
}

// read reads a trace and calls mention for every hash in its bytes, also where it
// cannot be decoded. A trace that cannot be read has a log that is nil.
func (s Store) read(id marchwarden.TraceID, mention func(blob.Ref)) (*trace.Log, error) {
	f, err := s.Traces.Raw(id)
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
