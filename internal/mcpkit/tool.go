package mcpkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// research is the tool. It is registered as a raw handler, so the SDK neither fills in defaults (an
// unset constraint must stay unset) nor judges the arguments: the contract's own decoder does, in
// its own words. What goes wrong becomes a tool error that the calling model can read and correct.
func (s *Server) research(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	ctx, cancel := s.join(ctx, req)
	defer cancel()
	sink, stop := progressOf(ctx, req)
	visit, err := s.begin(ctx, req, false, sink)
	if err != nil {
		stop()
		return failure(err), nil
	}
	if sink != nil && visit.Attached {
		sink(marchwarden.Event{Stage: marchwarden.StagePlan, Message: "research goes on"})
	}
	out := s.await(ctx, visit, s.wall(req, visit.Attached))
	stop()
	visit.End()
	return s.present(ctx, req, out), nil
}

// wall is after how long a call hands over what there is; 0 is never. A caller who says
// how long it waits has its run stopped in time, unless it came to one that went on.
func (s *Server) wall(req *mcp.CallToolRequest, attached bool) time.Duration {
	patience, patient := wallTime(req)
	switch {
	case patient && attached:
		return patience
	case patient || s.cfg.MaxWall < 0:
		return 0
	case s.cfg.MaxWall == 0 && req.Params.GetProgressToken() != nil:
		return 0
	}
	return cmp.Or(s.cfg.MaxWall, DefaultMaxWall)
}

// begin starts the research of a call, or finds the one that it resumes, and has its events told.
func (s *Server) begin(ctx context.Context, req *mcp.CallToolRequest, keep bool, sink marchwarden.Sink) (*runs.Visit, error) {
	args := req.Params.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	ask, err := marchwarden.DecodeRequest(args)
	if err != nil {
		return nil, err
	}
	s.named(ctx, &ask)
	if limit, ok := wallTime(req); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop() // the run keeps the deadline, and not the cancellation
	}
	// Only the process that started this one may choose the id of a run.
	if text, ok := req.Params.Meta[MetaTrace].(string); ok && access.From(ctx).SeesAll() {
		if id, err := marchwarden.ParseTraceID(text); err == nil {
			ctx = marchwarden.WithTraceID(ctx, id)
		}
	}
	return s.runs.Begin(ctx, runs.Asked{Request: ask, Keep: keep, Sink: sink})
}

// named takes a context that is nothing but the trace id of an ended run of the caller's for one to follow.
func (s *Server) named(ctx context.Context, ask *marchwarden.Request) {
	text := strings.TrimSpace(ask.Context)
	id, err := marchwarden.ParseTraceID(strings.TrimSpace(strings.TrimPrefix(text, "trace_id:")))
	if err == nil && ask.Follow+ask.Resume == "" && s.runs.Owns(ctx, id) && s.ended(ctx, id) {
		ask.Follow, ask.Context = id.String(), ""
	}
}

// wallTime is how long the caller waits, if it says so: it is to get what there is by then. More than
// a day is no limit.
func wallTime(req *mcp.CallToolRequest) (time.Duration, bool) {
	ms, ok := req.Params.Meta[MetaWall].(float64)
	if !ok || !(ms > 0) || ms > float64((24*time.Hour).Milliseconds()) {
		return 0, false
	}
	return max(time.Duration(ms*float64(time.Millisecond)), 1), true
}

type outcome struct {
	res *marchwarden.Result
	err error
	// pending is the run that goes on without the call; res is what it has so far.
	pending *runs.Run
	// most is how many tokens of it are to be sent at most; 0 is what hosts take.
	most int
	// whole says that the caller takes a result of any size.
	whole bool
}

var errAbandoned = marchwarden.Errorf(marchwarden.CodeCanceled, "the call was stopped and did not end in time")

// await waits for a run. A call that has waited for as long as wall, if that is not 0,
// leaves the run to go on and gives what there is. Once ctx has ended the run is
// stopped, unless others count on it. A run that is stopped, or whose time is over, is waited for no
// longer than the grace.
func (s *Server) await(ctx context.Context, run *runs.Visit, wall time.Duration) outcome {
	var over <-chan time.Time
	if wall > 0 {
		over = time.After(wall)
	}
	select {
	case <-run.Done():
		return ended(run.Run)
	case <-over:
		err := run.Keep()
		if err == nil {
			return outcome{res: s.sofar(ctx, run.Run), pending: run.Run}
		}
		s.cfg.Log.Error("a run cannot be handed over, so its call goes on", "trace_id", run.ID().String(), "error", err)
		return s.await(ctx, run, 0)
	case <-run.Stopping():
	case <-ctx.Done():
		if !run.Leave() {
			return outcome{err: marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for run %s, which goes on", run.ID())}
		}
	}
	select {
	case <-run.Done():
		return ended(run.Run)
	case <-time.After(s.cfg.Grace):
		s.cfg.Log.Error("research did not end after it was stopped", "grace", s.cfg.Grace)
		return outcome{err: errAbandoned}
	}
}

func ended(run *runs.Run) outcome {
	res, err := run.Outcome()
	return outcome{res: res, err: err}
}

// present makes the tool result of an outcome, for the client that made the call.
func (s *Server) present(ctx context.Context, req *mcp.CallToolRequest, out outcome) *mcp.CallToolResult {
	out.whole = req.Params.Meta[MetaWhole] == true
	if out.pending == nil { // what goes on says how to get the rest
		out.most = outputCap(req.Params.Arguments)
	}
	res := s.answer(ctx, out)
	if s.cfg.App == nil || res.IsError || out.res == nil || !shows(req.ClientCapabilities()) {
		return res
	}
	view, err := s.cfg.App.Body(out.res)
	if err != nil {
		s.cfg.Log.Error("the view of a result could not be made", "error", err) // the result is whole without it
		return res
	}
	if len(view) <= maxViewBytes {
		res.Meta = mcp.Meta{MetaView: view}
	}
	return res
}

// maxViewBytes bounds a view; the page shows the structured content without one.
const maxViewBytes = 256 << 10

// shows tells whether a client shows HTML of servers.
func shows(c *mcp.ClientCapabilities) bool {
	said, _ := extension(c, uiExtension)
	ui, _ := said.(map[string]any)
	types, _ := ui["mimeTypes"].([]any)
	return slices.Contains(types, any(appType))
}

// extension is what a client says of an extension of the protocol, and whether it knows it.
func extension(c *mcp.ClientCapabilities, name string) (said any, known bool) {
	if c == nil {
		return nil, false
	}
	said, known = c.Extensions[name]
	return said, known
}

// answer makes the tool result of an outcome. A result that breaks the contract
// is a fault of the researcher, and says where: clients hold structured content to
// the schema and would fail less clearly.
func (s *Server) answer(ctx context.Context, out outcome) *mcp.CallToolResult {
	err, level := out.err, slog.LevelDebug
	if err == nil && out.res == nil {
		err = errors.New("the researcher returned neither a result nor an error")
	}
	var encoded json.RawMessage
	if err == nil {
		if encoded, err = encode(out.res); err != nil {
			err = &marchwarden.Error{Code: marchwarden.CodeMalformed, Message: "the result breaks the contract", Hint: "the researcher must be mended", Err: err}
			level = slog.LevelError
		}
	}
	if err != nil {
		if marchwarden.CodeOf(err) == marchwarden.CodeInternal {
			level = slog.LevelError
		}
		s.cfg.Log.Log(ctx, level, "research failed", "error", err)
		return failure(err)
	}
	s.cfg.Log.Debug("research answered", "trace_id", out.res.TraceID.String(), "citations", len(out.res.Citations), "gaps", len(out.res.Gaps))
	res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s.cfg.text(out.res)}}, StructuredContent: encoded}
	if !out.whole {
		res = s.slim(res, out.res, out.most)
	}
	if out.pending != nil && len(res.Content) == 1 {
		res.Content = append(res.Content, s.links(out.pending.ID())...)
	}
	return res
}

// encode gives the wire form of a result that satisfies the output schema.
func encode(res *marchwarden.Result) (json.RawMessage, error) {
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	var instance any
	if err := json.Unmarshal(encoded, &instance); err != nil {
		return nil, fmt.Errorf("decode the encoded result: %w", err)
	}
	return encoded, CheckResult(instance)
}

// progressBacklog is how many messages may wait for a slow reader before further ones are dropped.
const progressBacklog = 64

// note is one thing to say: in words, and as the event if it is one.
type note struct {
	message string
	event   *marchwarden.Event
}

// progressOf is where the events of a call go, to its client if that asked for them. Nothing more is
// sent once stop has returned, so that no progress follows the answer.
func progressOf(ctx context.Context, req *mcp.CallToolRequest) (sink marchwarden.Sink, stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, func() {}
	}
	return progress(heartbeat, func(n int, said note) {
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(n), Message: said.message}
		if said.event != nil {
			params.Meta = mcp.Meta{MetaEvent: said.event}
		}
		// A message that cannot be sent is lost: the connection notices its own faults.
		_ = req.Session.NotifyProgress(ctx, params)
	})
}

// progress sends what its sink is told, and the last message again when nothing came for the time
// given: a slow model is no dead one. Numbers count the messages, so they always increase.
//
// Events only enter a queue, so a client that does not read cannot hold up the
// research; those that find the queue full are dropped, because events are a
// courtesy, and those that come after stop are ignored.
func progress(silence time.Duration, send func(n int, said note)) (sink marchwarden.Sink, stop func()) {
	queue, over, done := make(chan note, progressBacklog), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		beat := time.NewTicker(silence)
		defer beat.Stop()
		var last note
		for n := 1; ; n++ {
			select {
			case last = <-queue:
				send(n, last)
				beat.Reset(silence)
			case <-beat.C:
				send(n, note{message: "still at work: " + last.message})
			case <-over:
				for ; len(queue) > 0; n++ {
					send(n, <-queue)
				}
				return
			}
		}
	}()
	sink = func(e marchwarden.Event) {
		e.Message = Clip(Plain(cmp.Or(e.Message, string(e.Stage))), MaxProgressChars)
		select {
		case queue <- note{e.Message, &e}:
		default:
		}
	}
	return sink, func() {
		close(over)
		<-done
	}
}
