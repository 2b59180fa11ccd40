package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	marks := map[string]bool{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := e.Name()
		if _, err := marchwarden.ParseTraceID(strings.TrimSuffix(name, trace.ForeignSuffix)); err == nil && strings.HasSuffix(name, trace.ForeignSuffix) {
			marks[name] = true
			continue
		}
		c.stray(e)
	}
	for _, e := range entries {
		delete(marks, strings.TrimSuffix(e.Name(), traceSuffix)+trace.ForeignSuffix)
	}
	for _, e := range entries {
		if marks[e.Name()] {
			c.report.Strays = append(c.report.Strays, filepath.Join(c.Traces.Path(), e.Name()))
		}
	}
	if c.Strays == nil {
		return nil
	}
	paths, err := c.Strays(ctx)
	c.report.Strays = append(c.report.Strays, paths...)
	return err
}

// stray looks at an entry of the folder of traces that is no mark of an import.
func (c *checker) stray(e fs.DirEntry) {
	path := filepath.Join(c.Traces.Path(), e.Name())
	id, err := marchwarden.ParseTraceID(strings.TrimSuffix(e.Name(), traceSuffix))
	switch isTrace := err == nil && strings.HasSuffix(e.Name(), traceSuffix); {
	case (isTrace || e.Name() == trace.ImportLock) && e.Type().IsRegular():
	case isTrace:
		c.found(Finding{Kind: DamagedTrace, Object: "trace " + id.String(), Problem: "what stands in its place is " + typeOf(e.Type()), Repairable: true, inPlace: path})
	case brokenOff.MatchString(e.Name()) && e.Type().IsRegular():
		if info, err := e.Info(); err == nil && info.ModTime().Before(c.o.Now.Add(-leftoverAge)) {
			c.report.Leftovers++
			c.unfinished = append(c.unfinished, path)
		}
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

// hold takes the lock of a trace, whatever is in it; ok is false while a process
// writes it. Where a file system has no locks it takes none.
func (h Home) hold(id marchwarden.TraceID) (release func() error, ok bool, err error) {
	root, err := os.OpenRoot(h.Traces.Path())
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	f, err := root.OpenFile(id.String()+traceSuffix, os.O_RDWR, 0)
	if err != nil {
		return nil, false, err
	}
	if err := durable.Hold(f, 0); err != nil {
		return nil, false, f.Close()
	}
	return f.Close, true, nil
}

// begun checks the beginning of a trace.
func (c *checker) begun(id marchwarden.TraceID, log *trace.Log) error {
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
	return nil
}

// unbegun looks at a trace without a step that no process writes. If its first line was
// never written whole, nothing was ever acknowledged and no run is in it.
func (c *checker) unbegun(id marchwarden.TraceID) error {
	_, whole, err := c.emptyTrace(id)
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
	f := Finding{Kind: EmptyTrace, Object: "trace " + id.String(), Problem: "its first line was never written whole: no run is in it", Repairable: true, id: id}
	if info.ModTime().After(c.o.Now.Add(-leftoverAge)) {
		c.report.Empty++
		f.Repairable, f.Remedy = false, "--repair removes it when it is an hour old: a run may be about to begin in it"
	}
	c.found(f)
	return nil
}

// begunSince reports whether a run was begun, by now, in a trace that was empty, or is
// about to be.
func (c *checker) begunSince(id marchwarden.TraceID) bool {
	_, begun, err := c.emptyTrace(id)
	busy, _ := c.Traces.Busy(id) // one that cannot be told is at rest
	return begun || busy || marchwarden.CodeOf(err) == marchwarden.CodeNotFound
}

// torn looks at the end of a trace that carries no step.
func (c *checker) torn(id marchwarden.TraceID, log *trace.Log) {
	f := Finding{Kind: TornTail, Object: "trace " + id.String(), Repairable: true, id: id,
		Problem: fmt.Sprintf("its last line is torn: %d bytes after step %d carry no step", log.Torn, len(log.Steps))}
	if _, torn, err := c.tailOf(id); err != nil || !torn {
		f.Kind, f.Repairable = DamagedTrace, false
		f.Problem = fmt.Sprintf("its last line is damaged: %d bytes after step %d carry no step", log.Torn, len(log.Steps))
	}
	c.found(f)
}

// clear removes a trace in which no run was ever begun, and keeps a copy of what is
// in it.
func (c *checker) clear(f *Finding) error {
	release, ok, err := c.hold(f.id)
	if err != nil {
		return err
	}
	if !ok {
		f.Done = "left alone: a process writes it"
		return nil
	}
	defer release() // nothing was written
	text, begun, err := c.emptyTrace(f.id)
	if err != nil {
		return err
	}
	if begun {
		f.Done = "left alone: it has been written since"
		return nil
	}
	f.Done = "removed: no run is in it"
	if len(text) > 0 {
		path, err := c.aside(f.id.String() + traceSuffix)
		if err != nil {
			return err
		}
		if err := durable.ReplaceFile(path, text); err != nil {
			return err
		}
		f.Done = fmt.Sprintf("removed: no run is in it; its %d bytes are kept as %s", len(text), path)
	}
	f.Fixed = true
	return c.Traces.Remove(f.id)
}

// emptyTrace reads a trace that has no step, and reports whether there is a whole
// line in it.
func (c *checker) emptyTrace(id marchwarden.TraceID) (text []byte, whole bool, err error) {
	f, err := c.Traces.Raw(id)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	text, err = io.ReadAll(f)
	return text, bytes.ContainsRune(text, '\n'), err
}

// tailOf reads the torn tail of a trace, and reports whether it is what a crash
// leaves: bytes without a newline at their end.
func (c *checker) tailOf(id marchwarden.TraceID) (tail []byte, torn bool, err error) {
	log, err := c.Traces.Load(id)
	if err != nil || log.Torn == 0 {
		return nil, false, err
	}
	f, err := c.Traces.Raw(id)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if _, err := io.CopyN(io.Discard, f, log.Good); err != nil {
		return nil, false, err
	}
	if tail, err = io.ReadAll(f); err != nil || len(tail) == 0 {
		return nil, false, err
	}
	return tail, tail[len(tail)-1] != '\n', nil
}

// missing finds the rihlas whose traces are gone although the investigation's is not.
func (c *checker) missing() {
	for _, r := range c.reported {
		of := c.rihlaOf[r.TraceID]
		_, err := c.Traces.Stat(r.TraceID)
		if _, gone := c.Traces.Stat(of); gone != nil || marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			continue
		}
		c.found(Finding{Kind: MissingTrace, Object: "trace " + r.TraceID.String(), Problem: "it is not there", runs: []marchwarden.TraceID{of},
			NeededBy: []Need{{Run: of, Step: r.Step, Action: r.Action, What: r.Researcher}}})
	}
}
