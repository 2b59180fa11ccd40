package mcpkit

// This part has the person at a host answer what the planner asks before it spends, by a form (elicitation). A call of an
// earlier protocol sends the form and waits. Since 2026-07-28 a call ends with the form, and is made again with the answers.

import (
	"context"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

const (
	// answerTime is how long a person may take, unless the call hands over soon: then half of the time until it does.
	answerTime = 2 * time.Minute
	// formID is the name of the form among the inputs of a call.
	formID = "clarify"
)

// Asker has a person answer questions of a model. What is not answered, for whatever reason, is "" or left out.
type Asker = func(ctx context.Context, model string, questions []string) []string

type askerKey struct{}

// AskerOf is what asks the person at the host of a call, from the context of its research; nil where none can be asked.
func AskerOf(ctx context.Context) Asker {
	ask, _ := ctx.Value(askerKey{}).(Asker)
	return ask
}

// inquiry is what one call asks the person at its host.
type inquiry struct {
	asked chan *mcp.ElicitParams // to a call that is to end with it; nil if the call waits
	said  chan *mcp.ElicitResult // has room for one; nil is none in time
	visit *runs.Visit            // of the call that has ended
}

// askable adds an asker to the context of a call whose client shows forms. A caller that says how long it waits is
// not asked, since it counts on its time, nor is one that brings answers.
func (s *Server) askable(ctx context.Context, req *mcp.CallToolRequest) (context.Context, *inquiry) {
	f := &inquiry{}
	if _, patient := wallTime(req); patient || req.Params.RequestState != "" || !showsForms(req.ClientCapabilities()) {
		return ctx, f
	}
	within := s.answerTime
	if wall := s.wall(req, false); wall > 0 {
		within = min(within, wall/2)
	}
	send := func(asking context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asking, stop := context.WithTimeout(asking, within)
		defer stop()
		defer context.AfterFunc(ctx, stop)() // with the call
		return req.Session.Elicit(asking, p)
	}
	if req.ProtocolVersion() >= modernEra {
		f.asked, f.said = make(chan *mcp.ElicitParams), make(chan *mcp.ElicitResult, 1)
		send = func(asking context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return f.hand(ctx, asking, p)
		}
	}
	return context.WithValue(ctx, askerKey{}, Asker(func(ctx context.Context, model string, questions []string) []string {
		return fill(questions, func(p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			p.Message = model + " asks, before it plans. A question that is left empty is passed over."
			return send(ctx, p)
		})
	})), f
}

// showsForms tells whether a client does. One that names no kind means forms: there was no other at first.
func showsForms(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// fill has a form with questions filled. What is declined, cancelled or not there in time is not answered.
func fill(questions []string, send func(*mcp.ElicitParams) (*mcp.ElicitResult, error)) []string {
	fields := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for i, q := range questions {
		name := fmt.Sprintf("answer_%d", i+1)
		fields.Properties[name], fields.PropertyOrder = &jsonschema.Schema{Type: "string", Title: q}, append(fields.PropertyOrder, name)
	}
	res, err := send(&mcp.ElicitParams{Mode: "form", RequestedSchema: fields})
	if err != nil || res == nil || res.Action != "accept" {
		return nil
	}
	answers := make([]string, len(questions))
	for i, name := range fields.PropertyOrder {
		answers[i], _ = res.Content[name].(string)
	}
	return answers
}

// hand gives the form to the call, which ends with it, and waits for the answers that a further call brings.
func (f *inquiry) hand(call, asking context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	select {
	case f.asked <- p:
	case <-call.Done():
		return nil, call.Err()
	case <-asking.Done():
		return nil, asking.Err()
	}
	select {
	case res := <-f.said:
		return res, nil
	case <-asking.Done():
		return nil, asking.Err()
	}
}

// endWith is the answer of a call that ends with its form. A client that does not come back in time has left the call.
func (s *Server) endWith(f *inquiry, p *mcp.ElicitParams, visit *runs.Visit) *mcp.CallToolResult {
	id := visit.ID().String()
	f.visit = visit
	s.forms.Store(id, f)
	time.AfterFunc(s.answerTime, func() {
		if s.forms.CompareAndDelete(id, f) {
			visit.Leave()
			f.said <- nil
		}
	})
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{formID: p}, RequestState: id}
}

// answered gives a run the answers that a call brings, if it still waits for them.
func (s *Server) answered(req *mcp.CallToolRequest) {
	if f, waits := s.forms.LoadAndDelete(req.Params.RequestState); waits {
		res, _ := req.Params.InputResponses[formID].(*mcp.ElicitResult)
		f.(*inquiry).visit.End()
		f.(*inquiry).said <- res
	}
}
