package main

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
)

// kind is how the text of a setting is read.
type kind int

const (
	text      kind = iota
	folder         // a path
	folders        // several paths, in the environment separated like PATH
	words          // several words, in the environment separated by commas
	address        // an http or https address
	span           // a time such as 90s or 10m
	boolean        // 1, true, 0, false…
	presence       // true whatever its text is, as NO_COLOR wants it
	engineURL      // the address of an engine, or several of its hubs with commas
	rules          // several sentences, in the environment separated by commas
)

// setting is one row of the table of settings.
type setting struct {
	name    string // in config.yaml and in doctor
	env     string // in the environment and in .env
	kind    kind
	def     string   // a path is below home
	allowed []string // the texts there are, if they are few
	secret  bool
	envOnly bool // config.yaml cannot say it
	// harmless settings may come from .env in the working directory, which may be
	// somebody else's folder. Keys may, too; what decides where keys, documents and
	// connections go may not.
	harmless bool
	// personal settings are the user's own to say, secret or not.
	personal bool
	// of is the key that an address is for: .env may say both, or neither.
	of string
}

// The names of the settings.
const (
	setHome      = "home"
	setTraceDir  = "trace_dir"
	setLedger    = "cost_ledger"
	setDepth     = "depth"
	setLibrary   = "library"
	setLogFormat = "log_format"
	setDebug     = "debug"
	setNoColor   = "no_color"

	setResearcher    = "researcher"
	setModel         = "model"
	setFallback      = "fallback_model"
	setEmbed         = "embed"
	setEmbedModel    = "embed_model"
	setSearch        = "search"
	setTimeout       = "timeout"
	setRender        = "render"
	setChromium      = "chromium"
	setFetchAllow    = "fetch_allow"
	setOnline        = "online"
	setDB            = "db"
	setAllowEgress   = "allow_egress"
	setArxivURL      = "arxiv_url"
	setArxivSite     = "arxiv_site"
	setCrossrefURL   = "crossref_url"
	setOpenAlexURL   = "openalex_url"
	setScholarURL    = "semantic_scholar_url"
	setScholarKey    = "semantic_scholar_api_key"
	setOpenAlexKey   = "openalex_api_key"
	setMailto        = "mailto"
	setAnthropicURL  = "anthropic_base_url"
	setOpenAIURL     = "openai_base_url"
	setOllamaHost    = "ollama_host"
	setTavilyURL     = "tavily_base_url"
	setBraveURL      = "brave_base_url"
	setSearxngURL    = "searxng_url"
	setWikipediaURL  = "wikipedia_url"
	setAnthropicKey  = "anthropic_api_key"
	setOpenAIKey     = "openai_api_key"
	setOpenRouterKey = "openrouter_api_key"
	setTavilyKey     = "tavily_api_key"
	setBraveKey      = "brave_api_key"
	setHTTPToken     = "http_token"

	setEngine        = "engine"
	setEngineKey     = "engine_key"
	setEngineCA      = "engine_ca"
	setEngineCert    = "engine_cert"
	setEngineCertKey = "engine_cert_key"
	setWorker        = "worker"
	setLimits        = "limits"
	setBlobs         = "blobs"
	setS3Key         = "s3_access_key_id"
	setS3Secret      = "s3_secret_access_key"

	setHubListen        = "hub_listen"
	setHubStore         = "hub_store"
	setHubMaxStore      = "hub_max_store"
	setHubKeys          = "hub_keys"
	setHubName          = "hub_name"
	setHubTLSCert       = "hub_tls_cert"
	setHubTLSKey        = "hub_tls_key"
	setHubTLSCA         = "hub_tls_ca"
	setHubClusterName   = "hub_cluster_name"
	setHubClusterListen = "hub_cluster_listen"
	setHubRoutes        = "hub_routes"
	setHubClusterSecret = "hub_cluster_secret"
	setHubClusterCert   = "hub_cluster_cert"
	setHubClusterKey    = "hub_cluster_key"
	setHubClusterCA     = "hub_cluster_ca"
	setHubReplicas      = "hub_replicas"
	setHubLease         = "hub_lease"
	setHubKeepLog       = "hub_keep_log"
	setHubKeepTask      = "hub_keep_task"
	setHubKeepDone      = "hub_keep_done"
)

// settings is every setting there is, in the order doctor shows them.
var settings = []setting{
	{name: setHome, env: "MARCHWARDEN_HOME", kind: folder, envOnly: true},
	{name: setTraceDir, env: "MARCHWARDEN_TRACE_DIR", kind: folder, def: "traces"},
	{name: setLedger, env: "MARCHWARDEN_COST_LEDGER", kind: folder, def: "costs.jsonl"},
	{name: setDepth, env: "MARCHWARDEN_DEPTH", def: string(marchwarden.Balanced), allowed: []string{string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep)}, harmless: true},
	{name: setLibrary, env: "MARCHWARDEN_LIBRARY", kind: folders},
	{name: setLogFormat, env: "MARCHWARDEN_LOG_FORMAT", def: "text", allowed: []string{"text", "json"}, harmless: true},
	{name: setDebug, env: "MARCHWARDEN_DEBUG", kind: boolean, def: "false", harmless: true},
	{name: setNoColor, env: "NO_COLOR", kind: presence, def: "false", envOnly: true, harmless: true},
	{name: setResearcher, env: "MARCHWARDEN_RESEARCHER", def: piName, allowed: []string{piName, files.Name, database.Name, web.Name, arxiv.Name}},
	{name: setModel, env: "MARCHWARDEN_MODEL"},
	{name: setFallback, env: "MARCHWARDEN_FALLBACK_MODEL"},
	{name: setEmbed, env: "MARCHWARDEN_EMBED", def: embedBuiltin, allowed: []string{embedBuiltin, embedOff, embedOpenAI, embedOllama}},
	{name: setEmbedModel, env: "MARCHWARDEN_EMBED_MODEL"},
	{name: setSearch, env: "MARCHWARDEN_SEARCH", kind: words, harmless: true},
	{name: setTimeout, env: "MARCHWARDEN_TIMEOUT", kind: span, def: "10m", harmless: true},
	{name: setRender, env: "MARCHWARDEN_RENDER", def: renderAuto, allowed: []string{renderAuto, renderNever}, harmless: true},
	{name: setChromium, env: "MARCHWARDEN_CHROMIUM", kind: folder},
	{name: setFetchAllow, env: "MARCHWARDEN_FETCH_ALLOW", kind: words},
	{name: setOnline, env: "MARCHWARDEN_ONLINE", kind: boolean, def: "false"},
	{name: setDB, env: "MARCHWARDEN_DB", secret: true, personal: true, envOnly: true},
	{name: setAllowEgress, env: "MARCHWARDEN_ALLOW_EGRESS", kind: words},
	{name: setArxivURL, env: "ARXIV_URL", kind: address, def: "https://export.arxiv.org", harmless: true},
	{name: setArxivSite, env: "ARXIV_SITE", kind: address, def: "https://arxiv.org", harmless: true},
	{name: setCrossrefURL, env: "CROSSREF_URL", kind: address, def: "https://api.crossref.org", harmless: true},
	{name: setDOIURL, env: "DOI_URL", kind: address, def: "https://doi.org", harmless: true},
	{name: setOpenAlexURL, env: "OPENALEX_URL", kind: address, def: "https://api.openalex.org", of: setOpenAlexKey},
	{name: setScholarURL, env: "SEMANTIC_SCHOLAR_URL", kind: address, def: "https://api.semanticscholar.org", of: setScholarKey},
	{name: setMailto, env: "MARCHWARDEN_MAILTO", harmless: true},
	{name: setAnthropicURL, env: "ANTHROPIC_BASE_URL", kind: address, def: "https://api.anthropic.com", of: setAnthropicKey},
	{name: setOpenAIURL, env: "OPENAI_BASE_URL", kind: address, def: "https://api.openai.com/v1", of: setOpenAIKey},
	{name: setOllamaHost, env: "OLLAMA_HOST", kind: address, def: "http://127.0.0.1:11434"},
	{name: setTavilyURL, env: "TAVILY_BASE_URL", kind: address, def: "https://api.tavily.com", of: setTavilyKey},
	{name: setBraveURL, env: "BRAVE_BASE_URL", kind: address, def: "https://api.search.brave.com", of: setBraveKey},
	{name: setSearxngURL, env: "SEARXNG_URL", kind: address, harmless: true},
	{name: setWikipediaURL, env: "WIKIPEDIA_URL", kind: address, def: "https://en.wikipedia.org", harmless: true},
	{name: setAnthropicKey, env: "ANTHROPIC_API_KEY", secret: true, envOnly: true},
	{name: setOpenAIKey, env: "OPENAI_API_KEY", secret: true, envOnly: true},
	{name: setOpenRouterKey, env: "OPENROUTER_API_KEY", secret: true, envOnly: true},
	{name: setTavilyKey, env: "TAVILY_API_KEY", secret: true, envOnly: true},
	{name: setBraveKey, env: "BRAVE_API_KEY", secret: true, envOnly: true},
	{name: setOpenAlexKey, env: "OPENALEX_API_KEY", secret: true, envOnly: true},
	{name: setScholarKey, env: "SEMANTIC_SCHOLAR_API_KEY", secret: true, envOnly: true},
	{name: setHTTPToken, env: "MARCHWARDEN_HTTP_TOKEN", secret: true, personal: true, envOnly: true},
	{name: setEngine, env: "MARCHWARDEN_ENGINE", kind: engineURL},
	{name: setEngineKey, env: "MARCHWARDEN_ENGINE_KEY", kind: folder},
	{name: setEngineCA, env: "MARCHWARDEN_ENGINE_CA", kind: folder},
	{name: setEngineCert, env: "MARCHWARDEN_ENGINE_CERT", kind: folder},
	{name: setEngineCertKey, env: "MARCHWARDEN_ENGINE_CERT_KEY", kind: folder},
	{name: setWorker, env: "MARCHWARDEN_WORKER"},
	{name: setLimits, env: "MARCHWARDEN_LIMITS", kind: rules},
	{name: setBlobs, env: "MARCHWARDEN_BLOBS"},
	{name: setHubListen, env: "MARCHWARDEN_HUB_LISTEN"},
	{name: setHubStore, env: "MARCHWARDEN_HUB_STORE", kind: folder},
	{name: setHubMaxStore, env: "MARCHWARDEN_HUB_MAX_STORE"},
	{name: setHubKeys, env: "MARCHWARDEN_HUB_KEYS", kind: folder},
	{name: setHubName, env: "MARCHWARDEN_HUB_NAME"},
	{name: setHubTLSCert, env: "MARCHWARDEN_HUB_TLS_CERT", kind: folder},
	{name: setHubTLSKey, env: "MARCHWARDEN_HUB_TLS_KEY", kind: folder},
	{name: setHubTLSCA, env: "MARCHWARDEN_HUB_TLS_CA", kind: folder},
	{name: setHubClusterName, env: "MARCHWARDEN_HUB_CLUSTER_NAME"},
	{name: setHubClusterListen, env: "MARCHWARDEN_HUB_CLUSTER_LISTEN"},
	{name: setHubRoutes, env: "MARCHWARDEN_HUB_ROUTES", kind: words},
	{name: setHubClusterSecret, env: "MARCHWARDEN_HUB_CLUSTER_SECRET", kind: folder},
	{name: setHubClusterCert, env: "MARCHWARDEN_HUB_CLUSTER_CERT", kind: folder},
	{name: setHubClusterKey, env: "MARCHWARDEN_HUB_CLUSTER_KEY", kind: folder},
	{name: setHubClusterCA, env: "MARCHWARDEN_HUB_CLUSTER_CA", kind: folder},
	{name: setHubReplicas, env: "MARCHWARDEN_HUB_REPLICAS"},
	{name: setHubLease, env: "MARCHWARDEN_HUB_LEASE", kind: span},
	{name: setHubKeepLog, env: "MARCHWARDEN_HUB_KEEP_LOG"},
	{name: setHubKeepTask, env: "MARCHWARDEN_HUB_KEEP_TASK"},
	{name: setHubKeepDone, env: "MARCHWARDEN_HUB_KEEP_DONE"},
	{name: setS3Key, env: "AWS_ACCESS_KEY_ID", secret: true, personal: true, envOnly: true},
	{name: setS3Secret, env: "AWS_SECRET_ACCESS_KEY", secret: true, personal: true, envOnly: true},
}

// settingOf is the row of a setting that there is.
func settingOf(name string) setting {
	return settings[slices.IndexFunc(settings, func(s setting) bool { return s.name == name })]
}

// settingEnv is the environment variable of a setting.
func settingEnv(name string) string { return settingOf(name).env }

// given reports whether something other than the default says a setting.
func (c *config) given(name string) bool {
	origin := c.values[name].origin
	return origin != "" && origin != fromDefault
}

// label names a setting the way the place spells it that its value is from.
func (c *config) label(name string) string {
	if c.given(name) {
		return settingOf(name).label(c.values[name].origin)
	}
	return settingEnv(name)
}

// label names a setting the way its origin spells it.
func (s setting) label(origin string) string {
	switch origin {
	case fromEnv:
		return s.env
	case fromFile, fromDotEnv:
		name := s.name
		if origin == fromDotEnv {
			name = s.env
		}
		return name + " in " + origin
	}
	return origin // a flag
}

// split is the value of an environment variable as the texts it stands for.
func (s setting) split(v string) []string {
	switch s.kind {
	case folders:
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

// present reports whether an environment variable says anything: one that is empty
// does not, nor does a key of white space.
func (s setting) present(v string) bool { return v != "" && !(s.secret && strings.TrimSpace(v) == "") }

// read brings texts into the form that the program uses, or says what is wrong.
func (s setting) read(texts []string, absolute func(string) string) (read []string, problem string) {
	if s.kind != folders && s.kind != words && s.kind != rules && len(texts) != 1 {
		return nil, "must be one value, not a list"
	}
	if s.kind == words || s.kind == rules { // a list may be written as one text in config.yaml, too
		return s.split(strings.Join(texts, ",")), ""
	}
	read = slices.Clone(texts)
	for i, t := range texts {
		switch s.kind {
		case folder, folders:
			if strings.TrimSpace(t) == "" {
				return nil, "must not be blank"
			}
			read[i] = absolute(t)
		case presence:
			read[i] = "true"
		case address:
			if read[i], problem = readAddress(t); problem != "" {
				return nil, problem
			}
		case engineURL:
			if read[i], problem = readEngine(t); problem != "" {
				return nil, problem
			}
		case span:
			d, err := time.ParseDuration(t)
			if err != nil || d < minTimeout || d > maxTimeout {
				return nil, fmt.Sprintf("must be a time between %s and %s such as 90s or 10m, not %q", minTimeout, maxTimeout, clip(t, 40))
			}
			read[i] = d.String()
		case boolean:
			b, err := strconv.ParseBool(strings.ToLower(t))
			if err != nil {
				return nil, fmt.Sprintf("must be true or false (or 1 or 0), not %q", clip(t, 40))
			}
			read[i] = strconv.FormatBool(b)
		case text:
			if s.secret {
				read[i] = strings.TrimSpace(t)
				if strings.ContainsFunc(read[i], func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
					return nil, "holds a control character or one that is not seen" // and never the key itself
				}
			}
			if s.allowed != nil && !slices.Contains(s.allowed, t) {
				return nil, fmt.Sprintf("must be %s, not %q", either(s.allowed), clip(t, 40))
			}
		}
	}
	return read, ""
}

// The shortest and longest time that a research may be given.
const (
	minTimeout = time.Second
	maxTimeout = 24 * time.Hour
)

// readAddress checks the address of a service. One without a scheme, as some
// variables of other programs have it, is taken as http. Its error does not
// repeat the address, which may hold a password.
func readAddress(t string) (read, problem string) {
	if !strings.Contains(t, "://") {
		t = "http://" + t
	}
	u, err := url.Parse(t)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return "", "must be an http or https address such as http://127.0.0.1:8080"
	}
	return strings.TrimRight(u.String(), "/"), ""
}

func (s setting) byDefault(home string) value {
	switch {
	case s.def == "":
		return value{nil, fromDefault}
	case s.kind == folder:
		return value{[]string{filepath.Join(home, s.def)}, fromDefault}
	}
	return value{[]string{s.def}, fromDefault}
}
