// Package client makes any MCP server with the tool research, in any language and place, a
// marchwarden.Researcher.
//
// It owns the client's side of the MCP edge: starting a process or reaching an
// address (link.go), the user's login there (login.go), the version of the protocol, progress,
// cancellation, and the checks that make what an external researcher says fit for use. No SDK type leaves it. It does not look
// after sessions: the caller that dials redials.
//
//	marchwarden.Researcher ⇄ session (session.go) ⇄ SDK session ⇄ process or address (link.go) ⇄ server
package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// How long a server, and a program, which may have much to load, may take to say who it is.
	dialPatience  = 5 * time.Second
	startPatience = time.Minute
	// legacyEra is the last version of the protocol that begins with initialize.
	legacyEra = "2025-11-25"
	// maxListed bounds every list that a server gives.
	maxListed = 1000
	// maxSaidChars bounds what a server says where it becomes part of a message.
	maxSaidChars = 200
	// maxDescriptionChars bounds the description that is shown to people.
	maxDescriptionChars = 2000
)

// Target is where a researcher is: either a Command to run or a URL.
type Target struct {
	// Command is a program and its arguments, run without a shell.
	Command []string
	// Dir is its working directory; "" is that of this process.
	Dir string
	// Env is its whole environment: nothing is handed on that does not stand here.
	Env []string
	// Stderr gets what it writes to standard error, as it is, unless it is nil.
	Stderr io.Writer

	// URL is the address of a server that speaks MCP over HTTP.
	URL string
	// Token is sent to that server as a bearer token, unless it is "".
	Token string
	// Login gives the tokens for that server instead, unless it is nil.
	Login *Login

	// OwnTools says that the server's own tools are used: it needs no tool research.
	OwnTools bool

	// Patience is how long it may take to say who it is; 0 is 5 s, and a minute for a program.
	Patience time.Duration
}

// Dialer makes sessions. Dial is safe for concurrent use.
type Dialer struct {
	// Version is the program's version, for the server to know; empty means "dev".
	Version string
	// Now is the clock that deadlines are told by. Required.
	Now func() time.Time
	// HTTP reaches addresses. nil means a client that knows no proxy.
	HTTP *http.Client
	// Log gets what is worth a look; nil discards it.
	Log *slog.Logger
	// Grace is how much longer than its deadline a server may take; 0 means two seconds.
	Grace time.Duration
}

// Card is what a server says of itself, cleaned and cut for people, and what of it a host must pin.
type Card struct {
	Server, Version string
	// Protocol is the version of MCP that was agreed on.
	Protocol string
	// Contract is the version of the research contract; v1 if the server names none.
	Contract    string
	Description string
	// ToolHash is "sha256:" and 64 hex digits over all that the tool says of itself, which can steer its
	// reader: a server whose hash changes is another one.
	ToolHash string
	// Private says that it reports from sources of the user's own.
	Private bool
	// Evidence says that it hands over what it cites.
	Evidence bool
}

// Surface is what a server offers, word for word, for those who judge it.
type Surface struct {
	Tools         []string        // their names, in the server's order
	Input, Output json.RawMessage // the schemas of research; nil for none
	Contract      string          // the version it names, or ""
}

// Accepts is nil if the input schema takes the arguments, and else says why not.
func (s Surface) Accepts(args map[string]any) error {
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.Input, &schema); err != nil {
		return fmt.Errorf("the input schema is none: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return fmt.Errorf("the input schema is none: %w", err)
	}
	return resolved.Validate(args)
}

// Dial connects to a server and asks it who it is, within the target's patience unless ctx ends
// before. It speaks every version of the protocol from 2024-11-05 on. The server must have a tool
// called research that takes a question and keeps a version of the contract that this program
// knows, else the error has CodeUnsupported. A server that cannot be reached is CodeUnavailable,
// one that does not answer CodeTimeout, one that refuses access CodeDenied. The caller closes the
// session; when Dial fails nothing is left behind.
func (d *Dialer) Dial(ctx context.Context, t Target) (*Session, error) {
	if err := check(t); err != nil {
		return nil, err
	}
	patience := cmp.Or(t.Patience, dialPatience)
	if t.Patience == 0 && len(t.Command) > 0 {
		patience = startPatience
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, marchwarden.Errorf(marchwarden.CodeTimeout, "the researcher did not say who it is within %v", patience))
	defer cancel()
	s, ended, err := d.attempt(limited, t, "")
	if ended && limited.Err() == nil {
		// There are servers that end at a first message other than initialize.
		s, _, err = d.attempt(limited, t, legacyEra)
	}
	if err != nil && ctx.Err() != nil {
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "connect to the researcher")
	}
	return s, err
}

// LogIn has the user log in with the server of a target whose Login has a browser, and
// gives what the server says of itself. The target's patience is the user's, too.
func (d *Dialer) LogIn(ctx context.Context, t Target) (Card, error) {
	s, err := d.Dial(ctx, t)
	if err != nil {
		return Card{}, err
	}
	defer s.Close()
	return s.Card(), t.Login.Anew(ctx)
}

func check(t Target) error {
	invalid := func(format string, args ...any) error {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "connect to a researcher: "+format, args...)
	}
	switch {
	case len(t.Command) == 0 && t.URL == "":
		return invalid("a command or an address must be given")
	case len(t.Command) > 0 && t.URL != "":
		return invalid("give a command or an address, not both")
	case t.URL == "":
		return nil
	}
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return invalid("the address cannot be read")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return invalid("the address must begin with http:// or https:// and a host")
	case u.User != nil:
		return invalid("the address must hold no password; give a token instead")
	}
	return nil
}

// attempt dials once, in the era given or the newest, and says whether the program ended.
func (d *Dialer) attempt(ctx context.Context, t Target, era string) (s *Session, ended bool, err error) {
	s = &Session{now: d.Now, grace: cmp.Or(d.Grace, mcpkit.Grace), log: cmp.Or(d.Log, slog.New(slog.DiscardHandler)), done: make(chan struct{}),
		listeners: map[string]*listener{}}
	s.life, s.end = context.WithCancel(context.Background())
	link, err := s.link(d, t)
	if err != nil {
		return nil, false, err
	}
	self := &mcp.Implementation{Name: "marchwarden", Version: cmp.Or(d.Version, "dev")}
	client := mcp.NewClient(self, &mcp.ClientOptions{
		Logger:         s.log,
		Capabilities:   &mcp.ClientCapabilities{},                  // nothing is offered to a server
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // rounds are answered by converse
	})
	client.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if read, ok := res.(*mcp.ReadResourceResult); ok && read != nil {
				read.TTLMs = 0 // or the SDK would keep every document
			}
			return res, err
		}
	})
	s.cs, err = client.Connect(ctx, link, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err == nil {
		go func() {
			_ = s.cs.Wait() // why it ended is told by the call that waits for an answer
			close(s.done)
		}()
		err = s.learn(ctx, t.OwnTools)
	} else {
		close(s.done)
	}
	if err != nil {
		// The cause of ctx's end says that it took too long.
		if late, ok := errors.AsType[*marchwarden.Error](context.Cause(ctx)); ok && ours(err) == nil {
			err = s.withNoise(late)
		} else {
			err = s.fault(err)
		}
		ended = s.proc != nil && s.proc.State() != ""
		s.Close()
		return nil, ended, err
	}
	return s, false, nil
}

func (s *Session) link(d *Dialer, t Target) (mcp.Transport, error) {
	if t.URL == "" {
		proc, err := startProcess(t)
		if err != nil {
			return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the researcher's program could not be run",
				Hint: "check the command and where it is", Err: err}
		}
		s.proc, s.pipe = proc, &pipe{hear: s.overhear}
		s.pipe.IOTransport = mcpkit.LineTransport(proc.Out, proc.In, maxFrameBytes, s.pipe.take)
		return s.pipe, nil
	}
	home, _ := url.Parse(t.URL) // which check has done
	var client http.Client
	if d.HTTP != nil {
		client = *d.HTTP
	}
	if client.Transport == nil {
		own := &http.Transport{ForceAttemptHTTP2: true}
		s.release, client.Transport = own.CloseIdleConnections, own
	}
	client.Timeout = 0 // a research takes what it takes
	client.Transport = &address{base: client.Transport, home: home, token: t.Token, login: t.Login, hear: s.overhear}
	client.CheckRedirect = withinServer("the researcher")
	return &mcp.StreamableClientTransport{Endpoint: t.URL, HTTPClient: &client, MaxRetries: 1, DisableStandaloneSSE: true, MaxEventSize: maxFrameBytes}, nil
}

// learn asks the server what it offers, and judges it as a researcher unless its own tools are used.
func (s *Session) learn(ctx context.Context, ownTools bool) error {
	hello := s.cs.InitializeResult()
	s.card = Card{Protocol: hello.ProtocolVersion}
	if info := hello.ServerInfo; info != nil {
		s.card.Server, s.card.Version = brief(info.Name), brief(info.Version)
	}
	if ownTools {
		return s.learnTools(ctx)
	}
	tool, err := s.findTool(ctx)
	if err != nil {
		return err
	}
	if err := s.judge(tool); err != nil {
		return err
	}
	if hello.Capabilities == nil || hello.Capabilities.Resources == nil {
		return nil
	}
	listed := 0
	for template, err := range s.cs.ResourceTemplates(ctx, nil) {
		if listed++; err != nil || listed > maxListed {
			break // what cannot be listed is not offered
		}
		if strings.HasPrefix(template.URITemplate, mcpkit.EvidencePrefix+"{") {
			s.card.Evidence = true
			break
		}
	}
	return ctx.Err()
}

func (s *Session) findTool(ctx context.Context) (*mcp.Tool, error) {
	all, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var found *mcp.Tool
	for _, tool := range all {
		s.surface.Tools = append(s.surface.Tools, tool.Name)
		if tool.Name != mcpkit.Tool {
			continue
		}
		if found != nil {
			return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the server lists the tool %q twice", mcpkit.Tool)
		}
		found = tool
	}
	if found == nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: fmt.Sprintf("the server has no tool %q among its %d", mcpkit.Tool, len(s.surface.Tools)),
			Hint: "a researcher is an MCP server with one tool, research"}
	}
	return found, nil
}

// judge holds the tool to the contract and fills in card and surface.
func (s *Session) judge(tool *mcp.Tool) error {
	if version, named := tool.Meta[mcpkit.MetaContract]; named {
		s.surface.Contract = mcpkit.Clip(mcpkit.Plain(fmt.Sprint(version)), 20)
	}
	s.card.Contract = cmp.Or(s.surface.Contract, marchwarden.ContractVersion)
	if s.card.Contract != marchwarden.ContractVersion {
		return &marchwarden.Error{Code: marchwarden.CodeUnsupported,
			Message: fmt.Sprintf("the researcher speaks contract %s; this program speaks %s", s.card.Contract, marchwarden.ContractVersion),
			Hint:    "use a newer version of this program, or an older one of the researcher"}
	}
	var fault error
	wire := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		fault = cmp.Or(fault, err)
		return data
	}
	input, annotations := wire(tool.InputSchema), wire(tool.Annotations)
	if tool.OutputSchema != nil {
		s.surface.Output = wire(tool.OutputSchema)
	}
	if fault != nil {
		return marchwarden.Wrap(fault, marchwarden.CodeMalformed, "read the tool's schemas and annotations")
	}
	var shape struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(input, &shape) != nil || shape.Properties["question"] == nil {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "the server's tool %q takes no question", mcpkit.Tool)
	}
	s.surface.Input = input
	s.card.Description = mcpkit.Clip(mcpkit.Plain(tool.Description), maxDescriptionChars)
	s.card.ToolHash = toolHash(tool.Name, tool.Title, tool.Description, string(input), string(s.surface.Output), string(annotations))
	s.card.Private = tool.Meta[mcpkit.MetaPrivate] == true
	return nil
}

// toolHash is over each part with its length before it, under a name of its own.
func toolHash(parts ...string) string {
	h := sha256.New()
	for _, part := range append([]string{"marchwarden tool surface v1"}, parts...) {
		h.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(part))), part...))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
