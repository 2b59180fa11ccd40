package web

// This part sends pictures of runs to browsers as server-sent events. It owns that
// a run is looked at by one goroutine, however many watch it; that every client gets the latest
// picture, and a slow one loses those between; and that nothing waits for a client that does not
// read. It knows neither what a picture shows, nor where it comes from, nor who may see it.
//
//	source ── Next ──▶ run: the latest picture, the end ──▶ client: write, flush ──▶ browser
//	                   (replaced, never queued)        └──▶ client …
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
	// change again: nothing is asked after that, nor after an error. The picture is not
	// kept, so its bytes may be used again. Next is called by one goroutine at a time and
	// should return when ctx ends.
	Next(ctx context.Context) (picture []byte, changed, over bool, err error)
}

// StreamConfig is what a Hub needs. Open and Now are required; what is zero has its default.
type StreamConfig struct {
	// Open begins to watch a run. ctx ends when watching does, not before.
	Open func(ctx context.Context, id marchwarden.TraceID) (Source, error)
	// Now is the clock of the machine, and no other: connections are held to it.
	Now func() time.Time
	// Log hears of sources that fail. Nil is silence.
	Log *slog.Logger

	Every    time.Duration // the pause between two looks at a source; default 250 ms
	Look     time.Duration // how long opening a source or one look at it may take; default 30 s
	Beat     time.Duration // the longest silence before a comment is sent; default 15 s
	Patience time.Duration // how long one write may take before its client is dropped; default 10 s
	Life     time.Duration // how long a stream lasts before its client is let in anew, or is not; default 10 min

	MaxClients int // streams at once, 503 with Retry-After beyond; default 1000
	MaxRuns    int // runs that are watched at once, likewise; default 100
}

// grace is how long Close waits for a source that does not listen to its context.
const grace = time.Second

// Hub is the runs that clients watch. It is safe for concurrent use. Close it when done.
type Hub struct {
	cfg     StreamConfig
	life    context.Context
	end     context.CancelFunc
	streams sync.WaitGroup // calls of Serve
	watches sync.WaitGroup // goroutines that look at sources

	mu      sync.Mutex // guards what follows, and who watches a run
	clients int
	runs    map[marchwarden.TraceID]*shown
}

// NewStream makes a hub that watches nothing yet.
func NewStream(cfg StreamConfig) *Hub {
	cfg.Every = cmp.Or(cfg.Every, 250*time.Millisecond)
	cfg.Look = cmp.Or(cfg.Look, 30*time.Second)
	cfg.Beat = cmp.Or(cfg.Beat, 15*time.Second)
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Second)
	cfg.Life = cmp.Or(cfg.Life, 10*time.Minute)
	cfg.MaxClients = cmp.Or(cfg.MaxClients, 1000)
	cfg.MaxRuns = cmp.Or(cfg.MaxRuns, 100)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Hub{cfg: cfg, runs: map[marchwarden.TraceID]*shown{}}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Close ends all streams, in the middle of a write if need be, and returns when they
// have. A later client is refused. http.Server.Shutdown waits for streams and does
// not end them: register Close with RegisterOnShutdown, or call it before.
func (h *Hub) Close() {
	h.mu.Lock()
	h.end()
	h.mu.Unlock()
	h.streams.Wait()
	unwatched := make(chan struct{})
	go func() {
		h.watches.Wait()
		close(unwatched)
	}()
	select {
	case <-unwatched:
	case <-time.After(grace):
	}
}

// Serve lets a client watch a run, until it is over or cannot be watched, the client
// leaves or does not read, or the hub is closed. Who may see the run is for the caller to
// decide before. w must be able to flush and have write deadlines, wrapped or not.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) {
	if r.Method == http.MethodHead {
		setHead(w.Header())
		return
	}
	watched, err := h.join(id)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave(watched)

	ctx, stop := context.WithTimeout(r.Context(), h.cfg.Life)
	defer stop()
	defer context.AfterFunc(h.life, stop)()
	c := &client{w: w, conn: http.NewResponseController(w), now: h.cfg.Now, patience: h.cfg.Patience}
	// A writer without deadlines would be held for ever by a client that does not read.
	// That is found out here, at the first request, and not when one comes.
	if err := c.conn.SetWriteDeadline(h.cfg.Now().Add(h.cfg.Patience)); errors.Is(err, http.ErrNotSupported) {
		h.cfg.Log.Error("events cannot be sent", "error", err)
		http.Error(w, "events cannot be sent through this server", http.StatusInternalServerError)
		return
	}
	defer c.release()
	defer context.AfterFunc(ctx, c.cut)()
	setHead(w.Header())
	if err := c.watch(ctx, watched, r.Header.Get("Last-Event-ID"), h.cfg.Beat); err != nil {
		h.cfg.Log.Debug("a client is gone", "run", id, "error", err)
	}
}

// setHead says what the answer is, and asks proxies not to hold it back.
func setHead(header http.Header) {
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
}

// join makes one more client of a run; the first begins to watch it.
func (h *Hub) join(id marchwarden.TraceID) (*shown, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[id]
	switch {
	case h.life.Err() != nil:
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the server ends; try again later")
	case h.clients >= h.cfg.MaxClients:
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "as many watch as can; try again later")
	case r == nil && len(h.runs) >= h.cfg.MaxRuns:
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "as many runs are watched as can be; try again later")
	}
	if r == nil {
		r = newRun(id)
		h.runs[id] = r
		h.watches.Go(func() { h.watch(r) })
	}
	r.clients++
	h.clients++
	h.streams.Add(1)
	return r, nil
}

// leave makes one client of a run less. Nothing is stopped here: the goroutine that looks at the
// source finds out before the next look, and until then another client may come.
func (h *Hub) leave(r *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.clients--
	h.clients--
	h.streams.Done()
}

// deserted forgets a run that no client watches any more. Only the goroutine that looks at
// its source asks, and it ends then, so that there never are two for one run.
func (h *Hub) deserted(r *shown) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.clients > 0 {
		return false
	}
	delete(h.runs, r.id)
	return true
}

// forget lets the next client of a run begin anew.
func (h *Hub) forget(r *shown) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs[r.id] == r {
		delete(h.runs, r.id)
	}
}
