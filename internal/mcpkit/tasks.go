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

// The shapes on the wire.
type (
	wireTask struct {
		mcp.ResultBase
		ResultType     string `json:"resultType"`
		TaskID         string `json:"taskId"`
		Status         string `json:"status"`
		StatusMessage  string `json:"statusMessage,omitempty"`
		CreatedAt      string `json:"createdAt"`
		LastUpdatedAt  string `json:"lastUpdatedAt"`
		TTLMs          *int64 `json:"ttlMs"` // null is for ever
		PollIntervalMs int64  `json:"pollIntervalMs"`
		// Result is what the call would have given. Research that fails has a result that says so.
		Result *mcp.CallToolResult `json:"result,omitempty"`
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
	taskRequest = mcp.ServerRequest[*taskParams]
)

// newTask is a run as a task, without what it came to.
func newTask(resultType, id string, st runs.State) *wireTask {
	task := &wireTask{ResultType: resultType, TaskID: id, Status: "working", StatusMessage: st.Message,
		CreatedAt: st.Created.UTC().Format(time.RFC3339Nano), LastUpdatedAt: st.Updated.UTC().Format(time.RFC3339Nano),
		PollIntervalMs: min(max(st.Updated.Sub(st.Created)/10, pollSoon), pollLater).Milliseconds()}
	switch st.Status {
	case runs.Completed, runs.Failed:
		task.Status = "completed"
	case runs.Cancelled:
		task.Status = "cancelled"
	}
	if st.Kept > 0 {
		task.TTLMs = new(st.Kept.Milliseconds())
	}
	return task
}

// task finds a run by the id of its task. Tasks of others, and ids that are none, are not there.
func (s *Server) task(ctx context.Context, p *taskParams) (*runs.Run, error) {
	id, err := marchwarden.ParseTraceID(p.TaskID)
	if err == nil && id.String() == p.TaskID {
		if run, err := s.runs.Find(ctx, id); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			return run, err
		}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no such task"}
}

func (s *Server) addTasks() error {
	done := &acknowledged{ResultType: "complete"}
	err := errors.Join(
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/get", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*wireTask, error) {
			run, err := s.task(ctx, p)
			if err != nil {
				return nil, err
			}
			run.GoOn() // a server that was started anew does what it is asked about
			st := run.State()
			task := newTask("complete", p.TaskID, st)
			if task.Status == "completed" {
				res, err := run.Outcome()
				task.Result = s.answer(ctx, outcome{res: res, err: err, most: st.MaxOutput, whole: p.Meta[MetaWhole] == true})
			}
			if st.Event != nil { // the last one, for a client that can tell stages
				task.SetMeta(map[string]any{MetaEvent: st.Event})
			}
			return task, nil
		}),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/update", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
			_, err := s.task(ctx, p) // research asks nothing back, so no answer is waited for
			return done, err
		}),
		mcp.AddReceivingCustomMethod(s.mcp, "tasks/cancel", func(ctx context.Context, _ *mcp.ServerSession, p *taskParams) (*acknowledged, error) {
			run, err := s.task(ctx, p)
			if err == nil {
				run.Cancel()
			}
			return done, err
		}))
	s.mcp.AddReceivingMiddleware(s.taskWay)
	return err
}

// taskWay makes tasks of calls of clients that know them, and holds the extension's methods to its rules.
func (s *Server) taskWay(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req := req.(type) {
		case *mcp.CallToolRequest:
			if req.Params.Name == Tool && knowsTasks(req) {
				return s.beginTask(ctx, req)
			}
		case *taskRequest:
			if req.Params == nil || !knowsTasks(req) {
				return nil, errTasksUndeclared
			}
			if req.Extra != nil && req.Extra.Header != nil && req.Extra.Header.Get("Mcp-Name") != req.Params.TaskID {
				return nil, &jsonrpc.Error{Code: mcp.CodeHeaderMismatch,
					Message: fmt.Sprintf("the header Mcp-Name is %q and the taskId is another", Clip(Plain(req.Extra.Header.Get("Mcp-Name")), 60))}
			}
		}
		return next(ctx, method, req)
	}
}

// beginTask starts the work of a call as a task, which is kept before it returns.
func (s *Server) beginTask(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	visit, err := s.begin(ctx, req, true, nil)
	if err != nil {
		return failure(err), nil // as the call would have said it
	}
	visit.End()
	return newTask("task", visit.ID().String(), visit.State()), nil
}

// knowsTasks tells whether the client says, with this very request, that it knows the extension. In
// the earlier protocol it would say so once.
func knowsTasks[P mcp.Params](req *mcp.ServerRequest[P]) bool {
	_, known := extension(req.ClientCapabilities(), TasksExtension)
	return known && req.ProtocolVersion() >= modernEra
}

// errTasksUndeclared is for a client that uses tasks and does not say that it knows them.
var errTasksUndeclared = &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client has not declared the extension " + TasksExtension,
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + TasksExtension + `":{}}}}`)}
