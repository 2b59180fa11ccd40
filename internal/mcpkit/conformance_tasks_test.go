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

// fixtureTasks are fixtures as tasks; what is none of theirs is left to the server's
// own.
type fixtureTasks struct {
	taskSource
	kinds map[string]taskKind

	mu   sync.Mutex // guards jobs
	jobs map[string]*job
}

// job is a task under way.
type job struct {
	cancel context.CancelFunc
	asked  chan struct{} // closed when nothing is asked any more

	mu    sync.Mutex // guards state
	state taskState
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

func (f *fixtureTasks) Begin(ctx context.Context, req *mcp.CallToolRequest) (*taskState, *mcp.CallToolResult, error) {
	kind, ours := f.kinds[req.Params.Name]
	switch {
	case !ours:
		return f.taskSource.Begin(ctx, req)
	case kind.first != nil && kind.first(req):
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	now := time.Now()
	j := &job{cancel: cancel, asked: make(chan struct{}), state: taskState{ID: rand.Text(), Status: taskWorking, Created: now, Updated: now, Kept: time.Hour}}
	if len(kind.asks) > 0 {
		j.state.Status, j.state.Inputs = taskAsking, mcp.InputRequestMap{}
		for _, key := range kind.asks {
			j.state.Inputs[key] = form("Is it "+key+"?", "confirm", "boolean")
		}
	} else {
		close(j.asked)
	}
	f.mu.Lock()
	f.jobs[j.state.ID] = j
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
	state := j.now()
	return &state, nil, nil
}

func (j *job) settle(ctx context.Context, res *mcp.CallToolResult, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.state.Updated, j.state.Inputs = time.Now(), nil
	switch {
	case ctx.Err() != nil:
		j.state.Status = taskCancelled
	case err == nil:
		j.state.Status, j.state.Result = taskCompleted, res
	default:
		j.state.Status = taskFailed
		if !errors.As(err, &j.state.Error) {
			j.state.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
		}
	}
}

func (j *job) now() taskState {
	j.mu.Lock()
	defer j.mu.Unlock()
	state := j.state
	state.Inputs = maps.Clone(state.Inputs)
	return state
}

func (f *fixtureTasks) find(id string) *job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[id]
}

func (f *fixtureTasks) State(ctx context.Context, id string) (*taskState, error) {
	j := f.find(id)
	if j == nil {
		return f.taskSource.State(ctx, id)
	}
	state := j.now()
	return &state, nil
}

func (f *fixtureTasks) Cancel(ctx context.Context, id string) error {
	j := f.find(id)
	if j == nil {
		return f.taskSource.Cancel(ctx, id)
	}
	j.cancel()
	return nil
}

func (f *fixtureTasks) Update(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	j := f.find(id)
	if j == nil {
		return f.taskSource.Update(ctx, id, answers)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state.Status != taskAsking {
		return nil
	}
	for key := range answers {
		delete(j.state.Inputs, key)
	}
	if j.state.Updated = time.Now(); len(j.state.Inputs) == 0 {
		j.state.Status = taskWorking
		close(j.asked)
	}
	return nil
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
