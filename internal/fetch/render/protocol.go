package render

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// errGone says that the browser closed its end.
var errGone = errors.New("the browser went away")

// message is what goes over the wire: a command has a method and an ID, its answer the ID alone, an event the method alone. Session is "" for the browser itself.
type message struct {
	ID      int64           `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

// fault is the browser's answer to a command that it did not carry out.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error is what the browser said.
func (f *fault) Error() string {
	return fmt.Sprintf("the browser answered %d: %.300s", f.Code, f.Message)
}

// wire talks the browser's debugging protocol over a pair of pipes: JSON messages, each ended by a zero byte. One goroutine may use it, besides the one that reads.
type wire struct {
	out     io.Writer
	in      chan message  // closed when there will be no more
	ended   chan struct{} // closed by end: messages are read on and thrown away, so that the browser is never held up
	reading sync.WaitGroup
	err     error // why in was closed; read it after that
	last    int64 // the ID of the last command
}

// newWire starts to read. A message over limit bytes ends it. The caller calls end, and closes both pipes.
func newWire(out io.Writer, in io.Reader, limit int64) *wire {
	w := &wire{out: out, in: make(chan message), ended: make(chan struct{})}
	w.reading.Go(func() {
		defer close(w.in)
		w.err = w.read(bufio.NewReaderSize(in, 64<<10), limit)
	})
	return w
}

func (w *wire) read(in *bufio.Reader, limit int64) error {
	var line []byte
	for {
		part, err := in.ReadSlice(0)
		if int64(len(line)+len(part)) > limit {
			return marchwarden.Errorf(marchwarden.CodeMalformed, "a message of the browser is over %d bytes", limit)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil: // the pipe was closed, by whom does not matter
			return errGone
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read a message of the browser")
		}
		line = line[:0]
		if cap(line) > 1<<20 {
			line = nil // a document; the rest is short
		}
		select {
		case w.in <- m:
		case <-w.ended:
		}
	}
}

// send writes a command and returns its ID.
func (w *wire) send(session, method string, with any) (int64, error) {
	raw, err := json.Marshal(with)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", method, err)
	}
	w.last++
	line, err := json.Marshal(message{ID: w.last, Session: session, Method: method, Params: raw})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", method, err)
	}
	if _, err := w.out.Write(append(line, 0)); err != nil {
		return 0, fmt.Errorf("%s: %w", method, errors.Join(errGone, err))
	}
	return w.last, nil
}

// end lets go of what still comes in.
func (w *wire) end() { close(w.ended) }
