package browsertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
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

// wire talks the browser's debugging protocol over a pair of pipes: JSON messages, each ended by a zero byte. One goroutine at a time may use it, and
// another one reads.
type wire struct {
	out     io.Writer
	in      chan message
	ended   chan struct{} // closed when the use ends: messages are read on and thrown away, so that the browser is never held up
	reading sync.WaitGroup
	err     error // why in was closed
	last    int64 // the ID of the last command
}

// newWire starts to read. The caller closes ended, and both pipes.
func newWire(out io.Writer, in io.Reader) *wire {
	w := &wire{out: out, in: make(chan message), ended: make(chan struct{})}
	w.reading.Go(func() {
		defer close(w.in)
		w.err = w.read(bufio.NewReaderSize(in, 64<<10))
	})
	return w
}

func (w *wire) read(in *bufio.Reader) error {
	for {
		line, err := in.ReadBytes(0)
		if err != nil { // the pipe was closed, by whom does not matter
			return errGone
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			return fmt.Errorf("read a message of the browser: %w", err)
		}
		select {
		case w.in <- m:
		case <-w.ended:
		}
	}
}

// In is what the browser says. It is closed when there will be no more.
func (w *wire) In() <-chan message { return w.in }

// Err is why In was closed; ask for it after that. It is errGone when the browser closed its end.
func (w *wire) Err() error { return w.err }

// Send writes a command and returns its ID. Session is "" for the browser itself.
func (w *wire) Send(session, method string, with any) (int64, error) {
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
