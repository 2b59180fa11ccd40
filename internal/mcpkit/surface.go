package mcpkit

import (
	"cmp"
	"context"
	_ "embed" // of the words
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
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
	return &mcp.Tool{Meta: meta, Name: Tool, Title: title, Description: filled(words.Description, cfg),
		InputSchema: schema(marchwarden.RequestSchema()), OutputSchema: schema(marchwarden.ResultSchema()),
		Annotations: &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, DestructiveHint: &no, IdempotentHint: true, OpenWorldHint: &cfg.OpenWorld}}
}

func title(cfg Config) string { return "Marchwarden " + cfg.Name + " researcher" }

// filled is a text with the title and the scope of the researcher in their places.
func filled(text string, cfg Config) string {
	return strings.NewReplacer("{title}", title(cfg), "{scope}", sentence(cfg.Scope)).Replace(text)
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
	Words  []string          // for the model, by line, with {NAME} in the place of an argument, and maybe {how}
	Labels map[string]string // of arguments whose titles do not fit there
	How    map[string]string // what an argument that is given changes; "" is for none
}

//go:embed words.json
var wordsText []byte

// words are what the server says to models and to people.
var words = func() (w struct {
	Description, Instructions string
	Hints                     map[marchwarden.Code]string        // what to do about a failure that has no hint of its own
	Gaps                      map[marchwarden.GapCategory]string // what a category means
	Prompts                   []prompt
}) {
	if err := json.Unmarshal(wordsText, &w); err != nil {
		panic(err) // unreachable: the text is part of this program
	}
	return w
}()

// maxArgument bounds an argument of a prompt, in characters.
const maxArgument = 2000

// quoted is an argument in the words for the model, as what it is: something that was
// given, and no instruction.
func quoted(label, text string) string {
	return label + ": «" + strings.NewReplacer("«", "\"", "»", "\"").Replace(text) + "»\n\n"
}

func (s *Server) addPrompts() {
	for _, p := range words.Prompts {
		s.mcp.AddPrompt(&p.Prompt, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return p.get(req.Params.Arguments)
		})
	}
}

func (p prompt) get(given map[string]string) (*mcp.GetPromptResult, error) {
	wrong := func(format string, args ...any) (*mcp.GetPromptResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
	}
	var names []string
	places, how := []string{}, p.How[""]
	for _, a := range p.Arguments {
		text := strings.TrimSpace(Block(given[a.Name]))
		switch n := utf8.RuneCountInString(text); {
		case n > maxArgument:
			return wrong("%s: must be at most %d characters, has %d", a.Name, maxArgument, n)
		case n == 0 && a.Required:
			return wrong("%s: must not be blank", a.Name)
		case n > 0:
			how = cmp.Or(p.How[a.Name], how)
			text = quoted(cmp.Or(p.Labels[a.Name], a.Title), text)
		}
		names, places = append(names, a.Name), append(places, "{"+a.Name+"}", text)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return wrong("%q is no argument; there are %s", Clip(Plain(name), 60), strings.Join(names, ", "))
		}
	}
	text := strings.NewReplacer(append(places, "{how}", how)...).Replace(strings.Join(p.Words, "\n"))
	return &mcp.GetPromptResult{Description: p.Description, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

// What a server and a client of the MCP edge agree on: names in _meta, addresses of resources, and how
// text from the other side is made fit to be shown.

// Tool is the one tool of the contract.
const Tool = "research"

// The names in _meta. An external program may leave out every one of them.
const (
	// MetaContract, on the tool: the version of the contract it keeps.
	MetaContract = "marchwarden/contract"
	// MetaPrivate, on the tool: what it reports comes from the user's own sources.
	MetaPrivate = "marchwarden/private"
	// MetaWall, on a call: after how many milliseconds to hand over what there is.
	MetaWall = "marchwarden/wall_ms"
	// MetaTrace, on a call: the trace id that the caller has chosen for the run.
	MetaTrace = "marchwarden/trace_id"
	// MetaWhole, on a request: the caller takes a result of any size.
	MetaWhole = "marchwarden/whole"
	// MetaEvent, on a progress notification or the state of a task: the marchwarden.Event.
	MetaEvent = "marchwarden/event"
	// MetaError, on the result of a call that failed: code, field and hint.
	MetaError = "marchwarden/error"
	// MetaView, on the result of a call: the result as HTML, for a host that shows it.
	MetaView = "marchwarden/view"
)

// TasksExtension is the name under which either side says that it knows tasks.
const TasksExtension = "io.modelcontextprotocol/tasks"

// EvidencePrefix begins the address of a stored document; 64 hex digits follow.
const EvidencePrefix = "marchwarden://evidence/sha256/"

// What is said of a call, and how long a server that was told to stop may take.
const (
	MaxErrorChars    = 600
	MaxProgressChars = 200 // which is what hosts show
	Grace            = 2 * time.Second
)

// HintMark parts what is wrong from what to do, in the text of a tool error.
const HintMark = "\nhint: "

func schema(text json.RawMessage) *jsonschema.Schema {
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		panic(err) // unreachable: the text is part of this program
	}
	return &s
}

var resultSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) { return schema(marchwarden.ResultSchema()).Resolve(nil) })

// CheckResult holds a result, as JSON decodes it, to the schema of the contract.
func CheckResult(instance any) error {
	schema, err := resultSchema()
	if err != nil {
		return err
	}
	return schema.Validate(instance)
}

// Plain makes one line of text from outside: runs of white space become a
// space, and what could steer a terminal or hide text is dropped.
func Plain(s string) string {
	return strings.Join(strings.Fields(Block(s)), " ")
}

// Block drops the same from text of several lines, and keeps its lines.
func Block(s string) string { return strings.Map(printable, s) }

// printable drops control and formatting characters (escape sequences, direction overrides,
// zero-width marks) other than white space. The joiners stay: some scripts and symbols are written
// with them, whose words plaintext.Line would part.
func printable(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == '\u200c', r == '\u200d':
		return r
	case unicode.IsControl(r) && !unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
		return -1
	case r == '\r', r == '\v', r == '\f', r == '\u0085':
		return ' '
	}
	return r
}

// Clip shortens s to at most n characters, its ellipsis included.
func Clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
