package web

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

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

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

// watch sends what there is to see of a run from now on, but for the picture that the
// client has. It gives an error when the client could not be written to.
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
