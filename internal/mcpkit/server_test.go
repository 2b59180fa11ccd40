package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

func TestNewServerNeedsItsFields(t *testing.T) {
	good := Config{Name: "files", Scope: "Files", Researcher: echo, Now: time.Now}
	for name, tc := range map[string]struct {
		edit func(*Config)
		want string
	}{
		"good":       {func(*Config) {}, ""},
		"researcher": {func(c *Config) { c.Researcher = nil }, "researcher must not be nil"},
		"name":       {func(c *Config) { c.Name = " " }, "name must not be blank"},
		"scope":      {func(c *Config) { c.Scope = "" }, "scope must not be blank"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tc.edit(&cfg)
			_, err := NewServer(cfg)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, marchwarden.CodeInvalid) {
				t.Fatalf("got %v, want an invalid-error with %q", err, tc.want)
			}
		})
	}
}

func TestSurface(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		s, _ := newTestServer(t, echo)
		cs := dial(s, nil)

		init := cs.InitializeResult()
		want := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Prompts: &mcp.PromptCapabilities{}, Resources: &mcp.ResourceCapabilities{}}
		want.AddExtension(TasksExtension, nil)
		if diff := cmp.Diff(want, init.Capabilities); diff != "" {
			t.Errorf("capabilities (-want +got):\n%s", diff)
		}
		if !strings.Contains(init.Instructions, "the embedded library and the folders you name.") {
			t.Errorf("instructions do not state the scope: %q", init.Instructions)
		}

		list, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != 1 || list.Tools[0].Name != "research" {
			t.Fatalf("got tools %v, want research alone", list.Tools)
		}
		tool := list.Tools[0]
		if tool.InputSchema == nil || tool.OutputSchema == nil {
			t.Error("a schema is missing")
		}
		if a := tool.Annotations; !a.ReadOnlyHint || *a.DestructiveHint || *a.OpenWorldHint {
			t.Errorf("annotations are %+v", a)
		}

		_, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "search"})
		var fault *jsonrpc.Error
		if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("unknown tool: got %v, want a protocol error", err)
		}
		_, err = cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "deep-dive"}, Argument: mcp.CompleteParamsArgument{Name: "topic"}})
		if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("completion/complete: got %v, want method not found", err)
		}
	})
}

// TestSchemaStaysUnset holds the advertised input schema to what keeps unset
// constraints unset and hosts of every kind able to read it.
func TestSchemaStaysUnset(t *testing.T) {
	tool := researchTool(Config{Scope: "Files"})
	constraints := tool.InputSchema.(*jsonschema.Schema).Properties["constraints"].Properties
	if len(constraints) == 0 {
		t.Error("there are no constraints")
	}
	for name, p := range constraints {
		if p.Default != nil {
			t.Errorf("constraints.%s has a default", name)
		}
	}
	for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
		b, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		for _, unportable := range []string{`"null"`, `"$ref"`, `"additionalProperties":false`, `"anyOf"`, `"oneOf"`} {
			if bytes.Contains(b, []byte(unportable)) {
				t.Errorf("schema %.60s… holds %s", b, unportable)
			}
		}
	}
}

// TestSurfaceGolden pins all that a server says of itself, as a client sees it on the
// wire and with what it costs in a model's context, so that a change of it is reviewed.
func TestSurfaceGolden(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) {
		c.Version = "v0"
		c.Records, c.Evidence = noRecords{}, func(context.Context, string) ([]byte, error) { return nil, nil }
		c.App = &App{Page: []byte("<!doctype html>")}
	})
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"golden","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`
	type part struct {
		Method string          `json:"method"`
		Tokens int             `json:"estimated_tokens"`
		Result json.RawMessage `json:"result"`
	}
	var parts []part
	for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		var out bytes.Buffer
		in := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + meta + "}\n"
		if err := s.ServeStdio(context.Background(), strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		var answer struct{ Result json.RawMessage }
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Result == nil {
			t.Fatalf("%s: %v in %q", method, err, out.String())
		}
		parts = append(parts, part{method, llm.EstimateText(string(answer.Result)), answer.Result})
		t.Logf("%s: about %d tokens", method, parts[len(parts)-1].Tokens)
	}
	got, err := json.MarshalIndent(parts, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "surface.golden.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("the surface changed; review it and run with -update (-want +got):\n%s", diff)
	}
}

// noRecords has no run.
type noRecords struct{}

func (noRecords) Trace(context.Context, marchwarden.TraceID) ([]byte, error) {
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no such run")
}

func (noRecords) Size(context.Context, marchwarden.TraceID) (int64, bool, error) {
	return 0, false, marchwarden.Errorf(marchwarden.CodeNotFound, "no such run")
}

func (noRecords) Result(context.Context, marchwarden.TraceID) (*marchwarden.Result, error) {
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no such run")
}

func (noRecords) SoFar(context.Context, marchwarden.TraceID) (*marchwarden.Result, error) {
	return nil, nil
}

func TestBarrier(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		s, log := newTestServer(t, echo, func(c *Config) {
			c.text = func(*marchwarden.Result) string { panic("boom in rendering") }
		})
		cs := dial(s, nil)
		_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "why"}})
		var fault *jsonrpc.Error
		if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInternalError {
			t.Fatalf("got %v, want an internal error", err)
		}
		if strings.Contains(err.Error(), "boom") || strings.Contains(err.Error(), ".go:") {
			t.Errorf("the panic got out: %v", err)
		}
		if !strings.Contains(log.String(), "boom in rendering") || !strings.Contains(log.String(), "server_test.go") {
			t.Errorf("the log lacks the panic or its stack: %s", log)
		}
		if _, err := cs.ListTools(t.Context(), nil); err != nil {
			t.Errorf("the server is gone: %v", err)
		}
	})
}

func BenchmarkNewServer(b *testing.B) {
	for b.Loop() {
		if _, err := NewServer(Config{Name: "files", Scope: "Files", Researcher: echo}); err != nil {
			b.Fatal(err)
		}
	}
}

// Documents are served where there is a store, by a strict name, and nothing else
// of what the SDK could do with resources.
func TestEvidenceSurface(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		asked := make(chan string, 8)
		s, log := newTestServer(t, echo, func(c *Config) {
			c.Private, c.Evidence = true, func(_ context.Context, hash string) ([]byte, error) {
				asked <- hash
				return nil, errors.New("disk /dev/sda1 on fire")
			}
		})
		cs := dial(s, nil)
		tools, err := cs.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Meta[MetaPrivate] != true {
			t.Errorf("tools: %+v, %v", tools, err)
		}
		templates, err := cs.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 || templates.ResourceTemplates[0].URITemplate != evidenceTemplate || templates.ResourceTemplates[1].URITemplate != resultTemplate {
			t.Errorf("templates: %+v, %v", templates, err)
		}
		if list, err := cs.ListResources(t.Context(), nil); err != nil || len(list.Resources) != 1 || list.Resources[0].URI != contractURI {
			t.Errorf("resources: %+v, %v", list, err)
		}
		var fault *jsonrpc.Error
		for _, name := range []string{"", "..%2f..%2fetc", strings.Repeat("A", 64), strings.Repeat("a", 63), strings.Repeat("a", 65)} {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: EvidencePrefix + name})
			if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%q: got %v, want not found", name, err)
			}
		}
		if len(asked) > 0 {
			t.Errorf("the store was asked for %q", <-asked)
		}
		_, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: EvidencePrefix + strings.Repeat("a", 64)})
		if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInternalError || strings.Contains(err.Error(), "fire") {
			t.Errorf("a broken store: got %v", err)
		}
		if got := <-asked; got != "sha256:"+strings.Repeat("a", 64) || !strings.Contains(log.String(), "on fire") {
			t.Errorf("asked for %q, log %s", got, log)
		}
		if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: EvidencePrefix + strings.Repeat("a", 64)}); err == nil && cs.InitializeResult().ProtocolVersion < "2026" {
			t.Error("subscribing works")
		}
	})
}

// Documents may be kept by the client that asked for them, and by no proxy in between.
func TestEvidenceIsCachedPrivately(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) {
		c.Evidence = func(context.Context, string) ([]byte, error) { return []byte("text"), nil }
	})
	cs := dialMemory(t, s, "2026-07-28", nil)
	res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: EvidencePrefix + strings.Repeat("a", 64)})
	if err != nil || res.CacheScope != "private" || res.TTLMs != evidenceTTL || res.Contents[0].Text != "text" || res.Contents[0].MIMEType != "text/plain" {
		t.Errorf("got %+v, %v", res, err)
	}
}
