package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// maxStringBytes bounds every string of a result.
	maxStringBytes = 256 << 10
	// maxTextShown bounds the readable text of a reply.
	maxTextShown = 1 << 20
)

// Reply is what a tool call gave, whether it keeps the contract or not.
type Reply struct {
	// Structured is the structured content, or nil. FromText says that it was sent as text alone.
	Structured json.RawMessage
	FromText   bool
	// Failure is the error that the tool reported, or nil.
	Failure *marchwarden.Error
	// Progress is how many progress notifications came before the reply.
	Progress int
}

// Result is the result in a reply, or the tool's error, or what keeps the reply from being a
// result: CodeMalformed, in one short sentence. null counts as left out.
func (r Reply) Result() (*marchwarden.Result, error) {
	if r.Failure != nil {
		return nil, quoting(r.Failure, "it failed (%s)", r.Failure.Code)
	}
	const broken = "the researcher's result breaks the contract"
	if r.Structured == nil {
		return nil, malformed(broken, "there is no structured content")
	}
	res, err := decodeResult(r.Structured)
	if err != nil {
		return nil, malformed(broken, said(err.Error()))
	}
	return res, nil
}

// decodeResult reads a result and holds it to the bounds and to the schema.
func decodeResult(text json.RawMessage) (*marchwarden.Result, error) {
	var instance any
	if err := json.Unmarshal(text, &instance); err != nil {
		return nil, err
	}
	if err := trim(instance, "result"); err != nil {
		return nil, err
	}
	if err := mcpkit.CheckResult(instance); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(instance)
	if err != nil {
		return nil, err
	}
	return marchwarden.DecodeResult(encoded)
}

// quoting is an error with words of the researcher in it, and what is said without them.
func quoting(words *marchwarden.Error, format string, args ...any) error {
	plain := marchwarden.Errorf(words.Code, format, args...)
	plain.Hint = "'marchwarden researchers check' shows what it says"
	return &dispatch.Said{Words: words, Plain: plain}
}

// said is a sentence of the researcher, fit for a message of ours.
func said(s string) string { return mcpkit.Clip(mcpkit.Plain(s), maxSaidChars) }

// brief is the same for a name.
func brief(s string) string { return mcpkit.Clip(mcpkit.Plain(s), maxSaidChars/2) }

// trim drops the properties that are null and refuses what is over a bound.
func trim(v any, path string) error {
	switch v := v.(type) {
	case string:
		if len(v) > maxStringBytes {
			return fmt.Errorf("%s has %d bytes, over %d", path, len(v), maxStringBytes)
		}
	case []any:
		if len(v) > maxListed {
			return fmt.Errorf("%s has %d entries, over %d", path, len(v), maxListed)
		}
		for _, entry := range v {
			if err := trim(entry, path+"[]"); err != nil {
				return err
			}
		}
	case map[string]any:
		if len(v) > maxListed {
			return fmt.Errorf("%s has %d properties, over %d", path, len(v), maxListed)
		}
		maps.DeleteFunc(v, func(_ string, property any) bool { return property == nil })
		for _, name := range slices.Sorted(maps.Keys(v)) { // so that the same result has the same fault
			if err := trim(v[name], path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) reply(a answer[*mcp.CallToolResult], l *listener) (Reply, error) {
	if a.err != nil {
		return Reply{}, s.fault(a.err)
	}
	r := Reply{Progress: int(l.heard.Load())}
	f, err := found(a.res)
	switch {
	case err != nil:
		return Reply{}, err
	case a.res.IsError:
		r.Failure = toolError(a.res.Meta, f.Text[:min(len(f.Text), maxTextShown)])
	case a.res.StructuredContent != nil:
		r.Structured = f.Structured[0]
	default:
		i := slices.IndexFunc(f.Structured, func(text json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) })
		if r.FromText = i >= 0; r.FromText {
			r.Structured = f.Structured[i]
		}
	}
	return r, nil
}

// toolError is the failure that a tool reports. Its code counts if it is one of the contract.
func toolError(meta mcp.Meta, text string) *marchwarden.Error {
	facts, _ := meta[mcpkit.MetaError].(map[string]any)
	word := func(name string) string {
		s, _ := facts[name].(string)
		return mcpkit.Clip(mcpkit.Plain(s), mcpkit.MaxErrorChars)
	}
	e := &marchwarden.Error{Code: marchwarden.Code(word("code")), Field: word("field"), Hint: word("hint")}
	if !e.Code.Known() {
		e.Code = marchwarden.CodeUnavailable
	}
	message, hint, _ := strings.Cut(text, mcpkit.HintMark)
	e.Message = strings.TrimPrefix(mcpkit.Clip(mcpkit.Plain(message), mcpkit.MaxErrorChars), e.Field+": ")
	if e.Hint == "" {
		e.Hint = mcpkit.Clip(mcpkit.Plain(hint), mcpkit.MaxErrorChars)
	}
	if e.Message == "" {
		e.Message = "the researcher failed and did not say why"
	}
	return e
}

type listener struct {
	token string
	heard atomic.Int32

	mu    sync.Mutex       // guards what follows, and lets one event at a time to the sink
	sink  marchwarden.Sink // nil for none, and when the call has ended
	stage marchwarden.Stage
}

// overhear passes progress on to the call that it belongs to, and says whether it was that.
func (s *Session) overhear(n *jsonrpc.Request) bool {
	var p mcp.ProgressNotificationParams
	if n.Method != progressMethod || json.Unmarshal(n.Params, &p) != nil {
		return false
	}
	token, _ := p.ProgressToken.(string)
	s.mu.Lock()
	l := s.listeners[token]
	s.mu.Unlock()
	if l != nil {
		l.note(&p)
	}
	return true
}

func (l *listener) note(p *mcp.ProgressNotificationParams) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard.Add(1) > maxEvents || l.sink == nil {
		return
	}
	event := eventOf(p, l.stage)
	l.stage = event.Stage
	l.sink(event)
}

var stages = []marchwarden.Stage{marchwarden.StageIndex, marchwarden.StagePlan, marchwarden.StageSearch, marchwarden.StageFetch,
	marchwarden.StageSynthesize, marchwarden.StageCheck, marchwarden.StageDone}

// eventOf is the event in a notification, or one made of its words, at the stage before if it says none.
func eventOf(p *mcp.ProgressNotificationParams, before marchwarden.Stage) marchwarden.Event {
	var e marchwarden.Event
	if told, ok := p.Meta[mcpkit.MetaEvent]; ok {
		encoded, err := json.Marshal(told)
		if err != nil || json.Unmarshal(encoded, &e) != nil {
			e = marchwarden.Event{}
		}
	}
	if e.Message == "" {
		e.Message = p.Message
	}
	if !slices.Contains(stages, e.Stage) {
		e.Stage = before
	}
	e.Message = mcpkit.Clip(mcpkit.Plain(e.Message), mcpkit.MaxProgressChars)
	e.Researcher, e.Draft = brief(e.Researcher), "" // what it says counts when it is checked
	for _, n := range []*int{&e.Iteration, &e.Done, &e.Total, &e.Rihla} {
		*n = max(*n, 0)
	}
	return e
}

func (s *Session) fault(err error) error {
	if own := ours(err); own != nil {
		return own
	}
	if s.pipe != nil {
		if broken := s.pipe.fault.Load(); broken != nil {
			return broken
		}
	}
	theirs, told := errors.AsType[*jsonrpc.Error](err)
	sdks := told && theirs.Code <= -32003 && theirs.Code >= -32005 // which the SDK makes on this side
	if told && !sdks && !errors.Is(err, mcp.ErrConnectionClosed) {
		code := marchwarden.CodeUnavailable
		switch theirs.Code {
		case codeUnread:
			return malformed(unread, said(theirs.Message))
		case jsonrpc.CodeMethodNotFound:
			code = marchwarden.CodeUnsupported
		}
		return quoting(marchwarden.Errorf(code, "the researcher answered with a protocol error: %s (%d)", said(theirs.Message), theirs.Code),
			"the researcher answered with the protocol error %d", theirs.Code)
	}
	if s.proc == nil {
		e := marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher could not be reached or understood: %s", said(err.Error()))
		if _, ok := errors.AsType[*url.Error](err); ok { // what the network says is no word of the researcher
			return e
		}
		return quoting(e, "the researcher could not be understood")
	}
	select {
	case <-s.done:
	case <-s.proc.exited:
	default:
		if !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrConnectionClosed) {
			return malformed(unread, said(err.Error()))
		}
	}
	return s.ended()
}

// ours is the error that this side made, with what it quotes; nil if another did.
func ours(err error) error {
	if quote, ok := errors.AsType[*dispatch.Said](err); ok {
		return quote
	}
	if own, ok := errors.AsType[*marchwarden.Error](err); ok {
		return own
	}
	return nil
}

// What more than one part of the client says of a server.
var (
	errHuge      = marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher sent a message of more than %d bytes", maxFrameBytes)
	errAsksBack  = marchwarden.Errorf(marchwarden.CodeUnsupported, "the researcher wants to ask back, and this client cannot answer")
	errWasClosed = marchwarden.Errorf(marchwarden.CodeCanceled, "the session with the researcher was closed")
)

const unread = "the researcher's answer cannot be read"

// malformed is the error of what the researcher sent: what is wrong with it in general, and in particular.
func malformed(wrong, what string) error {
	return quoting(marchwarden.Errorf(marchwarden.CodeMalformed, "%s: %s", wrong, what), "%s", wrong)
}

// ended says how the process ended, and its last words. Done is closed by then, unless what the
// process started holds its output open.
func (s *Session) ended() error {
	e := marchwarden.Errorf(marchwarden.CodeUnavailable, "the researcher's process ended")
	patience := time.After(lastWordsWait)
	select {
	case <-s.proc.exited:
		e.Message += " (" + s.proc.State() + ")"
		select {
		case <-s.done:
		case <-patience:
		}
	case <-patience:
		e.Message = "the researcher's process closed its output"
	}
	words := said(s.proc.LastWords())
	if words == "" {
		return e
	}
	return quoting(marchwarden.Errorf(e.Code, "%s: %s", e.Message, words), "%s", e.Message)
}

// withNoise adds to an error about silence what came instead of an answer.
func (s *Session) withNoise(e *marchwarden.Error) error {
	if s.pipe == nil {
		return e
	}
	s.pipe.mu.Lock()
	defer s.pipe.mu.Unlock()
	if s.pipe.junk == 0 {
		return e
	}
	plain := fmt.Sprintf("%s; its output has %d lines that are no protocol", e.Message, s.pipe.junk)
	return quoting(marchwarden.Errorf(e.Code, "%s, the first %q", plain, s.pipe.first), "%s", plain)
}
