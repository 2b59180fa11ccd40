// Package mcpkit is the server's side of the MCP edge: it serves any
// marchwarden.Researcher as an MCP server with exactly one tool, research.
//
// It owns what lies between the wire and the contract: the tool's surface, the
// connections, progress, cancellation, tasks, resources and prompts, the limit on
// concurrent calls, the panic barrier and the table from error code to tool error. What
// the client below it has to know as well is here, too: names on the wire (surface.go) and lines
// as a transport (stdio.go). The two are the only packages that import the MCP SDK, and no SDK
// type leaves them.
//
// It does not own research, traces, budgets or evidence: those are the researcher's, and a result
// passes through unchanged. Who may see what is decided in package access and kept in package runs.
//
//	client ⇄ lines (stdio.go) or HTTP (http.go) ⇄ SDK session ⇄ barrier (server.go) ⇄ research (tool.go) ⇄ runs ⇄ marchwarden.Researcher
package mcpkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// The defaults of Config.
const (
	DefaultConcurrent = 8 // calls that run at once
	// DefaultMaxWall is for clients that hear nothing of a call: many hosts give up after a minute.
	DefaultMaxWall = 50 * time.Second
	// heartbeat is how long a call that has a progress token may be silent: some hosts give it up.
	heartbeat = 8 * time.Second
)

// Config describes one researcher as a server.
type Config struct {
	// Name is the researcher's kind, such as "files". Required.
	Name string
	// Version is the program's version; empty means "dev".
	Version string
	// Scope is one sentence on what this researcher covers, by which callers choose. Required.
	Scope string
	// OpenWorld says that the researcher reaches outside this machine.
	OpenWorld bool
	// Private says that it reports from the user's own sources, so that a caller can keep it from others.
	Private bool
	// Researcher answers the calls. Required.
	Researcher marchwarden.Researcher
	// Evidence gives the stored content that a citation's content_hash names ("sha256:" and 64 hex
	// digits); CodeNotFound says that there is none. It must be safe for concurrent use; nil serves none.
	Evidence func(ctx context.Context, hash string) ([]byte, error)
	// Now is the clock. Required.
	Now func() time.Time
	// RunsDir keeps the research that is under way; "" forgets it with the process.
	RunsDir string
	// Records are the runs of the past, as resources; nil serves none of them.
	Records Records
	// App shows a result to people in hosts that can; nil leaves it to them.
	App *App
	// MaxWall is when a call that is not done hands over what there is and a handle,
	// and the work goes on. 0 means DefaultMaxWall, for clients that want no progress,
	// and never for those that do; less than 0 means never.
	MaxWall time.Duration
	// Log gets faults, with stacks, and one debug line a call; nil discards them.
	Log *slog.Logger
	// MaxConcurrent is how many calls run at once; further ones wait. 0 means 8.
	MaxConcurrent int
	// Grace is how long a stopped call may take to hand over what it has; 0 means two seconds.
	Grace time.Duration

	// What tests set: more of a server, and how a result is rendered for people.
	install func(*Server)
	text    func(*marchwarden.Result) string
}

func (c *Config) normalize() error {
	wrong := ""
	switch {
	case c.Researcher == nil:
		wrong = "researcher must not be nil"
	case strings.TrimSpace(c.Name) == "":
		wrong = "name must not be blank"
	case strings.TrimSpace(c.Scope) == "":
		wrong = "scope must not be blank"
	}
	if wrong != "" {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "mcp server: %s", wrong)
	}
	c.Version, c.MaxConcurrent, c.Grace = cmp.Or(c.Version, "dev"), cmp.Or(c.MaxConcurrent, DefaultConcurrent), cmp.Or(c.Grace, Grace)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.text == nil {
		c.text = shortText
	}
	return nil
}

// Server is one researcher as an MCP server with exactly one tool, research.
// It speaks the protocol of 2026-07-28 and, to clients that open with
// initialize, those from 2024-11-05 to 2025-11-25. It is safe for concurrent use.
type Server struct {
	cfg   Config
	mcp   *mcp.Server
	runs  *runs.Desk
	live  *tails // the runs that clients follow; nil without records
	lines *lines // the HTTP requests that are open
}

// NewServer builds the server. It starts nothing and touches nothing outside: clients may start a server
// just to ask what it is. Close it when done.
func NewServer(cfg Config) (*Server, error) {
	if err := cfg.normalize(); err != nil {
		return nil, err
	}
	desk, err := openRuns(cfg)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, runs: desk, lines: newLines()}
	options := &mcp.ServerOptions{
		Instructions: filled(words.Instructions, cfg),
		Capabilities: offers(cfg),
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if cfg.Records != nil {
		s.live = newTails(cfg.Records.Size, func(ctx context.Context, uri string) error {
			return s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
		})
		options.SubscribeHandler, options.UnsubscribeHandler = s.subscribe, s.unsubscribe
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "marchwarden-" + cfg.Name, Title: title(cfg), Version: cfg.Version}, options)
	s.mcp.AddTool(researchTool(cfg), s.research)
	s.addResources()
	s.addPrompts()
	if cfg.install != nil {
		cfg.install(s)
	}
	if err := s.addTasks(); err != nil {
		return nil, err
	}
	s.mcp.AddReceivingMiddleware(s.barrier)
	return s, nil
}

// offers is what the server declares: neither logging, which is deprecated, nor notices of lists.
func offers(cfg Config) *mcp.ServerCapabilities {
	o := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{},
		Resources: &mcp.ResourceCapabilities{Subscribe: cfg.Records != nil}}
	o.AddExtension(TasksExtension, nil)
	if cfg.App != nil {
		o.AddExtension(uiExtension, nil)
	}
	return o
}

// Close ends the research, every session and whatever still follows a trace.
func (s *Server) Close() error {
	if s.live != nil {
		s.live.close()
	}
	err := s.runs.Close(context.Background()) // first: a session ends when its calls have
	for session := range s.mcp.Sessions() {
		_ = session.Close() // the client notices
	}
	return err
}

// barrier stands around every request. It knows who asks, keeps a panic in one request from ending the
// process, and answers only what the server has declared.
func (s *Server) barrier(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.cfg.Log.Error("mcp request panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error; the server's log has the details"}
			}
		}()
		ctx = access.With(ctx, caller(ctx, req))
		if method == "logging/setLevel" { // which the SDK answers, declared or not
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q", method)}
		}
		if scope, needed := scopes[method]; needed && !access.From(ctx).May(scope) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("%s needs a token with the scope %s", method, scope)}
		}
		res, err = next(ctx, method, req)
		return res, sound(req, err)
	}
}

// openRuns is the research of a server, as far as it outlives calls. Where nothing can be
// written, the server works all the same, and the log says what is lost.
func openRuns(cfg Config) (*runs.Desk, error) {
	keep := runs.Config{Researcher: cfg.Researcher, Dir: cfg.RunsDir, Now: cfg.Now, Name: cfg.Name, MaxRunning: cfg.MaxConcurrent, Grace: cfg.Grace, Log: cfg.Log}
	if cfg.Records != nil {
		keep.Recorded = cfg.Records.Result
	}
	desk, err := runs.Open(keep)
	if keep.Dir != "" && errors.Is(err, marchwarden.CodeUnavailable) {
		cfg.Log.Warn("runs cannot be kept: tasks, and calls that are handed over, are lost when this server ends", "error", err)
		keep.Dir = ""
		desk, err = runs.Open(keep)
	}
	return desk, err
}

// Recover resumes the research that an earlier process left behind in RunsDir.
func (s *Server) Recover() { s.runs.Recover() }

// Door is the server behind an HTTP door: what the door must know of the server is filled in.
func (s *Server) Door(cfg httpdoor.Config) (*httpdoor.Door, error) {
	cfg.MCP = s.Handler()
	cfg.Stop = func(ctx context.Context) { _ = s.runs.Close(ctx) } // what it could not stop is logged
	return httpdoor.New(cfg)
}
