package network

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/engines"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// NoModel is how people ask for the reasoner that needs no model.
const NoModel = "extractive"

// provider is who serves language models, and how it is reached.
type provider struct {
	Name string
	base string // the setting of its address; "" for a fixed one
	at   string // its address when no setting says another
	key  string // the setting of its key; "" for a server that needs none
	// port and path complete the address of a setting that names a host only.
	port, path string
	// byDefault is the model that the provider's name alone stands for.
	byDefault string
	// idle is how long the provider may be silent; 0 is the adapter's own limit. A
	// server on this machine may first have to load its model.
	idle time.Duration
}

const loading = 5 * time.Minute

// providers are all there are. Servers on this machine have their usual address.
var providers = []provider{
	{Name: "anthropic", base: settings.AnthropicURL, key: settings.AnthropicKey, byDefault: anthropic.DefaultModel},
	{Name: "openai", base: settings.OpenAIURL, key: settings.OpenAIKey, byDefault: "gpt-5.4-mini"},
	{Name: "openrouter", at: "https://openrouter.ai/api/v1", key: settings.OpenRouterKey},
	{Name: "gemini", at: "https://generativelanguage.googleapis.com/v1beta/openai", key: settings.GeminiKey},
	{Name: "ollama", base: settings.OllamaHost, port: "11434", path: "/v1", idle: loading},
	{Name: "lmstudio", at: "http://127.0.0.1:1234/v1", idle: loading},
	{Name: "llamacpp", at: "http://127.0.0.1:8080/v1", idle: loading},
	{Name: "vllm", at: "http://127.0.0.1:8000/v1", idle: loading},
}

func providerNames() (names []string) {
	for _, p := range providers {
		names = append(names, p.Name)
	}
	return names
}

// chosenModel is the name of a model and where it came from, or "" for none.
type chosenModel struct {
	Name   string
	Origin string // the flag or the setting that says so; for people
}

// ChooseModel finds which model a research uses: the one that is named, or else,
// for researchers of public sources, the first whose key is there. What is in
// the user's own folders goes to a provider only if a model was named.
func ChooseModel(c *settings.Settings, flag string, public bool) chosenModel {
	switch {
	case flag != "":
		return chosenModel{flag, "--model"}
	case c.Text(settings.Model) != "":
		return chosenModel{c.Text(settings.Model), c.Label(settings.Model)}
	case !public:
		return chosenModel{}
	case c.Text(settings.AnthropicKey) != "":
		return chosenModel{"anthropic/" + anthropic.DefaultModel, settings.EnvOf(settings.AnthropicKey)}
	case c.Text(settings.OpenAIKey) != "":
		return chosenModel{"openai", settings.EnvOf(settings.OpenAIKey)}
	}
	return chosenModel{}
}

// OpenModel makes the model of a name such as "anthropic/claude-…", "ollama/qwen3"
// or "claude-…"; nil for the extractive reasoner.
func (h *Host) OpenModel(c *settings.Settings, chosen chosenModel) (llm.Model, error) {
	model, err := h.bareModel(c, chosen.Name, chosen.Origin)
	if err != nil || model == nil {
		return nil, err
	}
	return llm.NewSteady(model, llm.SteadyConfig{Now: h.Now}), nil
}

func (h *Host) bareModel(c *settings.Settings, name, origin string) (llm.Model, error) {
	if name == "" || name == NoModel {
		return nil, nil
	}
	p, model, err := ParseModel(name, origin)
	if err != nil {
		return nil, err
	}
	key, address := c.Text(p.key), p.Address(c)
	custom := p.base != "" && c.Origin(p.base) != settings.FromDefault
	if p.key != "" && key == "" && !custom {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: origin, Message: fmt.Sprintf("%s needs a key", name),
			Hint: "set " + settings.EnvOf(p.key) + " in the environment or in .env, or use --model " + NoModel}
	}
	prices, err := pricesOf(c)
	if err != nil {
		return nil, err
	}
	cfg := llm.Config{Provider: p.Name, Idle: p.idle, Key: key, BaseURL: address, Model: model, HTTP: h.ServiceClient()}
	if p.Name == "anthropic" {
		return llm.NewRationed(anthropic.New(cfg), h.Limits, h.Now, prices), nil
	}
	return llm.NewRationed(openai.New(cfg), h.Limits, h.Now, prices), nil
}

// pricesOf are the prices that the user has set.
func pricesOf(c *settings.Settings) (ledger.Prices, error) {
	prices, err := ledger.ParsePrices(c.List(settings.Prices))
	if err != nil {
		return nil, settings.Invalid(c.Label(settings.Prices), "for example openai/gpt-5.4-mini 0.75 4.50 0.075", err.Error())
	}
	return prices, nil
}

// Address is where the provider is. The path that its protocol is under may be in
// the setting or not.
func (p provider) Address(c *settings.Settings) string {
	if p.base == "" || c.Text(p.base) == "" {
		return p.at
	}
	return WithPort(strings.TrimSuffix(strings.TrimRight(c.Text(p.base), "/"), p.path), p.port) + p.path
}

// WithPort gives an address a port if it has none and there is a usual one for
// plain http.
func WithPort(address, port string) string {
	u, err := url.Parse(address)
	if err != nil || port == "" || u.Port() != "" || u.Scheme != "http" {
		return address
	}
	u.Host = net.JoinHostPort(u.Hostname(), port)
	return u.String()
}

// ParseModel splits provider and model. A bare name is taken where it is plain
// who makes it.
func ParseModel(name, origin string) (provider, string, error) {
	who, model, split := strings.Cut(name, "/")
	if !split {
		model = name
		switch {
		case slices.Contains(providerNames(), name):
			who, model = name, ""
		case strings.HasPrefix(name, "claude-"):
			who = "anthropic"
		case strings.HasPrefix(name, "gpt-"):
			who = "openai"
		case strings.HasPrefix(name, "gemini-"):
			who = "gemini"
		}
	}
	i := slices.IndexFunc(providers, func(p provider) bool { return p.Name == who })
	if i < 0 {
		return provider{}, "", settings.Invalid(origin, "for example anthropic/"+anthropic.DefaultModel+" or ollama/qwen3; a server that speaks OpenAI's protocol is openai/MODEL with OPENAI_BASE_URL",
			fmt.Sprintf("must be %s or PROVIDER/MODEL with one of the providers %s, not %q", NoModel, settings.Either(providerNames()), plaintext.Clip(name, 60)))
	}
	if model == "" {
		model = providers[i].byDefault
	}
	if model == "" || strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return provider{}, "", settings.Invalid(origin, "for example "+who+"/qwen3", fmt.Sprintf("names no model of %s", who))
	}
	return providers[i], model, nil
}

// ServiceClient is for the services that the user configured, models and search
// engines: it honours the proxy of the environment and bounds every phase but the
// reading of the reply, which its readers bound. A service that repeats a secret, its
// own or another's, is not heard.
func (h *Host) ServiceClient() *http.Client {
	return &http.Client{Transport: h.Hide.Transport(serviceTransport())}
}

func serviceTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, MaxIdleConns: 64,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 256 << 10,
	}
}

// sharedClient is ServiceClient for a service whose limit all who work for one engine
// share, by its name.
func (h *Host) sharedClient(service string) *http.Client {
	client := h.ServiceClient()
	if h.Limits != nil {
		client.Transport = engines.Transport(func(string) dispatch.Limiter { return h.Limits(limit.Key(service, limit.Requests)) }, h.Now, client.Transport)
	}
	return client
}

// Vectors is what makes the sentence vectors of a command, with what was made before.
type Vectors struct {
	Embedder embed.Embedder // nil for none
	shelf    *embed.DiskStore
}

// OpenVectors opens the model in the program, unless the settings switch it off.
func (h *Host) OpenVectors(c *settings.Settings) *Vectors {
	v := &Vectors{shelf: embed.OpenDiskStore(c.VectorsPath(), 0)}
	if c.Text(settings.Embed) != settings.EmbedOff {
		v.Embedder = v.Of(bert.MiniLMID)
	}
	return v
}

// Of finds the embedder of a run that is resumed or run again: whatever the settings say, the one in
// the program is there for its own runs. It is nil for another id.
func (v *Vectors) Of(id string) embed.Embedder {
	e := BuiltinVectors(id)
	if e == nil {
		return nil
	}
	return embed.Cached(e, v.shelf)
}

// BuiltinVectors is the embedder in the program if it has that id, and else nil.
func BuiltinVectors(id string) embed.Embedder {
	if id != bert.MiniLMID {
		return nil
	}
	return bert.MiniLM()
}
