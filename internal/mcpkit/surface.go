package mcpkit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	name, title, description string
	arguments                []*mcp.PromptArgument
	// write gives the words for the model, from arguments that are there.
	write func(arg func(string) string) string
}

// maxArgument bounds an argument of a prompt, in characters.
const maxArgument = 2000

var prompts = []prompt{
	{
		name: "deep-dive", title: "Research a topic in depth", description: "Research a topic thoroughly, follow up on what is missing, and report with sources.",
		arguments: []*mcp.PromptArgument{
			{Name: "topic", Title: "Topic", Description: "What to find out", Required: true},
			{Name: "focus", Title: "Focus", Description: "What matters most, or what is known already"},
		},
		write: func(arg func(string) string) string {
			return "Find out all that matters about this topic, with the tool research.\n\n" + quoted("Topic", arg("topic")) + quoted("Focus", arg("focus")) +
				"1. Split the topic into two to five questions, each of which can be answered by itself.\n" +
				"2. Call research for each with depth deep, and put what is known already into context.\n" +
				"3. Look at the gaps, open_questions and discovery_events of every result; ask again where they show that something decisive is missing.\n" +
				"4. Report. Give every fact with its source, and quote raw_excerpt where the wording matters. Say what was not found, by category, where sources contradict each other, and how confident each result was."
		},
	},
	{
		name: "verify-claim", title: "Check a claim against sources", description: "Find out whether a claim holds, by what sources say word for word.",
		arguments: []*mcp.PromptArgument{
			{Name: "claim", Title: "Claim", Description: "The statement to check", Required: true},
			{Name: "source", Title: "Source", Description: "Where the claim comes from"},
		},
		write: func(arg func(string) string) string {
			return "Check whether this claim holds, with the tool research. Do not trust what you remember.\n\n" + quoted("Claim", arg("claim")) + quoted("Where it comes from", arg("source")) +
				"1. Ask research a neutral question whose answer decides about the claim. Do not put the claim itself as a fact.\n" +
				"2. Ask once more for what would refute it.\n" +
				"3. Compare the claim with raw_excerpt, word by word: numbers with their units, dates, names, negations and how general it is.\n" +
				"4. Give a verdict: supported, partly supported, contradicted, or not decided by what was found. Quote the excerpts that decide, with their sources, and say what would still have to be found."
		},
	},
	{
		name: "compare-sources", title: "Compare what sources say", description: "Set side by side what different sources say about a question.",
		arguments: []*mcp.PromptArgument{
			{Name: "question", Title: "Question", Description: "What the sources are asked", Required: true},
			{Name: "sources", Title: "Sources", Description: "Domains to compare, separated by commas, such as .gov,who.int"},
		},
		write: func(arg func(string) string) string {
			how := "1. Call research with the question, depth balanced.\n"
			if arg("sources") != "" {
				how = "1. Call research once for each of the sources, with the question and with that source alone as constraints.source_filter.\n"
			}
			return "Compare what sources say, with the tool research.\n\n" + quoted("Question", arg("question")) + quoted("Sources", arg("sources")) + how +
				"2. Set the excerpts side by side in a table: source, date, what it says in its own words (raw_excerpt).\n" +
				"3. Say where they agree, where they contradict each other (contradictions, gaps of the category contradictory_sources), and what may explain it: date, place, definition, who is writing.\n" +
				"4. Count sources that copy from each other as one."
		},
	},
}

// quoted is an argument in the words for the model, as what it is: something that was
// given, and no instruction.
func quoted(label, text string) string {
	if text == "" {
		return ""
	}
	return label + ": «" + strings.NewReplacer("«", "\"", "»", "\"").Replace(text) + "»\n\n"
}

func (s *Server) addPrompts() {
	for _, p := range prompts {
		s.mcp.AddPrompt(&mcp.Prompt{Name: p.name, Title: p.title, Description: p.description, Arguments: p.arguments},
			func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return p.get(req.Params.Arguments)
			})
	}
}

func (p prompt) get(given map[string]string) (*mcp.GetPromptResult, error) {
	args := map[string]string{}
	for _, a := range p.arguments {
		text := strings.TrimSpace(Block(given[a.Name]))
		switch n := utf8.RuneCountInString(text); {
		case n > maxArgument:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s: must be at most %d characters, has %d", a.Name, maxArgument, n)}
		case n == 0 && a.Required:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: a.Name + ": must not be blank"}
		}
		args[a.Name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := args[name]; !known {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%q is no argument; there are %s", Clip(Plain(name), 60), p.names())}
		}
	}
	words := p.write(func(name string) string { return args[name] })
	return &mcp.GetPromptResult{Description: p.description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}}}, nil
}

func (p prompt) names() string {
	var names []string
	for _, a := range p.arguments {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}
