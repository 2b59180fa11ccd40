package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

const embedKey = "sk-embed-3Hq8Tz1Wn5Yc"

// embedServer answers as OpenAI and Ollama do, with vectors that are never the same
// twice, until it is told to fail.
type embedServer struct {
	*httptest.Server
	asked atomic.Int64
	down  atomic.Bool
}

func newEmbedServer(t *testing.T) *embedServer {
	s := &embedServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Input []string `json:"input"`
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &call); err != nil || s.down.Load() {
			http.Error(w, `{"error":"the model is not there, and the key is `+embedKey+`"}`, http.StatusNotFound)
			return
		}
		n := s.asked.Add(1)
		var lists [][]float64
		var data []map[string]any
		tokens := 0
		for i, text := range call.Input {
			l := []float64{float64(len(text)), float64(int64(i)*n%13) - 6, float64(n)}
			lists, data = append(lists, l), append(data, map[string]any{"index": i, "embedding": l})
			tokens += len(text)/4 + 1
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"embeddings": lists, "prompt_eval_count": tokens, "data": data, "usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}})
	}))
	t.Cleanup(s.Close)
	return s
}

// A service that the user names makes the vectors: they are in the record, so that the
// run can be executed again when the service is gone; what was embedded once is not
// sent again; and a service that is down is a gap.
func TestVectorsOfAService(t *testing.T) {
	t.Parallel()
	const question = "Which crops suit a garden in Utah?"
	for _, name := range []string{settings.EmbedOpenAI, settings.EmbedOllama} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == settings.EmbedOpenAI && !datatest.Full() {
				t.Skip("the other service is tried: set MARCHWARDEN_TEST_FULL=1")
			}
			s := newEmbedServer(t)
			env := map[string]string{
				"MARCHWARDEN_HOME": filepath.Join(t.TempDir(), "kept"), "MARCHWARDEN_EMBED": name, "MARCHWARDEN_EMBED_MODEL": "small",
				"OPENAI_API_KEY": embedKey, "OPENAI_BASE_URL": s.URL + "/v1", "OLLAMA_HOST": s.URL,
			}
			do := func(want int, args ...string) string {
				t.Helper()
				code, out, said := runHere(t.Context(), env, args...)
				if code != want || strings.Contains(out+said, embedKey) {
					t.Fatalf("%v: exit %d\n%s%s", args, code, out, said)
				}
				return out + said
			}
			ask := func() *marchwarden.Result {
				t.Helper()
				res := &marchwarden.Result{}
				if err := json.Unmarshal([]byte(do(exitOK, "ask", "-q", "--json", "--researcher", "files", "--depth", "deep", question)), res); err != nil {
					t.Fatal(err)
				}
				return res
			}
			first := ask()
			if len(first.Citations) == 0 || s.asked.Load() == 0 {
				t.Errorf("%d citations, asked %d times", len(first.Citations), s.asked.Load())
			}
			if gap := vectorGap(first); gap != nil {
				t.Errorf("%+v", gap)
			}
			raw := do(exitOK, "replay", "--raw", "last")
			if !strings.Contains(raw, fmt.Sprintf(`"vectors":"%s/small@%s","vectors_recorded":true`, name, strings.TrimPrefix(s.URL, "http://"))) || !strings.Contains(raw, `"action":"embed_complete"`) {
				t.Errorf("%s", raw)
			}
			asked := s.asked.Load()
			do(exitOK, "replay", "--rerun", "last")
			second := ask()
			if second.CostMetadata.TokensUsed >= first.CostMetadata.TokensUsed {
				t.Errorf("%d tokens, and %d when everything is known", first.CostMetadata.TokensUsed, second.CostMetadata.TokensUsed)
			}
			if got := s.asked.Load(); got != asked {
				t.Errorf("a rerun, or what was embedded before, asked the service %d times", got-asked)
			}
			alone := maps.Clone(env) // no other service is called
			alone["MARCHWARDEN_HOME"], alone["MARCHWARDEN_SEARCH"], alone["SEARXNG_URL"] = t.TempDir(), "searxng", s.URL
			write(t, filepath.Join(alone["MARCHWARDEN_HOME"], "config.yaml"), "researchers:\n  - name: arxiv\n    off: true\n")
			a, c := appHere(t, alone)
			d, err := network.NewDoctor(&a.Host, c)
			if err != nil {
				t.Fatal(err)
			}
			parts := slices.DeleteFunc(d.Services(t.Context(), true), func(p network.Part) bool { return p.Name != "sentence vectors" })
			if len(parts) != 1 || !strings.Contains(parts[0].Detail, name+"/small") || !strings.Contains(parts[0].Detail, "is sent there; vectors of 3 numbers") {
				t.Errorf("%+v", parts)
			}
			s.down.Store(true)
			do(exitOK, "replay", "--rerun", "last")
			if err := os.RemoveAll(filepath.Join(env["MARCHWARDEN_HOME"], "vectors")); err != nil {
				t.Fatal(err)
			}
			third := ask()
			if gap := vectorGap(third); gap == nil || len(third.Citations) == 0 {
				t.Errorf("%d citations, gaps %+v", len(third.Citations), third.Gaps)
			}
			env["MARCHWARDEN_EMBED"] = settings.EmbedOff
			do(exitOK, "replay", "--rerun", "last")
			nothingOf(t, env["MARCHWARDEN_HOME"], embedKey)
		})
	}
}

func vectorGap(res *marchwarden.Result) *marchwarden.Gap {
	for i, g := range res.Gaps {
		if strings.Contains(g.Topic, "sentence vectors") {
			return &res.Gaps[i]
		}
	}
	return nil
}

// nothingOf fails if a file below a folder holds the text.
func nothingOf(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), text) {
			t.Errorf("%s holds %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
