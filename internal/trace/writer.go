package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Writer appends steps to one trace. It is safe for concurrent use within a
// process; two writers on one file are not.
type Writer struct {
	now   func() time.Time
	clean func([]byte) []byte // nil for none

	mu    sync.Mutex // guards what follows
	f     file
	steps int
	sums  bool   // lines have checksums
	sum   string // of the last line
	err   error  // the first failure: a stump may be in the file, so nothing follows it
}

// file is what a Writer needs of *os.File.
type file interface {
	io.WriteCloser
	Sync() error
}

// locked is the file of a trace that this process writes, with its lock.
type locked struct{ *os.File }

func (l locked) Close() error { return durable.Release(l.File) }

// Append numbers and dates the step, writes it as one line and syncs it to disk.
// After a failure the writer is broken: that and every later Append returns the
// first error, so that a half-written line is never followed by another. A step
// whose line Read would refuse (one of unknown action, one that is too long) is a
// failure too.
func (w *Writer) Append(s Step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	h := s.Header()
	h.Step, h.Action, h.Timestamp = w.steps+1, actions[reflect.TypeOf(s)], w.now().UTC()
	if err := w.write(s); err != nil {
		w.err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write trace step %d", h.Step)
		return w.err
	}
	w.steps++
	return nil
}

func (w *Writer) write(s Step) error {
	if _, ok := s.(*Unknown); ok {
		return errors.New("a step of unknown action can be read only")
	}
	line, err := durable.EncodeJSON(s, "")
	if err != nil {
		return err
	}
	if w.clean != nil {
		line = w.clean(line)
	}
	sum := ""
	if w.sums {
		line, sum = durable.SealLine(line, lineTag, w.sum)
	}
	if len(line) > maxLine {
		return fmt.Errorf("its line has %d bytes, more than %d", len(line), maxLine)
	}
	n, err := w.f.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return err
	}
	if err := w.f.Sync(); err != nil {
		return err
	}
	w.sum = sum
	return nil
}

// Close closes the file. Closing twice is an error of the second call only, and closing
// the writer of a trace that could not be made is none.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.f.Close()
}

const lineTag = "marchwarden/trace-line/v2"

// Book is where runs are recorded: a folder, or the journals of tasks that this process
// holds.
type Book interface {
	// Create begins a new trace; for an id that has one, fs.ErrExist is in the chain.
	Create(id marchwarden.TraceID) (*Writer, error)
	// Append opens a trace to continue it.
	Append(id marchwarden.TraceID) (*Writer, *Log, error)
	// Load reads a trace and changes nothing.
	Load(id marchwarden.TraceID) (*Log, error)
	// Foreign reports whether a trace was made somewhere else and brought here.
	Foreign(id marchwarden.TraceID) (bool, error)
}

var (
	_ Book = (*Dir)(nil)
	_ Book = (*Held)(nil)
)

// Held is the book of a worker: the records of the tasks that it holds at the moment,
// wherever the engine keeps them. It is safe for concurrent use.
type Held struct {
	now func() time.Time
	// Clean is Dir.Clean.
	Clean func(line []byte) []byte

	mu    sync.Mutex // guards what follows
	lines map[marchwarden.TraceID]dispatch.Lines
}

// NewHeld makes the book of a worker that holds nothing yet.
func NewHeld(now func() time.Time) *Held {
	return &Held{now: now, lines: map[marchwarden.TraceID]dispatch.Lines{}}
}

// Hold adds the record of a task until release is called.
func (h *Held) Hold(id marchwarden.TraceID, lines dispatch.Lines) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[id] = lines
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.lines[id] == lines {
			delete(h.lines, id)
		}
	}
}

// read is the record of a held task, and what is in it.
func (h *Held) read(id marchwarden.TraceID) (dispatch.Lines, []byte, error) {
	h.mu.Lock()
	lines, ok := h.lines[id]
	h.mu.Unlock()
	if !ok {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "run %s is none that this worker holds", id)
	}
	data, err := lines.Read(context.Background())
	return lines, data, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
}

// Create begins the trace of a held task.
func (h *Held) Create(id marchwarden.TraceID) (*Writer, error) {
	lines, data, err := h.read(id)
	if err != nil {
		return nil, err
	}
	if len(data) > 0 {
		return nil, marchwarden.Wrap(fs.ErrExist, marchwarden.CodeUnavailable, "create trace %s", id)
	}
	return &Writer{f: &onLines{lines}, now: h.now, clean: h.Clean, sums: true}, nil
}

// Append opens the trace of a held task to continue it.
func (h *Held) Append(id marchwarden.TraceID) (*Writer, *Log, error) {
	lines, log, err := h.load(id)
	if err != nil {
		return nil, nil, err
	}
	if log.Torn > 0 {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the last line of trace %s is damaged", id)
	}
	return &Writer{f: &onLines{lines}, now: h.now, clean: h.Clean, steps: len(log.Steps), sum: log.sum, sums: log.sums}, log, nil
}

// Load reads the trace of a held task.
func (h *Held) Load(id marchwarden.TraceID) (*Log, error) {
	_, log, err := h.load(id)
	return log, err
}

func (h *Held) load(id marchwarden.TraceID) (dispatch.Lines, *Log, error) {
	lines, data, err := h.read(id)
	if err != nil {
		return nil, nil, err
	}
	if len(data) == 0 {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is recorded of run %s yet", id)
	}
	log, err := Read(bytes.NewReader(data))
	if err != nil {
		return nil, nil, fmt.Errorf("read trace %s: %w", id, err)
	}
	return lines, log, nil
}

// Foreign is never so: what a worker holds, the engine has given it.
func (h *Held) Foreign(marchwarden.TraceID) (bool, error) { return false, nil }

// onLines is a file of which every write is one whole line, kept when it returns.
type onLines struct{ lines dispatch.Lines }

func (o *onLines) Write(line []byte) (int, error) {
	// The journal bounds how long it tries: a step is written though its caller is gone.
	if err := o.lines.Append(context.Background(), line); err != nil {
		return 0, err
	}
	return len(line), nil
}

func (*onLines) Sync() error  { return nil }
func (*onLines) Close() error { return nil }
