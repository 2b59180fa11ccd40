package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// transit is what an answer takes on its way, beyond the grace.
	transit = 500 * time.Millisecond
	// lastWordsWait is how long a process that closed its output may take to end.
	lastWordsWait = 300 * time.Millisecond
	// farewell is what the SDK takes to tell a server that its calls are cancelled.
	farewell = 100 * time.Millisecond
	// maxRounds is how many rounds a call may take, with roundWait between those that ask nothing.
	maxRounds = 10
	roundWait = time.Second
	// maxEvents is how many events of one call are passed on.
	maxEvents = 10_000
)

// Session is a connection to one researcher elsewhere, and is itself a marchwarden.Researcher. It
// is safe for concurrent use. It does not come back to life: when Done is closed, dial again.
type Session struct {
	now     func() time.Time
	grace   time.Duration
	log     *slog.Logger
	cs      *mcp.ClientSession
	card    Card
	surface Surface
	tools   []Tool // of a server that was dialled for them

	proc    *process // nil for an address
	pipe    *pipe    // to proc
	release func()   // lets go of connections of our own; may be nil

	life context.Context // ends with Close
	end  context.CancelFunc
	done chan struct{}
	once sync.Once

	mu        sync.Mutex // guards what follows
	calls     int
	broken    bool                 // a call was broken off
	listeners map[string]*listener // of the calls under way
}

// Card is what the server said of itself when it was dialled.
func (s *Session) Card() Card { return s.card }

// Surface is what the server offered when it was dialled.
func (s *Session) Surface() Surface { return s.surface }

// Done is closed when the far end is gone, as far as it shows, or the session was closed.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session, its calls and, if there is one, the process with everything it started.
// It returns when they have ended, within seconds, and may be called again. The error is always nil: there is nothing left to be done.
func (s *Session) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		unsaid := len(s.listeners) > 0 || s.broken
		s.end()
		s.mu.Unlock()
		if s.proc != nil {
			s.proc.Stop() // first, because it frees the writers that wait
		} else if unsaid {
			time.Sleep(farewell)
		}
		if s.cs != nil {
			_ = s.cs.Close()
		}
		if s.pipe != nil {
			_ = s.pipe.Reader.Close() // frees the reader of lines
		}
		<-s.done
		if s.release != nil {
			s.release()
		}
	})
	return nil
}

// Research asks the researcher, and keeps the promises of marchwarden.Researcher.
//
// The deadline of ctx is told to the server, which can then hand over what it has; it is waited for
// a little longer than that. A call that is cancelled before ends at once with CodeCanceled, by the
// means of the protocol.
//
// A result that breaks the contract is CodeMalformed, a server that is gone
// CodeUnavailable, one that let the deadline pass CodeTimeout. Errors of the
// server's own keep their code, if it is one of the contract.
func (s *Session) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	args, err := json.Marshal(req)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the request")
	}
	reply, err := s.ask(ctx, json.RawMessage(args), mcp.Meta{mcpkit.MetaWhole: true}, sink, true)
	if err != nil {
		return nil, err
	}
	return reply.Result()
}

// Call calls the tool with any arguments, right or wrong, for those who judge a
// server. The end of ctx ends it at once, with CodeCanceled, by the means of the
// protocol. The error says that there was no reply; errors of the tool are in it.
func (s *Session) Call(ctx context.Context, args map[string]any) (Reply, error) {
	return s.ask(ctx, args, mcp.Meta{}, nil, false)
}

// ask makes one call of the tool. A patient one waits for what the server hands over in the end.
func (s *Session) ask(ctx context.Context, args any, meta mcp.Meta, sink marchwarden.Sink, patient bool) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask the researcher")
	}
	l := s.enter(sink)
	defer s.leave(l)
	params := &mcp.CallToolParams{Meta: meta, Name: mcpkit.Tool, Arguments: args}
	params.SetProgressToken(l.token)
	if deadline, ok := ctx.Deadline(); ok && patient {
		params.Meta[mcpkit.MetaWall] = max(deadline.Sub(s.now()).Milliseconds(), 1)
	}
	if id, ok := marchwarden.ChosenTraceID(ctx); ok {
		params.Meta[mcpkit.MetaTrace] = id.String()
	}
	inner, stop := context.WithCancel(s.life)
	defer stop()
	answers := begin(inner, func(ctx context.Context) (*mcp.CallToolResult, error) { return s.converse(ctx, params) })
	select {
	case a := <-answers:
		return s.reply(a, l)
	case <-s.life.Done():
		return Reply{}, errWasClosed
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.broken = true
	s.mu.Unlock()
	if !patient || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Reply{}, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "ask the researcher")
	}
	select {
	case a := <-answers:
		return s.reply(a, l)
	case <-s.life.Done():
	case <-time.After(s.grace + transit):
	}
	return Reply{}, s.withNoise(marchwarden.Errorf(marchwarden.CodeTimeout, "the researcher did not answer by the deadline"))
}

// converse makes a call that a server may answer in several rounds: with a state that it wants to
// see again in a moment, and with questions to the user. Questions are declined, since no user is
// at hand, so that the server can go on by itself; what else it asks for is not offered.
func (s *Session) converse(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	for range maxRounds {
		res, err := s.cs.CallTool(ctx, params)
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
			if err := httpapi.Sleep(ctx, roundWait); err != nil {
				return nil, err
			}
		}
		params = &next
	}
	return nil, errAsksBack
}

type answer[T any] struct {
	res T
	err error
}

// begin makes a call in the background: one to a server that does not read its input returns only
// when the server is stopped. What the SDK cannot digest is the server's fault.
func begin[T any](ctx context.Context, call func(context.Context) (T, error)) chan answer[T] {
	answers := make(chan answer[T], 1)
	go func() {
		var a answer[T]
		defer func() {
			if p := recover(); p != nil {
				a.err = marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher's answer cannot be read")
			}
			answers <- a
		}()
		a.res, a.err = call(ctx)
	}()
	return answers
}

// briefly makes a call that ends with ctx; fault is what its failure comes to.
func briefly[T any](ctx context.Context, s *Session, doing string, fault func(error) error, call func(context.Context) (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, marchwarden.Wrap(err, marchwarden.CodeCanceled, "%s", doing)
	}
	defer s.leave(s.enter(nil))
	inner, stop := context.WithCancel(s.life)
	defer stop()
	select {
	case a := <-begin(inner, call):
		if a.err != nil {
			return none, fault(a.err)
		}
		return a.res, nil
	case <-ctx.Done():
		return none, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s", doing)
	case <-s.life.Done():
		return none, errWasClosed
	}
}

// enter notes a call.
func (s *Session) enter(sink marchwarden.Sink) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	l := &listener{token: fmt.Sprintf("call-%d", s.calls), sink: sink}
	s.listeners[l.token] = l
	return l
}

// leave forgets a call. Nothing reaches its sink any more.
func (s *Session) leave(l *listener) {
	s.mu.Lock()
	delete(s.listeners, l.token)
	s.mu.Unlock()
	l.mu.Lock()
	l.sink = nil
	l.mu.Unlock()
}

// codeNotFoundOnce was, in earlier versions of the protocol, what CodeInvalidParams is for a resource.
const codeNotFoundOnce = -32002

// Evidence is the stored content that a citation's hash ("sha256:…") names, held
// against it: CodeCorrupt says that the server gave something else. CodeNotFound
// and CodeUnsupported say that it has none to give.
func (s *Session) Evidence(ctx context.Context, hash string) ([]byte, error) {
	ref, err := blob.Parse(hash)
	if err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "read evidence: the hash must be sha256: and 64 hex digits")
	}
	if !s.card.Evidence {
		return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the researcher hands over no evidence")
	}
	res, err := briefly(ctx, s, "read evidence", s.evidenceFault, func(ctx context.Context) (*mcp.ReadResourceResult, error) {
		return s.cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: mcpkit.EvidencePrefix + ref.Hex()})
	})
	if err != nil {
		return nil, err
	}
	contents := res.Contents
	res.Contents = nil // the SDK keeps the rest
	if len(contents) != 1 || contents[0] == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher gave %d contents for one hash", len(contents))
	}
	data := contents[0].Blob
	if data == nil {
		data = []byte(contents[0].Text)
	}
	if blob.Of(data) != ref {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the researcher gave another content than the hash names")
	}
	return data, nil
}

func (s *Session) evidenceFault(err error) error {
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch said.Code {
		case jsonrpc.CodeInvalidParams, codeNotFoundOnce:
			return marchwarden.Errorf(marchwarden.CodeNotFound, "the researcher does not have that content")
		case jsonrpc.CodeMethodNotFound:
			return marchwarden.Errorf(marchwarden.CodeUnsupported, "the researcher hands over no evidence")
		}
	}
	return s.fault(err)
}
