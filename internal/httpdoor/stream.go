package httpdoor

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// stream is the writer that the MCP handler gets. While the handler is silent it sends comments of
// server-sent events, so that proxies and clients that wait for a first or a next byte go on
// waiting. It begins an answer itself only after the first long silence: until then the handler may
// still answer with JSON, 202 or an error. It also cuts off a caller that does not read.
//
// The handler has a header map of its own, which it may change while a beat goes out.
type stream struct {
	header   http.Header
	conn     *http.ResponseController
	every    time.Duration // the longest silence
	patience time.Duration // with a caller that does not read
	early    bool          // a beat may begin the answer: the caller reads events

	mu    sync.Mutex
	w     http.ResponseWriter
	timer *time.Timer
	began bool   // by a beat
	head  bool   // the handler has given its head
	code  int    // of the handler's head
	event bool   // the handler's answer is events
	tail  []byte // the last bytes of the answer
	rest  bytes.Buffer
	done  bool
}

const eventStream = "text/event-stream"

func (d *Door) stream(w http.ResponseWriter, r, in *http.Request) {
	s := &stream{header: http.Header{}, conn: http.NewResponseController(w), every: d.cfg.Heartbeat, patience: d.cfg.BodyTimeout,
		early: acceptsEvents(r), w: w}
	s.mu.Lock()
	s.timer = time.AfterFunc(s.every, s.beat)
	s.mu.Unlock()
	defer s.end()
	d.cfg.MCP.ServeHTTP(s, in)
	s.finish()
}

func acceptsEvents(r *http.Request) bool {
	for _, list := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(list, ",") {
			if mediaType(one) == eventStream {
				return true
			}
		}
	}
	return false
}

// beat shows life, if there is something to show it on.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || s.head && !s.event || !s.head && !s.early {
		return
	}
	if !s.head && !s.began {
		s.began = true
		setEvents(s.w.Header())
		s.w.Header().Set("Content-Type", eventStream)
		s.w.WriteHeader(http.StatusOK)
	}
	// In the middle of an event an empty line would end it.
	if s.between() {
		if _, err := s.send([]byte(": hb\n\n")); err != nil || s.flush() != nil {
			return // the caller is gone, and net/http ends the request's context
		}
	}
	s.timer.Reset(s.every)
}

// setEvents asks proxies not to hold events back.
func setEvents(h http.Header) {
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
}

// between reports whether the last event is complete.
func (s *stream) between() bool {
	return len(s.tail) == 0 || bytes.HasSuffix(s.tail, []byte("\n\n")) || bytes.HasSuffix(s.tail, []byte("\r\n\r\n"))
}

// Header is the handler's own until it writes.
func (s *stream) Header() http.Header { return s.header }

// WriteHeader gives the head, once. After a beat it is out already: the answer is put into events.
func (s *stream) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(code)
}

func (s *stream) start(code int) {
	if s.head || s.done || code < 200 {
		return
	}
	s.head, s.code = true, code
	s.event = code == http.StatusOK && mediaType(s.header.Get("Content-Type")) == eventStream
	if s.began {
		return
	}
	maps.Copy(s.w.Header(), s.header)
	if s.event { // whatever the handler says: an answer is its caller's alone
		setEvents(s.w.Header())
	}
	s.w.WriteHeader(code)
}

var (
	errEnded   = errors.New("the answer has ended")
	errNotRead = errors.New("the caller does not read the answer")
)

// Write sends a part of the answer.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return 0, errEnded
	}
	s.start(http.StatusOK)
	if s.kept() {
		return s.rest.Write(b)
	}
	if s.event {
		defer s.timer.Reset(s.every)
	}
	return s.send(b)
}

// kept reports whether the handler's answer is not events, but the head says it is.
func (s *stream) kept() bool { return s.began && s.head && !s.event }

// send writes in pieces, each of which the caller has time to read.
func (s *stream) send(b []byte) (n int, err error) {
	const piece = 32 << 10
	for len(b) > 0 && err == nil {
		part := b[:min(piece, len(b))]
		var m int
		if inTime(s.patience, s.conn.SetWriteDeadline, func() { m, err = s.w.Write(part) }) && err == nil {
			err = errNotRead
		}
		n, b = n+m, b[len(part):]
		s.tail = append(s.tail, part[max(0, len(part)-4):]...)
		s.tail = s.tail[max(0, len(s.tail)-4):]
	}
	return n, err
}

func (s *stream) flush() (err error) {
	if inTime(s.patience, s.conn.SetWriteDeadline, func() { err = s.conn.Flush() }) && err == nil {
		err = errNotRead
	}
	return err
}

// Flush sends what is buffered.
func (s *stream) Flush() { _ = s.FlushError() }

// FlushError is Flush for http.ResponseController.
func (s *stream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return errEnded
	}
	s.start(http.StatusOK)
	if s.kept() {
		return nil
	}
	return s.flush()
}

// finish completes the answer of a handler that has returned.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began {
		s.start(http.StatusOK)
		return
	}
	if !s.kept() || s.rest.Len() == 0 {
		return
	}
	// A caller that is gone has no use for the rest.
	if mediaType(s.header.Get("Content-Type")) == "application/json" {
		_, _ = s.send(asEvent(s.rest.Bytes()))
		return
	}
	line := strings.Join(strings.Fields(s.rest.String()), " ")
	_, _ = s.send(fmt.Appendf(nil, ": %d %s\n\n", s.code, line))
}

// asEvent is a JSON message as an event. JSON may hold line ends between its parts.
func asEvent(message []byte) []byte {
	out := []byte("event: message\n")
	for line := range bytes.SplitSeq(bytes.TrimSpace(message), []byte("\n")) {
		out = append(append(append(out, "data: "...), bytes.TrimSuffix(line, []byte("\r"))...), '\n')
	}
	return append(out, '\n')
}

// end lets nothing through any more, in a panic too.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	s.timer.Stop()
}
