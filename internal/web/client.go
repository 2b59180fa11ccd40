package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// piece is how much a client has Patience to take.
	piece = 32 << 10
	// farewell is how long net/http may take to end an answer after its last event.
	farewell = time.Second
)

var errCut = errors.New("the stream was ended")

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

var (
	// greeting begins a stream, so that the browser knows that there is one, and says
	// after how many milliseconds to come back when it breaks.
	greeting = []byte("retry: 2000\n\n")
	// silence is a comment, which browsers drop.
	silence = []byte(":\n\n")
)

// nameOf is the id of a picture. It is made of the picture alone, so that it means the
// same to another goroutine, and to the server after a restart.
func nameOf(picture []byte) string {
	sum := sha256.Sum256(picture)
	return hex.EncodeToString(sum[:12])
}

// event is an event as it goes over the wire. Data may be any text: all three ends of
// lines that browsers know are made lines of data, so that none can begin a field.
func event(name, id string, data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/8+100)
	if id != "" {
		out = append(append(append(out, "id: "...), id...), '\n')
	}
	out = append(append(append(out, "event: "...), name...), '\n')
	for more := true; more; {
		var line []byte
		line, data, more = cutLine(data)
		out = append(append(append(out, "data: "...), line...), '\n')
	}
	return append(out, '\n')
}

// cutLine cuts data after its first line, which ends in LF, CR LF or CR.
func cutLine(data []byte) (line, rest []byte, found bool) {
	i := bytes.IndexAny(data, "\r\n")
	if i < 0 {
		return data, nil, false
	}
	line, rest = data[:i], data[i+1:]
	if data[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest, true
}

// oops is the event that says why a run cannot be watched. Unclassified faults, and the causes of
// others, are not told: they are for the log.
func oops(err error) []byte {
	said := struct {
		Code    marchwarden.Code `json:"code"`
		Message string           `json:"message"`
		Hint    string           `json:"hint,omitempty"`
	}{Code: marchwarden.CodeOf(err), Message: "the run cannot be watched; the server's log says why"}
	var known *marchwarden.Error
	if said.Code != marchwarden.CodeInternal && errors.As(err, &known) {
		said.Message, said.Hint = known.Message, marchwarden.HintOf(err)
	}
	data, err := json.Marshal(said)
	if err != nil {
		data = []byte("{}") // unreachable: strings are always JSON
	}
	return event(EventOops, "", data)
}
