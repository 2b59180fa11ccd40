package mcpkit

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

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

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// IsHex reports whether s is a SHA-256 sum in lower-case hex digits.
func IsHex(s string) bool { return hexHash.MatchString(s) }

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
