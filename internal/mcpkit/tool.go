package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
	progress := startProgress(ctx, req)
	out := s.run(ctx, ask, progress.sink())
	progress.stop()
	return s.answer(ask, out), nil
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
