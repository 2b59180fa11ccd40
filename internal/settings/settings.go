// Package settings reads every setting of the program: from flags, the environment, .env,
// config.yaml and defaults, in that order, with the place that each came from. It knows the
// researchers that config.yaml names, and where things lie below the home folder. It opens
// nothing and calls nothing: network does.
package settings

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// kind is how the text of a setting is read.
type kind int

const (
	Text      kind = iota
	Folder         // a path
	Folders        // several paths, in the environment separated like PATH
	words          // several words, in the environment separated by commas
	Address        // an http or https address
	span           // a time such as 90s or 10m
	Boolean        // 1, true, 0, false…
	engineURL      // the address of an engine, or several of its hubs with commas
	rules          // several sentences, in the environment separated by commas
)

// Setting is one row of the table of settings.
type Setting struct {
	Name    string // in config.yaml and in doctor
	Env     string // in the environment and in .env
	Kind    kind
	Def     string   // a path is below home
	allowed []string // the texts there are, if they are few
	Secret  bool
	EnvOnly bool // config.yaml cannot say it
	// harmless settings may come from .env in the working directory, which may be another user's
	// folder. Keys may, too; what decides where keys, documents and connections go may not.
	harmless bool
	// Personal settings are the user's own to say, secret or not.
	Personal bool
	// of is the key that an address is for: .env may say both, or neither.
	of string
}

// PI is the investigator as a researcher.
const PI = "pi"

// Builtin are the researchers of this program, in the order in which an
// investigation asks them.
var Builtin = []string{"files", "database", "web", "arxiv"}

// IsBuiltin reports whether a name is one of theirs.
func IsBuiltin(name string) bool { return slices.Contains(Builtin, name) }

// What the setting embed may say.
const (
	EmbedBuiltin = "builtin"
	EmbedOff     = "off"
)

// All is every setting there is, in the order doctor shows them.
var All []Setting

// define makes a setting one of All, and returns its name.
func define(s Setting) string {
	All = append(All, s)
	return s.Name
}

// The names of the settings.
var (
	Home             = define(Setting{Name: "home", Env: "MARCHWARDEN_HOME", Kind: Folder, EnvOnly: true})
	TraceDir         = define(Setting{Name: "trace_dir", Env: "MARCHWARDEN_TRACE_DIR", Kind: Folder, Def: "traces"})
	Ledger           = define(Setting{Name: "cost_ledger", Env: "MARCHWARDEN_COST_LEDGER", Kind: Folder, Def: "costs.jsonl"})
	Depth            = define(Setting{Name: "depth", Env: "MARCHWARDEN_DEPTH", Def: string(marchwarden.Balanced), allowed: []string{string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep)}, harmless: true})
	Library          = define(Setting{Name: "library", Env: "MARCHWARDEN_LIBRARY", Kind: Folders})
	LogFormat        = define(Setting{Name: "log_format", Env: "MARCHWARDEN_LOG_FORMAT", Def: "text", allowed: []string{"text", "json"}, harmless: true})
	Debug            = define(Setting{Name: "debug", Env: "MARCHWARDEN_DEBUG", Kind: Boolean, Def: "false", harmless: true})
	Researcher       = define(Setting{Name: "researcher", Env: "MARCHWARDEN_RESEARCHER", Def: PI, allowed: append([]string{PI}, Builtin...)})
	Model            = define(Setting{Name: "model", Env: "MARCHWARDEN_MODEL"})
	Embed            = define(Setting{Name: "embed", Env: "MARCHWARDEN_EMBED", Def: EmbedBuiltin, allowed: []string{EmbedBuiltin, EmbedOff}})
	Search           = define(Setting{Name: "search", Env: "MARCHWARDEN_SEARCH", Kind: words, harmless: true})
	Timeout          = define(Setting{Name: "timeout", Env: "MARCHWARDEN_TIMEOUT", Kind: span, Def: "10m", harmless: true})
	Chromium         = define(Setting{Name: "chromium", Env: "MARCHWARDEN_CHROMIUM", Kind: Folder})
	FetchAllow       = define(Setting{Name: "fetch_allow", Env: "MARCHWARDEN_FETCH_ALLOW", Kind: words})
	Online           = define(Setting{Name: "online", Env: "MARCHWARDEN_ONLINE", Kind: Boolean, Def: "false"})
	DB               = define(Setting{Name: "db", Env: "MARCHWARDEN_DB", Secret: true, Personal: true, EnvOnly: true})
	AllowEgress      = define(Setting{Name: "allow_egress", Env: "MARCHWARDEN_ALLOW_EGRESS", Kind: words})
	ArxivURL         = define(Setting{Name: "arxiv_url", Env: "ARXIV_URL", Kind: Address, Def: "https://export.arxiv.org", harmless: true})
	ArxivSite        = define(Setting{Name: "arxiv_site", Env: "ARXIV_SITE", Kind: Address, Def: "https://arxiv.org", harmless: true})
	CrossrefURL      = define(Setting{Name: "crossref_url", Env: "CROSSREF_URL", Kind: Address, Def: "https://api.crossref.org", harmless: true})
	OpenAlexURL      = define(Setting{Name: "openalex_url", Env: "OPENALEX_URL", Kind: Address, Def: "https://api.openalex.org", of: "openalex_api_key"})
	ScholarURL       = define(Setting{Name: "semantic_scholar_url", Env: "SEMANTIC_SCHOLAR_URL", Kind: Address, Def: "https://api.semanticscholar.org", of: "semantic_scholar_api_key"})
	Mailto           = define(Setting{Name: "mailto", Env: "MARCHWARDEN_MAILTO", harmless: true})
	AnthropicURL     = define(Setting{Name: "anthropic_base_url", Env: "ANTHROPIC_BASE_URL", Kind: Address, Def: "https://api.anthropic.com", of: "anthropic_api_key"})
	OpenAIURL        = define(Setting{Name: "openai_base_url", Env: "OPENAI_BASE_URL", Kind: Address, Def: "https://api.openai.com/v1", of: "openai_api_key"})
	OllamaHost       = define(Setting{Name: "ollama_host", Env: "OLLAMA_HOST", Kind: Address, Def: "http://127.0.0.1:11434"})
	TavilyURL        = define(Setting{Name: "tavily_base_url", Env: "TAVILY_BASE_URL", Kind: Address, Def: "https://api.tavily.com", of: "tavily_api_key"})
	BraveURL         = define(Setting{Name: "brave_base_url", Env: "BRAVE_BASE_URL", Kind: Address, Def: "https://api.search.brave.com", of: "brave_api_key"})
	SearxngURL       = define(Setting{Name: "searxng_url", Env: "SEARXNG_URL", Kind: Address, harmless: true})
	WikipediaURL     = define(Setting{Name: "wikipedia_url", Env: "WIKIPEDIA_URL", Kind: Address, Def: "https://en.wikipedia.org", harmless: true})
	AnthropicKey     = define(Setting{Name: "anthropic_api_key", Env: "ANTHROPIC_API_KEY", Secret: true, EnvOnly: true})
	OpenAIKey        = define(Setting{Name: "openai_api_key", Env: "OPENAI_API_KEY", Secret: true, EnvOnly: true})
	OpenRouterKey    = define(Setting{Name: "openrouter_api_key", Env: "OPENROUTER_API_KEY", Secret: true, EnvOnly: true})
	GeminiKey        = define(Setting{Name: "gemini_api_key", Env: "GEMINI_API_KEY", Secret: true, EnvOnly: true})
	TavilyKey        = define(Setting{Name: "tavily_api_key", Env: "TAVILY_API_KEY", Secret: true, EnvOnly: true})
	BraveKey         = define(Setting{Name: "brave_api_key", Env: "BRAVE_API_KEY", Secret: true, EnvOnly: true})
	OpenAlexKey      = define(Setting{Name: "openalex_api_key", Env: "OPENALEX_API_KEY", Secret: true, EnvOnly: true})
	ScholarKey       = define(Setting{Name: "semantic_scholar_api_key", Env: "SEMANTIC_SCHOLAR_API_KEY", Secret: true, EnvOnly: true})
	HTTPToken        = define(Setting{Name: "http_token", Env: "MARCHWARDEN_HTTP_TOKEN", Secret: true, Personal: true, EnvOnly: true})
	Engine           = define(Setting{Name: "engine", Env: "MARCHWARDEN_ENGINE", Kind: engineURL})
	EngineKey        = define(Setting{Name: "engine_key", Env: "MARCHWARDEN_ENGINE_KEY", Kind: Folder})
	EngineCA         = define(Setting{Name: "engine_ca", Env: "MARCHWARDEN_ENGINE_CA", Kind: Folder})
	EngineCert       = define(Setting{Name: "engine_cert", Env: "MARCHWARDEN_ENGINE_CERT", Kind: Folder})
	EngineCertKey    = define(Setting{Name: "engine_cert_key", Env: "MARCHWARDEN_ENGINE_CERT_KEY", Kind: Folder})
	Worker           = define(Setting{Name: "worker", Env: "MARCHWARDEN_WORKER"})
	Limits           = define(Setting{Name: "limits", Env: "MARCHWARDEN_LIMITS", Kind: rules})
	Prices           = define(Setting{Name: "prices", Env: "MARCHWARDEN_PRICES", Kind: rules})
	Blobs            = define(Setting{Name: "blobs", Env: "MARCHWARDEN_BLOBS"})
	HubListen        = define(Setting{Name: "hub_listen", Env: "MARCHWARDEN_HUB_LISTEN"})
	HubStore         = define(Setting{Name: "hub_store", Env: "MARCHWARDEN_HUB_STORE", Kind: Folder})
	HubMaxStore      = define(Setting{Name: "hub_max_store", Env: "MARCHWARDEN_HUB_MAX_STORE"})
	HubKeys          = define(Setting{Name: "hub_keys", Env: "MARCHWARDEN_HUB_KEYS", Kind: Folder})
	HubName          = define(Setting{Name: "hub_name", Env: "MARCHWARDEN_HUB_NAME"})
	HubTLSCert       = define(Setting{Name: "hub_tls_cert", Env: "MARCHWARDEN_HUB_TLS_CERT", Kind: Folder})
	HubTLSKey        = define(Setting{Name: "hub_tls_key", Env: "MARCHWARDEN_HUB_TLS_KEY", Kind: Folder})
	HubTLSCA         = define(Setting{Name: "hub_tls_ca", Env: "MARCHWARDEN_HUB_TLS_CA", Kind: Folder})
	HubClusterName   = define(Setting{Name: "hub_cluster_name", Env: "MARCHWARDEN_HUB_CLUSTER_NAME"})
	HubClusterListen = define(Setting{Name: "hub_cluster_listen", Env: "MARCHWARDEN_HUB_CLUSTER_LISTEN"})
	HubRoutes        = define(Setting{Name: "hub_routes", Env: "MARCHWARDEN_HUB_ROUTES", Kind: words})
	HubClusterSecret = define(Setting{Name: "hub_cluster_secret", Env: "MARCHWARDEN_HUB_CLUSTER_SECRET", Kind: Folder})
	HubClusterCert   = define(Setting{Name: "hub_cluster_cert", Env: "MARCHWARDEN_HUB_CLUSTER_CERT", Kind: Folder})
	HubClusterKey    = define(Setting{Name: "hub_cluster_key", Env: "MARCHWARDEN_HUB_CLUSTER_KEY", Kind: Folder})
	HubClusterCA     = define(Setting{Name: "hub_cluster_ca", Env: "MARCHWARDEN_HUB_CLUSTER_CA", Kind: Folder})
	HubReplicas      = define(Setting{Name: "hub_replicas", Env: "MARCHWARDEN_HUB_REPLICAS"})
	HubLease         = define(Setting{Name: "hub_lease", Env: "MARCHWARDEN_HUB_LEASE", Kind: span})
	HubKeepLog       = define(Setting{Name: "hub_keep_log", Env: "MARCHWARDEN_HUB_KEEP_LOG"})
	HubKeepTask      = define(Setting{Name: "hub_keep_task", Env: "MARCHWARDEN_HUB_KEEP_TASK"})
	HubKeepDone      = define(Setting{Name: "hub_keep_done", Env: "MARCHWARDEN_HUB_KEEP_DONE"})
)

// Of is the row of a setting that there is.
func Of(name string) Setting {
	return All[slices.IndexFunc(All, func(s Setting) bool { return s.Name == name })]
}

// EnvOf is the environment variable of a setting.
func EnvOf(name string) string { return Of(name).Env }

// Given reports whether something other than the default says a setting.
func (c *Settings) Given(name string) bool {
	origin := c.Origin(name)
	return origin != "" && origin != FromDefault
}

// Label names a setting the way the place spells it that its value is from.
func (c *Settings) Label(name string) string {
	if c.Given(name) {
		return Of(name).label(c.Origin(name))
	}
	return EnvOf(name)
}

// label names a setting the way its origin spells it.
func (s Setting) label(origin string) string {
	switch origin {
	case FromEnv:
		return s.Env
	case FromFile, FromDotEnv:
		name := s.Name
		if origin == FromDotEnv {
			name = s.Env
		}
		return name + " in " + origin
	}
	return origin // a flag
}

// split is the value of an environment variable as the texts it stands for.
func (s Setting) split(v string) []string {
	switch s.Kind {
	case Folders:
		return slices.DeleteFunc(filepath.SplitList(v), func(p string) bool { return p == "" })
	case words:
		return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	case rules:
		var all []string
		for rule := range strings.SplitSeq(v, ",") {
			if rule = strings.TrimSpace(rule); rule != "" {
				all = append(all, rule)
			}
		}
		return all
	}
	return []string{v}
}

// Several reports whether a flag of a setting may be given several times.
func (s Setting) Several() bool { return s.Kind == words || s.Kind == rules }

// SplitWords is a list of words as a flag or a variable has it.
func SplitWords(v string) []string { return Setting{Kind: words}.split(v) }

// Present reports whether an environment variable says anything: one that is empty
// does not, nor does a key of white space.
func (s Setting) Present(v string) bool { return v != "" && !(s.Secret && strings.TrimSpace(v) == "") }

// Read brings texts into the form that the program uses, or says what is wrong.
func (s Setting) Read(texts []string, absolute func(string) string) (read []string, problem string) {
	if s.Kind != Folders && !s.Several() && len(texts) != 1 {
		return nil, "must be one value, not a list"
	}
	if s.Several() { // a list may be written as one text in config.yaml, too
		return s.split(strings.Join(texts, ",")), ""
	}
	read = slices.Clone(texts)
	for i, t := range texts {
		switch s.Kind {
		case Folder, Folders:
			if strings.TrimSpace(t) == "" {
				return nil, "must not be blank"
			}
			read[i] = absolute(t)
		case Address:
			if read[i], problem = ReadAddress(t); problem != "" {
				return nil, problem
			}
		case engineURL:
			if read[i], problem = readEngine(t); problem != "" {
				return nil, problem
			}
		case span:
			d, err := time.ParseDuration(t)
			if err != nil || d < MinTimeout || d > MaxTimeout {
				return nil, fmt.Sprintf("must be a time between %s and %s such as 90s or 10m, not %q", MinTimeout, MaxTimeout, plaintext.Clip(t, 40))
			}
			read[i] = d.String()
		case Boolean:
			b, err := strconv.ParseBool(strings.ToLower(t))
			if err != nil {
				return nil, fmt.Sprintf("must be true or false (or 1 or 0), not %q", plaintext.Clip(t, 40))
			}
			read[i] = strconv.FormatBool(b)
		case Text:
			if s.Secret {
				read[i] = strings.TrimSpace(t)
				if strings.ContainsFunc(read[i], func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
					return nil, "holds a control character or one that is not seen" // and never the key itself
				}
			}
			if s.allowed != nil && !slices.Contains(s.allowed, t) {
				return nil, fmt.Sprintf("must be %s, not %q", Either(s.allowed), plaintext.Clip(t, 40))
			}
		}
	}
	return read, ""
}

// The shortest and longest time that a research may be given.
const (
	MinTimeout = time.Second
	MaxTimeout = 24 * time.Hour
)

// ReadAddress checks the address of a service. One without a scheme, as some
// variables of other programs have it, is taken as http. Its error does not
// repeat the address, which may hold a password.
func ReadAddress(t string) (read, problem string) {
	if !strings.Contains(t, "://") {
		t = "http://" + t
	}
	u, err := url.Parse(t)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return "", "must be an http or https address such as http://127.0.0.1:8080"
	}
	return strings.TrimRight(u.String(), "/"), ""
}

func (s Setting) byDefault(home string) Value {
	switch {
	case s.Def == "":
		return Value{nil, FromDefault}
	case s.Kind == Folder:
		return Value{[]string{filepath.Join(home, s.Def)}, FromDefault}
	}
	return Value{[]string{s.Def}, FromDefault}
}

// ParseSpan reads a time such as 90s, or says what is wrong.
func ParseSpan(v string) (d time.Duration, problem string) {
	read, problem := Setting{Kind: span}.Read([]string{v}, nil)
	if problem == "" {
		d, _ = time.ParseDuration(read[0]) // read has parsed it
	}
	return d, problem
}

// ParseTerm reads how long something lasts: whole days such as 90d, or a time such as 12h, or says
// what is wrong.
func ParseTerm(v string) (d time.Duration, problem string) {
	const mostDays = 36500
	text := strings.TrimSpace(v)
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < time.Second || d > mostDays*24*time.Hour {
		return 0, fmt.Sprintf("must be a time such as 90d or 12h, 1s to %dd, not %q", mostDays, plaintext.Clip(v, 40))
	}
	return d, ""
}

// ParseSize reads a number of bytes with a unit: kB, MB, GB and TB are powers of a thousand, KiB, MiB,
// GiB and TiB powers of 1,024. Or it says what is wrong.
func ParseSize(v string) (bytes int64, problem string) {
	text := strings.ToLower(strings.TrimSpace(v))
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit, ok := map[string]float64{
		"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	}[strings.TrimSpace(text[len(digits):])]
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n*unit >= 1 && n*unit < 1<<62) {
		return 0, fmt.Sprintf("must be a number of bytes with a unit, such as 500MB or 2GB, not %q", plaintext.Clip(v, 40))
	}
	return int64(n * unit), ""
}

// NeedEngine is the cluster of the settings, for commands that are about one.
func (c *Settings) NeedEngine() (string, error) {
	if at := c.Text(Engine); at != "" {
		return at, nil
	}
	return "", Invalid("--engine", "for example --engine nats://127.0.0.1:4222, or set "+EnvOf(Engine), "is missing: which cluster?")
}

// readEngine checks the addresses of hubs; there are none where no cluster is wanted. Its error repeats none of them: one may hold
// a password.
func readEngine(t string) (read, problem string) {
	if t == NoEngine {
		return "", ""
	}
	var all []string
	for part := range strings.SplitSeq(t, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(part)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return "", "must be an address such as nats://127.0.0.1:4222 or tls://hub1.example.com:4222"
		case u.User != nil:
			return "", passwordInEngine
		}
		all = append(all, u.Scheme+"://"+u.Host)
	}
	return strings.Join(all, ","), ""
}

// PastedSeed is the key that stands where the path of its file should; "" if there is
// none.
func PastedSeed(path string) string { return seedText.FindString(path) }

var seedText = regexp.MustCompile(`S[A-Z][A-Z2-7]{56}`)

const passwordInEngine = "must hold no user and no password"

// NoEngine is said where another setting names a cluster that is not wanted. A
// hub of that name is nats://none.
const NoEngine = "none"
