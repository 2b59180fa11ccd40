package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const traceSuffix = ".jsonl"

// brokenOff is the name of a file that an import was about to rename.
var brokenOff = regexp.MustCompile(`^\.` + idShape.String() + `(\.jsonl|\.imported)\.[A-Z2-7]{26}\.tmp$`)

// strays finds what is in the folders of traces and of blobs and belongs to neither.
func (c *checker) strays(ctx context.Context) error {
	entries, err := os.ReadDir(c.Traces.Path())
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.stray(e, names)
	}
	paths, err := c.Shelf.Strays(ctx)
	c.report.Strays = append(c.report.Strays, paths...)
	return err
}

// stray looks at an entry of the folder of traces, which has these names.
func (c *checker) stray(e fs.DirEntry, names map[string]bool) {
	path, ext, regular := filepath.Join(c.Traces.Path(), e.Name()), filepath.Ext(e.Name()), e.Type().IsRegular()
	id, err := marchwarden.ParseTraceID(strings.TrimSuffix(e.Name(), ext))
	isTrace := err == nil && ext == traceSuffix
	switch {
	case (isTrace || e.Name() == trace.ImportLock) && regular:
	case err == nil && ext == trace.ForeignSuffix && names[id.String()+traceSuffix]: // the mark of an import
	case isTrace:
		c.report.found(Finding{Kind: DamagedTrace, Object: "trace " + id.String(), Problem: "what stands in its place is " + typeOf(e.Type()), mend: moveAside(c.Damaged, path)})
	case brokenOff.MatchString(e.Name()) && regular:
		c.unfinished = append(c.unfinished, path)
	default:
		c.report.Strays = append(c.report.Strays, path)
	}
}

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "no regular file"
}

// sound says what is wrong with a trace, but for its end, which is a finding of its own.
func (c *checker) sound(id marchwarden.TraceID, log *trace.Log, busy bool) error {
	if len(log.Steps) == 0 {
		if busy {
			return nil
		}
		return c.unbegun(id)
	}
	start, err := log.Start()
	switch {
	case err != nil:
		return err
	case start.TraceID != id:
		return errors.New("it holds another run, " + start.TraceID.String())
	case start.Format < 2:
		c.report.Unsummed++
	}
	if !start.PartOf {
		c.whole = append(c.whole, id)
	}
	if log.Torn > 0 && !busy {
		c.torn(id, log)
	}
	return nil
}

// unbegun looks at a trace without a step that no process writes. If its first line was
// never written whole, nothing was ever acknowledged and no run is in it.
func (c *checker) unbegun(id marchwarden.TraceID) error {
	_, whole, err := c.after(id, 0)
	if err != nil {
		return err
	}
	if whole {
		return errors.New("its only line is damaged")
	}
	info, err := c.Traces.Stat(id)
	if err != nil {
		return err
	}
	f := Finding{Kind: EmptyTrace, Object: "trace " + id.String(), Problem: "its first line was never written whole: no run is in it", id: id, mend: c.clear}
	if info.ModTime().After(c.o.old()) {
		c.report.Empty++
		f.mend, f.Remedy = nil, "--repair removes it when it is an hour old: a run may be about to begin in it"
	}
	c.report.found(f)
	return nil
}

// begunSince reports whether a run was begun since in an empty trace, or is about to be.
func (c *checker) begunSince(id marchwarden.TraceID) bool {
	_, begun, err := c.after(id, 0)
	busy, _ := c.Traces.Busy(id) // one that cannot be told is at rest
	return begun || busy || marchwarden.CodeOf(err) == marchwarden.CodeNotFound
}

// torn looks at the end of a trace that carries no step.
func (c *checker) torn(id marchwarden.TraceID, log *trace.Log) {
	kind, word, mend := TornTail, "torn", func(f *Finding) error { return c.cut(f, log.Good) }
	if tail, whole, err := c.after(id, log.Good); err != nil || whole || len(tail) == 0 {
		kind, word, mend = DamagedTrace, "damaged", nil
	}
	c.report.found(Finding{Kind: kind, Object: "trace " + id.String(), id: id, mend: mend,
		Problem: fmt.Sprintf("its last line is %s: %d bytes after step %d carry no step", word, log.Torn, len(log.Steps))})
}

// after reads what follows the good bytes of a trace; a crash leaves no newline in it.
func (c *checker) after(id marchwarden.TraceID, good int64) (tail []byte, whole bool, err error) {
	text, err := c.text(id)
	if err != nil {
		return nil, false, err
	}
	tail = text[min(good, int64(len(text))):]
	return tail, bytes.ContainsRune(tail, '\n'), nil
}

// cut removes the torn tail of a trace that no process writes, and keeps a copy.
func (c *checker) cut(f *Finding, good int64) error {
	tail, whole, err := c.after(f.id, good)
	if err != nil {
		return err
	}
	if whole || len(tail) == 0 {
		f.Done = "left alone: it has been written since"
		return nil
	}
	path, err := keepAside(c.Damaged, f.id.String()+".tail", tail)
	if err != nil {
		return err
	}
	w, _, err := c.Traces.Append(f.id)
	if err != nil {
		f.Done = "left alone: " + err.Error()
		return os.Remove(path)
	}
	f.Done, f.Fixed = fmt.Sprintf("cut: %d bytes, kept as %s", len(tail), path), true
	return w.Close()
}

// clear removes a trace in which no run was ever begun, and keeps a copy of it.
func (c *checker) clear(f *Finding) error {
	release, err := c.Traces.Hold(f.id)
	if errors.Is(err, durable.ErrLocked) {
		f.Done = "left alone: a process writes it"
		return nil
	}
	if err != nil {
		return err
	}
	defer release() // nothing was written
	text, begun, err := c.after(f.id, 0)
	if err != nil {
		return err
	}
	if begun {
		f.Done = "left alone: it has been written since"
		return nil
	}
	f.Done = "removed: no run is in it"
	if len(text) > 0 {
		path, err := keepAside(c.Damaged, f.id.String()+traceSuffix, text)
		if err != nil {
			return err
		}
		f.Done += fmt.Sprintf("; its %d bytes are kept as %s", len(text), path)
	}
	f.Fixed = true
	return c.Traces.Remove(f.id)
}

// missing finds the rihlas whose traces are gone although the investigation's is not.
func (c *checker) missing() {
	for _, r := range c.reported {
		of := c.rihlaOf[r.TraceID]
		_, err := c.Traces.Stat(r.TraceID)
		if _, gone := c.Traces.Stat(of); gone != nil || marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			continue
		}
		c.report.found(Finding{Kind: MissingTrace, Object: "trace " + r.TraceID.String(), Problem: "it is not there", runs: []marchwarden.TraceID{of},
			NeededBy: []Need{{Run: of, Step: r.Step, Action: r.Action, What: r.Researcher}}})
	}
}
