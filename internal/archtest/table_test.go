package archtest

// layer is one package and the packages of this module that it may import.
type layer struct {
	pkg     string // folder below the module's root, "." for the root
	imports []string
}

// layers is the house from the ground up: a row may name rows above it only, so
// the order is the direction of all imports. Test files may import more, to try
// things together; what users run may not.
//
// The principal investigator knows researchers by the contract alone: its row must
// not name the loop, search, fetch or a vendor.
var layers = []layer{
	// The contract, and data that needs no other package.
	{".", nil},
	{"corpus", nil}, // Mechanisms and records.

	// What the program is made of.
	{"internal/archtest", nil}, // The doors for other programs, and programs that go through them.
	{"internal/database/dbtest", nil},
	{"internal/datatest", nil},                 // public data, for the tests that measure
	{"internal/dispatch/cluster/torture", nil}, // a test of the whole
	{"internal/lexicon", nil},
	{"internal/locator", nil},
	{"internal/plaintext", nil},
	{"internal/report/markup/markuptest", nil}, // what must not be in a page
	{"internal/scripttest", nil},               // commands for the scripts of the programs
	{"internal/secret", nil},
	{"internal/stat", nil},
	{"internal/blob", []string{"."}},
	{"internal/budget", []string{"."}},
	{"internal/database", []string{"."}},
	{"internal/durable", []string{"."}},
	{"internal/fetch/extract", []string{"internal/plaintext"}},
	{"internal/fetch/guard", []string{"."}},
	{"internal/chromium", []string{"."}},
	{"internal/httpapi", []string{".", "internal/plaintext", "internal/secret"}},
	{"internal/mcpkit/mcptest", []string{"."}}, // what the tests of both sides share
	{"internal/panics", []string{"."}},
	{"internal/report/biblio", []string{"internal/plaintext"}},
	{"internal/report/markup", []string{"internal/locator"}},
	{"internal/search", []string{".", "internal/locator", "internal/plaintext"}},
	{"internal/search/inverted", []string{"internal/lexicon"}},
	{"internal/access", []string{".", "internal/durable", "internal/httpapi"}},
	{"internal/blob/blobtest", []string{"internal/blob"}},
	{"internal/blob/dir", []string{".", "internal/blob", "internal/durable"}},
	{"internal/browsertest", []string{"internal/chromium"}}, // a real browser for tests
	{"internal/dispatch", []string{".", "internal/blob"}},
	{"internal/embed", []string{"internal/durable"}},
	{"internal/fetch", []string{".", "internal/blob", "internal/fetch/extract"}},
	{"internal/fetch/pdf", []string{"internal/durable", "internal/fetch/extract"}},
	{"internal/hub", []string{".", "internal/durable", "internal/httpapi", "internal/secret"}},
	{"internal/ledger", []string{".", "internal/durable", "internal/plaintext"}},
	{"internal/scholar", []string{".", "internal/httpapi", "internal/lexicon", "internal/locator", "internal/plaintext", "internal/search"}},
	{"internal/search/searchtest", []string{".", "internal/search"}},
	{"internal/dispatch/dispatchtest", []string{".", "internal/blob", "internal/dispatch"}}, // what an engine is
	{"internal/dispatch/pool", []string{".", "internal/blob", "internal/dispatch", "internal/durable", "internal/panics"}},
	{"internal/embed/bert", []string{".", "internal/embed"}},
	{"internal/evidence", []string{".", "internal/blob", "internal/fetch", "internal/lexicon", "internal/plaintext"}},
	{"internal/fetch/fetchtest", []string{".", "internal/blob", "internal/fetch"}},
	{"internal/fetch/web", []string{".", "internal/blob", "internal/fetch", "internal/fetch/extract", "internal/fetch/guard", "internal/httpapi", "internal/locator", "internal/panics"}},
	{"internal/httpdoor", []string{".", "internal/access", "internal/durable"}},
	{"internal/limit", []string{".", "internal/dispatch", "internal/durable"}},
	{"internal/runs", []string{".", "internal/access", "internal/durable", "internal/plaintext"}},
	{"internal/search/engines", []string{".", "internal/dispatch", "internal/httpapi", "internal/lexicon", "internal/plaintext", "internal/search"}},
	{"internal/search/local", []string{".", "internal/durable", "internal/embed", "internal/fetch", "internal/fetch/extract", "internal/lexicon", "internal/search", "internal/search/inverted"}},
	{"internal/settings", []string{".", "internal/dispatch", "internal/durable", "internal/plaintext"}},
	{"internal/trace", []string{".", "internal/blob", "internal/dispatch", "internal/durable", "internal/ledger"}},
	{"internal/dispatch/cluster/streams", []string{".", "internal/blob", "internal/blob/dir", "internal/dispatch", "internal/httpapi", "internal/limit"}}, // what is needed of JetStream
	{"internal/llm", []string{".", "internal/budget", "internal/dispatch", "internal/httpapi", "internal/ledger", "internal/limit", "internal/secret", "internal/trace"}},
	{"internal/mcpkit", []string{".", "internal/access", "internal/durable", "internal/httpapi", "internal/httpdoor", "internal/runs"}},
	{"internal/dispatch/cluster", []string{".", "internal/blob", "internal/dispatch", "internal/dispatch/cluster/streams", "internal/httpapi", "internal/limit", "internal/panics", "internal/settings"}},
	{"internal/llm/anthropic", []string{".", "internal/httpapi", "internal/llm", "internal/secret"}},
	{"internal/llm/llmtest", []string{".", "internal/datatest", "internal/llm"}},
	{"internal/llm/openai", []string{".", "internal/httpapi", "internal/llm", "internal/secret"}},
	{"internal/mcpkit/client", []string{".", "internal/blob", "internal/dispatch", "internal/durable", "internal/httpapi", "internal/mcpkit"}},
	{"internal/reader", []string{".", "internal/embed", "internal/embed/bert", "internal/trace"}},
	{"internal/replay", []string{".", "internal/blob", "internal/embed", "internal/fetch", "internal/llm", "internal/panics", "internal/search", "internal/trace"}},
	// Judgement.
	{"internal/reason", []string{".", "internal/budget", "internal/embed", "internal/evidence", "internal/lexicon", "internal/llm", "internal/plaintext", "internal/reader", "internal/search"}},
	{"internal/resumetest", []string{".", "internal/blob", "internal/replay", "internal/trace"}}, // one run that is cut off and resumed
	{"internal/webtest", []string{"internal/llm", "internal/llm/llmtest"}},                       // a small internet on loopback
	{"internal/verify", []string{".", "internal/blob", "internal/evidence", "internal/fetch", "internal/lexicon", "internal/plaintext", "internal/reader", "internal/reason",
		"internal/stat", "internal/trace"}},
	{"internal/confidence", []string{".", "internal/evidence", "internal/fetch", "internal/verify"}},
	{"internal/reason/extractive", []string{".", "internal/budget", "internal/evidence", "internal/lexicon", "internal/plaintext", "internal/reader", "internal/reason",
		"internal/search", "internal/verify"}},
	{"internal/run", []string{".", "internal/blob", "internal/embed", "internal/evidence", "internal/fetch", "internal/ledger", "internal/lexicon", "internal/llm", "internal/locator", "internal/plaintext",
		"internal/reader", "internal/replay", "internal/trace", "internal/verify"}},
	{"internal/loop", []string{".", "internal/blob", "internal/budget", "internal/confidence", "internal/embed", "internal/evidence", "internal/fetch",
		"internal/llm", "internal/locator", "internal/panics", "internal/plaintext", "internal/reader", "internal/reason", "internal/replay", "internal/run", "internal/search", "internal/trace",
		"internal/verify"}},
	{"internal/pi", []string{".", "internal/blob", "internal/budget", "internal/confidence", "internal/dispatch", "internal/embed", "internal/evidence",
		"internal/fetch", "internal/ledger", "internal/lexicon", "internal/llm", "internal/locator", "internal/panics", "internal/plaintext", "internal/reader", "internal/reason", "internal/replay",
		"internal/run", "internal/trace", "internal/verify"}},
	{"internal/reason/model", []string{".", "internal/budget", "internal/confidence", "internal/evidence", "internal/lexicon", "internal/llm", "internal/locator", "internal/panics",
		"internal/reason", "internal/reason/extractive", "internal/search", "internal/verify"}},
	{"internal/submit", []string{".", "internal/access", "internal/blob", "internal/dispatch", "internal/durable", "internal/plaintext", "internal/run", "internal/runs",
		"internal/settings", "internal/trace"}},
	{"internal/term", []string{".", "internal/plaintext"}},
	{"internal/drift", []string{".", "internal/blob", "internal/durable", "internal/evidence", "internal/fetch", "internal/fetch/extract", "internal/lexicon", "internal/locator", "internal/run", "internal/scholar", "internal/term"}},
	{"internal/watch", []string{".", "internal/drift", "internal/durable", "internal/evidence", "internal/fetch", "internal/lexicon", "internal/plaintext", "internal/run", "internal/term",
		"internal/verify"}},
	{"internal/pi/derive", []string{".", "internal/dispatch", "internal/lexicon", "internal/pi"}},
	{"internal/report", []string{".", "internal/blob", "internal/fetch", "internal/locator", "internal/plaintext", "internal/report/biblio", "internal/report/markup",
		"internal/run", "internal/scholar", "internal/term", "internal/trace", "internal/verify"}},
	{"internal/researcher", []string{".", "corpus", "internal/blob", "internal/embed", "internal/evidence", "internal/fetch", "internal/fetch/extract", "internal/ledger", "internal/lexicon",
		"internal/llm", "internal/locator", "internal/loop", "internal/reader", "internal/reason", "internal/reason/extractive", "internal/reason/model", "internal/replay", "internal/run",
		"internal/scholar", "internal/search", "internal/search/local", "internal/secret", "internal/trace", "internal/verify"}},
	{"internal/bundle", []string{".", "internal/blob", "internal/drift", "internal/durable", "internal/plaintext", "internal/report", "internal/report/biblio",
		"internal/run", "internal/term", "internal/trace"}},
	{"internal/record", []string{".", "internal/blob", "internal/drift", "internal/durable", "internal/ledger", "internal/run", "internal/search/local", "internal/term", "internal/trace", "internal/watch"}},
	{"internal/researcher/connector", []string{".", "internal/dispatch", "internal/fetch", "internal/fetch/extract", "internal/lexicon", "internal/locator", "internal/mcpkit/client", "internal/plaintext", "internal/researcher", "internal/search"}},
	{"internal/researcher/database", []string{".", "internal/blob", "internal/database", "internal/fetch", "internal/lexicon", "internal/plaintext", "internal/researcher", "internal/search"}},
	{"internal/conform", []string{".", "internal/lexicon", "internal/mcpkit/client", "internal/plaintext", "internal/researcher/connector", "internal/search"}},
	{"internal/web/page", []string{".", "internal/drift", "internal/plaintext", "internal/report", "internal/report/markup", "internal/run", "internal/term", "internal/trace", "internal/watch"}},
	{"internal/audit", []string{".", "internal/blob", "internal/bundle", "internal/durable", "internal/plaintext", "internal/reader",
		"internal/replay", "internal/run", "internal/settings", "internal/term", "internal/trace", "internal/verify"}},
	{"internal/network", []string{".", "corpus", "internal/access", "internal/blob", "internal/blob/dir", "internal/budget", "internal/confidence", "internal/database", "internal/conform", "internal/dispatch", "internal/dispatch/pool",
		"internal/drift", "internal/durable", "internal/embed", "internal/embed/bert", "internal/fetch", "internal/fetch/extract",
		"internal/fetch/guard", "internal/fetch/pdf", "internal/chromium", "internal/fetch/web", "internal/ledger", "internal/limit", "internal/llm", "internal/llm/anthropic", "internal/llm/openai",
		"internal/mcpkit", "internal/mcpkit/client", "internal/pi", "internal/pi/derive", "internal/plaintext", "internal/reader", "internal/reason/extractive", "internal/record",
		"internal/researcher", "internal/researcher/connector", "internal/researcher/database", "internal/run", "internal/runs", "internal/scholar", "internal/search", "internal/search/engines", "internal/search/local", "internal/secret", "internal/settings",
		"internal/submit", "internal/term", "internal/trace", "internal/watch"}},
	{"internal/web", []string{".", "internal/access", "internal/blob", "internal/drift", "internal/httpdoor", "internal/panics", "internal/report",
		"internal/report/markup", "internal/run", "internal/runs", "internal/term", "internal/watch", "internal/web/page"}},

	// The doors for other programs, and the programs.
	{"examples", nil}, // tests of the examples, as processes
	{"serve", []string{".", "internal/access", "internal/httpdoor", "internal/mcpkit"}},
	{"examples/go-researcher", []string{".", "serve"}},
	{"investigate", []string{".", "internal/dispatch", "internal/dispatch/pool", "internal/mcpkit/client", "internal/network", "internal/researcher", "internal/researcher/database",
		"internal/secret", "internal/settings", "serve"}},
	{"examples/embedding", []string{".", "investigate", "serve"}},
	{"cmd/marchwarden", []string{anything}},

	// The lab, which measures all that. It stands below the program, which can import
	// nothing of it.
	{"internal/eval/bench", nil}, // ours beside plain ways, as benchmarks
	{"internal/eval/metric", []string{"internal/stat"}},
	{"internal/eval/pack", []string{".", "internal/embed/bert"}},                                        // makes the weights that the program carries
	{"tools/reader/windows", []string{"internal/evidence", "internal/fetch", "internal/fetch/extract"}}, // cuts documents for training
	{"internal/eval", []string{".", "internal/durable", "internal/embed", "internal/eval/metric", "internal/panics", "internal/reader", "internal/search"}},
	{"internal/eval/folders", []string{".", "internal/eval", "internal/eval/metric", "internal/lexicon"}},
	{"internal/eval/retrieval", []string{"internal/eval", "internal/eval/metric", "internal/lexicon", "internal/search"}},
	{"internal/eval/texts", []string{".", "internal/eval", "internal/evidence", "internal/fetch", "internal/fetch/extract", "internal/lexicon"}},
	{"internal/eval/conflict", []string{".", "internal/blob", "internal/eval", "internal/evidence", "internal/fetch", "internal/lexicon", "internal/reader", "internal/verify"}},
	{"internal/eval/support", []string{".", "internal/eval", "internal/eval/metric", "internal/lexicon", "internal/reader", "internal/stat", "internal/verify"}},
	{"internal/eval/answers", []string{".", "internal/eval", "internal/eval/metric", "internal/lexicon"}},
	{"internal/eval/desk", []string{".", "internal/blob", "internal/dispatch", "internal/dispatch/pool", "internal/embed", "internal/eval", "internal/fetch",
		"internal/fetch/extract", "internal/ledger", "internal/llm", "internal/loop", "internal/pi", "internal/pi/derive", "internal/reader", "internal/reason", "internal/replay", "internal/researcher", "internal/search",
		"internal/search/local", "internal/trace", "internal/verify"}},
	{"internal/eval/multihop", []string{".", "internal/dispatch", "internal/embed", "internal/eval", "internal/eval/metric", "internal/lexicon",
		"internal/pi", "internal/pi/derive", "internal/search"}},
	{"internal/eval/evaltest", []string{"internal/embed", "internal/eval", "internal/eval/desk", "internal/fetch/extract"}},
	{"internal/eval/suites", []string{"internal/eval", "internal/eval/answers", "internal/eval/conflict", "internal/eval/folders", "internal/eval/multihop", "internal/eval/retrieval",
		"internal/eval/support", "internal/eval/texts"}},
	{"cmd/marchwarden-lab", []string{anything}},
}

// anything lets a row import every row above it.
const anything = "*"

// vendor is a third-party module and the packages that may import it.
type vendor struct {
	module string
	owners []string // anything for every package but the root
	tests  []string // packages whose test files may import it, too
}

// vendors gives every third-party module one owner, so that it can be replaced in
// one place. The root package imports the standard library only.
var vendors = []vendor{
	{"modernc.org/sqlite", []string{"internal/search/local", "internal/database", "internal/database/dbtest"}, []string{"internal/researcher/database", "internal/eval/bench"}},
	{"github.com/jackc/pgx/v5", []string{"internal/database", "internal/database/dbtest"}, nil},
	{"github.com/go-sql-driver/mysql", []string{"internal/database", "internal/database/dbtest"}, nil},
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcpkit", "internal/mcpkit/client"}, []string{"cmd/marchwarden", "internal/researcher/connector"}},
	{"golang.org/x/oauth2", []string{"internal/mcpkit/client"}, nil},
	{"github.com/google/jsonschema-go", []string{"internal/mcpkit", "internal/mcpkit/client"}, []string{".", "cmd/marchwarden"}},
	{"github.com/golang-jwt/jwt/v5", []string{"internal/access"}, []string{"cmd/marchwarden"}},
	{"github.com/klippa-app/go-pdfium", []string{"internal/fetch/pdf"}, nil},
	{"github.com/tetratelabs/wazero", []string{"internal/fetch/pdf"}, nil},
	{"codeberg.org/readeck/go-readability/v2", []string{"internal/fetch/extract"}, nil},
	{"github.com/gogs/chardet", []string{"internal/fetch/extract"}, nil},
	{"golang.org/x/net", []string{"internal/fetch/extract", "internal/fetch/web", "internal/locator"}, []string{"internal/report", "internal/report/markup", "internal/report/markup/markuptest", "internal/web", "internal/web/page"}}, // html; public suffixes; host names
	{"code.dny.dev/ssrf", []string{"internal/fetch/guard"}, nil},
	{"github.com/jimsmart/grobotstxt", []string{"internal/fetch/web"}, nil},
	{"golang.org/x/time", []string{"internal/fetch/web", "internal/httpdoor"}, nil},
	{"github.com/yuin/goldmark", []string{"internal/fetch/extract", "internal/report"}, []string{"internal/researcher"}},
	{"github.com/klauspost/compress", []string{"internal/blob"}, nil},
	{"github.com/nats-io/nats-server/v2", []string{"internal/hub"}, []string{anything}},
	{"github.com/nats-io/nats.go", []string{"internal/dispatch/cluster", "internal/dispatch/cluster/streams"}, []string{anything}},
	{"github.com/nats-io/nkeys", []string{"internal/hub", "internal/dispatch/cluster/streams"}, []string{anything}},
	{"github.com/kljensen/snowball", []string{"internal/lexicon"}, nil},
	{"github.com/rivo/uniseg", []string{"internal/term"}, []string{"internal/report"}},
	{"golang.org/x/term", []string{"internal/term", "cmd/marchwarden"}, nil},
	{"golang.org/x/text", []string{"internal/embed/bert", "internal/search/inverted", "internal/lexicon", "internal/evidence", "internal/term", "internal/fetch/extract"}, nil},
	{"golang.org/x/sync", []string{anything}, nil},
	{"go.yaml.in/yaml/v3", []string{"internal/settings", "internal/fetch/extract"}, // the configuration; the header of a document
		[]string{"internal/llm", "internal/llm/llmtest", "internal/search/engines", "internal/scholar"}}, // recorded exchanges
	{"github.com/spf13/cobra", []string{"cmd/marchwarden", "cmd/marchwarden-lab"}, nil},
	{"github.com/spf13/pflag", []string{"cmd/marchwarden"}, nil}, // cobra's flags
	{"github.com/joho/godotenv", []string{"internal/settings"}, nil},
	{"github.com/google/uuid", []string{"serve", "internal/runs"}, nil},

	// For tests: test files anywhere and the packages that end in "test".
	{"github.com/google/go-cmp", nil, []string{anything}},
	{"pgregory.net/rapid", nil, []string{anything}},
	{"go.uber.org/goleak", nil, []string{anything}},
	{"github.com/rogpeppe/go-internal", nil, []string{anything}},
}

// bannedNames say nothing about what a package owns.
var bannedNames = []string{"util", "utils", "common", "helper", "helpers", "types", "models", "core", "manager", "managers", "misc", "base", "shared", "lib"}

// bannedUses are what only the command may touch, by import path, with the way
// out. A clock, an environment or a stream that is passed in can be recorded and
// tested.
var bannedUses = map[string]struct {
	names   []string // nil bans the import itself
	instead string
}{
	"time":          {[]string{"Now", "Since", "Until"}, "take a now func() time.Time"},
	"os":            {[]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir", "Exit", "Stdout", "Stderr", "Stdin", "Args"}, "take the value, the reader or the writer as a parameter; return an error instead of exiting"},
	"net/http":      {[]string{"DefaultClient", "DefaultTransport", "DefaultServeMux", "Get", "Head", "Post", "PostForm"}, "take an *http.Client"},
	"fmt":           {[]string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"}, "take an io.Writer and use fmt.Fprint"},
	"log/slog":      {[]string{"Default", "SetDefault", "Debug", "Info", "Warn", "Error"}, "take a *slog.Logger"},
	"flag":          {nil, "flags are the command's"},
	"log":           {nil, "return the error, or take a *slog.Logger"},
	"text/template": {nil, "it adds megabytes to the binary; use strings.Builder"},
	"html/template": {nil, "it adds megabytes to the binary; use internal/report/markup"},
}

// useExceptions are the banned uses that a package may make all the same, each with
// its reason.
var useExceptions = map[string]map[string]string{
	"serve":                {"time.Now": "the clock of a server: a caller from outside should not have to bring one"},
	"tools/reader/windows": {"os.Args": "a program of its own", "os.Exit": "a program of its own", "os.Stderr": "a program of its own", "os.Stdout": "a program of its own"},
	"investigate":          {"time.Now": "the default of Config.Now: a caller from outside should not have to bring a clock"},
}

// The sizes that a reader can hold in mind.
const (
	maxFileLines     = 600
	maxFuncLines     = 120 // outside tests
	maxFuncLinesP95  = 60  // of all functions outside tests
	maxPackageFiles  = 15  // test files not counted
	maxMethods       = 5   // of an interface
	maxParameters    = 5   // of an exported function, its context not counted
	minCommentLength = 80  // of a package comment, in characters
)

// sizeExceptions are the places that may be larger, each with its reason.
var sizeExceptions = map[string]string{
	".":               "the nouns of the contract, one file each",
	"cmd/marchwarden": "one file a kind of subcommands, beside configuration and wiring",
}
