package mcpkit

import (
	"context"
	_ "embed" // of the prompts
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// researchTool is the advertised surface. The schemas are the contract's own.
func researchTool(cfg Config) *mcp.Tool {
	no := false
	meta := mcp.Meta{MetaContract: marchwarden.ContractVersion}
	if cfg.Private {
		meta[MetaPrivate] = true
	}
	if cfg.App != nil {
		meta["ui"] = map[string]any{"resourceUri": appURI, "visibility": []string{"model"}}
		meta["ui/resourceUri"] = appURI // as earlier hosts look for it
	}
	const title = "Research a question"
	return &mcp.Tool{Meta: meta, Name: Tool, Title: title, Description: description(cfg.Scope),
		InputSchema: schema(marchwarden.RequestSchema()), OutputSchema: schema(marchwarden.ResultSchema()),
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &cfg.OpenWorld}}
}

func description(scope string) string {
	return "Research a question and answer it from sources. " + sentence(scope) +
		" Every factual sentence of the answer carries markers like [1] that index citations; each citation holds an excerpt" +
		" copied byte for byte from a stored document. What was not found is listed as gaps, and a partial answer is a normal" +
		" answer. Give a whole question; depth shallow is quick, deep is thorough. A result that says that the research goes on" +
		" is not the answer yet: call again with nothing but resume and its trace_id."
}

func title(cfg Config) string { return "Marchwarden " + cfg.Name + " researcher" }

func instructions(cfg Config) string {
	return title(cfg) + ". " + sentence(cfg.Scope) +
		" Call research with one self-contained question, and put what you already know into context." +
		" Check raw_excerpt before relying on a claim; read confidence and gaps before acting on the answer," +
		" and let a gap's category decide what to try next. trace_id names the recorded run:" +
		" call research with resume and that id to wait for a run under way, or to resume one that was cut off;" +
		" with follow, that id and a further question to go on with the conversation, which may then leave out what was named before."
}

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

// prompt is one way to use research, which hosts offer to people as a command.
type prompt struct {
	mcp.Prompt
	Words []string // for the model, by line: a template that is filled with the arguments
}

//go:embed prompts.json
var promptsText []byte

// maxArgument bounds an argument of a prompt, in characters.
const maxArgument = 2000

// quoted is an argument in the words for the model, as what it is: something that was
// given, and no instruction.
func quoted(label, text string) string {
	if text == "" {
		return ""
	}
	return label + ": «" + strings.NewReplacer("«", "\"", "»", "\"").Replace(text) + "»\n\n"
}

// prompts are all there are.
var prompts = func() (all []prompt) {
	if err := json.Unmarshal(promptsText, &all); err != nil {
		panic(err) // unreachable: the text is part of this program
	}
	return all
}()

func (s *Server) addPrompts() {
	for _, p := range prompts {
		s.mcp.AddPrompt(&p.Prompt, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return p.get(req.Params.Arguments)
		})
	}
}

func (p prompt) get(given map[string]string) (*mcp.GetPromptResult, error) {
	wrong := func(format string, words ...any) (*mcp.GetPromptResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, words...)}
	}
	args := map[string]string{}
	var names []string
	for _, a := range p.Arguments {
		text := strings.TrimSpace(Block(given[a.Name]))
		switch n := utf8.RuneCountInString(text); {
		case n > maxArgument:
			return wrong("%s: must be at most %d characters, has %d", a.Name, maxArgument, n)
		case n == 0 && a.Required:
			return wrong("%s: must not be blank", a.Name)
		}
		args[a.Name], names = text, append(names, a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := args[name]; !known {
			return wrong("%q is no argument; there are %s", Clip(Plain(name), 60), strings.Join(names, ", "))
		}
	}
	words, err := template.New(p.Name).Funcs(template.FuncMap{"quoted": quoted}).Parse(strings.Join(p.Words, "\n"))
	var text strings.Builder
	if err == nil {
		err = words.Execute(&text, args)
	}
	return &mcp.GetPromptResult{Description: p.Description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text.String()}}}}, err
}
