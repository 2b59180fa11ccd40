package web

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// piece is how much a client has Patience to take.
	piece = 32 << 10
	// farewell is how long net/http may take to end an answer after its last event.
	farewell = time.Second
)

var errCut = errors.New("the stream was ended")

// client is one stream.
type client struct {
	w        http.ResponseWriter
	conn     *http.ResponseController
	now      func() time.Time
	patience time.Duration

	mu   sync.Mutex // guards the write deadline and what follows
	gone bool       // nothing is to be written any more
}

// send writes and flushes in pieces, each of which the client has time to read.
func (c *client) send(b []byte) error {
	for part := range slices.Chunk(b, piece) {
		if err := c.hurry(); err != nil {
			return err
		}
		if _, err := c.w.Write(part); err != nil {
			return err
		}
		if err := c.conn.Flush(); err != nil {
			return err
		}
	}
	return c.rest()
}

// hurry gives the next write its deadline, unless there is to be none.
func (c *client) hurry() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return errCut
	}
	return c.conn.SetWriteDeadline(c.now().Add(c.patience))
}

// rest takes the deadline away: over HTTP/2 it ends a stream on which nothing is written,
// too.
func (c *client) rest() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return errCut
	}
	return c.conn.SetWriteDeadline(time.Time{})
}

// cut ends the stream from outside, in the middle of a write if need be.
func (c *client) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return
	}
	c.gone = true
	_ = c.conn.SetWriteDeadline(time.Unix(1, 0)) // a connection that is closed needs none
}

// release ends all use of the connection: the handler is about to return.
// What net/http writes after it, the end of the answer, has a deadline as well. After a
// write that failed nothing is written, whatever the deadline.
func (c *client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	_ = c.conn.SetWriteDeadline(c.now().Add(min(c.patience, farewell)))
}
