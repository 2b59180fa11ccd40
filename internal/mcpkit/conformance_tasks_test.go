package mcpkit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// taskKind is a fixture that can be a task.
type taskKind struct {
	// asks is what the task wants to know before it begins.
	asks []string
	// work does it; an error is one of the protocol.
	work func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)
	// alone is what a call gives that is no task; nil does the work at once.
	alone mcp.ToolHandler
	// first says that a call has to be answered as a call before it can be a task.
	first func(req *mcp.CallToolRequest) bool
}

func taskTools() map[string]taskKind {
	undeclared := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errTasksUndeclared
	}
	return map[string]taskKind{
		"slow_compute": {work: func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct {
				Seconds float64 `json:"seconds"`
				Label   string  `json:"label"`
			}
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
				return says("computed %s", in.Label), nil
			}
		}},
		"failing_job": {alone: undeclared, work: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return complains("the job failed, as it always does"), nil
		}},
		"protocol_error_job": {work: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the job broke, as it always does"}
		}},
		"confirm_delete": {asks: []string{"confirm"}, alone: always(&mcp.TextContent{Text: "nothing was deleted, for nobody could be asked"}), work: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return says("deleted"), nil
		}},
		"multi_input": {asks: []string{"first", "second"}, alone: undeclared, work: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return says("both were given"), nil
		}},
		"test_tool_with_task": {
			first: func(req *mcp.CallToolRequest) bool { return given(req.Params.InputResponses, "user_name") == nil },
			alone: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return wants("", mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")}), nil
			},
			work: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return says("done for %v", given(req.Params.InputResponses, "user_name")["name"]), nil
			},
		},
	}
}

// fixtureTask is a task on the wire that may ask, and may fail as no research does.
type fixtureTask struct {
	wireTask
	Error         *jsonrpc.Error      `json:"error,omitempty"`
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
}

// fixtureTasks are fixtures as tasks; what is none of theirs is left to the server's
// own.
type fixtureTasks struct {
	kinds map[string]taskKind

	mu   sync.Mutex // guards jobs
	jobs map[string]*job
}

// job is a task under way.
type job struct {
	cancel context.CancelFunc
	asked  chan struct{} // closed when nothing is asked any more
	began  time.Time

	mu   sync.Mutex // guards task
	task fixtureTask
}

func (f *fixtureTasks) tools() []fixture {
	out := []fixture{{name: "greet", schema: `{"type":"object","properties":{"name":{"type":"string"}}}`,
		call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct {
				Name string `json:"name"`
			}
			err := json.Unmarshal(req.Params.Arguments, &in)
			return says("Hello, %s!", in.Name), err
		}}}
	for _, name := range slices.Sorted(maps.Keys(f.kinds)) {
		kind := f.kinds[name]
		call := kind.alone
		if call == nil {
			call = kind.work
		}
		out = append(out, fixture{name: name, call: call})
	}
	return out
}

// serve answers for the fixtures, behind the rules of the extension.
func (f *fixtureTasks) serve(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch req := req.(type) {
		case *mcp.CallToolRequest:
			if kind, ours := f.kinds[req.Params.Name]; ours && knowsTasks(req) && (kind.first == nil || !kind.first(req)) {
				return f.begin(ctx, kind, req).now("task"), nil
			}
		case *taskRequest:
			f.mu.Lock()
			j := f.jobs[req.Params.TaskID]
			f.mu.Unlock()
			switch {
			case j == nil:
			case method == "tasks/get":
				return j.now("complete"), nil
			case method == "tasks/cancel":
				j.cancel()
				return &acknowledged{ResultType: "complete"}, nil
			default:
				j.update(req.Params.InputResponses)
				return &acknowledged{ResultType: "complete"}, nil
			}
		}
		return next(ctx, method, req)
	}
}

func (f *fixtureTasks) begin(ctx context.Context, kind taskKind, req *mcp.CallToolRequest) *job {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	now := time.Now()
	j := &job{cancel: cancel, asked: make(chan struct{}), began: now}
	j.task.wireTask = *newTask("", rand.Text(), runs.State{Created: now, Updated: now, Kept: time.Hour})
	if len(kind.asks) > 0 {
		j.task.Status, j.task.InputRequests = "input_required", mcp.InputRequestMap{}
		for _, key := range kind.asks {
			j.task.InputRequests[key] = form("Is it "+key+"?", "confirm", "boolean")
		}
	} else {
		close(j.asked)
	}
	f.mu.Lock()
	f.jobs[j.task.TaskID] = j
	f.mu.Unlock()
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-j.asked:
		}
		res, err := kind.work(ctx, req)
		j.settle(ctx, res, err)
	}()
	return j
}

// touch notes a change.
func (j *job) touch() {
	now := time.Now()
	fresh := newTask("", "", runs.State{Created: j.began, Updated: now})
	j.task.LastUpdatedAt, j.task.PollIntervalMs = fresh.LastUpdatedAt, fresh.PollIntervalMs
}

func (j *job) settle(ctx context.Context, res *mcp.CallToolResult, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.touch()
	j.task.InputRequests = nil
	switch {
	case ctx.Err() != nil:
		j.task.Status = "cancelled"
	case err == nil:
		j.task.Status, j.task.Result = "completed", res
	default:
		j.task.Status = "failed"
		if !errors.As(err, &j.task.Error) {
			j.task.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
	}
}

func (j *job) now(resultType string) *fixtureTask {
	j.mu.Lock()
	defer j.mu.Unlock()
	task := j.task
	task.ResultType, task.InputRequests = resultType, maps.Clone(task.InputRequests)
	if resultType == "task" {
		task.Result, task.Error, task.InputRequests = nil, nil, nil
	}
	return &task
}

func (j *job) update(answers map[string]json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status != "input_required" {
		return
	}
	for key := range answers {
		delete(j.task.InputRequests, key)
	}
	if j.touch(); len(j.task.InputRequests) == 0 {
		j.task.Status = "working"
		close(j.asked)
	}
}

// says is a result of words.
func says(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// complains is a tool error.
func complains(words string) *mcp.CallToolResult {
	res := says("%s", words)
	res.IsError = true
	return res
}
