package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-embed-7Qx2Lm9Zt4Vb"

// asked is what a server was asked.
type asked struct {
	Path, Auth string
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format"`
	Truncate   bool     `json:"truncate"`
}

// server answers as OpenAI does below /v1 and as Ollama does below /api.
type server struct {
	url    string
	mu     sync.Mutex // guards what follows
	asked  []asked
	answer func(a asked) (status int, body any) // nil: as it should
}

func newServer(t *testing.T) *server {
	s := &server{}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a := asked{Path: r.Method + " " + r.URL.Path, Auth: r.Header.Get("Authorization")}
	if err := json.Unmarshal(body, &a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	answer := s.answer
	s.mu.Unlock()
	status, reply := http.StatusOK, usual(a)
	if answer != nil {
		status, reply = answer(a)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply) // a client that went away is its own affair
}

// numbersOf are the numbers of a text, far from the length of one.
func numbersOf(text string) []float64 { return []float64{float64(len(text)), 3, -4.5} }

// usual is what the services answer, in their documented shapes; OpenAI does not
// promise an order.
func usual(a asked) any {
	if strings.HasSuffix(a.Path, "/api/embed") {
		out := map[string]any{"model": a.Model, "total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": 7 * len(a.Input)}
		var lists [][]float64
		for _, t := range a.Input {
			lists = append(lists, numbersOf(t))
		}
		out["embeddings"] = lists
		return out
	}
	var data []any
	for i := range a.Input {
		i = len(a.Input) - 1 - i
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": numbersOf(a.Input[i])})
	}
	return map[string]any{"object": "list", "model": a.Model, "data": data, "usage": map[string]int{"prompt_tokens": 7 * len(a.Input), "total_tokens": 7 * len(a.Input)}}
}

// both are the two embedders on a server.
func both(s *server) map[string]embed.Embedder {
	return map[string]embed.Embedder{
		"openai": remote.OpenAI(remote.Config{Key: key, BaseURL: s.url + "/v1", Model: "text-embedding-3-large", Timeout: 5 * time.Second}),
		"ollama": remote.Ollama(remote.Config{Key: key, BaseURL: s.url, Timeout: 5 * time.Second}),
	}
}

// account grants so many tokens.
type account struct {
	most     int
	mu       sync.Mutex // guards what follows
	reserved []int
	used     []int
}

func (a *account) Reserve(tokens int) (func(int), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if tokens > a.most {
		return nil, marchwarden.Errorf(marchwarden.CodeExhausted, "no")
	}
	a.reserved = append(a.reserved, tokens)
	return func(used int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used = append(a.used, used)
	}, nil
}

// Vectors come in order, of length one, in as few requests as there may be.
func TestEmbed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, e := range both(s) {
		texts := make([]string, 130)
		for i := range texts {
			texts[i] = strings.Repeat("word ", i+1)
		}
		s.asked = nil
		acc := &account{most: 1 << 20}
		got, err := e.Embed(embed.WithAccount(t.Context(), acc), texts)
		if err != nil || len(got) != len(texts) {
			t.Fatalf("%s: %d vectors: %v", name, len(got), err)
		}
		for i, v := range got {
			want := numbersOf(texts[i])
			norm := math.Hypot(math.Hypot(want[0], want[1]), want[2])
			for k := range want {
				if math.Abs(float64(v[k])-want[k]/norm) > 1e-6 {
					t.Errorf("%s: text %d has %v", name, i, v)
				}
			}
		}
		var sizes []int
		for _, a := range s.asked {
			sizes = append(sizes, len(a.Input))
		}
		if diff := cmp.Diff([]int{64, 64, 2}, sizes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if acc.used[0] < 7*64 || len(acc.used) != 3 || len(acc.reserved) != 3 || acc.reserved[2] < acc.used[2] {
			t.Errorf("%s: reserved %v, used %v", name, acc.reserved, acc.used)
		}
		if got, err := e.Embed(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("%s: nothing gives %v, %v", name, got, err)
		}
	}
}

// The requests are those that the services document, and the ids say who was asked.
func TestRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	host := strings.TrimPrefix(s.url, "http://")
	for name, e := range both(s) {
		s.asked = nil
		if _, err := e.Embed(t.Context(), []string{"a b", "  \n", "\xffx"}); err != nil {
			t.Fatal(err)
		}
		want := asked{Path: "POST /v1/embeddings", Auth: "Bearer " + key, Model: "text-embedding-3-large", Input: []string{"a b", ".", "\uFFFDx"}, Format: "float"}
		id := "openai/text-embedding-3-large@" + host
		if name == "ollama" {
			want.Path, want.Model, want.Format, want.Truncate = "POST /api/embed", "all-minilm", "", true
			id = "ollama/all-minilm@" + host
		}
		if diff := cmp.Diff([]asked{want}, s.asked); diff != "" || e.ID() != id {
			t.Errorf("%s, %s", e.ID(), diff)
		}
		if _, pure := e.(embed.Pure); pure {
			t.Errorf("%s says that its vectors can be computed again", name)
		}
	}
	if a, b := remote.OpenAI(remote.Config{}).ID(), remote.Ollama(remote.Config{}).ID(); a != "openai/text-embedding-3-small" || b != "ollama/all-minilm" {
		t.Errorf("%s, %s", a, b)
	}
}

// A text over the window is cut between two characters.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, e := range both(s) {
		s.asked = nil
		if _, err := e.Embed(t.Context(), []string{strings.Repeat("é世", 5000), strings.Repeat("\xff", 9000)}); err != nil {
			t.Fatal(err)
		}
		for _, text := range s.asked[0].Input {
			if len(text) > 24_000 || !utf8.ValidString(text) || strings.HasSuffix(text, "é\uFFFD") {
				t.Errorf("%d bytes, %q", len(text), text[max(0, len(text)-20):])
			}
		}
		if text := s.asked[0].Input[0]; len(text) < 7990 || len(text) > 8000 {
			t.Errorf("%d bytes of 8,000", len(text))
		}
	}
}

// What is wrong with a service has a code, and no error holds the key.
func TestFaults(t *testing.T) {
	t.Parallel()
	say := func(status int, body any) func(asked) (int, any) {
		return func(asked) (int, any) { return status, body }
	}
	changed := func(change func(list []float64) any) func(asked) (int, any) {
		return func(a asked) (int, any) {
			if strings.HasSuffix(a.Path, "/api/embed") {
				return 200, map[string]any{"embeddings": []any{change(numbersOf("x")), numbersOf("y")}}
			}
			return 200, map[string]any{"data": []any{map[string]any{"index": 0, "embedding": change(numbersOf("x"))}, map[string]any{"index": 1, "embedding": numbersOf("y")}}}
		}
	}
	for name, tt := range map[string]struct {
		answer func(asked) (int, any)
		code   marchwarden.Code
	}{
		"wrong key":         {say(401, map[string]any{"error": map[string]string{"message": "Incorrect API key provided: " + key}}), marchwarden.CodeDenied},
		"no money":          {say(429, map[string]any{"error": map[string]string{"message": "You exceeded your current quota " + key, "type": "insufficient_quota"}}), marchwarden.CodeRateLimited},
		"no such model":     {say(404, map[string]string{"error": `model "all-minilm" not found, try pulling it first`}), marchwarden.CodeUnavailable},
		"an echo":           {say(400, map[string]string{"error": "what is " + key}), marchwarden.CodeUnavailable},
		"nothing in it":     {say(200, map[string]any{}), marchwarden.CodeMalformed},
		"a list of none":    {say(200, map[string]any{"data": []int{}, "embeddings": []int{}}), marchwarden.CodeMalformed},
		"a text":            {say(200, "sorry"), marchwarden.CodeMalformed},
		"other lengths":     {changed(func(l []float64) any { return l[:2] }), marchwarden.CodeMalformed},
		"no numbers":        {changed(func([]float64) any { return []float64{} }), marchwarden.CodeMalformed},
		"words":             {changed(func([]float64) any { return []string{"a", "b", "c"} }), marchwarden.CodeMalformed},
		"zeros":             {changed(func([]float64) any { return []float64{0, 0, 0} }), marchwarden.CodeMalformed},
		"beyond all bounds": {changed(func([]float64) any { return []float64{1e39, 0, 0} }), marchwarden.CodeMalformed},
		"null":              {changed(func([]float64) any { return nil }), marchwarden.CodeMalformed},
		"one of two": {func(a asked) (int, any) {
			a.Input = a.Input[:1]
			return 200, usual(a)
		}, marchwarden.CodeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.answer = tt.answer
			for service, e := range both(s) {
				acc := &account{most: 1000}
				vs, err := e.Embed(embed.WithAccount(t.Context(), acc), []string{"x", "y"})
				if !errors.Is(err, tt.code) || vs != nil || !strings.Contains(err.Error(), service) || strings.Contains(fmt.Sprintf("%+v %s", err, marchwarden.HintOf(err)), key) {
					t.Errorf("%s: %v, %v", service, vs, err)
				}
				if len(acc.used) != 1 {
					t.Errorf("%s: %d settlements for %d requests", service, len(acc.used), len(acc.reserved))
				}
			}
		})
	}
}

// Vectors of another length than before are refused: they could not be compared.
func TestLengthMayNotChange(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, e := range both(s) {
		s.answer = nil
		if _, err := e.Embed(t.Context(), []string{"x"}); err != nil {
			t.Fatal(err)
		}
		s.answer = func(asked) (int, any) {
			return 200, map[string]any{"embeddings": [][]int{{1, 2}}, "data": []any{map[string]any{"index": 0, "embedding": []int{1, 2}}}}
		}
		if _, err := e.Embed(t.Context(), []string{"x"}); !errors.Is(err, marchwarden.CodeMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No service is asked for what is not paid for, nor when no caller waits.
func TestNotAsked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, e := range both(s) {
		if _, err := e.Embed(embed.WithAccount(t.Context(), &account{}), []string{"a text"}); !errors.Is(err, marchwarden.CodeExhausted) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := e.Embed(ctx, []string{"a text"}); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("%v", s.asked)
	}
}
