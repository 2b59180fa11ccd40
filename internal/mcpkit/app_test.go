package mcpkit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
)

// showing are the options of a client that says that it shows these types.
func showing(settings any) *mcp.ClientOptions {
	c := &mcp.ClientCapabilities{}
	if settings != nil {
		c.Extensions = map[string]any{uiExtension: settings}
	}
	return &mcp.ClientOptions{Capabilities: c}
}

var shown = map[string]any{"mimeTypes": []any{"text/plain", appType}}

func appOf(body func(*marchwarden.Result) (string, error)) func(*Config) {
	return func(c *Config) { c.App = &App{Page: []byte("<!doctype html><p>page"), Body: body} }
}

// The tool leads to the page, and the page says what it may do.
func TestAppSurface(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		s, _ := newTestServer(t, echo, appOf(nil))
		cs := dial(s, nil)
		if _, declared := cs.InitializeResult().Capabilities.Extensions[uiExtension]; !declared {
			t.Error("the extension is not declared")
		}
		tools, err := cs.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		meta := tools.Tools[0].Meta
		if diff := cmp.Diff(map[string]any{"resourceUri": appURI, "visibility": []any{"model"}}, meta["ui"]); diff != "" || meta["ui/resourceUri"] != appURI {
			t.Errorf("the tool's _meta: %v\n%s", meta, diff)
		}
		list, err := cs.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 2 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := map[string]any{"csp": map[string]any{"connectDomains": []any{}, "resourceDomains": []any{}, "frameDomains": []any{}, "baseUriDomains": []any{}}, "prefersBorder": true}
		page := list.Resources[1]
		if diff := cmp.Diff(want, page.Meta["ui"]); diff != "" || page.URI != "ui://marchwarden/result.html" || page.MIMEType != "text/html;profile=mcp-app" {
			t.Errorf("the page: %+v\n%s", page, diff)
		}
		got, fault := read(t, cs, page.URI)
		if fault != nil {
			t.Fatal(fault)
		}
		if c := got.Contents[0]; c.Text != "<!doctype html><p>page" || c.MIMEType != page.MIMEType || !cmp.Equal(want, c.Meta["ui"]) {
			t.Errorf("%+v", c)
		}
	})
	s, _ := newTestServer(t, echo)
	cs := dialMemory(t, s, "2026-07-28", nil)
	if _, fault := read(t, cs, appURI); fault == nil || fault.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("without a view: %v", fault)
	}
	tools, err := cs.ListTools(t.Context(), nil)
	if err != nil || tools.Tools[0].Meta["ui"] != nil || tools.Tools[0].Meta["ui/resourceUri"] != nil {
		t.Errorf("without a view: %+v, %v", tools, err)
	}
}

// Only a client that says that it shows such pages is given the view.
func TestWhoGetsAView(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		for _, tc := range []struct {
			settings any
			want     any
		}{
			{nil, nil}, {map[string]any{}, nil}, {map[string]any{"mimeTypes": []any{}}, nil}, {map[string]any{"mimeTypes": []any{"text/html"}}, nil},
			{map[string]any{"mimeTypes": appType}, nil}, {map[string]any{"mimeTypes": []any{7, nil}}, nil}, {shown, "<p>q [1]</p>"},
		} {
			s, _ := newTestServer(t, echo, appOf(func(r *marchwarden.Result) (string, error) { return "<p>" + r.Answer + "</p>", nil }))
			res := call(t, dial(s, showing(tc.settings)), map[string]any{"question": "q"})
			if res.Meta[MetaView] != tc.want || res.IsError {
				t.Errorf("%v: the view is %v", tc.settings, res.Meta[MetaView])
			}
		}
	})
}

// A view that cannot be made, is too large, or is of a call that failed is left out; the
// answer is the same without.
func TestViewsThatAreLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		body func(*marchwarden.Result) (string, error)
		err  error
		want int
		odd  bool // the result breaks the contract
	}{
		"at most":  {func(*marchwarden.Result) (string, error) { return strings.Repeat("x", maxViewBytes), nil }, nil, maxViewBytes, false},
		"too long": {func(*marchwarden.Result) (string, error) { return strings.Repeat("x", maxViewBytes+1), nil }, nil, 0, false},
		"broken":   {func(*marchwarden.Result) (string, error) { return "", errors.New("no ink") }, nil, 0, false},
		"failed":   {func(*marchwarden.Result) (string, error) { return "x", nil }, marchwarden.Errorf(marchwarden.CodeDenied, "no entry"), 0, false},
		"odd":      {func(*marchwarden.Result) (string, error) { return "x", nil }, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := newTestServer(t, scripted(func(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
				res := sample("yes [1]")
				if tc.odd {
					res.Confidence = 1.5
				}
				return res, tc.err
			}), appOf(tc.body))
			res := call(t, dialMemory(t, s, "2026-07-28", showing(shown)), map[string]any{"question": "q"})
			view, _ := res.Meta[MetaView].(string)
			failed := tc.err != nil || tc.odd
			if len(view) != tc.want || res.IsError != failed || (!failed && resultIn(t, res.StructuredContent).Answer != "yes [1]") {
				t.Errorf("%d bytes, %+v", len(view), res.IsError)
			}
			if failed && res.Meta[MetaError] == nil {
				t.Errorf("the failure has lost its facts: %v", res.Meta)
			}
			if logged := strings.Contains(log.String(), "no ink"); logged != (name == "broken") {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

// What is shown of a large result is all of it, and of research that goes on what there
// is.
func TestViewsOfLargeAndUnfinishedResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &books{sofar: func() *marchwarden.Result { return bulky(50, "a") }}
		s, _ := newTestServer(t, &labour{takes: time.Hour}, func(c *Config) { c.Records = kept }, appOf(func(r *marchwarden.Result) (string, error) {
			if len(r.Citations) != 50 {
				t.Errorf("the view is of %d citations", len(r.Citations))
			}
			return r.Answer, nil
		}))
		a := ask(t.Context(), dialMemory(t, s, "2026-07-28", showing(shown)), map[string]any{"question": "q"}, nil)
		res := a.result(t)
		if view, _ := a.res.Meta[MetaView].(string); !unfinished(res) || view != res.Answer || len(res.Claims) != 0 {
			t.Errorf("the view is %q", view)
		}
	})
}

// The page and the server agree on where the view is.
func TestThePageLooksWhereTheViewIs(t *testing.T) {
	if !strings.Contains(string(report.AppPage()), MetaView) {
		t.Errorf("the page does not name %s", MetaView)
	}
}
