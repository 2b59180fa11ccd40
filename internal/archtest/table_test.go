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
	{"corpus", nil},

	// Mechanisms and records.
	{"internal/durable", nil},
	{"internal/stat", nil},
	{"internal/embed", nil},
	{"internal/embed/kernel", nil},
	{"internal/embed/wordpiece", nil},
	{"internal/embed/bert", []string{"internal/embed", "internal/embed/kernel", "internal/embed/wordpiece", "."}},
	{"internal/embed/minilm", []string{"internal/embed", "internal/embed/bert", "."}},
	{"internal/embed/shelf", []string{"internal/embed", "internal/durable"}},
	{"internal/reader", []string{"internal/embed", "internal/embed/bert", "internal/embed/kernel", "internal/embed/minilm", "internal/embed/wordpiece", "."}},
	{"internal/secret", nil},
	{"internal/private", []string{"internal/durable", "."}},
	{"internal/hub/keys", []string{"internal/private", "."}},
	{"internal/hub", []string{"internal/hub/keys", "internal/durable", "internal/secret", "."}},
	{"internal/datatest", nil},   // public data, for the tests that measure
	{"internal/scripttest", nil}, // commands for the scripts of the programs
	{"internal/blob", []string{"."}},
	{"internal/blob/form", []string{"internal/blob"}},
	{"internal/blob/dir", []string{"internal/blob", "internal/blob/form", "internal/durable", "."}},
	{"internal/blob/objects", []string{"internal/blob", "internal/blob/form", "."}},
	{"internal/blob/s3", []string{"internal/blob", "internal/blob/form", "internal/secret", "."}},
	{"internal/blob/depot", []string{"internal/blob", "internal/blob/dir", "internal/blob/s3", "."}},
	{"internal/blob/blobtest", []string{"internal/blob", "."}},
	{"internal/lexicon", nil},
	{"internal/cells", nil},
	{"internal/plaintext", nil},
	{"internal/report/biblio", []string{"internal/plaintext"}},
	{"internal/question", []string{"internal/lexicon"}},
	{"internal/hop", []string{"internal/lexicon", "internal/question"}},
	{"internal/panics", []string{"."}},
	{"internal/dispatch", []string{"internal/blob", "."}},
	{"internal/settings", []string{"internal/dispatch", "internal/durable", "internal/plaintext", "."}},
	{"internal/dispatch/pool/logbook", []string{"internal/durable", "."}},
	{"internal/dispatch/pool/register", []string{"internal/dispatch/pool/logbook", "internal/dispatch", "internal/durable", "."}},
	{"internal/dispatch/pool", []string{"internal/dispatch", "internal/dispatch/pool/register", "internal/blob", "internal/durable", "internal/panics", "."}},
	{"internal/dispatch/dispatchtest", []string{"internal/dispatch", "internal/blob", "."}}, // what an engine is
	{"internal/limit", []string{"internal/dispatch", "internal/durable", "."}},
	{"internal/budget", []string{"."}},
	{"internal/ledger", []string{"internal/durable", "."}},
	{"internal/locator", nil},
	{"internal/report/markup", []string{"internal/locator"}},
	{"internal/report/markup/markuptest", nil}, // what must not be in a page
	{"internal/llm", []string{"internal/secret", "."}},
	{"internal/llm/quoted", []string{"."}},
	{"internal/llm/llmtest", []string{"internal/llm", "internal/datatest", "."}},
	{"internal/httpapi", []string{"internal/plaintext", "internal/secret", "."}},
	{"internal/embed/remote", []string{"internal/embed", "internal/httpapi", "internal/llm", "."}},
	{"internal/webtest", []string{"internal/llm", "internal/llm/llmtest"}}, // a small internet on loopback
	{"internal/telemetry", []string{"internal/llm", "internal/httpapi", "."}},
	{"internal/llm/anthropic", []string{"internal/llm", "internal/httpapi", "internal/secret", "."}},
	{"internal/llm/openai", []string{"internal/llm", "internal/httpapi", "internal/secret", "."}},
	{"internal/llm/steady", []string{"internal/llm", "internal/httpapi", "."}},
	{"internal/llm/rationed", []string{"internal/limit", "internal/dispatch", "internal/ledger", "internal/llm", "."}},
	{"internal/search", []string{"internal/locator", "."}},
	{"internal/search/rationed", []string{"internal/search", "internal/dispatch", "internal/httpapi", "."}},
	{"internal/search/searchtest", []string{"internal/search", "."}},
	{"internal/search/brave", []string{"internal/search", "internal/httpapi", "."}},
	{"internal/search/searxng", []string{"internal/search", "internal/httpapi", "."}},
	{"internal/search/tavily", []string{"internal/search", "internal/httpapi", "."}},
	{"internal/search/wikipedia", []string{"internal/search", "internal/httpapi", "internal/lexicon", "."}},
	{"internal/scholar", []string{"internal/search", "internal/httpapi", "internal/lexicon", "internal/locator", "internal/plaintext", "."}},
	{"internal/search/arxiv", []string{"internal/scholar", "internal/search", "internal/httpapi", "internal/lexicon", "."}},
	{"internal/registry", []string{"internal/search/arxiv", "internal/scholar", "internal/httpapi", "internal/locator", "."}},
	{"internal/database", []string{"."}},
	{"internal/database/dbtest", []string{"internal/database"}},
	{"internal/fetch/extract/hidden", nil},
	{"internal/fetch/extract", []string{"internal/fetch/extract/hidden", "internal/cells", "."}},
	{"internal/fetch/guard", []string{"."}},
	{"internal/fetch/render/devtools", []string{"."}},
	{"internal/fetch/render", []string{"internal/fetch/render/devtools", "."}},
	{"internal/browsertest", []string{"internal/fetch/render", "internal/fetch/render/devtools"}}, // a real browser for tests
	{"internal/fetch", []string{"internal/fetch/extract", "internal/blob", "."}},
	{"internal/fetch/web", []string{"internal/fetch", "internal/fetch/extract", "internal/fetch/guard", "internal/httpapi", "internal/locator", "internal/blob", "internal/panics", "."}},
	{"internal/fetch/fetchtest", []string{"internal/fetch", "internal/blob", "."}},
	{"internal/search/inverted", []string{"internal/lexicon"}},
	{"internal/search/local", []string{"internal/search", "internal/search/inverted", "internal/embed", "internal/fetch", "internal/fetch/extract", ".", "internal/lexicon"}},
	{"internal/trace", []string{"internal/blob", "internal/dispatch", "internal/durable", "."}},
	{"internal/dispatch/relay", []string{"internal/dispatch", "internal/trace", "internal/blob", "."}},
	{"internal/dispatch/cluster/jet", []string{"."}}, // what is needed of JetStream
	{"internal/dispatch/cluster/cell", []string{"internal/limit", "internal/dispatch", "."}},
	{"internal/dispatch/cluster", []string{"internal/dispatch/cluster/jet", "internal/dispatch/cluster/cell", "internal/dispatch", "internal/limit", "internal/blob", "internal/blob/depot", "internal/blob/objects", "internal/panics", "."}},
	{"internal/dispatch/cluster/steward", []string{"internal/dispatch/cluster", "internal/dispatch/cluster/jet", "internal/dispatch", "."}},
	{"internal/dispatch/cluster/torture", nil}, // a test of the whole
	{"internal/dispatch/meter", []string{"internal/dispatch/cluster", "internal/dispatch", "."}},
	{"internal/llm/metered", []string{"internal/llm", "internal/budget", "internal/trace", "internal/panics", "."}},
	{"internal/replay", []string{"internal/trace", "internal/embed", "internal/llm", "internal/search", "internal/fetch", "internal/blob", "."}},

	{"internal/embed/metered", []string{"internal/reader", "internal/embed", "internal/replay", "internal/trace", "internal/search", "internal/budget", "internal/panics", "."}},
	{"internal/resumetest", []string{"internal/replay", "internal/trace", "internal/blob", "."}}, // one run that is cut off and resumed

	// Judgement.
	{"internal/evidence", []string{"internal/fetch", "internal/lexicon", "internal/plaintext", "internal/blob", "."}},
	{"internal/reason", []string{"internal/reader", "internal/evidence", "internal/embed", "internal/search", "internal/llm", "internal/budget", "."}},
	{"internal/verify/conflict", []string{"internal/reader", "internal/evidence", "internal/lexicon", "."}},
	{"internal/verify/judge", []string{"internal/reader", "internal/lexicon", "internal/stat", "."}},
	{"internal/verify", []string{"internal/verify/conflict", "internal/verify/judge", "internal/reader", "internal/reason", "internal/evidence", "internal/fetch", "internal/trace", "internal/blob", "internal/plaintext", "."}},
	{"internal/run", []string{"internal/verify", "internal/ledger", "internal/replay", "internal/trace", "internal/fetch", "internal/blob", "internal/plaintext", "."}},
	{"internal/record", []string{"internal/run", "internal/trace", "internal/blob", "internal/durable", "."}},
	{"internal/outcome", []string{"internal/run", "internal/verify", "internal/replay", "internal/trace", "internal/blob", "."}},
	{"internal/drift", []string{"internal/evidence", "internal/run", "internal/trace", "internal/fetch", "internal/fetch/extract", "internal/lexicon", "internal/blob", "internal/durable", "."}},
	{"internal/bundle", []string{"internal/record", "internal/run", "internal/trace", "internal/blob", "internal/durable", "."}},
	{"internal/warc", []string{"internal/run", "internal/blob", "internal/locator", "internal/plaintext", "."}},
	{"internal/confidence", []string{"internal/verify", "internal/evidence", "internal/fetch", "internal/stat", "."}},
	{"internal/reason/extractive", []string{"internal/reader", "internal/question", "internal/hop", "internal/reason", "internal/verify", "internal/evidence", "internal/lexicon", "internal/plaintext", "internal/search", "internal/budget", "."}},
	{"internal/reason/model", []string{"internal/reason", "internal/reason/extractive", "internal/verify", "internal/verify/judge", "internal/evidence", "internal/llm", "internal/llm/quoted", "internal/lexicon", "internal/locator", "internal/search", "internal/budget", "."}},

	// One research call, and the researchers made of it.
	{"internal/loop", []string{"internal/embed", "internal/embed/metered", "internal/outcome", "internal/panics", "internal/plaintext", "internal/llm/metered", "internal/llm/quoted", "internal/confidence", "internal/verify", "internal/reason", "internal/evidence", "internal/replay", "internal/trace",
		"internal/search", "internal/fetch", "internal/llm", "internal/locator", "internal/budget", "internal/blob", "."}},
	{"internal/researcher", []string{"internal/embed", "internal/embed/metered", "internal/loop", "internal/outcome", "internal/reason", "internal/reason/extractive", "internal/reason/model", "internal/replay", "internal/trace",
		"internal/verify", "internal/search", "internal/fetch", "internal/llm", "internal/blob", "."}},
	{"internal/researcher/files", []string{"corpus", "internal/researcher", "internal/embed", "internal/search", "internal/search/local", "internal/fetch", "internal/fetch/extract", "."}},
	{"internal/researcher/web", []string{"internal/researcher", "internal/search", "internal/fetch", "internal/llm", "internal/locator", "."}},

	{"internal/researcher/arxiv", []string{"internal/researcher", "internal/search/arxiv", "internal/scholar", "internal/search", "internal/fetch", "internal/locator", "internal/lexicon", "internal/blob", "."}},
	{"internal/researcher/database/question", []string{"internal/database", "internal/lexicon", "internal/plaintext", "."}},
	{"internal/researcher/database", []string{"internal/researcher/database/question", "internal/researcher", "internal/database", "internal/search", "internal/fetch", "internal/lexicon", "internal/blob", "internal/plaintext", "."}},

	// The investigator, which asks them.
	{"internal/pi", []string{"internal/question", "internal/reader", "internal/embed", "internal/embed/metered", "internal/verify/judge", "internal/dispatch", "internal/outcome", "internal/panics", "internal/plaintext", "internal/confidence", "internal/verify", "internal/reason", "internal/evidence",
		"internal/replay", "internal/trace", "internal/llm", "internal/llm/metered", "internal/llm/quoted", "internal/lexicon", "internal/locator", "internal/budget", "internal/blob", "."}},
	{"internal/pi/derive", []string{"internal/pi", "internal/dispatch", "internal/question", "internal/hop", "internal/lexicon", "."}},
	{"internal/pi/canary", nil}, // a test of the whole
	{"internal/pi/advise", []string{"internal/pi", "internal/dispatch", "internal/llm", "internal/llm/quoted", "internal/locator", "internal/verify", "."}},

	// Edges, which know the contract alone, and the command, which wires it all.
	{"internal/access", []string{"internal/private", "."}},
	{"internal/runs", []string{"internal/access", "internal/durable", "internal/plaintext", "."}},
	{"internal/door", []string{"internal/access", "."}},
	{"internal/mcpkit/wire", nil},
	{"internal/mcpkit/mcptest", []string{"."}}, // what the tests of both sides share
	{"internal/mcpkit/client/child", nil},
	{"internal/mcpkit/client/login", []string{"internal/mcpkit/wire", "internal/private", "."}},
	{"internal/mcpkit/client", []string{"internal/dispatch", "internal/mcpkit/client/child", "internal/mcpkit/client/login", "internal/mcpkit/wire", "."}},
	{"internal/mcpkit/follow", []string{"."}},
	{"internal/mcpkit", []string{"internal/mcpkit/follow", "internal/mcpkit/wire", "internal/runs", "internal/access", "."}},
	{"internal/conform", []string{"internal/mcpkit/client", "internal/plaintext", "."}},
	{"internal/term", []string{"internal/cells", "."}},
	{"internal/report", []string{"internal/report/biblio", "internal/report/markup", "internal/run", "internal/fetch", "internal/blob", "internal/locator", "internal/plaintext", "internal/scholar", "internal/term", "."}},
	{"internal/term/live", []string{"internal/run", "internal/term", "."}},
	{"internal/term/reading", []string{"internal/report", "internal/term", "."}},
	{"internal/history", []string{"internal/drift", "internal/evidence", "internal/run", "internal/trace", "internal/ledger", "internal/lexicon", "internal/locator", "internal/plaintext", "internal/blob", "."}},
	{"internal/web/chart", []string{"internal/run", "internal/plaintext", "internal/stat"}},
	{"internal/web/gate", []string{"internal/access", "internal/door", "internal/private", "."}},
	{"internal/web/prose", []string{"internal/cells", "internal/report", "internal/report/markup", "internal/locator", "internal/plaintext", "."}},
	{"internal/web/page", []string{"internal/report/markup", "internal/plaintext", "internal/term", "."}},
	{"internal/web", []string{"internal/panics", "internal/web/gate", "internal/web/page", "internal/web/prose", "internal/web/chart", "internal/run", "internal/history", "internal/report", "internal/drift", "internal/confidence", "internal/ledger", "internal/runs", "internal/access", "internal/term", "."}},
	{"internal/archtest", nil},

	// The doors for other programs, and programs that go through them.
	{"serve", []string{"internal/access", "internal/door", "internal/mcpkit", "."}},
	{"internal/network", []string{"internal/run", "internal/blob", "internal/blob/dir", "internal/confidence", "internal/database", "internal/dispatch", "internal/dispatch/pool", "internal/dispatch/relay",
		"internal/durable", "internal/embed", "internal/embed/bert", "internal/embed/minilm", "internal/embed/remote", "internal/embed/shelf", "internal/fetch", "internal/fetch/extract",
		"internal/fetch/guard", "internal/fetch/render", "internal/fetch/web", "internal/ledger", "internal/limit", "internal/llm", "internal/llm/anthropic",
		"internal/llm/openai", "internal/llm/rationed", "internal/llm/steady", "internal/mcpkit", "internal/mcpkit/client", "internal/mcpkit/client/login", "internal/pi", "internal/pi/advise",
		"internal/pi/derive", "internal/plaintext", "internal/researcher", "internal/researcher/arxiv", "internal/researcher/database", "internal/researcher/files", "internal/researcher/web",
		"internal/scholar", "internal/search", "internal/search/arxiv", "internal/search/brave", "internal/search/rationed", "internal/search/searxng", "internal/search/tavily",
		"internal/search/wikipedia", "internal/secret", "internal/settings", "internal/telemetry", "internal/term", "internal/trace", "."}},
	{"investigate", []string{"serve", "internal/dispatch", "internal/dispatch/pool", "internal/mcpkit/client", "internal/network", "internal/researcher/arxiv", "internal/researcher/database", "internal/researcher/files", "internal/researcher/web", "internal/secret", "internal/settings", "."}},
	{"examples", nil}, // tests of the examples, as processes
	{"examples/go-researcher", []string{"serve", "."}},
	{"examples/embedding", []string{"investigate", "serve", "."}},
	{"cmd/marchwarden", []string{anything}},

	// The lab, which measures all that. It stands below the program, which can import
	// nothing of it.
	{"internal/eval/metric", []string{"internal/stat"}},
	{"internal/eval", []string{"internal/eval/metric", "internal/embed", "internal/reader", "internal/search", "internal/durable", "internal/panics", "."}},
	{"internal/eval/calibrate", []string{"internal/eval", "internal/eval/metric", "internal/confidence", "internal/stat", "."}},
	{"internal/eval/desk", []string{"internal/eval", "internal/pi", "internal/pi/advise", "internal/pi/derive", "internal/dispatch", "internal/dispatch/pool", "internal/researcher", "internal/researcher/files", "internal/loop", "internal/verify",
		"internal/replay", "internal/trace", "internal/embed", "internal/embed/metered", "internal/search", "internal/search/local", "internal/fetch", "internal/fetch/extract", "internal/ledger", "internal/llm", "internal/blob", "."}},
	{"internal/eval/evaltest", []string{"internal/eval", "internal/eval/desk", "internal/embed", "internal/fetch/extract"}},
	{"internal/eval/texts", []string{"internal/eval", "internal/evidence", "internal/fetch", "internal/fetch/extract", "internal/lexicon", "."}},
	{"internal/eval/plainbm25", nil}, // the ranking of the textbooks, to stand beside ours
	{"internal/eval/retrieval", []string{"internal/eval", "internal/eval/plainbm25", "internal/eval/metric", "internal/search", "internal/lexicon"}},
	{"internal/eval/answers", []string{"internal/eval", "internal/eval/calibrate", "internal/lexicon", "internal/eval/metric", "."}},
	{"internal/eval/conflict", []string{"internal/eval", "internal/verify/conflict", "internal/reader", "internal/evidence", "internal/fetch", "internal/lexicon", "internal/blob", "."}},
	{"internal/eval/multihop", []string{"internal/eval", "internal/eval/plainbm25", "internal/pi", "internal/pi/derive", "internal/dispatch", "internal/embed", "internal/search", "internal/lexicon", "internal/eval/metric", "."}},
	{"internal/eval/support", []string{"internal/eval", "internal/verify/judge", "internal/reader", "internal/lexicon", "internal/eval/metric", "internal/stat", "."}},
	{"internal/eval/folders", []string{"internal/eval", "internal/lexicon", "internal/eval/metric", "."}},
	{"internal/eval/suites", []string{"internal/eval", "internal/eval/folders", "internal/eval/texts", "internal/eval/retrieval", "internal/eval/answers", "internal/eval/conflict", "internal/eval/multihop", "internal/eval/support"}},
	{"internal/eval/bench", nil}, // ours beside plain ways, as benchmarks
	{"cmd/marchwarden-lab", []string{anything}},
	{"tools/reader/windows", []string{"internal/evidence", "internal/fetch", "internal/fetch/extract"}},                                                                           // cuts documents for training
	{"tools/reader/fit", []string{"internal/embed", "internal/embed/minilm", "internal/eval", "internal/eval/desk", "internal/fetch/extract", "internal/reason/extractive", "."}}, // asks, to fit scores
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
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcpkit", "internal/mcpkit/client", "internal/mcpkit/client/login"}, []string{"cmd/marchwarden"}},
	{"golang.org/x/oauth2", []string{"internal/mcpkit/client/login"}, nil},
	{"github.com/google/jsonschema-go", []string{"internal/mcpkit", "internal/mcpkit/client"}, []string{".", "cmd/marchwarden"}},
	{"github.com/golang-jwt/jwt/v5", []string{"internal/access"}, []string{"cmd/marchwarden"}},
	{"github.com/MicahParks/keyfunc/v3", []string{"internal/access"}, nil},
	{"github.com/MicahParks/jwkset", []string{"internal/access"}, nil},
	{"github.com/prometheus/client_golang", []string{"internal/door", "internal/dispatch/meter"}, nil},
	{"github.com/prometheus/common", nil, []string{"cmd/marchwarden", "internal/door"}}, // the reader of what is exposed
	{"go.opentelemetry.io/otel", []string{"internal/telemetry"}, nil},
	{"github.com/klippa-app/go-pdfium", []string{"internal/fetch/extract"}, nil},
	{"github.com/tetratelabs/wazero", []string{"internal/fetch/extract"}, nil},
	{"codeberg.org/readeck/go-readability/v2", []string{"internal/fetch/extract"}, nil},
	{"github.com/gogs/chardet", []string{"internal/fetch/extract"}, nil},
	{"golang.org/x/net", []string{"internal/fetch/extract", "internal/fetch/extract/hidden", "internal/fetch/web", "internal/locator"}, []string{"internal/report", "internal/report/markup", "internal/report/markup/markuptest", "internal/web", "internal/web/page", "internal/web/prose"}}, // html; public suffixes; host names
	{"code.dny.dev/ssrf", []string{"internal/fetch/guard"}, nil},
	{"github.com/jimsmart/grobotstxt", []string{"internal/fetch/web"}, nil},
	{"github.com/andybalholm/brotli", []string{"internal/fetch/web"}, nil},
	{"golang.org/x/time", []string{"internal/fetch/web", "internal/door"}, nil},
	{"github.com/anthropics/anthropic-sdk-go", []string{"internal/llm/anthropic"}, nil},
	{"github.com/openai/openai-go/v3", []string{"internal/llm/openai"}, nil},
	{"github.com/microcosm-cc/bluemonday", []string{"internal/web/prose"}, nil},
	{"github.com/yuin/goldmark", []string{"internal/cells", "internal/fetch/extract", "internal/term", "internal/web/prose"}, []string{"internal/researcher/web", "internal/report"}},
	{"github.com/klauspost/compress", []string{"internal/blob/form", "internal/fetch/web"}, nil}, // blobs; pages
	{"github.com/nats-io/nats-server/v2", []string{"internal/hub"}, []string{anything}},
	{"github.com/nats-io/nats.go", []string{"internal/dispatch/cluster", "internal/dispatch/cluster/jet", "internal/dispatch/cluster/steward", "internal/dispatch/cluster/cell", "internal/blob/objects"}, []string{anything}},
	{"github.com/nats-io/nkeys", []string{"internal/hub", "internal/hub/keys", "internal/dispatch/cluster/jet"}, []string{anything}},
	{"github.com/minio/minio-go/v7", []string{"internal/blob/s3"}, nil},
	{"github.com/johannesboyne/gofakes3", nil, []string{"internal/blob/s3", "internal/blob/depot"}},
	{"github.com/nlnwa/gowarc/v2", []string{"internal/warc"}, nil},
	{"github.com/kljensen/snowball", []string{"internal/lexicon"}, nil},
	{"github.com/rivo/uniseg", []string{"internal/term"}, []string{"internal/term/live"}},
	{"golang.org/x/term", []string{"internal/term", "cmd/marchwarden"}, nil},
	{"golang.org/x/text", []string{"internal/embed/wordpiece", "internal/search/inverted", "internal/lexicon", "internal/evidence", "internal/term", "internal/fetch/extract"}, nil},
	{"golang.org/x/sync", []string{anything}, nil},
	{"go.yaml.in/yaml/v3", []string{"internal/settings", "internal/fetch/extract"}, // the configuration; the header of a document
		[]string{"internal/llm", "internal/llm/llmtest", "internal/search/tavily", "internal/scholar"}}, // recorded exchanges
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
	"html/template": {nil, "pages are internal/web/page's; elsewhere use strings.Builder"},
}

// useExceptions are the banned uses that a package may make all the same, each with
// its reason.
var useExceptions = map[string]map[string]string{
	"internal/web/page":    {"html/template": "the pages"},
	"internal/web":         {"html/template": "the type of what goes into a page"},
	"internal/web/chart":   {"html/template": "the type of what goes into a page"},
	"internal/web/prose":   {"html/template": "the type of what goes into a page"},
	"serve":                {"time.Now": "the clock of a server: a caller from outside should not have to bring one"},
	"tools/reader/windows": {"os.Args": "a program of its own", "os.Exit": "a program of its own", "os.Stderr": "a program of its own", "os.Stdout": "a program of its own"},
	"tools/reader/fit":     {"flag": "a program of its own", "os.Exit": "a program of its own", "os.Stderr": "a program of its own", "os.Stdout": "a program of its own"},
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
	"cmd/marchwarden": "one file a subcommand, beside configuration and wiring",
}

// wordExceptions are the packages whose comments are still to be put into plain words, and how
// many lines may be left there. The list only shrinks.
var wordExceptions = map[string]int{
	"internal/confidence":     1,
	"internal/eval":           7,
	"internal/eval/plainbm25": 1,
	"internal/eval/support":   1,
	"internal/history":        16,
	"internal/loop":           2,
	"internal/outcome":        15,
	"internal/pi":             35,
	"internal/pi/derive":      4,
	"internal/record":         16,
}
