package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// This part sends pictures of a run to browsers as server-sent events. Every client gets the
// latest picture, a slow one loses those between, and one that does not read is dropped.
//
//	event: picture
//	data: …            the live part of the page, line by line
//
//	event: over        the run has ended, and with it the stream; coming back brings no more
//	data: {}
//
//	event: oops        the run cannot be watched just now; the stream ends, come back later
//	data: {"code":"unavailable","message":"…","hint":"…"}
//
// A comment shows life where nothing happens for long. A stream that ends without over or oops has
// lasted long enough, or the server ends: an EventSource comes back by itself.

const (
	lookEvery  = 250 * time.Millisecond // the pause between two looks at a run
	beat       = 15 * time.Second       // the longest silence before a comment is sent
	patience   = 10 * time.Second       // how long a client may take to read an event
	streamLife = 10 * time.Minute       // after which a client is let in anew, or is not
	maxStreams = 1000                   // at once
	// stale is how old a picture may be of a run in which nothing happens: its lanes grow.
	stale = 2 * time.Second
)

// events lets a client watch a run until it is over or cannot be watched, the client leaves or does
// not read, or the server is closed.
func (s *Server) events(w http.ResponseWriter, r *http.Request, id marchwarden.TraceID) error {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store, no-transform")
	head.Set("X-Accel-Buffering", "no") // asks proxies not to hold it back
	if r.Method == http.MethodHead {
		return nil
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		head.Set("Retry-After", "5")
		http.Error(w, "as many watch as can; try again later", http.StatusServiceUnavailable)
		return nil
	}
	ctx, stop := context.WithTimeout(r.Context(), streamLife)
	defer stop()
	defer context.AfterFunc(s.life, stop)()
	seen := &watched{s: s, id: id, run: run.Follow(s.Store.Traces, s.Store.Blobs, id)}
	return s.delivered(stream(ctx, w, s.Now, seen.next), r)
}

// stream sends events as they come, until the last one or the end of ctx. next gives what there is
// to send, which may be nothing. The error is that of the client, which does not read or has left.
func stream(ctx context.Context, w http.ResponseWriter, now func() time.Time, next func(context.Context) (events string, last bool)) error {
	conn := http.NewResponseController(w)
	send := func(text string) error {
		if err := conn.SetWriteDeadline(now().Add(patience)); err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		if err := conn.Flush(); err != nil {
			return err
		}
		return conn.SetWriteDeadline(time.Time{}) // over HTTP/2 it would end a silent stream, too
	}
	defer func() { _ = conn.SetWriteDeadline(now().Add(patience)) }() // for the end of the answer
	// The browser knows by the first line that there is a stream, and when to come back after it breaks.
	if err := send("retry: 2000\n\n"); err != nil {
		return err
	}
	spoke, looks := now(), time.NewTicker(lookEvery)
	defer looks.Stop()
	for {
		text, last := next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if text == "" && now().Sub(spoke) >= beat {
			text = ":\n\n" // a comment, which browsers drop
		}
		if text != "" {
			if err := send(text); err != nil {
				return err
			}
			spoke = now()
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
	}
}

// lineEnds are all ends of lines that browsers know.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// event is an event as it goes over the wire. No line of its data can begin a field.
func event(name, data string) string {
	return "event: " + name + "\ndata: " + strings.ReplaceAll(lineEnds.Replace(data), "\n", "\ndata: ") + "\n\n"
}

// watched is a run as one client sees it.
type watched struct {
	s     *Server
	id    marchwarden.TraceID
	run   *run.Follower
	sent  [32]byte  // the hash of the last picture that the client was sent
	drawn time.Time // when the last picture was made
	draft string    // the last one, which stays until the checked answer takes its place
}

func (w *watched) next(ctx context.Context) (events string, last bool) {
	picture, over, err := w.look(ctx)
	if err != nil {
		w.s.Log.Warn("a run cannot be watched", "trace_id", w.id.String(), "error", err)
		message, hint := w.s.told(ctx, err)
		data, _ := json.Marshal(map[string]string{"code": string(marchwarden.CodeOf(err)), "message": message, "hint": hint}) // strings are always JSON
		return event("oops", string(data)), true
	}
	if sum := sha256.Sum256([]byte(picture)); picture != "" && sum != w.sent {
		w.sent, events = sum, event("picture", picture)
	}
	if over {
		events += event("over", "{}")
	}
	return events, over
}

// look makes a picture if something has happened, or enough time has passed; "" is none. over says
// that nothing will change any more.
func (w *watched) look(ctx context.Context) (picture string, over bool, err error) {
	board, changed, over, err := w.run.Read(ctx)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return "", w.gone(), nil // not begun yet
	}
	over = over && w.gone() // a run that was just resumed may not have opened its trace yet
	if err == nil && board.Began.IsZero() {
		return "", over, nil // made, and not begun yet
	}
	now, drafted := w.s.Now(), w.redraft()
	if err != nil || !changed && !drafted && !over && now.Sub(w.drawn) < stale {
		return "", over, err
	}
	w.drawn = now
	live := w.s.live(w.id, board, over)
	live.Draft = w.draft
	return live.Node().String(), over, nil
}

// redraft looks for more of a draft, which only a run of this process has.
func (w *watched) redraft() bool {
	task, err := w.s.Runs.Find(asServer(), w.id)
	if err != nil {
		return false
	}
	was := w.draft
	w.draft = cmp.Or(task.Draft(), was)
	return w.draft != was
}

// gone reports whether a run that has no trace will never have one.
func (w *watched) gone() bool {
	run, err := w.s.Runs.Find(asServer(), w.id)
	return err != nil || ended(run)
}

func asServer() context.Context { return access.With(context.Background(), access.Local()) }
