package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// research is the tool. It is registered as a raw handler, so the SDK neither
// fills in defaults (an unset constraint must stay unset) nor judges the
// arguments: the contract's own decoder does, in its own words. What goes wrong
// becomes a tool error that the calling model can read and correct.
func (s *Server) research(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ask, err := marchwarden.DecodeRequest(args)
	if err != nil {
		return failure(err), nil
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return failure(&marchwarden.Error{
			Code:    marchwarden.CodeUnavailable,
			Message: fmt.Sprintf("server busy: %d research calls are running, which is the limit", cap(s.slots)),
			Hint:    "call again when one of them has ended",
		}), nil
	}
	ctx, cancel := joinSession(ctx)
	defer cancel()
	if limit, ok := wallTime(req); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	if text, ok := req.Params.Meta[metaTrace].(string); ok {
		if id, err := marchwarden.ParseTraceID(text); err == nil {
			ctx = marchwarden.WithTraceID(ctx, id)
		}
	}
	progress := startProgress(ctx, req)
	out := s.run(ctx, ask, progress.sink())
	progress.stop()
	return s.answer(ask, out), nil
}

// maxWall bounds the time that a call can ask for; longer is no limit.
const maxWall = 24 * time.Hour

// wallTime is how long the caller waits, if it says so. The call is stopped then,
// and what it has comes back while somebody is still there to read it.
func wallTime(req *mcp.CallToolRequest) (time.Duration, bool) {
	ms, ok := req.Params.Meta[metaWall].(float64)
	if !ok || !(ms > 0) || ms > float64(maxWall.Milliseconds()) {
		return 0, false
	}
	return max(time.Duration(ms*float64(time.Millisecond)), 1), true
}

// outcome is what Research returned.
type outcome struct {
	res *marchwarden.Result
	err error
}

var errAbandoned = marchwarden.Errorf(marchwarden.CodeCanceled, "the call was stopped and did not end in time")

// run calls the researcher and gives its outcome. Once ctx has ended it waits
// no longer than the grace for a partial result. A researcher that overstays
// keeps its slot until it returns, so that stuck ones cannot pile up.
func (s *Server) run(ctx context.Context, ask marchwarden.Request, sink marchwarden.Sink) outcome {
	done := make(chan outcome, 1)
	go func() {
		out := s.guarded(ctx, ask, sink)
		<-s.slots // before the outcome: whoever has the answer finds the slot free
		done <- out
	}()
	select {
	case out := <-done:
		return out
	case <-ctx.Done():
	}
	patience := time.NewTimer(s.cfg.Grace)
	defer patience.Stop()
	select {
	case out := <-done:
		return out
	case <-patience.C:
		s.cfg.Log.Error("research did not end after it was stopped", "grace", s.cfg.Grace)
		return outcome{err: errAbandoned}
	}
}

// guarded turns a panic of the researcher into an error; its stack goes to the
// log and nowhere else.
func (s *Server) guarded(ctx context.Context, ask marchwarden.Request, sink marchwarden.Sink) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("researcher panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			out = outcome{err: marchwarden.Errorf(marchwarden.CodeInternal, "the researcher panicked")}
		}
	}()
	res, err := s.cfg.Researcher.Research(ctx, ask, sink)
	return outcome{res, err}
}

// answer makes the tool result of an outcome. A result that breaks the contract
// is a fault of the researcher: clients hold structured content to the schema
// and would fail less clearly.
func (s *Server) answer(ask marchwarden.Request, out outcome) *mcp.CallToolResult {
	err := out.err
	if err == nil && out.res == nil {
		err = errors.New("the researcher returned neither a result nor an error")
	}
	var wire json.RawMessage
	if err == nil {
		wire, err = s.encode(out.res)
	}
	if err != nil {
		if marchwarden.CodeOf(err) == marchwarden.CodeInternal {
			s.cfg.Log.Error("research failed", "error", err)
		} else {
			s.cfg.Log.Debug("research failed", "error", err)
		}
		return failure(err)
	}
	s.cfg.Log.Debug("research answered", "trace_id", out.res.TraceID.String(), "depth", string(ask.Depth),
		"citations", len(out.res.Citations), "gaps", len(out.res.Gaps))
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: s.cfg.Text(out.res)}},
		StructuredContent: wire,
	}
}

// encode gives the wire form of a result that satisfies the output schema.
func (s *Server) encode(res *marchwarden.Result) (json.RawMessage, error) {
	wire, err := marchwarden.EncodeResult(res)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	var instance any
	if err := json.Unmarshal(wire, &instance); err != nil {
		return nil, fmt.Errorf("decode the encoded result: %w", err)
	}
	if err := s.output.Validate(instance); err != nil {
		return nil, fmt.Errorf("the result breaks its schema: %w", err)
	}
	return wire, nil
}

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
	send func(n int, said note)
	done chan struct{} // closed when the sender has ended

	mu     sync.Mutex // guards closed, and closing queue against sends
	closed bool
	queue  chan note
}

// note is one thing to say: in words, and as the event if it is one.
type note struct {
	message string
	event   *marchwarden.Event
}

// startProgress sends a first message and follows with those given to the sink
// until stop. It returns nil if the request has no progress token.
func startProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	p := &progress{
		queue: make(chan note, progressBacklog),
		done:  make(chan struct{}),
		send: func(n int, said note) {
			params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: said.message}
			if said.event != nil {
				params.Meta = mcp.Meta{metaEvent: said.event}
			}
			// A message that cannot be sent is lost: the connection notices its own
			// faults, and a stopped call needs no progress.
			_ = req.Session.NotifyProgress(ctx, params)
		},
	}
	p.sink()(marchwarden.Event{Stage: marchwarden.StagePlan, Message: "research started"})
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
		case said, open := <-p.queue:
			if !open {
				return
			}
			last = said.message
			p.send(n, said)
			beat.Reset(silence)
		case <-beat.C:
			p.send(n, note{message: "still at work: " + last})
		}
	}
}

// sink is what the researcher reports to, or nil.
func (p *progress) sink() marchwarden.Sink {
	if p == nil {
		return nil
	}
	return func(e marchwarden.Event) {
		if e.Message == "" {
			e.Message = string(e.Stage)
		}
		e.Message = clip(plain(e.Message), maxProgressChars)
		p.push(note{e.Message, &e})
	}
}

func (p *progress) push(said note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.queue <- said:
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
