package httpdoor

import (
	"errors"
	"net/http"
	"time"
)

// stream is the writer that the MCP handler gets. It cuts off a caller that does not read, and
// keeps answers from being held back or kept on their way.
type stream struct {
	http.ResponseWriter
	conn     *http.ResponseController
	patience time.Duration
	begun    bool
}

const eventStream = "text/event-stream"

var errNotRead = errors.New("the caller does not read the answer")

// WriteHeader begins the answer.
func (s *stream) WriteHeader(code int) {
	if h := s.Header(); !s.begun && mediaType(h.Get("Content-Type")) == eventStream { // whatever the handler says: an answer is its caller's alone
		h.Set("Cache-Control", "no-store, no-transform")
		h.Set("X-Accel-Buffering", "no")
	}
	s.begun = s.begun || code >= 200
	s.ResponseWriter.WriteHeader(code)
}

// Write sends in pieces, each of which the caller has time to read.
func (s *stream) Write(b []byte) (n int, err error) {
	const piece = 32 << 10
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	for len(b) > 0 && err == nil {
		part := b[:min(piece, len(b))]
		var m int
		if inTime(s.patience, s.conn.SetWriteDeadline, func() { m, err = s.ResponseWriter.Write(part) }) && err == nil {
			err = errNotRead
		}
		n, b = n+m, b[len(part):]
	}
	return n, err
}

// Flush sends what is buffered.
func (s *stream) Flush() { _ = s.FlushError() }

// FlushError is Flush for http.ResponseController.
func (s *stream) FlushError() (err error) {
	if !s.begun {
		s.WriteHeader(http.StatusOK)
	}
	if inTime(s.patience, s.conn.SetWriteDeadline, func() { err = s.conn.Flush() }) && err == nil {
		err = errNotRead
	}
	return err
}
