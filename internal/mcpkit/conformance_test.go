package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// The official conformance suite asks servers for tools, prompts and resources of its
// own. This test binary serves them through everything that is ours (the door, the HTTP
// handler, the barrier, the code for tasks and subscriptions) when the environment names
// an address; testdata/conformance/run.sh has it do that.

// fixtureEnv names the address to serve the suite's fixtures at. The URL is written to
// standard output, and SIGTERM ends it.
const fixtureEnv = "MARCHWARDEN_TEST_CONFORMANCE"

// watchedURI is what the suite subscribes to.
const watchedURI = "test://watched-resource"

// serveFixtures serves until the process is told to end.
func serveFixtures(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	s, err := newFixtureServer()
	if err != nil {
		return err
	}
	d, err := fixtureDoor(s)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	return errors.Join(d.Serve(ctx, l), s.Close())
}

func newFixtureServer() (*Server, error) {
	return NewServer(Config{
		Name: "fixtures", Scope: "What the conformance suite asks for", Researcher: echo, Now: time.Now, Records: endless{},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		install: func(s *Server) {
			fixtures := slices.Concat(contentTools(), askingTools(), askTools(), probeTools())
			tasks := &fixtureTasks{kinds: taskTools(), jobs: map[string]*job{}}
			for _, t := range slices.Concat(fixtures, tasks.tools()) {
				s.mcp.AddTool(t.tool(), t.call)
			}
			addFixturePrompts(s.mcp)
			addFixtureResources(s.mcp)
			s.mcp.AddReceivingMiddleware(watchable(s), tasks.serve)
		},
	})
}

// fixtureDoor is a door for one who asks more often than people do.
func fixtureDoor(s *Server) (*httpdoor.Door, error) {
	return httpdoor.New(httpdoor.Config{MCP: s.Handler(), Now: time.Now, Rate: 100_000})
}

// endless are records of a run that goes on for ever.
type endless struct{ noRecords }

func (endless) Size(context.Context, marchwarden.TraceID) (int64, bool, error) { return 1, false, nil }

// watchable lets the suite's name of a watched resource mean the record of a run, so
// that our own subscriptions are what it tries.
func watchable(s *Server) mcp.Middleware {
	ctx := access.With(context.Background(), access.Anonymous())
	visit, err := s.runs.Begin(ctx, runs.Asked{Request: marchwarden.Request{Question: "What is watched?"}})
	if err != nil {
		panic(err)
	}
	uri := tracePrefix + visit.ID().String()
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch p := req.GetParams().(type) {
			case *mcp.SubscribeParams:
				if p.URI == watchedURI {
					p.URI = uri
				}
			case *mcp.UnsubscribeParams:
				if p.URI == watchedURI {
					p.URI = uri
				}
			}
			return next(ctx, method, req)
		}
	}
}

// TestConformanceFixtures keeps the fixtures working where the suite itself is not run:
// one call of each kind, through the door, in both eras.
func TestConformanceFixtures(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			s, err := newFixtureServer()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			d, err := fixtureDoor(s)
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(d.Handler())
			t.Cleanup(web.Close)
			cs := dial(t, &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp", DisableStandaloneSSE: true}, era, nil)

			list, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Tools) < 30 {
				t.Errorf("only %d tools are there", len(list.Tools))
			}
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "World"}})
			if err != nil || textOf(t, res) != "Hello, World!" {
				t.Errorf("greet: %v, %v", res, err)
			}
			_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "failing_job"})
			if err == nil || !strings.Contains(err.Error(), TasksExtension) {
				t.Errorf("failing_job of a client that knows no tasks: %v", err)
			}
			page, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://template/123/data"})
			if err != nil || !strings.Contains(page.Contents[0].Text, "123") {
				t.Errorf("resource: %v, %v", page, err)
			}
			said, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "one", "arg2": "two"}})
			if err != nil || !strings.Contains(said.Messages[0].Content.(*mcp.TextContent).Text, "two") {
				t.Errorf("prompt: %v, %v", said, err)
			}
		})
	}
}
