// Package remote asks services of the user's own for sentence vectors: OpenAI and others with its
// protocol, and Ollama. It owns the two protocols: what is asked, in which portions, and what an
// answer must be to be believed. The texts leave this program; whether they may is decided by the
// maker of an embedder.
package remote

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// Where the services are, and the models that are asked where none is named.
const (
	openAIBase  = "https://api.openai.com/v1"
	ollamaBase  = "http://127.0.0.1:11434"
	openAIModel = "text-embedding-3-small"
	ollamaModel = "all-minilm"
)

// What one request may hold. A token is at least a byte, so that no text is over the
// 8,192 tokens that a service may take, and no request over its 300,000.
const (
	maxText    = 8_000 // bytes; the rest of a text is cut
	maxTexts   = 64
	maxRequest = 250_000 // bytes
	maxAnswer  = 16 << 20
	maxNumbers = 1 << 16 // of a vector
)

// Config says how to reach a service.
type Config struct {
	Key       string
	BaseURL   string        // "" is the service's own
	Model     string        // "" is its usual one
	HTTP      *http.Client  // nil is a client of its own
	UserAgent string        // "" is "marchwarden"
	Timeout   time.Duration // of one request; 0 is 20 seconds, or two minutes of a server that may first load its model
}

// service is one of them. It is safe for concurrent use.
type service struct {
	name, id string
	model    string
	api      httpapi.Service
	ask      func(ctx context.Context, s *service, texts []string) (answer, error)

	mu      sync.Mutex // guards numbers
	numbers int        // of a vector, when one is known
}

// answer is what a service gave: one list of numbers for each text, in order, and how
// many tokens it counted.
type answer struct {
	lists  [][]float32
	tokens int
}

// OpenAI makes an embedder of a service that speaks OpenAI's protocol. Its id is
// "openai/" and the model, and the host of a service that is not OpenAI's own. Errors
// are those of httpapi.Service and never hold the key. It asks the account of the
// context (embed.AccountOf) before each request.
func OpenAI(c Config) embed.Embedder {
	return newService("openai", c, openAIBase, openAIModel, askOpenAI)
}

// Ollama is OpenAI for Ollama.
func Ollama(c Config) embed.Embedder {
	c.Timeout = cmp.Or(c.Timeout, 2*time.Minute)
	return newService("ollama", c, ollamaBase, ollamaModel, askOllama)
}

func newService(name string, c Config, base, model string, ask func(context.Context, *service, []string) (answer, error)) *service {
	s := &service{name: name, model: cmp.Or(c.Model, model), ask: ask}
	s.id = name + "/" + s.model
	if at := cmp.Or(c.BaseURL, base); at != base {
		if u, err := url.Parse(at); err == nil {
			s.id += "@" + u.Host
		}
	}
	s.api = httpapi.Service{
		Name: name + " embeddings", Base: cmp.Or(c.BaseURL, base), HTTP: c.HTTP, UserAgent: c.UserAgent,
		Timeout: cmp.Or(c.Timeout, 20*time.Second), MaxBytes: maxAnswer, Secrets: []string{c.Key}, DeniedHint: "check the key of " + name + " and what it may be used for",
	}
	if c.Key != "" {
		s.api.Header = http.Header{"Authorization": {"Bearer " + c.Key}}
	}
	return s
}

// ID names the service and the model.
func (s *service) ID() string { return s.id }

// Embed asks for vectors, in as many requests as it takes.
func (s *service) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	out := make([]embed.Vector, 0, len(texts))
	for portion := range portions(texts) {
		vs, err := s.request(ctx, portion)
		if err != nil {
			return nil, err
		}
		out = append(out, vs...)
	}
	return out, ctx.Err()
}

// portions divides texts into requests, each text as it is sent.
func portions(texts []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		var now []string
		size := 0
		for _, t := range texts {
			t = sent(t)
			if len(now) == maxTexts || size+len(t) > maxRequest {
				if !yield(now) {
					return
				}
				now, size = nil, 0
			}
			now, size = append(now, t), size+len(t)
		}
		if len(now) > 0 {
			yield(now)
		}
	}
}

// sent is a text as a service takes it: valid, cut to its window, and not blank, which
// is refused.
func sent(t string) string {
	if len(t) > maxText {
		end := maxText
		for end > 0 && !utf8.RuneStart(t[end]) {
			end-- // part of a character
		}
		t = t[:end]
	}
	if t = strings.ToValidUTF8(t, "\uFFFD"); strings.TrimSpace(t) == "" {
		return "."
	}
	return t
}

func (s *service) request(ctx context.Context, texts []string) ([]embed.Vector, error) {
	estimate, least := 0, 0
	for _, t := range texts {
		estimate += llm.EstimateText(t) + 2 // what models put around a text
		least += len(t)
	}
	settle, err := embed.AccountOf(ctx).Reserve(estimate)
	if err != nil {
		return nil, err
	}
	a, err := s.ask(ctx, s, texts)
	if err != nil {
		settle(0)
		return nil, err
	}
	// No tokenizer in use makes fewer tokens than one for eight bytes.
	settle(max(a.tokens, least/8))
	return s.vectors(a.lists, len(texts))
}

func (s *service) vectors(lists [][]float32, texts int) ([]embed.Vector, error) {
	if len(lists) != texts {
		return nil, s.malformed("%d vectors for %d texts", len(lists), texts)
	}
	out := make([]embed.Vector, len(lists))
	for i, l := range lists {
		if err := s.sameLength(len(l)); err != nil {
			return nil, err
		}
		sum := 0.0
		for _, x := range l {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return nil, s.malformed("vector %d has no direction", i+1)
		}
		v := make(embed.Vector, len(l))
		for k, x := range l {
			v[k] = float32(float64(x) / math.Sqrt(sum))
		}
		out[i] = v
	}
	return out, nil
}

// sameLength refuses a vector that cannot be compared with those before it.
func (s *service) sameLength(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.numbers == 0 && n > 0 && n <= maxNumbers {
		s.numbers = n
	}
	if n != s.numbers || n == 0 {
		return s.malformed("a vector of %d numbers where they have %d", n, s.numbers)
	}
	return nil
}

func (s *service) malformed(format string, args ...any) error {
	return marchwarden.Errorf(marchwarden.CodeMalformed, s.api.Name+": the answer has "+format, args...)
}

func askOpenAI(ctx context.Context, s *service, texts []string) (answer, error) {
	var reply struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Total  int `json:"total_tokens"`
		} `json:"usage"`
	}
	err := s.api.PostJSON(ctx, "embeddings", struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}{s.model, texts, "float"}, &reply)
	if err != nil {
		return answer{}, err
	}
	a := answer{lists: make([][]float32, len(texts)), tokens: max(reply.Usage.Prompt, reply.Usage.Total)}
	for _, d := range reply.Data {
		if d.Index < 0 || d.Index >= len(texts) || a.lists[d.Index] != nil {
			return answer{}, s.malformed("a vector for text %d of %d, or two of them", d.Index, len(texts))
		}
		a.lists[d.Index] = d.Embedding
	}
	if i := slices.IndexFunc(a.lists, func(l []float32) bool { return l == nil }); i >= 0 {
		return answer{}, s.malformed("no vector for text %d of %d", i, len(texts))
	}
	return a, nil
}

func askOllama(ctx context.Context, s *service, texts []string) (answer, error) {
	var reply struct {
		Embeddings [][]float32 `json:"embeddings"`
		Tokens     int         `json:"prompt_eval_count"`
	}
	err := s.api.PostJSON(ctx, "api/embed", struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Truncate bool     `json:"truncate"`
	}{s.model, texts, true}, &reply)
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Hint == "" && e.Code == marchwarden.CodeUnavailable {
		e.Hint = "is Ollama running, and was the model fetched by 'ollama pull " + s.model + "'?"
	}
	return answer{reply.Embeddings, reply.Tokens}, err
}
