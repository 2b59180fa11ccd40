package conform

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

func dialer(t *testing.T, mode string) func(context.Context) (*client.Session, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &client.Dialer{Now: time.Now, Grace: 200 * time.Millisecond}
	return func(ctx context.Context) (*client.Session, error) {
		return d.Dial(ctx, client.Target{Patience: time.Minute, Command: []string{self}, Env: []string{childMode + "=" + mode}})
	}
}

// stranger is what is found with an external server that knows the bare contract.
var stranger = map[string]Outcome{
	"contract-version": Warn, "input-optional": Warn, "output-schema": Warn, "evidence": Skipped, "progress": Warn,
}

func with(base map[string]Outcome, more map[string]Outcome) map[string]Outcome {
	all := maps.Clone(base)
	maps.Copy(all, more)
	maps.DeleteFunc(all, func(_ string, o Outcome) bool { return o == Pass })
	return all
}

// TestFindings names, for each server, every check that it does not pass.
func TestFindings(t *testing.T) {
	uncited := map[string]Outcome{"markers": Skipped, "marked": Skipped, "excerpts": Skipped, "evidence": Skipped}
	for mode, want := range map[string]map[string]Outcome{
		"own good":     {},
		"own slow":     {},
		"own spanless": {},
		"own chatty":   {"marked": Warn},
		"own unmarked": {"marked": Fail},
		"own dangling": {"markers": Fail},
		"own spender":  {"budget": Fail},
		"own forger":   {"evidence": Fail},
		"own beyond":   {"evidence": Fail},
		"own blank":    {"excerpts": Fail},
		"own hashless": {"evidence": Skipped},
		"own helpless": uncited,
		"own fragile":  {"cancel": Fail},

		"bare":      stranger,
		"plain":     with(stranger, map[string]Outcome{"structured": Warn}),
		"generated": with(stranger, map[string]Outcome{"input-optional": Pass}),
		"lax": with(stranger, map[string]Outcome{"refuse-blank": Fail, "refuse-long": Fail, "refuse-depth": Fail,
			"refuse-budget": Fail, "refuse-iterations": Fail}),
		"formal": with(stranger, map[string]Outcome{"refuse-blank": Warn, "refuse-long": Warn, "refuse-depth": Warn,
			"refuse-budget": Warn, "refuse-iterations": Warn}),
		"brittle":   with(stranger, map[string]Outcome{"refuse-depth": Fail}),
		"demanding": with(stranger, map[string]Outcome{"input-schema": Fail, "input-optional": Skipped}),
		"two tools": with(stranger, map[string]Outcome{"one-tool": Fail}),
		"toolless":  {"connect": Fail},
		"creative": {"contract-version": Warn, "input-optional": Warn, "output-schema": Warn, "progress": Warn, "answer": Fail,
			"survive": Fail, "unknown-field": Fail, "concurrent": Fail, "cancel": Fail},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := Check(t.Context(), dialer(t, mode), Options{Limit: 20 * time.Second})
			got, ok := map[string]Outcome{}, true
			for _, f := range r.Findings {
				if f.Outcome != Pass {
					got[f.ID] = f.Outcome
				}
				ok = ok && f.Outcome != Fail
				if f.Detail == "" || strings.ContainsAny(f.Detail, "\x1b\n") || len(f.Detail) > 500 {
					t.Errorf("%s says %q", f.ID, f.Detail)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s%+v", diff, r.Table())
			}
			if r.OK() != ok || !r.Complete {
				t.Errorf("OK is %v, complete is %v", r.OK(), r.Complete)
			}
		})
	}
}

// Every check is made, in the same order, of a server that keeps the contract.
func TestReport(t *testing.T) {
	r := Check(t.Context(), dialer(t, "own good"), Options{Question: "What is the capital of France?"})
	var ids []string
	for _, row := range r.Table() {
		ids = append(ids, row[0])
	}
	want := strings.Fields(`connect one-tool contract-version input-schema input-optional output-schema answer structured budget
		markers marked excerpts evidence refuse-blank refuse-long refuse-depth refuse-budget refuse-iterations survive unknown-field concurrent cancel progress`)
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Error(diff)
	}
	if r.Server != "marchwarden-odd" || r.Contract != "v1" || !strings.HasPrefix(r.ToolHash, "sha256:") {
		t.Errorf("got %+v", r)
	}
}

// A server that does not answer is told so by every check that asks it something.
func TestHangingServer(t *testing.T) {
	r := Check(t.Context(), dialer(t, "hangs"), Options{Limit: 100 * time.Millisecond})
	if r.OK() || !r.Complete {
		t.Errorf("OK is %v, complete is %v", r.OK(), r.Complete)
	}
	for _, f := range r.Findings {
		if asks := f.ID == "answer" || strings.HasPrefix(f.ID, "refuse") || f.ID == "survive" || f.ID == "concurrent"; asks && f.Outcome != Fail {
			t.Errorf("%+v", f)
		}
	}
}

func TestStoppedCheck(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	r := Check(ctx, dialer(t, "hangs"), Options{})
	if r.OK() || r.Complete || time.Since(start) > 10*time.Second {
		t.Errorf("after %v: %+v", time.Since(start), r)
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                    nil,
		"One is so. [1] Two is so [2]. Three": {"One is so. [1]", "Two is so [2]."},
		"It weighs approx. three tons. [1][2]\nNext line here.":                     {"It weighs approx. three tons. [1] [2]", "Next line here."},
		"# A heading of words\n\nIs it so?\n\nThese are they:\n- it is so. [1, 2]":  {"- it is so. [1, 2]"},
		"```\nThis is all code. Yes.\n```\n**Bold is this.** [3] “Quoted is that.”": {"**Bold is this.** [3]", "“Quoted is that.”"},
		"About 3.5 kg of it [1]": {"About 3.5 kg of it [1]"},
		"Nobody knows that [1]?": nil,
	} {
		if diff := cmp.Diff(want, sentences(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
