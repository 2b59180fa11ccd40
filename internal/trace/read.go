package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// maxLine bounds one line of a trace; the program writes far shorter ones.
const maxLine = 4 << 20

// Log is a trace as it was read.
type Log struct {
	Steps []Step
	// Good is the length in bytes of the whole lines; Torn counts the bytes after
	// them, which a crash left and which carry no step.
	Good int64
	Torn int64
	// Damaged says that what is torn is a whole line, with its newline, that is no
	// JSON: a crash does not leave that.
	Damaged bool

	only   []Action // the steps to decode; none is all
	format int
	sums   bool   // lines have checksums
	sum    string // of the last whole line
}

// Start is the log's first step, or an error when the log does not begin with
// one.
func (l *Log) Start() (*Start, error) {
	if len(l.Steps) > 0 {
		if s, ok := l.Steps[0].(*Start); ok {
			return s, nil
		}
	}
	return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the trace does not begin with a start step")
}

// Complete is the step that closed the run, or nil when nothing did, or it went on
// after that.
func (l *Log) Complete() *Complete {
	for _, s := range slices.Backward(l.Steps) {
		switch s := s.(type) {
		case *Complete:
			return s
		case *Resume:
			return nil
		}
	}
	return nil
}

// Latest is the step that closed the run last, whether or not it went on after that;
// nil when nothing did.
func (l *Log) Latest() *Complete {
	for _, s := range slices.Backward(l.Steps) {
		if c, ok := s.(*Complete); ok {
			return c
		}
	}
	return nil
}

// Refs are the blobs that the trace needs, each once, with the first step that names it.
func (l *Log) Refs() iter.Seq2[Step, blob.Ref] {
	return func(yield func(Step, blob.Ref) bool) {
		seen := map[blob.Ref]bool{}
		for _, s := range l.Steps {
			for _, ref := range Refs(s) {
				if seen[ref] {
					continue
				}
				if seen[ref] = true; !yield(s, ref) {
					return
				}
			}
		}
	}
}

// TornWords says that a crash tore the last line of the trace of a run; "" if none did.
func (l *Log) TornWords(id marchwarden.TraceID) string {
	if l.Torn == 0 {
		return ""
	}
	return fmt.Sprintf("the last line of trace %s is torn: %d bytes that a crash left carry no step", id, l.Torn)
}

// Read reads a trace. A last line without its newline was never acknowledged,
// whatever it holds: it is reported as torn and is not an error, and so is a last
// line that is no JSON. Anything wrong before it is an error with CodeCorrupt that
// names the line; a reader that fails is CodeUnavailable, and a trace of a later
// format CodeUnsupported. With an error comes what stands before it.
func Read(r io.Reader) (*Log, error) {
	log := &Log{}
	return log, log.ReadOn(r)
}

// ReadOn is Read from where the whole lines end that were read so far.
func (l *Log) ReadOn(r io.Reader) error {
	br := bufio.NewReaderSize(r, 64<<10)
	l.Torn, l.Damaged = 0, false
	for n := len(l.Steps) + 1; ; n++ {
		line, err := durable.ReadLine(br, maxLine)
		switch {
		case len(line) > maxLine:
			return marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line %d: longer than %d bytes", n, maxLine)
		case errors.Is(err, io.EOF):
			l.Torn = int64(len(line))
			return nil
		case err != nil:
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "trace line %d", n)
		}
		if err := l.take(line, n); err != nil {
			if _, peekErr := br.Peek(1); errors.Is(peekErr, io.EOF) && !json.Valid(line) {
				l.Torn = int64(len(line))
				l.Damaged = len(bytes.Trim(line, "\x00\n")) > 0 // blocks that were never written read as zeros
				return nil
			}
			return err
		}
	}
}

func (l *Log) take(line []byte, n int) error {
	step, err := l.decode(line, n)
	if err != nil {
		return err
	}
	start, begins := step.(*Start)
	if n == 1 && begins {
		l.format = start.Format
		switch {
		case l.format < 1:
			return marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line 1 names no format")
		case l.format > Format:
			return marchwarden.Errorf(marchwarden.CodeUnsupported, "the trace has format %d; this program reads formats 1 to %d", l.format, Format)
		}
	}
	text := bytes.TrimSuffix(line, []byte("\n"))
	if n == 1 {
		_, sum, _ := durable.CheckLine(text) // whether it fits is looked at below
		l.sums = l.format > 1 || sum != ""
	}
	if l.sums {
		body, sum, err := durable.CheckLine(text, lineTag, l.sum)
		switch {
		case err != nil:
			return marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line %d: its checksum does not fit: the line, or the one before it, was changed", n)
		case sum == "":
			return marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line %d: it has no checksum", n)
		}
		l.sum = sum
		if u, ok := step.(*Unknown); ok && u.Raw != nil {
			u.Raw = append(bytes.Clone(body), '}')
		}
	}
	if start, err := l.Start(); err == nil {
		if r, ok := step.(*Resume); ok {
			start.Resumed(r)
		}
	}
	l.Steps = append(l.Steps, step)
	l.Good += int64(len(line))
	return nil
}

func (l *Log) decode(line []byte, n int) (Step, error) {
	head, quick := glance(line)
	if !quick {
		if err := json.Unmarshal(line, &head); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "trace line %d", n)
		}
	}
	if head.Step != n {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line %d has step %d", n, head.Step)
	}
	if quick && l.sums && len(l.only) > 0 && !slices.Contains(l.only, head.Action) {
		return &Unknown{Head: head}, nil // its checksum is held against it
	}
	step := newStep(head.Action)
	if step == nil {
		step = &Unknown{Raw: bytes.Clone(bytes.TrimSpace(line))}
	}
	into := any(step)
	if u, ok := step.(*Unknown); ok {
		into = &u.Head
	}
	if err := json.Unmarshal(line, into); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "trace line %d (%s)", n, head.Action)
	}
	if h := step.Header(); h.Step != n || h.Action != head.Action || !h.Timestamp.Equal(head.Timestamp) { // it was said twice
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "trace line %d is step %d (%s), too", n, h.Step, h.Action)
	}
	return step, nil
}

// glance reads the head of a line, but for its decision, without reading the rest. ok
// says that the line begins as this program writes it.
func glance(line []byte) (h Head, ok bool) {
	var values [3][]byte
	for i, f := range [...]struct{ key, end string }{{`{"step":`, `,`}, {`"action":"`, `",`}, {`"timestamp":"`, `",`}} {
		if line, ok = bytes.CutPrefix(line, []byte(f.key)); !ok {
			return h, false
		}
		if values[i], line, ok = bytes.Cut(line, []byte(f.end)); !ok || bytes.IndexByte(values[i], '\\') >= 0 {
			return h, false
		}
	}
	n, err := strconv.Atoi(string(values[0]))
	h = Head{Step: n, Action: Action(values[1])}
	return h, err == nil && h.Timestamp.UnmarshalText(values[2]) == nil
}
