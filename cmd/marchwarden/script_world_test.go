package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// thirdparty is an external researcher, made with the public package serve. It knows one thing, or
// leads on to another researcher:
//
//	thirdparty            answers, and hands over its evidence
//	thirdparty renamed    the same with another description
//	thirdparty bare       answers, and hands over nothing
//	thirdparty liar       cites what does not stand in its evidence
//	thirdparty noisy      answers, and writes what it likes to stderr
//	thirdparty hang       never answers a question, until it is told to end
//	thirdparty fails      fails, with a key in its words
//	thirdparty overdoes   gives a result that breaks the contract
//	thirdparty v2         keeps a later version of the contract
//	thirdparty leads      found something that it suggests to ask others about
//	thirdparty weighs     answers with the last of several sentences
//	thirdparty shows VAR  answers with whether it sees the environment variable
//	thirdparty notes      is no researcher: it has tools of its own, to find pages and to read them
func thirdparty() {
	l := ledge{}
	if len(os.Args) > 1 {
		l.mode = os.Args[1]
	}
	cfg := serve.Config{Name: "lamps", Scope: "lamps of the harbour", Researcher: l, Evidence: l.evidence}
	var out io.Writer = os.Stdout
	switch l.mode {
	case "renamed":
		cfg.Scope = "lamps of the harbour, and whatever else you tell me"
	case "bare":
		cfg.Evidence = nil
	case "noisy":
		fmt.Fprint(os.Stderr, "\x1b[31mall is lost\x1b[0m\a\n{\"level\":\"WARN\",\"msg\":\"a lamp \\u001b[31mflickers\"}\n")
	case "v2":
		out = replacing{os.Stdout, []byte(`"marchwarden/contract":"v1"`), []byte(`"marchwarden/contract":"v2"`)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if l.mode == "notes" {
		if err := harbour().Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := serve.Stdio(ctx, cfg, os.Stdin, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// harbour is a server of pages, of a maker that never heard of this program.
func harbour() *mcp.Server {
	pages := map[string]string{
		"17": "# Mooring\n\nThe mooring by the north pier costs 42 crowns a night. Boats over twelve metres pay twice as much.\n",
		"23": "# Tides\n\nThe flood stream runs north for six hours.\n",
	}
	type found struct {
		Key   string `json:"key"`
		Label string `json:"label"`
	}
	type finds struct {
		Rows []found `json:"rows"`
	}
	type page struct {
		Body string `json:"body"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "harbour", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "find_pages"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, finds, error) {
		out := finds{Rows: []found{}}
		for key, body := range pages {
			if strings.Contains(strings.ToLower(body), strings.ToLower(in.Text)) {
				out.Rows = append(out.Rows, found{key, strings.Fields(body)[1]})
			}
		}
		return nil, out, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "get_page"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Page string `json:"page"`
	}) (*mcp.CallToolResult, page, error) {
		return nil, page{pages[in.Page]}, nil
	})
	return s
}

// replacing writes with one text for another, within a message.
type replacing struct {
	io.Writer
	old, new []byte
}

func (r replacing) Write(p []byte) (int, error) {
	_, err := r.Writer.Write(bytes.ReplaceAll(p, r.old, r.new))
	return len(p), err
}

// weight is what thirdparty weighs says.
const weight = "It weighed 14.2 kilograms when it was brought to the museum."

// ledge is the researcher of thirdparty.
type ledge struct{ mode string }

func (l ledge) fact() string {
	switch {
	case l.mode == "shows":
		_, seen := os.LookupEnv(os.Args[2])
		return fmt.Sprintf("The harbour lamp sees %s: %v.", os.Args[2], seen)
	case l.mode == "weighs":
		return "The Varn stone fell on the meadow by the harbour on 3 May 1903. A farmer found it the next morning in a hole as deep as a man. " + weight
	case l.mode == "leads":
		return "The harbour lamp was lit by the keeper Quillon Varga."
	}
	return "The harbour lamp of Port Ellery was first lit in 1887."
}

func (l ledge) hash() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(l.fact()))) }

func (l ledge) evidence(_ context.Context, hash string) ([]byte, error) {
	if hash != l.hash() {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "there is no such document")
	}
	return []byte(l.fact()), nil
}

func (l ledge) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if sink != nil {
		sink(marchwarden.Event{Stage: marchwarden.StageSearch, Message: "looking at the lamps"})
	}
	if l.mode == "hang" {
		<-ctx.Done()
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "look at the lamps")
	}
	if l.mode == "fails" {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "KeyError in /srv/lamps.py: key %s is not known", os.Getenv("LAMP_KEY"))
	}
	excerpt := l.fact()
	if l.mode == "liar" {
		excerpt = "The harbour lamp of Port Ellery was never lit."
	}
	res := &marchwarden.Result{
		Answer: excerpt + " [1]", Confidence: 0.8, TraceID: serve.NewTraceID(),
		Citations:         []marchwarden.Citation{{Source: "file", Locator: "lamps.txt", Title: "Lamps", RawExcerpt: excerpt, Confidence: 0.8, ContentHash: l.hash()}},
		ConfidenceFactors: marchwarden.ConfidenceFactors{NumCorroboratingSources: 1, SourceAuthority: marchwarden.LowAuthority, QuerySpecificityMatch: 0.8},
		CostMetadata:      marchwarden.CostMetadata{IterationsRun: 1, ModelID: "lamps/1", SourcesRead: 1},
	}
	if l.mode == "weighs" {
		fell, _, _ := strings.Cut(l.fact(), " A farmer")
		res.Answer = fell + " [1] " + weight + " [1]"
		res.Claims = []marchwarden.Claim{{Text: fell, Citations: []int{1}, Support: marchwarden.Supported}, {Text: weight, Citations: []int{1}, Support: marchwarden.Supported}}
	}
	if l.mode == "leads" {
		res.DiscoveryEvents = []marchwarden.DiscoveryEvent{{Type: marchwarden.RelatedResearch, SuggestedResearcher: "web", Query: "Who was Quillon Varga?", Reason: "he is named in the harbour's book", SourceLocator: "lamps.txt"}}
	}
	res.Normalize()
	if l.mode == "overdoes" {
		res.Confidence = 7
	}
	return res, nil
}

// newArxiv is arXiv and its web site with one paper, the indexes of papers with
// none, and below /busy one that has no room.
func newArxiv(t *testing.T) string {
	const feed = `<?xml version='1.0' encoding='UTF-8'?><feed xmlns:arxiv="http://arxiv.org/schemas/atom" xmlns="http://www.w3.org/2005/Atom"><title>arXiv Query</title>` +
		`<entry><id>http://arxiv.org/abs/2101.00007v3</id><title>The Lemming model</title><summary>We present Lemming, a model of attention.</summary>` +
		`<published>2021-01-04T00:00:00Z</published><updated>2023-08-02T00:00:00Z</updated><author><name>Ada Example</name></author><arxiv:primary_category term="cs.CL"/></entry></feed>`
	filler := strings.Repeat("The remaining sections describe the setting of the study in the usual detail and order. ", 25)
	mux := http.NewServeMux()
	say := func(pattern, kind, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body) // a client that went away is its own affair
		})
	}
	say("/api/query", "application/atom+xml", feed)
	text := "<!doctype html><html lang=en><head><title>The Lemming model</title></head><body><article><h1>The Lemming model</h1>" +
		"<p>Lemming is a model.</p><p>The Lemming model has eleven attention heads in every layer.</p><p>" + filler + "</p></article></body></html>"
	say("/html/2101.00007v3", "text/html; charset=utf-8", text)
	say("/html/2101.00007", "text/html; charset=utf-8", text)
	say("/known/works/", "application/json", `{"doi": "https://doi.org/10.48550/arxiv.2101.00007", "title": "The Lemming model", "display_name": "The Lemming model"}`)
	say("/works", "application/json", `{"meta": {}, "results": []}`)
	mux.HandleFunc("/busy/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// sqlite runs statements on a file, which is made if it is not there.
func sqlite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sqlite FILE SQL…")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	for _, statement := range args[1:] {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
	ts.Check(db.Close())
}

// lines are the command lines of the processes that work in a folder or below.
func lines(dir string) (all []string, known bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+string(filepath.Separator)) {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline")); err == nil && len(line) > 0 {
			all = append(all, strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " "))
		}
	}
	return all, true
}

// nobody checks that no process works in the script's folder any more.
func nobody(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nobody")
	}
	var left []string
	for range 40 { // a process that was killed takes a moment to be gone
		left, _ = lines(ts.MkAbs("."))
		if len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("left behind: %q", left)
}

// peeked is the file in a script's folder to which programs add their command lines.
const peeked = ".command-lines"

// peek runs a command and writes the command lines that could be seen meanwhile. Each
// program notes its own: some are gone before anything else could look.
func peek(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: peek FILE COMMAND…")
	}
	noted := ts.MkAbs(peeked)
	ts.Check(os.WriteFile(noted, nil, 0o600))
	err := ts.Exec(args[1], args[2:]...)
	ts.Check(os.Rename(noted, ts.MkAbs(args[0])))
	ts.Check(err)
}

// noteCommandLine adds what others can see of this process to the file of peek, where
// the folder of this process or one above it has one.
func noteCommandLine() {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		f, err := os.OpenFile(filepath.Join(dir, peeked), os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/self/cmdline")
		if err != nil {
			line = []byte(strings.Join(os.Args, "\x00"))
		}
		_, _ = f.WriteString(strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ") + "\n") // the script sees what is missing
		_ = f.Close()
		return
	}
}

// within is exits 0 that also says how long it may take.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: within TIME COMMAND…")
	}
	most, err := time.ParseDuration(args[0])
	ts.Check(err)
	began := time.Now()
	ts.Check(ts.Exec(args[1], args[2:]...))
	if took := time.Since(began); took > most {
		ts.Fatalf("it took %v", took)
	}
}
