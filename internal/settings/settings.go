// Package settings reads every setting of the program: from flags, the environment, .env,
// config.yaml and defaults, in that order, with the place that each came from. It knows the
// researchers that config.yaml names, and where things lie below the home folder. It opens
// nothing and calls nothing: network does.
package settings

import (
	"fmt"
	"net/url"
	"path/filepath"
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
	presence       // true whatever its text is, as NO_COLOR wants it
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

// embedServices are what the setting embed named in earlier versions, with embed_model beside it.
var embedServices = []string{"openai", "ollama"}

const noEmbedService = "services no longer make sentence vectors: the model in the program does (" + EmbedBuiltin + "), or nothing (" + EmbedOff + ")"

// The names of the settings.
const (
	Home      = "home"
	TraceDir  = "trace_dir"
	Ledger    = "cost_ledger"
	Depth     = "depth"
	Library   = "library"
	LogFormat = "log_format"
	Debug     = "debug"
	NoColor   = "no_color"

	Researcher    = "researcher"
	Model         = "model"
	Embed         = "embed"
	Search        = "search"
	Timeout       = "timeout"
	Chromium      = "chromium"
	FetchAllow    = "fetch_allow"
	Online        = "online"
	DB            = "db"
	AllowEgress   = "allow_egress"
	ArxivURL      = "arxiv_url"
	ArxivSite     = "arxiv_site"
	CrossrefURL   = "crossref_url"
	OpenAlexURL   = "openalex_url"
	ScholarURL    = "semantic_scholar_url"
	ScholarKey    = "semantic_scholar_api_key"
	OpenAlexKey   = "openalex_api_key"
	Mailto        = "mailto"
	AnthropicURL  = "anthropic_base_url"
	OpenAIURL     = "openai_base_url"
	OllamaHost    = "ollama_host"
	TavilyURL     = "tavily_base_url"
	BraveURL      = "brave_base_url"
	SearxngURL    = "searxng_url"
	WikipediaURL  = "wikipedia_url"
	AnthropicKey  = "anthropic_api_key"
	OpenAIKey     = "openai_api_key"
	OpenRouterKey = "openrouter_api_key"
	GeminiKey     = "gemini_api_key"
	TavilyKey     = "tavily_api_key"
	BraveKey      = "brave_api_key"
	HTTPToken     = "http_token"

	Engine        = "engine"
	EngineKey     = "engine_key"
	EngineCA      = "engine_ca"
	EngineCert    = "engine_cert"
	EngineCertKey = "engine_cert_key"
	Worker        = "worker"
	Limits        = "limits"
	Prices        = "prices"
	Blobs         = "blobs"

	HubListen        = "hub_listen"
	HubStore         = "hub_store"
	HubMaxStore      = "hub_max_store"
	HubKeys          = "hub_keys"
	HubName          = "hub_name"
	HubTLSCert       = "hub_tls_cert"
	HubTLSKey        = "hub_tls_key"
	HubTLSCA         = "hub_tls_ca"
	HubClusterName   = "hub_cluster_name"
	HubClusterListen = "hub_cluster_listen"
	HubRoutes        = "hub_routes"
	HubClusterSecret = "hub_cluster_secret"
	HubClusterCert   = "hub_cluster_cert"
	HubClusterKey    = "hub_cluster_key"
	HubClusterCA     = "hub_cluster_ca"
	HubReplicas      = "hub_replicas"
	HubLease         = "hub_lease"
	HubKeepLog       = "hub_keep_log"
	HubKeepTask      = "hub_keep_task"
	HubKeepDone      = "hub_keep_done"
)

// All is every setting there is, in the order doctor shows them.
var All = []Setting{
	{Name: Home, Env: "MARCHWARDEN_HOME", Kind: Folder, EnvOnly: true},
	{Name: TraceDir, Env: "MARCHWARDEN_TRACE_DIR", Kind: Folder, Def: "traces"},
	{Name: Ledger, Env: "MARCHWARDEN_COST_LEDGER", Kind: Folder, Def: "costs.jsonl"},
	{Name: Depth, Env: "MARCHWARDEN_DEPTH", Def: string(marchwarden.Balanced), allowed: []string{string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep)}, harmless: true},
	{Name: Library, Env: "MARCHWARDEN_LIBRARY", Kind: Folders},
	{Name: LogFormat, Env: "MARCHWARDEN_LOG_FORMAT", Def: "text", allowed: []string{"text", "json"}, harmless: true},
	{Name: Debug, Env: "MARCHWARDEN_DEBUG", Kind: Boolean, Def: "false", harmless: true},
	{Name: NoColor, Env: "NO_COLOR", Kind: presence, Def: "false", EnvOnly: true, harmless: true},
	{Name: Researcher, Env: "MARCHWARDEN_RESEARCHER", Def: PI, allowed: append([]string{PI}, Builtin...)},
	{Name: Model, Env: "MARCHWARDEN_MODEL"},
	{Name: Embed, Env: "MARCHWARDEN_EMBED", Def: EmbedBuiltin, allowed: []string{EmbedBuiltin, EmbedOff}},
	{Name: Search, Env: "MARCHWARDEN_SEARCH", Kind: words, harmless: true},
	{Name: Timeout, Env: "MARCHWARDEN_TIMEOUT", Kind: span, Def: "10m", harmless: true},
	{Name: Chromium, Env: "MARCHWARDEN_CHROMIUM", Kind: Folder},
	{Name: FetchAllow, Env: "MARCHWARDEN_FETCH_ALLOW", Kind: words},
	{Name: Online, Env: "MARCHWARDEN_ONLINE", Kind: Boolean, Def: "false"},
	{Name: DB, Env: "MARCHWARDEN_DB", Secret: true, Personal: true, EnvOnly: true},
	{Name: AllowEgress, Env: "MARCHWARDEN_ALLOW_EGRESS", Kind: words},
	{Name: ArxivURL, Env: "ARXIV_URL", Kind: Address, Def: "https://export.arxiv.org", harmless: true},
	{Name: ArxivSite, Env: "ARXIV_SITE", Kind: Address, Def: "https://arxiv.org", harmless: true},
	{Name: CrossrefURL, Env: "CROSSREF_URL", Kind: Address, Def: "https://api.crossref.org", harmless: true},
	{Name: OpenAlexURL, Env: "OPENALEX_URL", Kind: Address, Def: "https://api.openalex.org", of: OpenAlexKey},
	{Name: ScholarURL, Env: "SEMANTIC_SCHOLAR_URL", Kind: Address, Def: "https://api.semanticscholar.org", of: ScholarKey},
	{Name: Mailto, Env: "MARCHWARDEN_MAILTO", harmless: true},
	{Name: AnthropicURL, Env: "ANTHROPIC_BASE_URL", Kind: Address, Def: "https://api.anthropic.com", of: AnthropicKey},
	{Name: OpenAIURL, Env: "OPENAI_BASE_URL", Kind: Address, Def: "https://api.openai.com/v1", of: OpenAIKey},
	{Name: OllamaHost, Env: "OLLAMA_HOST", Kind: Address, Def: "http://127.0.0.1:11434"},
	{Name: TavilyURL, Env: "TAVILY_BASE_URL", Kind: Address, Def: "https://api.tavily.com", of: TavilyKey},
	{Name: BraveURL, Env: "BRAVE_BASE_URL", Kind: Address, Def: "https://api.search.brave.com", of: BraveKey},
	{Name: SearxngURL, Env: "SEARXNG_URL", Kind: Address, harmless: true},
	{Name: WikipediaURL, Env: "WIKIPEDIA_URL", Kind: Address, Def: "https://en.wikipedia.org", harmless: true},
	{Name: AnthropicKey, Env: "ANTHROPIC_API_KEY", Secret: true, EnvOnly: true},
	{Name: OpenAIKey, Env: "OPENAI_API_KEY", Secret: true, EnvOnly: true},
	{Name: OpenRouterKey, Env: "OPENROUTER_API_KEY", Secret: true, EnvOnly: true},
	{Name: GeminiKey, Env: "GEMINI_API_KEY", Secret: true, EnvOnly: true},
	{Name: TavilyKey, Env: "TAVILY_API_KEY", Secret: true, EnvOnly: true},
	{Name: BraveKey, Env: "BRAVE_API_KEY", Secret: true, EnvOnly: true},
	{Name: OpenAlexKey, Env: "OPENALEX_API_KEY", Secret: true, EnvOnly: true},
	{Name: ScholarKey, Env: "SEMANTIC_SCHOLAR_API_KEY", Secret: true, EnvOnly: true},
	{Name: HTTPToken, Env: "MARCHWARDEN_HTTP_TOKEN", Secret: true, Personal: true, EnvOnly: true},
	{Name: Engine, Env: "MARCHWARDEN_ENGINE", Kind: engineURL},
	{Name: EngineKey, Env: "MARCHWARDEN_ENGINE_KEY", Kind: Folder},
	{Name: EngineCA, Env: "MARCHWARDEN_ENGINE_CA", Kind: Folder},
	{Name: EngineCert, Env: "MARCHWARDEN_ENGINE_CERT", Kind: Folder},
	{Name: EngineCertKey, Env: "MARCHWARDEN_ENGINE_CERT_KEY", Kind: Folder},
	{Name: Worker, Env: "MARCHWARDEN_WORKER"},
	{Name: Limits, Env: "MARCHWARDEN_LIMITS", Kind: rules},
	{Name: Prices, Env: "MARCHWARDEN_PRICES", Kind: rules},
	{Name: Blobs, Env: "MARCHWARDEN_BLOBS"},
	{Name: HubListen, Env: "MARCHWARDEN_HUB_LISTEN"},
	{Name: HubStore, Env: "MARCHWARDEN_HUB_STORE", Kind: Folder},
	{Name: HubMaxStore, Env: "MARCHWARDEN_HUB_MAX_STORE"},
	{Name: HubKeys, Env: "MARCHWARDEN_HUB_KEYS", Kind: Folder},
	{Name: HubName, Env: "MARCHWARDEN_HUB_NAME"},
	{Name: HubTLSCert, Env: "MARCHWARDEN_HUB_TLS_CERT", Kind: Folder},
	{Name: HubTLSKey, Env: "MARCHWARDEN_HUB_TLS_KEY", Kind: Folder},
	{Name: HubTLSCA, Env: "MARCHWARDEN_HUB_TLS_CA", Kind: Folder},
	{Name: HubClusterName, Env: "MARCHWARDEN_HUB_CLUSTER_NAME"},
	{Name: HubClusterListen, Env: "MARCHWARDEN_HUB_CLUSTER_LISTEN"},
	{Name: HubRoutes, Env: "MARCHWARDEN_HUB_ROUTES", Kind: words},
	{Name: HubClusterSecret, Env: "MARCHWARDEN_HUB_CLUSTER_SECRET", Kind: Folder},
	{Name: HubClusterCert, Env: "MARCHWARDEN_HUB_CLUSTER_CERT", Kind: Folder},
	{Name: HubClusterKey, Env: "MARCHWARDEN_HUB_CLUSTER_KEY", Kind: Folder},
	{Name: HubClusterCA, Env: "MARCHWARDEN_HUB_CLUSTER_CA", Kind: Folder},
	{Name: HubReplicas, Env: "MARCHWARDEN_HUB_REPLICAS"},
	{Name: HubLease, Env: "MARCHWARDEN_HUB_LEASE", Kind: span},
	{Name: HubKeepLog, Env: "MARCHWARDEN_HUB_KEEP_LOG"},
	{Name: HubKeepTask, Env: "MARCHWARDEN_HUB_KEEP_TASK"},
	{Name: HubKeepDone, Env: "MARCHWARDEN_HUB_KEEP_DONE"},
}

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

// SplitWords is a list of words as a flag or a variable has it.
func SplitWords(v string) []string { return Setting{Kind: words}.split(v) }

// Present reports whether an environment variable says anything: one that is empty
// does not, nor does a key of white space.
func (s Setting) Present(v string) bool { return v != "" && !(s.Secret && strings.TrimSpace(v) == "") }

// Read brings texts into the form that the program uses, or says what is wrong.
func (s Setting) Read(texts []string, absolute func(string) string) (read []string, problem string) {
	if s.Kind != Folders && s.Kind != words && s.Kind != rules && len(texts) != 1 {
		return nil, "must be one value, not a list"
	}
	if s.Kind == words || s.Kind == rules { // a list may be written as one text in config.yaml, too
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
		case presence:
			read[i] = "true"
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
			if s.Name == Embed && slices.Contains(embedServices, t) {
				return nil, noEmbedService
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
