package main

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func TestParseModel(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic/claude-x":        "anthropic claude-x",
		"claude-x":                  "anthropic claude-x",
		"anthropic":                 "anthropic " + anthropic.DefaultModel,
		"openai/gpt-x":              "openai gpt-x",
		"gpt-x":                     "openai gpt-x",
		"ollama/qwen3:8b":           "ollama qwen3:8b",
		"openrouter/qwen/qwen3-32b": "openrouter qwen/qwen3-32b",
		"gemini-3-flash":            "gemini gemini-3-flash",
		"vllm/org/model":            "vllm org/model",
	} {
		p, model, err := network.ParseModel(name, "--model")
		if err != nil || p.Name+" "+model != want {
			t.Errorf("%s: %s %s, %v; want %s", name, p.Name, model, err, want)
		}
	}
	for _, name := range []string{"", "qwen3", "nobody/x", "ollama", "ollama/", "ollama/a b", "openai/\n", "/x"} {
		if _, _, err := network.ParseModel(name, "--model"); exitCode(t.Context(), err) != exitUsage || !strings.HasPrefix(err.Error(), "--model: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:11434/": "http://127.0.0.1:11434",
		"127.0.0.1:11434":         "http://127.0.0.1:11434",
		"https://x.example/v1":    "https://x.example/v1",
		"gpu-box":                 "http://gpu-box",
	} {
		if got, problem := settings.ReadAddress(in); got != want || problem != "" {
			t.Errorf("%s: %s %s", in, got, problem)
		}
	}
	for _, in := range []string{"ftp://x", "http://", "://", "http://x/?key=secret", "http://x/#a", "http://[::1"} {
		if got, problem := settings.ReadAddress(in); problem == "" || strings.Contains(problem, "secret") {
			t.Errorf("%s: %s %s", in, got, problem)
		}
	}
	if got := network.WithPort("http://gpu-box", "11434"); got != "http://gpu-box:11434" {
		t.Error(got)
	}
	for _, kept := range []string{"http://gpu-box:80", "https://gpu-box"} {
		if got := network.WithPort(kept, "11434"); got != kept {
			t.Error(got)
		}
	}
}

// The path of a protocol may be in the address of a setting or not.
func TestProviderAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://gpu-box":            "http://gpu-box:11434/v1",
		"http://gpu-box/v1":         "http://gpu-box:11434/v1",
		"http://gpu-box:80/v1/":     "http://gpu-box:80/v1",
		"https://gpu.example/ai/v1": "https://gpu.example/ai/v1",
		"https://gpu.example/ai":    "https://gpu.example/ai/v1",
	} {
		p, _, err := network.ParseModel("ollama/x", "--model")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Address(&settings.Settings{Values: map[string]settings.Value{settings.OllamaHost: {Texts: []string{in}, Origin: settings.FromEnv}}}); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// What a model is chosen by: a flag, a setting, and for public sources alone the
// keys that are there.
func TestChooseModel(t *testing.T) {
	keys := map[string]settings.Value{settings.AnthropicKey: {Texts: []string{"k"}, Origin: settings.FromEnv}, settings.OpenAIKey: {Texts: []string{"k"}, Origin: settings.FromEnv}}
	c := &settings.Settings{Values: keys}
	if got := network.ChooseModel(c, "", false); got.Name != "" {
		t.Errorf("a key alone sends folders to %s", got.Name)
	}
	if got := network.ChooseModel(c, "", true); got.Name != "anthropic/"+anthropic.DefaultModel {
		t.Error(got.Name)
	}
	delete(keys, settings.AnthropicKey)
	if got := network.ChooseModel(c, "", true); got.Name != "openai" {
		t.Error(got.Name)
	}
	keys[settings.Model] = settings.Value{Texts: []string{"ollama/x"}, Origin: settings.FromFile}
	if got := network.ChooseModel(c, "", false); got.Name != "ollama/x" {
		t.Error(got.Name)
	}
	if got := network.ChooseModel(c, "extractive", true); got.Name != network.NoModel {
		t.Error(got.Name)
	}
}
