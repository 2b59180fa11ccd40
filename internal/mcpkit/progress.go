package mcpkit

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxProgressChars is what hosts show of a progress message.
	maxProgressChars = 200
	// progressBacklog is how many messages may wait for a slow reader before
	// further ones are dropped.
	progressBacklog = 64
)

// progress sends the events of one call to the client that asked for them. A
// nil *progress, for a client that did not ask, does nothing.
//
// Events only enter a queue, so a client that does not read cannot hold up the
// research; those that find the queue full are dropped, because events are a
// courtesy. Numbers count the messages sent, so they always increase.
type progress struct {
	send func(n int, message string)
	done chan struct{} // closed when the sender has ended

	mu     sync.Mutex // guards closed, and closing queue against sends
	closed bool
	queue  chan string
}

// startProgress sends a first message and follows with those given to the sink
// until stop. It returns nil if the request has no progress token.
func startProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{
		queue: make(chan string, progressBacklog),
		done:  make(chan struct{}),
		send: func(n int, message string) {
			// A message that cannot be sent is lost: the connection notices its own
			// faults, and a stopped call needs no progress.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(n), Message: message,
			})
		},
	}
	p.push("research started")
	go p.forward(heartbeat)
	return p
}

// forward sends what is queued, and the last message again when nothing came for
// the time given: a slow model is no dead one.
func (p *progress) forward(silence time.Duration) {
	defer close(p.done)
	beat := time.NewTicker(silence)
	defer beat.Stop()
	last := ""
	for n := 1; ; n++ {
		select {
		case message, open := <-p.queue:
			if !open {
				return
			}
			last = message
			p.send(n, message)
			beat.Reset(silence)
		case <-beat.C:
			p.send(n, "still at work: "+last)
		}
	}
}

// sink is what the researcher reports to, or nil.
func (p *progress) sink() marchwarden.Sink {
	if p == nil {
		return nil
	}
	return func(e marchwarden.Event) {
		message := e.Message
		if message == "" {
			message = string(e.Stage)
		}
		p.push(clip(plain(message), maxProgressChars))
	}
}

func (p *progress) push(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.queue <- message:
	default:
	}
}

// stop sends what is queued and returns when nothing more will be sent, so that
// no progress follows the answer. Events that come later are ignored.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	close(p.queue)
	p.mu.Unlock()
	<-p.done
}
