package lanes

import (
	"context"
	"errors"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// errShrunk says that a trace is shorter than what was read of it.
var errShrunk = errors.New("the trace is shorter than it was")

// tail is one trace as far as it was read.
type tail struct {
	id       marchwarden.TraceID
	tail     trace.Tail
	seen     int64 // how long it was when it was read last, what is torn included
	complete bool  // it has its result
	idle     bool  // nobody wrote it when it was read last
	shut     bool  // it is not read any more
}

// next gives the steps that are new, and reports whether nobody writes the trace. It may
// give both steps and an error.
func (t *tail) next(ctx context.Context, records Records) (steps []trace.Step, ended bool, err error) {
	size, ended, err := records.Size(ctx, t.id)
	if err != nil {
		return nil, false, err
	}
	t.idle = ended
	switch {
	case size < t.tail.Offset():
		return nil, ended, errShrunk
	case size == t.seen:
		return nil, ended, nil
	}
	steps, err = t.read(records, size)
	for _, s := range steps {
		switch s.(type) {
		case *trace.Complete:
			t.complete = true
		case *trace.Resume:
			t.complete = false
		}
	}
	if err == nil {
		t.seen = size
	}
	return steps, ended, err
}

// read reads on to where the trace ended when it was looked at: what comes after that is
// read next time.
func (t *tail) read(records Records, size int64) ([]trace.Step, error) {
	f, err := records.Raw(t.id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := skip(f, t.tail.Offset()); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", t.id)
	}
	return t.tail.Next(io.LimitReader(f, size-t.tail.Offset()))
}

// skip goes past what was read before.
func skip(f io.Reader, offset int64) error {
	if s, ok := f.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, f, offset)
	return err
}
