package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

// This part sends pictures of runs to browsers as server-sent events. It owns that
// every client gets the latest picture, a slow one loses those between, and one that does
// not read is dropped. It knows neither what a picture shows, nor where it comes from, nor
// who may see it.
//
// A client gets, with a comment wherever it would hear nothing for long:
//
//	id: 5f1c…          what the picture is, so that who comes back does not get it again
//	event: picture
//	data: …            as the source gave it, line by line
//
//	event: over        the run has ended, and with it the stream; coming back brings no more
//	data: {}
//
//	event: oops        the run cannot be watched just now; the stream ends, come back later
//	data: {"code":"unavailable","message":"…","hint":"…"}
//
// A stream that ends without over or oops has lasted long enough, or the server ends: an
// EventSource comes back by itself and says what it has.

// The names of the events.
const (
	EventPicture = "picture"
	EventOver    = "over"
	EventOops    = "oops"
)

// Source is a run that can be looked at.
type Source interface {
	// Next gives the picture of now. changed says whether it is another than the last
	// one; a picture that is not changed is not looked at. over says that it will never
	// change again: nothing is asked after that, nor after an error. Next returns when ctx
	// ends.
	Next(ctx context.Context) (picture []byte, changed, over bool, err error)
}

// StreamConfig is what Streams need. Open and Now are required; what is zero has its default.
type StreamConfig struct {
	// Open begins to look at a run for one client.
	Open func(id marchwarden.TraceID) Source
	// Now is the clock of the machine, and no other: connections are held to it.
	Now func() time.Time
	// Log hears of sources that fail. Nil is silence.
	Log *slog.Logger

	Every    time.Duration // the pause between two looks at a source; default 250 ms
	Look     time.Duration // how long one look at a source may take; default 30 s
	Beat     time.Duration // the longest silence before a comment is sent; default 15 s
	Patience time.Duration // how long one write may take before its client is dropped; default 10 s
	Life     time.Duration // how long a stream lasts before its client is let in anew, or is not; default 10 min

	MaxClients int // streams at once, 503 with Retry-After beyond; default 1000
}

// Streams are the clients that watch runs. They are safe for concurrent use. Close them when
// done.
type Streams struct {
	cfg  StreamConfig
	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup // calls of Serve

	mu      sync.Mutex // guards clients, and that none comes after the end
	clients int
}

// NewStreams makes streams without a client.
func NewStreams(cfg StreamConfig) *Streams {
	cfg.Every = cmp.Or(cfg.Every, 250*time.Millisecond)
	cfg.Look = cmp.Or(cfg.Look, 30*time.Second)
	cfg.Beat = cmp.Or(cfg.Beat, 15*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	cfg.Life = cmp.Or(cfg.Life, 10*time.Minute)
	cfg.MaxClients = cmp.Or(cfg.MaxClients, 1000)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Streams{cfg: cfg}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all streams, in the middle of a write if need be, and returns when they
// have. A later client is refused. http.Server.Shutdown waits for streams and does
// not end them: register Close with RegisterOnShutdown, or call it before.
func (s *Streams) Close() {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.all.Wait()
}

// Serve lets a client watch a run, until it is over or cannot be watched, the client
// leaves or does not read, or the streams are closed. Who may see the run is for the caller
// to decide before. w must be able to flush and have write deadlines, wrapped or not.
func (s *Streams) Serve(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) {
	if r.Method == http.MethodHead {
		setHead(w.Header())
		return
	}
	if err := s.enter(); err != nil {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	ctx, stop := context.WithTimeout(r.Context(), s.cfg.Life)
	defer stop()
	defer context.AfterFunc(s.life, stop)()
	c := &client{w: w, conn: http.NewResponseController(w), now: s.cfg.Now, patience: s.cfg.Patience}
	// A writer without deadlines would be held for ever by a client that does not read.
	// That is found out here, at the first request, and not when one comes.
	if err := c.conn.SetWriteDeadline(s.cfg.Now().Add(s.cfg.Patience)); errors.Is(err, http.ErrNotSupported) {
		s.cfg.Log.Error("events cannot be sent", "error", err)
		http.Error(w, "events cannot be sent through this server", http.StatusInternalServerError)
		return
	}
	defer c.release()
	defer context.AfterFunc(ctx, c.cut)()
	setHead(w.Header())
	if err := s.watch(ctx, c, id, r.Header.Get("Last-Event-ID")); err != nil {
		s.cfg.Log.Debug("a client is gone", "run", id, "error", err)
	}
}

// setHead says what the answer is, and asks proxies not to hold it back.
func setHead(header http.Header) {
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
}

func (s *Streams) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.life.Err() != nil:
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "the server ends; try again later")
	case s.clients >= s.cfg.MaxClients:
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "as many watch as can; try again later")
	}
	s.clients++
	s.all.Add(1)
	return nil
}

func (s *Streams) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients--
	s.all.Done()
}

// watch sends what there is to see from now on. It gives an error when the client could not be written to.
func (s *Streams) watch(ctx context.Context, c *client, id marchwarden.TraceID, has string) error {
	if err := c.send(greeting); err != nil {
		return err
	}
	source := s.cfg.Open(id)
	spoke := s.cfg.Now()
	pause := time.NewTimer(s.cfg.Every)
	defer pause.Stop()
	for ctx.Err() == nil {
		picture, over, err := s.look(ctx, source)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.cfg.Log.Warn("a run cannot be watched", "run", id, "error", err)
			return c.send(oops(err))
		}
		if name := nameOf(picture); picture != nil && name != has {
			if err := c.send(event(EventPicture, name, picture)); err != nil {
				return err
			}
			has, spoke = name, s.cfg.Now()
		}
		if over {
			return c.send(event(EventOver, "", []byte("{}")))
		}
		if s.cfg.Now().Sub(spoke) >= s.cfg.Beat {
			if err := c.send(silence); err != nil {
				return err
			}
			spoke = s.cfg.Now()
		}
		pause.Reset(s.cfg.Every)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
	return nil
}

// look asks a source for its picture, nil if it is the last one still. A panic is an error,
// and so is a look that takes too long.
func (s *Streams) look(ctx context.Context, source Source) (picture []byte, over bool, err error) {
	ctx, stop := context.WithTimeout(ctx, s.cfg.Look)
	defer stop()
	defer panics.Caught(&err, "the source of a run")
	picture, changed, over, err := source.Next(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = marchwarden.Errorf(marchwarden.CodeTimeout, "looking at the run takes too long")
	}
	if !changed {
		picture = nil
	}
	return picture, over, err
}

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

// rest takes the deadline away: over HTTP/2 it ends a stream on which nothing is written, too.
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

// nameOf is the id of a picture, the same to the server after a restart.
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
