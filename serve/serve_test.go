package serve_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// asServer makes this test binary the server that the tests talk to.
const asServer = "SERVE_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := serve.Stdio(context.Background(), config(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const fact = "Basil grows in pots."

func hash() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(fact))) }

// herbs answers everything with one fact.
type herbs struct{}

func (herbs) Research(_ context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if req.Question == "panic" {
		panic("as it was asked to")
	}
	if sink != nil {
		sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "looking at the pots"})
		time.Sleep(50 * time.Millisecond) // progress that comes together with the answer may be lost
	}
	res := &marchwarden.Result{
		Answer: fact + " [1]", Confidence: 0.5, TraceID: serve.NewTraceID(),
		Citations:         []marchwarden.Citation{{Source: "file", Locator: "pots.txt", RawExcerpt: fact, ContentHash: hash(), Span: &marchwarden.Span{Start: 0, End: len(fact)}}},
		ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority},
	}
	res.Normalize()
	return res, nil
}

func config() serve.Config {
	return serve.Config{
		Name: "herbs", Scope: "herbs in pots", Version: "v3", Researcher: herbs{}, Private: true,
		Evidence: func(_ context.Context, h string) ([]byte, error) {
			if h != hash() {
				return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "not here")
			}
			return []byte(fact), nil
		},
	}
}

// TestServedToAnotherProcess asks a server that was made with this package alone,
// as a process.
func TestServedToAnotherProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &client.Dialer{Now: time.Now}
	s, err := d.Dial(t.Context(), client.Target{Command: []string{self}, Env: []string{asServer + "=1"}, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	card := s.Card()
	want := client.Card{Server: "marchwarden-herbs", Version: "v3", Contract: marchwarden.ContractVersion, Private: true, Evidence: true,
		Protocol: card.Protocol, Description: card.Description, ToolHash: card.ToolHash}
	if diff := cmp.Diff(want, card); diff != "" || !strings.Contains(card.Description, "Herbs in pots.") {
		t.Errorf("card (-want +got):\n%s%s", diff, card.Description)
	}
	var heard []string
	res, err := s.Research(t.Context(), marchwarden.Request{Question: "What grows in pots?"}, func(e marchwarden.Event) { heard = append(heard, e.Message) })
	if err != nil || res.Citations[0].RawExcerpt != fact || len(heard) == 0 {
		t.Errorf("%v %v, heard %q", res, err, heard)
	}
	if got, err := s.Evidence(t.Context(), hash()); string(got) != fact {
		t.Errorf("evidence: %q %v", got, err)
	}
	if _, err := s.Evidence(t.Context(), "sha256:"+strings.Repeat("0", 64)); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("evidence that is not there: %v", err)
	}
	if _, err := s.Research(t.Context(), marchwarden.Request{Question: "panic"}, nil); !errors.Is(err, marchwarden.CodeInternal) {
		t.Errorf("a panic: %v", err)
	}
	if _, err := s.Research(t.Context(), marchwarden.Request{Question: "Still there?"}, nil); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

// TestServedOverHTTP asks a server at an address, with its token and without.
func TestServedOverHTTP(t *testing.T) {
	const token = "basil-and-thyme-in-pots"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve.HTTP(ctx, config(), serve.HTTPConfig{Listener: l, Token: token}) }()
	d, at := &client.Dialer{Now: time.Now}, "http://"+l.Addr().String()+"/mcp"
	if s, err := d.Dial(t.Context(), client.Target{URL: at}); err == nil {
		t.Error("it lets callers in without a token", s.Close())
	}
	s, err := d.Dial(t.Context(), client.Target{URL: at, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Research(t.Context(), marchwarden.Request{Question: "What grows in pots?"}, nil)
	if err != nil || res.Citations[0].RawExcerpt != fact {
		t.Errorf("%v %v", res, err)
	}
	if got, err := s.Evidence(t.Context(), hash()); string(got) != fact {
		t.Errorf("evidence: %q %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestHTTPRefusesWhatIsUnsafe(t *testing.T) {
	for name, token := range map[string]string{"no token": "", "a short token": "short"} {
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := serve.HTTP(t.Context(), config(), serve.HTTPConfig{Listener: l, Token: token}); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("%s at an address for all: %v", name, err)
		}
	}
	if err := serve.HTTP(t.Context(), config(), serve.HTTPConfig{}); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("without a listener: %v", err)
	}
}

func TestEnds(t *testing.T) {
	if err := serve.Stdio(t.Context(), config(), strings.NewReader(""), io.Discard); err != nil {
		t.Errorf("input that ended: %v", err)
	}
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := serve.Stdio(ctx, config(), r, io.Discard); err != nil {
		t.Errorf("a context that ended: %v", err)
	}
	broken := errors.New("cable cut")
	if err := serve.Stdio(t.Context(), config(), io.MultiReader(strings.NewReader("\n"), failing{broken}), io.Discard); !errors.Is(err, broken) {
		t.Errorf("input that failed: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRefusesWhatIsIncomplete(t *testing.T) {
	for name, edit := range map[string]func(*serve.Config){
		"name":       func(c *serve.Config) { c.Name = " " },
		"scope":      func(c *serve.Config) { c.Scope = "" },
		"researcher": func(c *serve.Config) { c.Researcher = nil },
	} {
		cfg := config()
		edit(&cfg)
		err := serve.Stdio(t.Context(), cfg, strings.NewReader(""), io.Discard)
		if !errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("without a %s: %v", name, err)
		}
	}
}

func TestTraceIDsSortByTime(t *testing.T) {
	last := serve.NewTraceID()
	for range 1000 {
		next := serve.NewTraceID()
		if !next.Valid() || next.String() <= last.String() {
			t.Fatalf("%s after %s", next, last)
		}
		last = next
	}
}
