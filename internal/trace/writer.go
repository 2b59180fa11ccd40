package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
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
	h.Step, h.Action, h.Timestamp = w.steps+1, s.action(), w.now().UTC()
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
	line, err := encode(s)
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

func encode(s Step) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// formatSums is the first format whose lines have checksums.
const formatSums = 2

const lineTag = "marchwarden/trace-line/v2"

// hasSum reports whether a line ends with a checksum, right or wrong.
func hasSum(line []byte) bool {
	_, sum, _ := durable.CheckLine(bytes.TrimSuffix(line, []byte("\n")))
	return sum != ""
}

// checkSum holds a line against the checksum at its end, and returns both parts.
func checkSum(before string, line []byte) (body []byte, sum string, err error) {
	body, sum, err = durable.CheckLine(bytes.TrimSuffix(line, []byte("\n")), lineTag, before)
	switch {
	case err != nil:
		return nil, "", errors.New("its checksum does not fit: the line, or the one before it, was changed")
	case sum == "":
		return nil, "", errors.New("it has no checksum")
	}
	return body, sum, nil
}
