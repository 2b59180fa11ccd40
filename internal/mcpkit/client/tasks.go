package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// tasksEra is the first version of the protocol that has tasks as they are here.
	tasksEra = "2026-07-28"
	// How often a task is asked about: as the server wishes, within bounds, usualPoll
	// if it does not say, and at longer intervals while there is nothing new.
	minPoll, usualPoll, maxPoll = 100 * time.Millisecond, time.Second, 10 * time.Second
	// latePoll is how often at least, once the deadline has passed.
	latePoll = 200 * time.Millisecond
	// How long a request about a task may take, and the one that cancels it, for which no caller waits.
	pollPatience, cancelPatience = 10 * time.Second, time.Second
	// absencePatience is how long a server may be away when the call has no deadline.
	absencePatience = 2 * time.Minute
	// maxLateMisses is how many polls may fail once the deadline has passed.
	maxLateMisses = 3
	// maxRounds is how many rounds a call may take.
	maxRounds = 10
	// maxTaskIDBytes bounds the name of a task, which goes into a header.
	maxTaskIDBytes = 2048
)

// learnTasks notes whether research is to be asked for as a task.
//
// A child process is not asked for tasks: it ends with the session, so that a task would outlive
// nothing there, and what it tells of its progress comes sooner and says more than what a poll
// finds. Neither is a server that wants arguments in headers, which are the SDK's affair.
func (s *Session) learnTasks(self *mcp.Implementation, address string) {
	hello := s.cs.InitializeResult()
	if s.web == nil || hello.ProtocolVersion < tasksEra || hello.Capabilities == nil || strings.Contains(string(s.surface.Input), `"x-mcp-header"`) {
		return
	}
	if _, known := hello.Capabilities.Extensions[mcpkit.TasksExtension]; known {
		s.direct = &exchange{web: s.web, url: address, era: hello.ProtocolVersion, self: self}
	}
}

// start makes a call of the tool in the background, as a task where the server knows tasks and the
// caller waits patiently. caller is the caller's context, carried is the part of the call's _meta
// that goes with every request about it.
func (s *Session) start(inner, caller context.Context, params *mcp.CallToolParams, carried map[string]any, l *listener, patient bool) chan answer[*mcp.CallToolResult] {
	if s.direct == nil || !patient || !s.stayFor() {
		return begin(inner, func(ctx context.Context) (*mcp.CallToolResult, error) { return converse(ctx, params, s.cs.CallTool) })
	}
	left := int64(maxCallBytes)
	once := func(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
		round := map[string]any{"name": params.Name, "arguments": params.Arguments}
		if len(params.InputResponses) > 0 {
			round["inputResponses"] = params.InputResponses
		}
		if params.RequestState != "" {
			round["requestState"] = params.RequestState
		}
		raw, err := s.direct.send(ctx, turn{method: "tools/call", name: mcpkit.Tool, left: &left, heed: s.overhear, params: round, meta: params.Meta})
		if err != nil {
			return nil, err
		}
		var kind struct {
			ResultType any `json:"resultType"`
		}
		if json.Unmarshal(raw, &kind) != nil || kind.ResultType != "task" {
			return decode[mcp.CallToolResult](raw)
		}
		t := &task{s: s, l: l, carried: carried, left: &left, every: usualPoll}
		state, err := decode[taskState](raw)
		if err == nil {
			t.id, err = state.name()
		}
		if err != nil {
			return nil, err
		}
		return t.follow(ctx, caller, state)
	}
	return begin(inner, func(ctx context.Context) (*mcp.CallToolResult, error) {
		defer s.farewells.Done()
		return converse(ctx, params, once)
	})
}

// converse makes a call that a server may answer in several rounds: with a state that it wants to
// see again in a moment, and with questions to the user. Questions are declined, since no user is
// at hand, so that the server can go on by itself; what else it asks for is not offered.
func converse(ctx context.Context, params *mcp.CallToolParams, call func(context.Context, *mcp.CallToolParams) (*mcp.CallToolResult, error)) (*mcp.CallToolResult, error) {
	for range maxRounds {
		res, err := call(ctx, params)
		if err != nil || !res.NeedsInput() {
			return res, err
		}
		next := *params // which is the caller's
		next.RequestState, next.InputResponses = res.RequestState, mcp.InputResponseMap{}
		for id, asked := range res.InputRequests {
			if _, question := asked.(*mcp.ElicitParams); !question {
				return nil, errAsksBack
			}
			next.InputResponses[id] = &mcp.ElicitResult{Action: "decline"}
		}
		if len(res.InputRequests) == 0 {
			select {
			case <-time.After(usualPoll):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		params = &next
	}
	return nil, errAsksBack
}

// stayFor makes Close wait for a task that has to be cancelled, unless it is too late for that.
func (s *Session) stayFor() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.farewells.Add(1)
	return true
}

// overhear passes on progress, and says whether it was that. By the SDK the answer may overtake it.
func (s *Session) overhear(n *jsonrpc.Request) bool {
	var p mcp.ProgressNotificationParams
	if n.Method != "notifications/progress" || json.Unmarshal(n.Params, &p) != nil {
		return false
	}
	s.progress(context.Background(), &mcp.ProgressNotificationClientRequest{Params: &p})
	return true
}

func decode[T any](raw json.RawMessage) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, malformed(said(err.Error()))
	}
	return v, nil
}

// taskState is what a server says of a task. Whatever is not needed may be of any type.
type taskState struct {
	ID       any             `json:"taskId"`
	Status   any             `json:"status"`
	Message  any             `json:"statusMessage"`
	Interval any             `json:"pollIntervalMs"`
	Result   json.RawMessage `json:"result"`
	Error    json.RawMessage `json:"error"`
	Meta     any             `json:"_meta"`
}

// name is the task's id, which a header must be able to hold.
func (t *taskState) name() (string, error) {
	id, ok := t.ID.(string)
	switch {
	case !ok || id == "":
		return "", malformed("it is a task without a name")
	case len(id) > maxTaskIDBytes:
		return "", malformed(fmt.Sprintf("it is a task with a name of more than %d bytes", maxTaskIDBytes))
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", malformed("it is a task with a name that cannot be sent back")
	}
	return id, nil
}

// task is a call that continues at the server, whether or not a client is connected.
type task struct {
	s       *Session
	l       *listener
	id      string
	carried map[string]any
	left    *int64

	every  time.Duration // as the server wishes
	told   string        // its last words
	quiet  int           // polls in a row that brought no news
	misses int           // polls in a row that were not answered
	late   bool          // the deadline has passed
	over   bool          // the server has nothing more to do
}

// follow asks about a task until it is over. The end of ctx ends it, that of caller says that the
// server is now to hand over what it has. A task that is left before its end is cancelled.
func (t *task) follow(ctx, caller context.Context, state *taskState) (*mcp.CallToolResult, error) {
	defer t.leave(ctx)
	due := caller.Done()
	_, limited := caller.Deadline()
	t.hear(state)
	wait := t.pause()
	if state.Status != "working" {
		wait = 0 // it may be done already, which is told when it is asked
	}
	var givenUp <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-givenUp:
			return nil, errLost
		case <-due:
			due, t.late = nil, true
		case <-time.After(wait):
		}
		res, err := t.ask(ctx)
		var away *absence
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &away):
			if t.misses++; t.late && t.misses >= maxLateMisses {
				return nil, errLost
			}
			if givenUp == nil && !limited {
				givenUp = time.After(t.s.absence)
			}
		case t.over || err != nil:
			return res, err
		default:
			t.misses, givenUp = 0, nil
		}
		wait = t.pause()
	}
}

// pause is how long to wait before the next poll.
func (t *task) pause() time.Duration {
	wait := min(t.every+t.every*time.Duration(min(t.quiet, 24))/8, maxPoll)
	if t.misses > 0 {
		wait = min(minPoll<<min(t.misses, 10), maxPoll)
	}
	if t.late {
		wait = min(wait, latePoll)
	}
	return wait
}

// ask asks once. Everything that can pass is an *absence.
func (t *task) ask(ctx context.Context) (*mcp.CallToolResult, error) {
	limited, cancel := context.WithTimeout(ctx, t.s.pollPatience)
	defer cancel()
	raw, err := t.s.direct.send(limited, t.turn("tasks/get"))
	if err == nil {
		state, err := decode[taskState](raw)
		if err != nil {
			return nil, err
		}
		return t.judge(state)
	}
	var theirs *jsonrpc.Error
	var status refusal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = &absence{"it does not answer"}
	case errors.Is(err, marchwarden.CodeRateLimited):
		err = &absence{"it asks to come back later"}
	case errors.As(err, &theirs) && theirs.Code == jsonrpc.CodeInvalidParams, errors.As(err, &status) && status == 404:
		t.over = true
		err = marchwarden.Errorf(marchwarden.CodeNotFound, "the researcher does not know the task any more")
	}
	return nil, err
}

func (t *task) turn(method string) turn {
	return turn{method: method, name: t.id, params: map[string]any{"taskId": t.id}, meta: t.carried, left: t.left}
}

var errLost = marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher went away in the middle of a task and did not come back")

// judge takes in what the server says. It ends the task with a result or an error.
func (t *task) judge(state *taskState) (*mcp.CallToolResult, error) {
	if state.ID != nil && state.ID != t.id {
		return nil, malformed("it is about another task")
	}
	t.hear(state)
	switch state.Status {
	case "working":
		return nil, nil
	case "input_required":
		return nil, errAsksBack
	case "completed":
		t.over = true
		if state.Result == nil {
			return nil, malformed("it is a task that is done and has no result")
		}
		return decode[mcp.CallToolResult](state.Result)
	case "failed":
		t.over = true
		var why jsonrpc.Error
		if json.Unmarshal(state.Error, &why) != nil || why.Message == "" {
			return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher's task failed and it did not say why")
		}
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher's task failed: %s (%d)", said(why.Message), why.Code)
	case "cancelled":
		t.over = true
		return nil, marchwarden.Errorf(marchwarden.CodeCanceled, "the researcher's task was cancelled on its side")
	}
	return nil, malformed("it is a task in no state that there is")
}

// hear notes when the server wants to be asked again, and passes on what is new.
func (t *task) hear(state *taskState) {
	t.every = usualPoll
	if ms, ok := state.Interval.(float64); ok && ms > 0 {
		t.every = max(minPoll, time.Duration(min(ms, float64(maxPoll.Milliseconds())))*time.Millisecond)
	}
	t.quiet++
	if words, _ := state.Message.(string); words != "" && words != t.told {
		t.told, t.quiet = words, 0
		meta, _ := state.Meta.(map[string]any)
		t.l.note(&mcp.ProgressNotificationParams{Meta: meta, Message: words})
	}
}

// leave cancels a task that is not over, in the little time there is for that.
func (t *task) leave(ctx context.Context) {
	if t.over {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.s.cancelPatience)
	defer cancel()
	left := int64(maxRefusalBytes)
	last := t.turn("tasks/cancel")
	last.left = &left
	if _, err := t.s.direct.send(limited, last); err != nil {
		t.s.log.Debug("a task could not be cancelled", "err", err)
	}
}
