package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

var _ marchwarden.Researcher = (*Session)(nil)

func testDialer() *Dialer { return &Dialer{Now: time.Now, Grace: 500 * time.Millisecond} }

// patient is a grace for servers that hand over what they have: they do at once, on a
// machine that is not busy.
const patient = 15 * time.Second

func open(t *testing.T, target Target) *Session {
	t.Helper()
	s, err := testDialer().Dial(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// serveHTTP is our own server behind an address that wants a token, as it is or as
// one that knows nothing newer than legacyEra.
func serveHTTP(t *testing.T, modern bool) Target {
	t.Helper()
	s, err := mcpkit.NewServer(farConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := s.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !modern && r.Header.Get("Mcp-Protocol-Version") > legacyEra {
			http.Error(w, "unsupported protocol version", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Local())))
	}))
	t.Cleanup(web.Close)
	return Target{URL: web.URL, Token: "sesame"}
}

// eachTarget runs test against our own server as a process and behind an
// address, in both eras.
func eachTarget(t *testing.T, test func(t *testing.T, target Target)) {
	for name, target := range map[string]func(*testing.T) Target{
		"process":        func(t *testing.T) Target { return target(t, "own") },
		"address":        func(t *testing.T) Target { return serveHTTP(t, true) },
		"address of old": func(t *testing.T) Target { return serveHTTP(t, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, target(t))
		})
	}
}

func ask(question string) marchwarden.Request {
	return marchwarden.Request{Question: question, Depth: marchwarden.Shallow}
}

func TestCard(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		got := open(t, target).Card()
		if !strings.HasPrefix(got.ToolHash, "sha256:") || got.Protocol < legacyEra || !strings.Contains(got.Description, "It covers the embedded library.") {
			t.Errorf("got %+v", got)
		}
		want := Card{Server: "marchwarden-files", Version: "v9", Contract: "v1", Private: true, Evidence: true,
			Protocol: got.Protocol, Description: got.Description, ToolHash: got.ToolHash}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("card (-want +got):\n%s", diff)
		}
	})
	t.Run("stranger", func(t *testing.T) {
		s := open(t, target(t, "good"))
		got := s.Card()
		want := Card{Server: "str[31manger", Version: "1", Protocol: "2025-06-18", Contract: "v1", Description: "finds things", ToolHash: got.ToolHash}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("card (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"research", "other"}, s.Surface().Tools); diff != "" {
			t.Error(diff)
		}
		if _, err := s.Evidence(t.Context(), hashOf("")); !errors.Is(err, marchwarden.CodeUnsupported) {
			t.Errorf("evidence: %v", err)
		}
		again, changed := open(t, target(t, "good")).Card().ToolHash, open(t, target(t, "redescribed")).Card().ToolHash
		if got.ToolHash != again || got.ToolHash == changed {
			t.Errorf("hashes: %s, %s again, %s redescribed", got.ToolHash, again, changed)
		}
	})
}

func TestToolHashIsFramed(t *testing.T) {
	t.Parallel()
	if toolHash("ab", "c") == toolHash("a", "bc") || toolHash("a") == toolHash("a", "") {
		t.Error("parts run together")
	}
}

func TestDialNeedsATarget(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		d    *Dialer
		t    Target
		code marchwarden.Code
		want string
	}{
		"none":    {testDialer(), Target{}, marchwarden.CodeInvalid, "a command or an address must be given"},
		"both":    {testDialer(), Target{URL: "http://x", Command: []string{"x"}}, marchwarden.CodeInvalid, "not both"},
		"scheme":  {testDialer(), Target{URL: "file:///etc/passwd"}, marchwarden.CodeInvalid, "must begin with http://"},
		"user":    {testDialer(), Target{URL: "http://u:p@host/"}, marchwarden.CodeInvalid, "must hold no password"},
		"program": {testDialer(), Target{Command: []string{"/no/such/program"}}, marchwarden.CodeUnavailable, "could not be run"},
		"closed":  {testDialer(), Target{URL: "http://127.0.0.1:1/"}, marchwarden.CodeUnavailable, "could not be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.d.Dial(t.Context(), tc.t)
			if !errors.Is(err, tc.code) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s with %q", err, tc.code, tc.want)
			}
		})
	}
}

// The id that a caller chooses for a run reaches the researcher, over any transport.
func TestAChosenTraceID(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		id := sample("").TraceID
		chosen := id.String() + " true [1]"
		if got, err := s.Research(marchwarden.WithTraceID(t.Context(), id), ask("which run is this?"), nil); err != nil || got.Answer != chosen {
			t.Errorf("%v, %v, want %q", got, err, chosen)
		}
		if got, err := s.Research(t.Context(), ask("which run is this?"), nil); err != nil || got.Answer == chosen {
			t.Errorf("none chosen: %v, %v", got, err)
		}
	})
}

func TestResearch(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				question := fmt.Sprintf("sleep <b>& “%d”", i)
				got, err := s.Research(t.Context(), ask(question), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if diff := cmp.Diff(sample(question+" [1]"), got, traceIDs); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		}
		wg.Wait()
		if _, err := s.Research(t.Context(), marchwarden.Request{}, nil); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("a request without a question: %v", err)
		}
		_, err := s.Research(t.Context(), ask("fail not_found"), nil)
		want := &marchwarden.Error{Code: marchwarden.CodeNotFound, Field: "resume", Message: "no such run", Hint: "try another"}
		var got *dispatch.Said
		if !errors.As(err, &got) || got.Plain.Error() != "it failed (not_found)" || got.Plain.Code != want.Code {
			t.Fatalf("an error of the researcher's: %#v", err)
		}
		if diff := cmp.Diff(error(want), got.Words); diff != "" {
			t.Errorf("its words (-want +got):\n%s", diff)
		}
	})
}

func TestEventsArriveTyped(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		var mu sync.Mutex
		var got []marchwarden.Event
		s := open(t, target)
		_, err := s.Research(t.Context(), ask("events"), func(e marchwarden.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, e)
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []marchwarden.Event{{Stage: marchwarden.StagePlan, Message: "research started"},
			{Stage: marchwarden.StageFetch, Message: "reading", Iteration: 2, Done: 1, Total: 3, Rihla: 4, Researcher: "files"}}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, got, traceIDs); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// What a process tells of a call is heard before its answer is passed on: the SDK would
// hear it beside the answer.
func TestProgressIsHeardInItsPlace(t *testing.T) {
	t.Parallel()
	heard := 0
	p := &pipe{hear: func(n *jsonrpc.Request) bool {
		heard++
		return n.Method == "notifications/progress"
	}}
	var last []byte
	for _, line := range []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`} {
		if last != nil {
			t.Errorf("progress is passed on: %s", last)
		}
		var err error
		if last, _, err = p.take([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(last), "result") || heard != 1 {
		t.Errorf("heard %d, then the answer: %s", heard, last)
	}
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		for _, content := range []string{evidenceText, "\xff\xfe", "", strings.Repeat("<", maxTextBytes+1)} {
			for range 2 {
				got, err := s.Evidence(t.Context(), hashOf(content))
				if err != nil || string(got) != content {
					t.Errorf("%.20q: got %.20q, %v", content, got, err)
				}
			}
		}
		for hash, want := range map[string]marchwarden.Code{
			hashOf("unknown"):                        marchwarden.CodeNotFound,
			hashOf("large"):                          marchwarden.CodeUnavailable,
			hashOf("other"):                          marchwarden.CodeCorrupt,
			hashOf("panic"):                          marchwarden.CodeUnavailable,
			"sha256:../../etc/passwd":                marchwarden.CodeInvalid,
			strings.TrimPrefix(hashOf(""), "sha256"): marchwarden.CodeInvalid,
		} {
			if _, err := s.Evidence(t.Context(), hash); marchwarden.CodeOf(err) != want {
				t.Errorf("%s: got %v, want %s", hash, err, want)
			}
		}
	})
}

// The deadline of the caller is the server's too, which then hands over what it
// has while the caller still listens.
func TestDeadlineGivesAPartialResult(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		s.grace = patient
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the call arrives within it on a busy machine, too
		defer cancel()
		res, err := s.Research(ctx, ask("wait"), nil)
		if err != nil || res.Answer != "partial, because of context deadline exceeded [1]" {
			t.Fatalf("got %v, %v", res, err)
		}
		if _, err := s.Research(t.Context(), ask("again"), nil); err != nil {
			t.Errorf("the session did not survive: %v", err)
		}
	})
}

func TestDeadlineOfAHangingServer(t *testing.T) {
	t.Parallel()
	s := open(t, target(t, "hangs"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Research(ctx, ask("q"), nil)
	if !errors.Is(err, marchwarden.CodeTimeout) || err.Error() != "the researcher did not answer by the deadline" {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d < time.Second || d > 15*time.Second {
		t.Errorf("it took %v, want the deadline, the grace and half a second", d)
	}
}

// One that is cancelled while others go on ends alone.
func TestCancelLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		s.grace = patient
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		short, stop := context.WithTimeout(t.Context(), 800*time.Millisecond)
		defer stop()
		var wg sync.WaitGroup
		began := make(chan struct{})
		once := sync.OnceFunc(func() { close(began) })
		wg.Go(func() {
			res, err := s.Research(short, ask("wait"), func(marchwarden.Event) { once() })
			if err != nil || res.Answer != "partial, because of context deadline exceeded [1]" {
				t.Errorf("the other call got %v, %v", res, err)
			}
		})
		<-began
		_, err := s.Research(ctx, ask("wait"), func(e marchwarden.Event) {
			if e.Message == "waiting" {
				cancel()
			}
		})
		if !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
		wg.Wait()
		if _, err := s.Research(t.Context(), ask("q"), nil); err != nil {
			t.Errorf("the session did not survive: %v", err)
		}
	})
}

func TestCancelOfAServerThatDoesNotListen(t *testing.T) {
	t.Parallel()
	s := open(t, target(t, "hangs"))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := s.Research(ctx, ask("q"), nil)
	if !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Research(ctx, ask("q"), nil); !errors.Is(err, marchwarden.CodeCanceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		returned := make(chan struct{})
		started := make(chan struct{}, 1)
		go func() {
			defer close(returned)
			if _, err := s.Research(t.Context(), ask("wait"), func(marchwarden.Event) {
				select {
				case started <- struct{}{}:
				default:
				}
			}); !errors.Is(err, marchwarden.CodeCanceled) {
				t.Errorf("got %v", err)
			}
		}()
		<-started
		s.Close()
		within(t, 30*time.Second, "the call", returned)
		within(t, 30*time.Second, "the session", s.Done())
		s.Close()
	})
}

func TestCallTakesAnything(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, target Target) {
		s := open(t, target)
		reply, err := s.Call(t.Context(), map[string]any{"question": 3, "depth": "x"})
		if err != nil || reply.Failure == nil || reply.Failure.Code != marchwarden.CodeInvalid || reply.Failure.Field != "question" {
			t.Errorf("got %+v, %v", reply, err)
		}
		reply, err = s.Call(t.Context(), map[string]any{"question": "events", "novel": true})
		if err != nil || reply.Failure != nil || reply.Progress != 2 || reply.FromText || !strings.Contains(string(reply.Structured), "events [1]") {
			t.Errorf("got %+v, %v", reply, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Call(ctx, map[string]any{"question": "wait"}); !errors.Is(err, marchwarden.CodeCanceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTokenStaysAtHome(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	defer other.Close()
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer home.Close()
	_, err := testDialer().Dial(t.Context(), Target{URL: home.URL, Token: "sesame"})
	if !errors.Is(err, marchwarden.CodeDenied) || !strings.Contains(err.Error(), "redirects to another server") {
		t.Errorf("got %v", err)
	}
	if len(seen) > 0 {
		t.Errorf("the other server was asked, with %q", <-seen)
	}
}

func TestAddressesThatRefuse(t *testing.T) {
	t.Parallel()
	good := serveHTTP(t, true)
	for name, tc := range map[string]struct {
		target Target
		code   marchwarden.Code
	}{
		"token": {Target{URL: good.URL, Token: "wrong"}, marchwarden.CodeDenied},
		"rate":  {Target{URL: status(t, http.StatusTooManyRequests)}, marchwarden.CodeRateLimited},
		"fault": {Target{URL: status(t, http.StatusInternalServerError)}, marchwarden.CodeUnavailable},
		"page":  {Target{URL: status(t, http.StatusOK)}, marchwarden.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := testDialer().Dial(t.Context(), tc.target); !errors.Is(err, tc.code) {
				t.Errorf("got %v, want %s", err, tc.code)
			}
		})
	}
}

func status(t *testing.T, code int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	t.Cleanup(s.Close)
	return s.URL
}
