package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
)

// smallModel is the address of llama.cpp's server with a small model, as .ci/small-model.sh starts it.
func smallModel(t *testing.T) string {
	address := os.Getenv("MARCHWARDEN_TEST_SMALL_MODEL")
	if address == "" {
		t.Skip("small model: set MARCHWARDEN_TEST_SMALL_MODEL to the address of a server, as .ci/small-model.sh does")
	}
	return strings.TrimRight(address, "/")
}

// bear is how long a call to a small model on a busy machine may take.
const bear = 10 * time.Minute

// TestSmallModelWire asks a real model in both protocols: text, a reply by a schema, tools, and a call that is broken off.
func TestSmallModelWire(t *testing.T) {
	address := smallModel(t)
	steady := func(m llm.Model) llm.Model { return llm.NewSteady(m, llm.SteadyConfig{Now: time.Now}) } // the server closes idle connections
	chat := steady(openai.New(llm.Config{Provider: "llamacpp", BaseURL: address + "/v1", Model: "small", Idle: bear}))
	call := llm.Call{Prompt: "test", System: "Answer in a few words.", Input: "What is the capital of France?", MaxTokens: 24}
	for _, m := range []llm.Model{chat, steady(anthropic.New(llm.Config{BaseURL: address, Model: "small", Idle: bear}))} {
		reply, err := m.Generate(t.Context(), call)
		if err != nil || reply.Text == "" || reply.Usage.In < 10 || reply.Usage.Out < 1 || reply.Usage.Out > 24 {
			t.Errorf("%s: %+v, %v", m.ID(), reply, err)
		}
		if in := llm.Estimate(call); reply.Usage.In > in {
			t.Errorf("%s counts %d tokens, more than the estimate of %d", m.ID(), reply.Usage.In, in)
		}
	}
	shaped := call
	shaped.MaxTokens, shaped.Schema = 120, json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","maxLength":40},"sure":{"type":"boolean"}},"required":["city","sure"],"additionalProperties":false}`)
	reply, err := chat.Generate(t.Context(), shaped)
	var got struct {
		City *string
		Sure *bool
	}
	if err != nil || json.Unmarshal([]byte(reply.Text), &got) != nil || got.City == nil || got.Sure == nil {
		t.Errorf("by a schema: %+v, %v", reply, err)
	}
	tools := call
	tools.Tools = []llm.Tool{{Name: "web_search", Description: "Search", Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`)}}
	if reply, err := chat.Generate(t.Context(), tools); err != nil || reply.Usage.Out < 1 {
		t.Errorf("with tools: %+v, %v", reply, err)
	}
	long := call
	long.Input, long.MaxTokens = "Tell a long story about a river.", 4000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = chat.Generate(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: cancel}), long)
	if marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("a call that is broken off: %v", err)
	}
	if reply, err := chat.Generate(t.Context(), call); err != nil || reply.Text == "" {
		t.Errorf("the call after it: %+v, %v", reply, err)
	}
}

// TestSmallModelRuns researches with a real model: whatever it says, the result is valid and within its budget, stands up
// to the stored bytes, and comes out the same from the record. The everyday form makes three runs, the whole one twenty.
func TestSmallModelRuns(t *testing.T) {
	address := smallModel(t)
	here, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Pointer[context.CancelCauseFunc] // is called when the model is asked
	through := httputil.NewSingleHostReverseProxy(here)
	through.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cancel := stop.Load(); cancel != nil {
			(*cancel)(errInterrupted)
		}
		through.ServeHTTP(w, r)
	}))
	defer server.Close()
	home := t.TempDir()
	env := map[string]string{"OLLAMA_HOST": server.URL, "MARCHWARDEN_HOME": home} // the same protocol, and as patient
	questions := []string{"What is the capital of France?", "What is iron chlorosis?", "What are ideal crops for a garden in Utah?", "When is the last frost in Utah?", "Which companies develop CRISPR therapies?"}
	budgets := []int{1500, 2500, 4000}
	spoke, runs := 0, 3
	if datatest.Full() {
		runs = 20
	}
	for i := range runs {
		budget := budgets[i%len(budgets)]
		code, out, said := runHere(t.Context(), env, "ask", "-q", "--json", "--researcher", "files", "--model", "ollama/small", "--budget", strconv.Itoa(budget), "--max-iterations", "1", questions[i%len(questions)])
		res, err := marchwarden.DecodeResult([]byte(out))
		if err != nil || code != exitOK || strings.Contains(said, "panic") {
			t.Fatalf("run %d: exit %d, %v\n%s\n%s", i, code, err, out, said)
		}
		cost := res.CostMetadata
		if cost.TokensUsed > budget {
			t.Errorf("run %d used %d of %d tokens", i, cost.TokensUsed, budget)
		}
		if cost.ReasonerID == "" && len(res.Claims) > 0 {
			spoke++
		}
		t.Logf("run %d: %d of %d tokens, %d citations, %d claims, written by %s%s", i, cost.TokensUsed, budget, len(res.Citations), len(res.Claims), cost.ModelID, cost.ReasonerID)
		if code, out, said := runHere(t.Context(), env, "verify", res.TraceID.String()); code != exitOK {
			t.Errorf("run %d does not stand: %s%s", i, out, said)
		}
		if code, out, said := runHere(t.Context(), env, "replay", "--rerun", res.TraceID.String()); code != exitOK || !strings.Contains(out, "is identical") {
			t.Errorf("run %d comes out differently: %s%s", i, out, said)
		}
	}
	t.Logf("the model wrote %d of %d answers", spoke, runs)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop.Store(&cancel)
	_, out, said := runHere(ctx, env, "ask", "--json", "--researcher", "files", "--model", "ollama/small", "--budget", "5000", questions[2])
	if res, err := marchwarden.DecodeResult([]byte(out)); err != nil || len(res.Gaps) == 0 {
		t.Errorf("a run that was stopped while the model was asked: %v\n%s\n%s", err, out, said)
	}
}
