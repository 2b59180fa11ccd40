package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/mcptest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	run := func() error { goleak.VerifyTestMain(m); return nil }
	if address := os.Getenv(fixtureEnv); address != "" {
		run = func() error { return serveFixtures(address) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// echo answers with the question.
var echo = scripted(func(_ context.Context, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	return sample(req.Question + " [1]"), nil
})

// newTestServer serves r with short patience; edit may change the Config.
func newTestServer(t *testing.T, r marchwarden.Researcher, edit ...func(*Config)) (*Server, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	cfg := Config{
		Name: "files", Version: "v0.0.0-test", Scope: "It covers the embedded library and the folders you name",
		Researcher: r, Log: slog.New(slog.NewTextHandler(log, nil)), Grace: 200 * time.Millisecond, Now: time.Now,
	}
	for _, f := range edit {
		f(&cfg)
	}
	s, err := NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("close: %v", err) // a researcher that does not stop
		}
	})
	return s, log
}

// eras are the protocol versions every behaviour is tested under.
var eras = []string{"2025-11-25", "2026-07-28"}

// eachLink runs test under both eras, over the SDK's in-memory transport and
// over ServeStdio.
func eachLink(t *testing.T, test func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession)) {
	for _, era := range eras {
		t.Run(era+"/memory", func(t *testing.T) {
			test(t, func(s *Server, o *mcp.ClientOptions) *mcp.ClientSession { return dialMemory(t, s, era, o) })
		})
		t.Run(era+"/stdio", func(t *testing.T) {
			test(t, func(s *Server, o *mcp.ClientOptions) *mcp.ClientSession { return dialStdio(t, s, era, o) })
		})
	}
}

func dialMemory(t *testing.T, s *Server, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	ss, err := s.mcp.Connect(access.With(t.Context(), access.Local()), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Wait() })
	return dial(t, near, era, o)
}

// dialStdio connects over pipes, and checks in the end that every byte the
// server wrote belongs to a JSON-RPC message on a line of its own.
func dialStdio(t *testing.T, s *Server, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	wire := &lockedBuffer{}
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(context.Background(), inR, io.MultiWriter(wire, outW)) }()
	t.Cleanup(func() {
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) { // the client may leave while it is written to
			t.Errorf("ServeStdio: %v", err)
		}
		checkLines(t, wire.String())
	})
	return dial(t, &mcp.IOTransport{Reader: outR, Writer: inW}, era, o)
}

func dial(t *testing.T, link mcp.Transport, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	cs, err := client.Connect(t.Context(), link, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != era {
		t.Fatalf("negotiated %q, want %q", got, era)
	}
	return cs
}

func checkLines(t *testing.T, wire string) {
	t.Helper()
	if wire != "" && !strings.HasSuffix(wire, "\n") {
		t.Errorf("output does not end with a line end: …%q", wire[max(0, len(wire)-80):])
	}
	for l := range strings.Lines(wire) {
		var m struct {
			Version string `json:"jsonrpc"`
		}
		if err := json.Unmarshal([]byte(l), &m); err != nil || m.Version != "2.0" {
			t.Errorf("not a JSON-RPC line: %q (%v)", l, err)
		}
	}
}

// call asks the question and fails the test on a protocol error.
func call(t *testing.T, cs *mcp.ClientSession, args any) *mcp.CallToolResult {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func textOf(t *testing.T, res *mcp.CallToolResult) string {
	t.Helper()
	if len(res.Content) != 1 {
		t.Fatalf("got %d contents, want 1", len(res.Content))
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is %T, want text", res.Content[0])
	}
	return text.Text
}

// What the tests of the server share.
type (
	scripted     = mcptest.Scripted
	lockedBuffer = mcptest.Buffer
)

var (
	sample   = mcptest.Sample
	within   = mcptest.Within
	traceIDs = mcptest.TraceIDs
)
