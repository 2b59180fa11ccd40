package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// The extension for tasks (SEP-2663): a call of a client that knows it gives a handle
// at once, which is polled. The SDK does not know the extension; what it lets pass is
// used here: custom methods, and results of other shapes from a middleware.

// A client is asked to look often at a young task, and less often at an old one.
const (
	pollSoon  = 200 * time.Millisecond
	pollLater = 2 * time.Second
)

type taskStatus string

const (
	taskWorking   taskStatus = "working"
	taskAsking    taskStatus = "input_required"
	taskCompleted taskStatus = "completed"
	taskFailed    taskStatus = "failed"
	taskCancelled taskStatus = "cancelled"
)

// taskState is a task at a moment. Of a task that has ended well, Result is what the
// call would have given; of one that failed as a call fails, Error is why.
type taskState struct {
	ID               string
	Status           taskStatus
	Message          string
	Created, Updated time.Time
	Kept             time.Duration // how long it can be asked for
	Result           *mcp.CallToolResult
	Error            *jsonrpc.Error
	Inputs           mcp.InputRequestMap
	Event            *marchwarden.Event // the last one, for a client that can tell stages; nil for none
}

// taskSource works on tasks. Tasks of others, and ids that are none, are CodeNotFound.
type taskSource interface {
	// Begin starts the work of a call as a task, which is kept before Begin returns.
	// It gives a result instead where there is nothing to wait for, and neither where
	// the tool is not for tasks.
	Begin(ctx context.Context, req *mcp.CallToolRequest) (*taskState, *mcp.CallToolResult, error)
	State(ctx context.Context, id string) (*taskState, error)
	Cancel(ctx context.Context, id string) error
	// Update gives a task answers that it has asked for.
	Update(ctx context.Context, id string, answers map[string]json.RawMessage) error
}

// researchTasks are runs of research as tasks.
type researchTasks struct{ *Server }

func (t researchTasks) Begin(ctx context.Context, req *mcp.CallToolRequest) (*taskState, *mcp.CallToolResult, error) {
	if req.Params.Name != Tool {
		return nil, nil, nil
	}
	visit, err := t.begin(ctx, req, runs.Task, nil)
	if err != nil {
		return nil, failure(err), nil // as the call would have said it
	}
	visit.End()
	return t.stateOf(ctx, visit.Run), nil, nil
}

func (t researchTasks) find(ctx context.Context, id string) (*runs.Run, error) {
	parsed, err := marchwarden.ParseTraceID(id)
	if err != nil || parsed.String() != id {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no such task")
	}
	return t.runs.Find(ctx, parsed)
}

func (t researchTasks) State(ctx context.Context, id string) (*taskState, error) {
	run, err := t.find(ctx, id)
	if err != nil {
		return nil, err
	}
	run.GoOn() // a server that was started anew does what it is asked about
	return t.stateOf(ctx, run), nil
}

func (t researchTasks) Cancel(ctx context.Context, id string) error {
	run, err := t.find(ctx, id)
	if err == nil {
		run.Cancel()
	}
	return err
}

func (t researchTasks) Update(ctx context.Context, id string, _ map[string]json.RawMessage) error {
	_, err := t.find(ctx, id) // research asks nothing back, so no answer is waited for
	return err
}

// stateOf is a run as a task. What fails in research is a result that says so: only a
// run that the protocol could not carry fails as a task.
func (t researchTasks) stateOf(ctx context.Context, run *runs.Run) *taskState {
	st := run.State()
	task := &taskState{ID: run.ID().String(), Message: st.Message, Created: st.Created, Updated: st.Updated, Kept: st.Kept, Event: st.Event}
	switch st.Status {
	case runs.Completed, runs.Failed:
		res, err := run.Outcome()
		task.Status, task.Result = taskCompleted, t.answer(ctx, outcome{res: res, err: err, most: st.MaxOutput})
	case runs.Cancelled:
		task.Status = taskCancelled
	default:
		task.Status = taskWorking
	}
	return task
}

// The shapes on the wire.
type (
	wireTask struct {
		mcp.ResultBase
		ResultType     string              `json:"resultType"`
		TaskID         string              `json:"taskId"`
		Status         taskStatus          `json:"status"`
		StatusMessage  string              `json:"statusMessage,omitempty"`
		CreatedAt      string              `json:"createdAt"`
		LastUpdatedAt  string              `json:"lastUpdatedAt"`
		TTLMs          *int64              `json:"ttlMs"` // null is for ever
		PollIntervalMs int64               `json:"pollIntervalMs"`
		Result         *mcp.CallToolResult `json:"result,omitempty"`
		Error          *jsonrpc.Error      `json:"error,omitempty"`
		InputRequests  mcp.InputRequestMap `json:"inputRequests,omitempty"`
	}
	acknowledged struct {
		mcp.ResultBase
		ResultType string `json:"resultType"`
	}
	taskParams struct {
		mcp.ParamsBase
		TaskID         string                     `json:"taskId"`
		InputResponses map[string]json.RawMessage `json:"inputResponses"` // of tasks/update
	}
)

// wire is the task without what it came to.
func (s *taskState) wire(resultType string) *wireTask {
	w := &wireTask{ResultType: resultType, TaskID: s.ID, Status: s.Status, StatusMessage: s.Message,
		CreatedAt: s.Created.UTC().Format(time.RFC3339Nano), LastUpdatedAt: s.Updated.UTC().Format(time.RFC3339Nano),
		PollIntervalMs: min(max(s.Updated.Sub(s.Created)/10, pollSoon), pollLater).Milliseconds()}
	if s.Kept > 0 {
		ttl := s.Kept.Milliseconds()
		w.TTLMs = &ttl
	}
	return w
}

func (s *Server) addTasks() error {
	ack := func(err error) (*acknowledged, error) { return &acknowledged{ResultType: "complete"}, taskError(err) }
	err := errors.Join(
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/get", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*wireTask, error) {
			state, err := s.tasks.State(ctx, p.TaskID)
			if err != nil {
				return nil, taskError(err)
			}
			got := state.wire("complete")
			got.Result, got.Error, got.InputRequests = state.Result, state.Error, state.Inputs
			if state.Event != nil {
				got.SetMeta(map[string]any{MetaEvent: state.Event})
			}
			return got, nil
		}),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/update", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
			return ack(s.tasks.Update(ctx, p.TaskID, p.InputResponses))
		}),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/cancel", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
			return ack(s.tasks.Cancel(ctx, p.TaskID))
		}))
	s.mcp.AddReceivingMiddleware(s.taskWay)
	return err
}

func taskError(err error) error {
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}
	}
	return err
}

// taskWay makes tasks of calls of clients that know them, and holds the extension's methods to its rules.
func (s *Server) taskWay(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && knowsTasks(req) {
			return s.taskOrCall(ctx, method, call, next)
		}
		p, ok := req.GetParams().(*taskParams)
		if !ok {
			return next(ctx, method, req)
		}
		if !knowsTasks(req) {
			return nil, errTasksUndeclared
		}
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			if name := extra.Header.Get("Mcp-Name"); name != p.TaskID {
				return nil, &jsonrpc.Error{Code: mcp.CodeHeaderMismatch, Message: fmt.Sprintf("the header Mcp-Name is %q and the taskId is another", Clip(Plain(name), 60))}
			}
		}
		return next(ctx, method, req)
	}
}

func (s *Server) taskOrCall(ctx context.Context, method string, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	state, res, err := s.tasks.Begin(ctx, req)
	switch {
	case err != nil:
		return nil, err
	case res != nil:
		return res, nil
	case state != nil:
		return state.wire("task"), nil
	}
	return next(ctx, method, req)
}

// knowsTasks tells whether the client says, with this very request, that it knows the extension.
func knowsTasks(req mcp.Request) bool {
	raw, err := json.Marshal(metaOf(req)[mcp.MetaKeyClientCapabilities])
	if err != nil {
		return false
	}
	var c struct {
		Extensions map[string]any `json:"extensions"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return false
	}
	_, ok := c.Extensions[TasksExtension]
	return ok
}

// errTasksUndeclared is for a client that uses tasks and does not say that it knows them.
var errTasksUndeclared = &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has not declared the extension " + TasksExtension,
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + TasksExtension + `":{}}}}`)}
