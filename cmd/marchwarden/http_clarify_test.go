//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

// What the person at a host answers by a form reaches the planner, is in the record, and a rerun gives the same bytes. A host
// without forms is not asked, and its model is not paid to ask.
func TestClarifyOverMCP(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	w.models = llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
		if strings.Contains(turn.System, "whether you must ask the user something") {
			return llmtest.Said{Text: `{"questions":["Which boathouse?"]}`}
		}
		return thorough(turn)
	})
	w.env = append(w.env, "OPENAI_BASE_URL="+w.models.URL()+"/v1")
	home := w.home(t)
	s := w.serve(t, home, append(slices.Clone(servings["pi"]), "--clarify")...)
	for _, era := range []string{"2025-11-25", "2026-07-28", ""} {
		t.Run(era, func(t *testing.T) {
			before := len(w.models.Turns())
			o := &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer_1": "the one at \x1b[31mLake Vettern" + strings.Repeat("!", 700)}}, nil
			}}
			if era == "" {
				o = nil
			}
			cs, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, o).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url, MaxRetries: -1},
				&mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "Who repaired the roof of the boathouse?"}})
			if err != nil || res.IsError {
				t.Fatalf("%+v, %v", res, err)
			}
			var heard, asked bool
			for _, turn := range w.models.Turns()[before:] {
				asked = asked || strings.Contains(turn.System, "whether you must ask the user something")
				heard = heard || strings.Contains(turn.Input, "Which boathouse? the one at [31mLake Vettern!") && !strings.Contains(turn.Input, strings.Repeat("!", 600))
			}
			if asked != (era != "") || heard != asked {
				t.Errorf("asked %v, heard %v", asked, heard)
			}
			id := res.StructuredContent.(map[string]any)["trace_id"].(string)
			out, err := w.spec(home, "replay", "--rerun", id).run(0)
			if err != nil || out.code != 0 {
				t.Errorf("%v: %s%s", err, out.stdout, out.stderr)
			}
		})
	}
}
