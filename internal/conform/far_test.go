package conform

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// childMode is the variable that makes the test program one of the servers below.
const childMode = "MARCHWARDEN_CONFORM_CHILD"

func TestMain(m *testing.M) {
	mode := os.Getenv(childMode)
	switch own, ok := strings.CutPrefix(mode, "own "); {
	case mode == "":
		datatest.Abreast(8)
		goleak.VerifyTestMain(m)
	case ok:
		serveOwn(own)
	default:
		serveStranger(mode)
	}
}

const document = "Paris is the capital of France. It lies on the Seine."

func result() *marchwarden.Result {
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		panic(err)
	}
	sum := sha256.Sum256([]byte(document))
	r := &marchwarden.Result{
		Answer: "Paris is the capital of France. [1] It lies on the Seine. [1]",
		Citations: []marchwarden.Citation{{Source: "file", Locator: "paris.md", RawExcerpt: document[:31], Confidence: 0.9,
			ContentHash: "sha256:" + hex.EncodeToString(sum[:]), Span: &marchwarden.Span{Start: 0, End: 31}}},
		Gaps:              []marchwarden.Gap{{Topic: "x", Category: marchwarden.SourceNotFound, Detail: "y"}},
		Confidence:        0.9,
		ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.HighAuthority},
		CostMetadata:      marchwarden.CostMetadata{TokensUsed: 100, IterationsRun: 1, ModelID: "extractive"},
		TraceID:           id,
	}
	r.Normalize()
	return r
}

// odd is a researcher with one fault.
type odd string

func (mode odd) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	r := result()
	switch mode {
	case "chatty":
		r.Answer += "\n\n# Sources\n\nI hope that this helps you. Does it?\n\nSee also:\n\n- Seine"
	case "unmarked":
		r.Answer = "Paris is the capital of France. It lies on the Seine. It is large. [1]"
	case "dangling":
		r.Answer += " It is large. [1, 7]"
	case "spender":
		r.CostMetadata.TokensUsed = 5001
	case "forger":
		r.Citations[0].RawExcerpt = "Lyon is the capital of France. "
	case "spanless":
		r.Citations[0].Span, r.Citations[0].RawExcerpt = nil, "It lies on the Seine."+marchwarden.ExcerptCut
	case "beyond":
		r.Citations[0].Span.End = len(document) + 1
	case "hashless":
		r.Citations[0].ContentHash, r.Citations[0].Span = "", nil
	case "blank":
		r.Citations[0].RawExcerpt, r.Citations[0].Span = " ", nil
	case "helpless":
		r.Answer, r.Citations = "Nothing was found.", nil
	case "fragile", "slow":
		select {
		case <-ctx.Done():
			if mode == "fragile" {
				os.Exit(1)
			}
		case <-time.After(3 * cancelAfter):
		}
	}
	r.Normalize()
	return r, nil
}

// serveOwn is mcpkit's server with an odd researcher.
func serveOwn(mode string) {
	s, err := mcpkit.NewServer(mcpkit.Config{Name: "odd", Scope: "Odd things", Researcher: odd(mode), Now: time.Now,
		Evidence: func(context.Context, string) ([]byte, error) { return []byte(document), nil }})
	if err == nil {
		err = s.ServeStdio(context.Background(), os.Stdin, os.Stdout)
	}
	if err != nil {
		panic(err)
	}
}

// serveStranger is an external server, one request after the other.
func serveStranger(mode string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct {
					Question    string
					Depth       string
					Constraints struct {
						Budget     *int `json:"token_budget"`
						Iterations *int `json:"max_iterations"`
					}
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &req) != nil || req.ID == nil {
			continue
		}
		say := func(what, body string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,%q:%s}`+"\n", req.ID, what, body) }
		switch req.Method {
		case "initialize":
			say("result", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stranger","version":"1"}}`)
		case "tools/list":
			say("result", `{"tools":[`+strangerTool(mode)+`]}`)
		case "tools/call":
			a := req.Params.Arguments
			bad := strings.TrimSpace(a.Question) == "" || utf8.RuneCountInString(a.Question) > 500 || a.Depth == "bottomless" ||
				(a.Constraints.Budget != nil && *a.Constraints.Budget < 1000) || (a.Constraints.Iterations != nil && *a.Constraints.Iterations > 20)
			strangerCall(mode, bad, a.Depth == "bottomless", say)
		default:
			say("error", `{"code":-32601,"message":"method not found"}`)
		}
	}
}

func strangerTool(mode string) string {
	input := `{"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}`
	switch mode {
	case "toolless":
		return `{"name":"search","inputSchema":{"type":"object"}}`
	case "two tools":
		return `{"name":"research","inputSchema":` + input + `},{"name":"search","inputSchema":{"type":"object"}}`
	case "demanding":
		input = `{"type":"object","properties":{"question":{"type":"string"},"depth":{"type":"integer"},"api_key":{}},"required":["question","api_key"],"additionalProperties":false}`
	case "generated":
		input = `{"type":"object","$defs":{"C":{"type":"object","properties":{"max_iterations":{"anyOf":[{"type":"integer"},{"type":"null"}]},"token_budget":{"type":["integer","null"]},"max_sources":{"type":"number"}}},
			"Loop":{"$ref":"#/$defs/Loop"}},"properties":{"question":{"type":"string"},"context":{"anyOf":[{"type":"string"},{"type":"null"}]},"depth":{"enum":["shallow"]},
			"constraints":{"anyOf":[{"$ref":"#/$defs/C"},{"type":"null"}]},"resume":true},"required":["question"]}`
		input = strings.Join(strings.Fields(input), "")
	}
	return `{"name":"research","inputSchema":` + input + `}`
}

func strangerCall(mode string, bad, depth bool, say func(what, body string)) {
	wire, err := marchwarden.EncodeResult(result())
	if err != nil {
		panic(err)
	}
	text := strings.TrimSpace(string(wire))
	switch {
	case mode == "hangs":
		return
	case mode == "brittle" && depth:
		os.Exit(1)
	case bad && mode == "formal":
		say("error", `{"code":-32602,"message":"invalid params"}`)
		return
	case bad && mode != "lax":
		say("result", `{"isError":true,"content":[{"type":"text","text":"that will not do"}]}`)
		return
	case mode == "creative":
		text = strings.Replace(text, `"source_not_found"`, `"lost \u001b[31min space"`, 1)
		text = strings.Replace(text, `"confidence":0.9,"confidence_factors"`, `"confidence":"high","confidence_factors"`, 1)
	case mode == "plain":
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		say("result", `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
		return
	}
	say("result", `{"content":[],"structuredContent":`+text+`}`)
}
