package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// Servers that are no researchers are refused when they are dialled.
func TestHostileDial(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	for mode, tc := range map[string]struct {
		code marchwarden.Code
		want string
	}{
		"exits":        {marchwarden.CodeUnavailable, "the researcher's process ended (exit status 2): no configuration found"},
		"babbler":      {marchwarden.CodeMalformed, "the researcher wrote more than 1000 lines that are no protocol"},
		"toolless":     {marchwarden.CodeUnsupported, `the server has no tool "research" among its 2`},
		"twice":        {marchwarden.CodeUnsupported, `the server lists the tool "research" twice`},
		"v2":           {marchwarden.CodeUnsupported, "the researcher speaks contract v2; this program speaks v1"},
		"odd version":  {marchwarden.CodeUnsupported, "the researcher speaks contract map[major:1]; this program speaks v1"},
		"questionless": {marchwarden.CodeUnsupported, `the server's tool "research" takes no question`},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			_, err := testDialer().Dial(t.Context(), target(t, mode))
			if !errors.Is(err, tc.code) || err.Error() != tc.want {
				t.Errorf("got %v (%s), want %s: %s", err, marchwarden.CodeOf(err), tc.code, tc.want)
			}
			if mode == "v2" && marchwarden.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

func TestDialDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"silent", "deaf"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			slow := target(t, mode)
			slow.Patience = time.Second
			_, err := testDialer().Dial(t.Context(), slow)
			if !errors.Is(err, marchwarden.CodeTimeout) || err.Error() != "the researcher did not say who it is within 1s" {
				t.Errorf("got %v", err)
			}
			if d := time.Since(start); d > 15*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := testDialer().Dial(ctx, target(t, "silent")); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("address", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		defer web.Close()
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := testDialer().Dial(ctx, Target{URL: web.URL}); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
	})
}

// What servers may do that is unusual, and still be understood.
func TestOddServersWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	for _, mode := range []string{"good", "greets", "strict", "text", "nulls", "redescribed", "asks once", "sheds"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := open(t, target(t, mode))
			for range 2 {
				res, err := s.Research(t.Context(), ask("capital of France"), nil)
				if err != nil {
					t.Fatal(err)
				}
				want := sample("Paris. [1]")
				if mode == "nulls" {
					want.Claims, want.CostMetadata.TokensUsed = nil, 12
				}
				if diff := cmp.Diff(want, res, traceIDs); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Answers that are none are errors that say what is wrong.
func TestHostileAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	broken := "the researcher's result breaks the contract: "
	foreign := map[string]string{ // words of the server, which callers do not get
		"mangles": "jsonrpc", "refuses": "way", "fails": "Traceback", "odd content": "cannot be read: ", "overconfident": "validating", "gapless": "validating",
	}
	for mode, tc := range map[string]struct {
		code marchwarden.Code
		want string // the beginning
	}{
		"dies":          {marchwarden.CodeUnavailable, "the researcher's process ended (exit status 7)"},
		"breaks off":    {marchwarden.CodeUnavailable, "the researcher's process ended (exit status 0)"},
		"closes":        {marchwarden.CodeUnavailable, "the researcher's process closed its output"},
		"mangles":       {marchwarden.CodeTimeout, `the researcher did not answer by the deadline; its output has 1 lines that are no protocol, the first "{\"jsonrpc`},
		"huge":          {marchwarden.CodeMalformed, "the researcher sent a message of more than 16777216 bytes"},
		"deep":          {marchwarden.CodeMalformed, ""},
		"refuses":       {marchwarden.CodeUnavailable, "the researcher answered with a protocol error: no [31mway (-32602)"},
		"fails":         {marchwarden.CodeUnavailable, "Traceback: [31mboom"},
		"fails oddly":   {marchwarden.CodeUnavailable, "the researcher failed and did not say why"},
		"prose":         {marchwarden.CodeMalformed, broken + "there is no structured content"},
		"asks back":     {marchwarden.CodeUnsupported, "the researcher wants to ask back"},
		"samples":       {marchwarden.CodeUnsupported, "the researcher wants to ask back"},
		"odd content":   {marchwarden.CodeMalformed, "the researcher's answer cannot be read"},
		"overconfident": {marchwarden.CodeMalformed, broken},
		"wordy":         {marchwarden.CodeMalformed, broken},
		"gapless":       {marchwarden.CodeMalformed, broken},
		"endless":       {marchwarden.CodeMalformed, broken + "result.gaps has 1001 entries, over 1000"},
		"long":          {marchwarden.CodeMalformed, broken + "result.answer has 262145 bytes, over 262144"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := open(t, target(t, mode))
			limit := time.Minute
			if mode == "mangles" {
				limit = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			res, err := s.Research(ctx, ask("q"), nil)
			if res != nil || !errors.Is(err, tc.code) || !strings.HasPrefix(fmt.Sprint(err), tc.want) {
				t.Errorf("got %v, %v (%s), want %s: %s", res, err, marchwarden.CodeOf(err), tc.code, tc.want)
			}
			var said *dispatch.Said
			if words := foreign[mode]; words != "" && (!errors.As(err, &said) || !strings.Contains(err.Error(), words) || strings.Contains(said.Plain.Error(), words) || said.Plain.Code != tc.code) {
				t.Errorf("of %v, others are told %+v", err, said)
			}
			if msg := fmt.Sprint(err); strings.ContainsAny(msg, "\x1b\n") || len(msg) > 400 {
				t.Errorf("the message is not fit to be shown: %q", msg)
			}
		})
	}
}

// The last words of a process that dies in a call are told.
func TestLastWords(t *testing.T) {
	t.Parallel()
	s := open(t, target(t, "own"))
	_, err := s.Research(t.Context(), ask("exit"), nil)
	if !errors.Is(err, marchwarden.CodeUnavailable) || err.Error() != "the researcher's process ended (exit status 3): fatal: [31mdisk on fire" {
		t.Errorf("got %v", err)
	}
	within(t, 30*time.Second, "the end of the session", s.Done())
	if _, err := s.Research(t.Context(), ask("q"), nil); !errors.Is(err, marchwarden.CodeUnavailable) {
		t.Errorf("after the end: %v", err)
	}
}

// More progress than a caller wants is passed on in part, cleaned.
func TestFloodOfProgress(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many servers")
	}
	t.Parallel()
	s := open(t, target(t, "floods"))
	heard := 0
	_, err := s.Research(t.Context(), ask("q"), func(e marchwarden.Event) {
		heard++
		if len([]rune(e.Message)) > mcpkit.MaxProgressChars || strings.ContainsAny(e.Message, "\x1b\n") {
			t.Errorf("got %q", e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if heard == 0 || heard > maxEvents {
		t.Errorf("heard %d events", heard)
	}
}

// An answer over the limit does not fill the memory over HTTP either.
func TestHugeAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		piece := []byte(strings.Repeat(" ", 1<<20))
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer web.Close()
	_, err := testDialer().Dial(t.Context(), Target{URL: web.URL})
	if err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("got %v", err)
	}
}
