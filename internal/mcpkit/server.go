// Package mcpkit is the MCP edge, both sides of it: it serves any
// marchwarden.Researcher as an MCP server with exactly one tool, research, and it
// makes any such server, whoever wrote it, a marchwarden.Researcher.
//
// It owns what lies between the wire and the contract: the tool's surface, the
// connections, progress, cancellation, the limit on concurrent calls, the panic
// barrier, the table from error code to tool error, and on the client's side the
// checks that make what a stranger says fit for use. It is the only package that
// imports the MCP SDK, and no SDK type leaves it.
//
// It does not own research, traces, budgets or evidence: those are the
// researcher's, and a result passes through unchanged. Nor does it look after
// sessions: whoever dials redials.
//
//	client ⇄ lines (stdio.go) ⇄ SDK session ⇄ barrier (server.go) ⇄ research (tool.go) ⇄ marchwarden.Researcher
//	marchwarden.Researcher ⇄ session (session.go) ⇄ SDK session ⇄ process or address (link.go) ⇄ server
package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The defaults of Config.
const (
	DefaultConcurrent = 8 // calls; whoever asks a server of ours should not send more at once
	defaultGrace      = 2 * time.Second
	// heartbeat is how long a call may be silent to a client that asked for
	// progress; some hosts give a call up after a minute without a word.
	heartbeat = 8 * time.Second
)

// The names under which the two sides tell each other in _meta what the protocol
// has no field for. A stranger may leave out every one of them.
const (
	// metaContract, on the tool: the version of the contract it keeps.
	metaContract = "marchwarden/contract"
	// metaPrivate, on the tool: what it reports comes from the user's own sources.
	metaPrivate = "marchwarden/private"
	// metaWall, on a call: after how many milliseconds to hand over what there is.
	metaWall = "marchwarden/wall_ms"
	// metaTrace, on a call: the trace id that the caller has chosen for the run.
	metaTrace = "marchwarden/trace_id"
	// metaEvent, on a progress notification: the marchwarden.Event.
	metaEvent = "marchwarden/event"
	// metaError, on the result of a call that failed: code, field and hint.
	metaError = "marchwarden/error"
)

// The stored documents, as resources.
const (
	evidencePrefix   = "marchwarden://evidence/sha256/"
	evidenceTemplate = evidencePrefix + "{hex}"
	// maxEvidenceBytes is the largest document that is handed over.
	maxEvidenceBytes = 8 << 20
	// maxTextBytes is the longest text that is sent as such: escaped in the worst
	// way it still fits into a message. Beyond it text goes as bytes.
	maxTextBytes = 2 << 20
	// evidenceTTL, in milliseconds, is a week: a hash names one content for ever,
	// and the number must fit into 32 bits.
	evidenceTTL = 7 * 24 * 3600 * 1000
)

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Config describes one researcher as a server.
type Config struct {
	// Name is the researcher's kind, such as "files". Required.
	Name string
	// Title is the name people read; empty gives one made from Name.
	Title string
	// Version is the program's version; empty means "dev".
	Version string
	// Scope is one sentence on what this researcher covers. Callers choose a
	// researcher by it: it stands in the tool's description and in the server's
	// instructions. Required.
	Scope string
	// OpenWorld says that the researcher reaches outside this machine, which hosts
	// may want to know before they call it.
	OpenWorld bool
	// Private says that what the researcher reports comes from the user's own
	// sources, so that a caller can keep it from others.
	Private bool
	// Researcher answers the calls. Required.
	Researcher marchwarden.Researcher
	// Evidence gives the stored content that a citation's content_hash names, as
	// "sha256:" and 64 hex digits, to clients that want to check for themselves;
	// CodeNotFound says that there is none. It is called from several goroutines.
	// nil serves no resources.
	Evidence func(ctx context.Context, hash string) ([]byte, error)
	// Log gets faults, with stacks, and one debug line a call; nil discards them.
	Log *slog.Logger
	// MaxConcurrent is how many calls may run at once before further ones are
	// refused as busy; 0 means 8.
	MaxConcurrent int
	// Grace is how long a stopped call may take to hand over what it has before
	// it is abandoned; 0 means two seconds.
	Grace time.Duration
	// Text renders a result for people and for clients that ignore structured
	// content; nil means a short built-in rendering.
	Text func(*marchwarden.Result) string
}

func (c *Config) normalize() error {
	switch {
	case c.Researcher == nil:
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: researcher must not be nil")
	case strings.TrimSpace(c.Name) == "":
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: name must not be blank")
	case strings.TrimSpace(c.Scope) == "":
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: scope must not be blank")
	case c.MaxConcurrent < 0:
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: max concurrent must not be negative, is %d", c.MaxConcurrent)
	case c.Grace < 0:
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: grace must not be negative, is %v", c.Grace)
	}
	if c.Title == "" {
		c.Title = "Marchwarden " + c.Name + " researcher"
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxConcurrent == 0 {
		c.MaxConcurrent = DefaultConcurrent
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.Text == nil {
		c.Text = shortText
	}
	return nil
}

// Server is one researcher as an MCP server with exactly one tool, research.
// It speaks the protocol of 2026-07-28 and, to clients that open with
// initialize, those from 2024-11-05 to 2025-11-25. It holds no connection
// itself and is safe for concurrent use.
type Server struct {
	cfg    Config
	mcp    *mcp.Server
	output *jsonschema.Resolved // what structured content must satisfy
	slots  chan struct{}        // holds one token per research that runs
}

// NewServer builds the server. It is cheap, starts nothing and touches nothing
// outside: clients may start a server just to ask what it is. It fails on a
// Config that lacks a required field.
func NewServer(cfg Config) (*Server, error) {
	if err := cfg.normalize(); err != nil {
		return nil, err
	}
	tool, output, err := researchTool(cfg.Scope, cfg.OpenWorld, cfg.Private)
	if err != nil {
		return nil, err
	}
	// Given explicitly so that the SDK adds neither logging, which the protocol has
	// deprecated, nor notices of lists that never change.
	offers := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if cfg.Evidence != nil {
		offers.Resources = &mcp.ResourceCapabilities{}
	}
	s := &Server{cfg: cfg, output: output, slots: make(chan struct{}, cfg.MaxConcurrent)}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "marchwarden-" + cfg.Name, Title: cfg.Title, Version: cfg.Version},
		&mcp.ServerOptions{
			Instructions: instructions(cfg),
			Logger:       cfg.Log,
			Capabilities: offers,
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		})
	s.mcp.AddTool(tool, s.research)
	if cfg.Evidence != nil {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			URITemplate: evidenceTemplate, Name: "evidence", Title: "Stored evidence",
			Description: "The stored content that a citation's content_hash names, byte for byte.",
		}, s.evidence)
	}
	s.mcp.AddReceivingMiddleware(s.barrier)
	return s, nil
}

// researchTool is the advertised surface, and the schema that results are held
// to. The schemas are the contract's own.
func researchTool(scope string, openWorld, private bool) (*mcp.Tool, *jsonschema.Resolved, error) {
	var in, out jsonschema.Schema
	if err := json.Unmarshal(marchwarden.RequestSchema(), &in); err != nil {
		return nil, nil, fmt.Errorf("parse the request schema: %w", err)
	}
	if err := json.Unmarshal(marchwarden.ResultSchema(), &out); err != nil {
		return nil, nil, fmt.Errorf("parse the result schema: %w", err)
	}
	output, err := out.Resolve(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve the result schema: %w", err)
	}
	no := false
	meta := mcp.Meta{metaContract: marchwarden.ContractVersion}
	if private {
		meta[metaPrivate] = true
	}
	return &mcp.Tool{
		Meta:         meta,
		Name:         "research",
		Title:        "Research a question",
		Description:  description(scope),
		InputSchema:  &in,
		OutputSchema: &out,
		Annotations: &mcp.ToolAnnotations{
			Title:           "Research a question",
			ReadOnlyHint:    true,
			DestructiveHint: &no,
			IdempotentHint:  true,
			OpenWorldHint:   &openWorld,
		},
	}, output, nil
}

func description(scope string) string {
	return "Research a question and answer it from sources. " + sentence(scope) +
		" Every factual sentence of the answer carries markers like [1] that index citations; each citation holds an excerpt" +
		" copied byte for byte from a stored document. What was not found is listed as gaps, and a partial answer is a normal" +
		" answer. Give a whole question; depth shallow is quick, deep is thorough."
}

func instructions(cfg Config) string {
	return cfg.Title + ". " + sentence(cfg.Scope) +
		" Call research with one self-contained question, and put what you already know into context." +
		" Check raw_excerpt before relying on a claim; read confidence and gaps before acting on the answer," +
		" and let a gap's category decide what to try next. trace_id names the recorded run."
}

// sentence makes sure that s begins and ends like one.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if r, n := utf8.DecodeRuneInString(s); n > 0 {
		s = string(unicode.ToUpper(r)) + s[n:]
	}
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// evidence serves one stored document. Text that is valid UTF-8 goes as text and
// everything else as bytes; both arrive as they are stored.
func (s *Server) evidence(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	hex, ok := strings.CutPrefix(uri, evidencePrefix)
	if !ok || !hexHash.MatchString(hex) {
		return nil, mcp.ResourceNotFoundError(clip(plain(uri), maxProgressChars))
	}
	data, err := s.cfg.Evidence(ctx, "sha256:"+hex)
	switch code := marchwarden.CodeOf(err); {
	case code == marchwarden.CodeNotFound:
		return nil, mcp.ResourceNotFoundError(uri)
	case err != nil:
		s.cfg.Log.Error("evidence could not be read", "hash", hex, "error", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the document could not be read (%s); the server's log has the details", code)}
	case len(data) > maxEvidenceBytes:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
			Message: fmt.Sprintf("the document has %d bytes; at most %d are handed over", len(data), maxEvidenceBytes)}
	}
	content := &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: string(data)}
	if !utf8.Valid(data) {
		content = &mcp.ResourceContents{URI: uri, MIMEType: "application/octet-stream", Blob: data}
	} else if len(data) == 0 || len(data) > maxTextBytes {
		content = &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Blob: append([]byte{}, data...)}
	}
	return &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: evidenceTTL}, Contents: []*mcp.ResourceContents{content}}, nil
}

// refuses tells whether the server has not declared what a method belongs to,
// although the SDK would answer it.
func (s *Server) refuses(method string) bool {
	switch family, what, _ := strings.Cut(method, "/"); family {
	case "prompts", "completion", "logging":
		return true
	case "resources":
		return s.cfg.Evidence == nil || what == "subscribe" || what == "unsubscribe"
	}
	return false
}

// barrier keeps a panic in one request from ending the process, and answers
// only what the server has declared. The panic's value and stack go to the log;
// the caller learns that it was a fault of the server.
func (s *Server) barrier(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.cfg.Log.Error("mcp request panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; the server's log has the details"}
			}
		}()
		if s.refuses(method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		}
		return next(ctx, method, req)
	}
}
