package pi_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

// roleFile is the variable that makes the test program a scripted researcher: a
// process of its own that speaks MCP over its standard streams.
const roleFile = "MARCHWARDEN_PI_ROLE"

func TestMain(m *testing.M) {
	if file := os.Getenv(roleFile); file != "" {
		perform(file)
		return
	}
	datatest.Abreast(4)
	goleak.VerifyTestMain(m)
}

// full says that the bars are tested with all their repetitions.
func full() bool { return os.Getenv("MARCHWARDEN_TEST_FULL") != "" }

// times is how often something is repeated: all of them, or a part of the few in
// everyday runs.
func times(all, few int) int {
	if full() {
		return all
	}
	return max(3, few/4)
}

// together runs fn n times, so many at once. They sleep most of the time, so there
// may be more than processors.
func together(n, atOnce int, fn func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			fn(i)
		})
	}
	all.Wait()
}

// role is a researcher of a troupe: who it is in the network, and what it does.
// Everything in it travels to its process.
type role struct {
	dispatch.Member
	Play  string           // a name in plays; "" acts by the script
	Acts  map[string][]act // by the context of a request; the last one is repeated
	Mute  bool             // hands over no evidence
	Log   string           // where it writes down what it is asked
	Every time.Duration    // after which it reports progress, while an act lasts
}

// act is what a role does when it is asked for the n-th time in one context.
type act struct {
	How    string // "" answers, or hang, kill, junk, schema, fail
	Lasts  time.Duration
	After  string // the role that must have answered in the same context before this one is asked
	Result *marchwarden.Result
	Stored []string          // texts that it hands over by their hash
	Serves map[string]string // what it hands over for a hash, true or not
}

// entry is a line of a role's log.
type entry struct {
	PID int
	marchwarden.Request
}

// plays are the researchers that no script can describe.
var plays = map[string]func(a *actor, n int, req marchwarden.Request) *marchwarden.Result{}

// actor is a role in its process.
type actor struct {
	role
	mu     sync.Mutex // guards what follows
	log    *os.File
	asked  map[string]int // calls by context
	serves map[string]string
}

// perform serves as the role in a file until the client leaves.
func perform(file string) {
	a := &actor{asked: map[string]int{}, serves: map[string]string{}}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &a.role)
	}
	if err == nil {
		a.log, err = os.OpenFile(a.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, acts := range a.Acts {
		for _, act := range acts {
			a.store(act.Stored...)
			for hash, text := range act.Serves {
				a.serves[hash] = text
			}
		}
	}
	if a.Play == "raw" {
		a.serveRaw()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := mcpkit.Config{Name: a.Name, Scope: a.Scope, Private: a.Private, Researcher: a, MaxConcurrent: 64, Grace: time.Second, Now: time.Now}
	if !a.Mute {
		cfg.Evidence = a.evidence
	}
	s, err := mcpkit.NewServer(cfg)
	if err == nil {
		err = s.ServeStdio(ctx, os.Stdin, os.Stdout)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (a *actor) store(texts ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range texts {
		a.serves[blob.Of([]byte(text)).String()] = text
	}
}

func (a *actor) evidence(_ context.Context, hash string) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text, ok := a.serves[hash]; ok {
		return []byte(text), nil
	}
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no %s", hash)
}

// note writes a request down and counts it.
func (a *actor) note(req marchwarden.Request) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	line, err := json.Marshal(entry{os.Getpid(), req})
	if err == nil {
		_, err = a.log.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
	a.asked[scene(req)]++
	return a.asked[scene(req)]
}

// scene is the context that the user gave, whatever an investigator adds to it.
func scene(req marchwarden.Request) string {
	given, _, _ := strings.Cut(req.Context, "\n")
	return given
}

// Research does what the role says.
func (a *actor) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	n := a.note(req)
	if a.Play != "" {
		return plays[a.Play](a, n, req), nil
	}
	acts := a.Acts[scene(req)]
	if len(acts) == 0 {
		text := fmt.Sprintf("On %q, %s has this to say.", req.Question, a.Name)
		a.store(text)
		return reportOf(doc{At: fmt.Sprintf("https://%s.example/%.8x", a.Name, sha256.Sum256([]byte(req.Question))), Text: text}), nil
	}
	act := acts[min(n, len(acts))-1]
	a.pass(ctx, act.Lasts, sink)
	switch act.How {
	case "hang":
		time.Sleep(time.Hour) // and not select {}, which ends a process in which nothing else goes on
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill() // as kill -9 does
		}
		time.Sleep(time.Hour) // and not select {}, which ends a process in which nothing else goes on
	case "junk":
		for range 1200 {
			junk := make([]byte, 40)
			for i := range junk {
				junk[i] = byte(rand.IntN(256))
			}
			_, _ = os.Stdout.Write(append(bytes.ReplaceAll(junk, []byte("\n"), nil), '\n'))
		}
		time.Sleep(time.Hour) // and not select {}, which ends a process in which nothing else goes on
	case "fail":
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "it has a bad day")
	}
	return act.Result, nil
}

// pass lets time go by, with a word now and then, until the caller has no more.
func (a *actor) pass(ctx context.Context, lasts time.Duration, sink marchwarden.Sink) {
	if lasts <= 0 {
		return
	}
	every := a.Every
	if every <= 0 {
		every = time.Hour
	}
	tick, over := time.NewTicker(every), time.NewTimer(lasts)
	defer tick.Stop()
	defer over.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-tick.C:
			if sink != nil {
				sink(marchwarden.Event{Stage: marchwarden.StageFetch, Message: fmt.Sprintf("page %d", i)})
			}
		}
	}
}

// serveRaw is a server written by hand, whose results break the contract.
func (a *actor) serveRaw() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments marchwarden.Request }
		}
		if json.Unmarshal(lines.Bytes(), &msg) != nil || msg.ID == nil {
			continue
		}
		reply := `"error":{"code":-32601,"message":"method not found"}`
		switch msg.Method {
		case "initialize":
			reply = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case "tools/list":
			reply = `"result":{"tools":[{"name":"research","inputSchema":{"type":"object","properties":{"question":{"type":"string"}}}}]}`
		case "tools/call":
			a.note(msg.Params.Arguments)
			reply = `"result":{"content":[],"structuredContent":{"answer":["no","text"],"citations":{"a":1},"confidence":"high"}}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", msg.ID, reply)
	}
}

// doc is a document that a role cites whole.
type doc struct {
	At, Text, Title, Published, Source string
	Authority                          marchwarden.Authority
}

// reportOf is a result with one claim per document.
func reportOf(docs ...doc) *marchwarden.Result {
	res := &marchwarden.Result{Confidence: 0.8, CostMetadata: marchwarden.CostMetadata{TokensUsed: 500, IterationsRun: 1, ModelID: "extractive/1", SourcesRead: len(docs)}}
	res.TraceID, _ = marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a11")
	res.ConfidenceFactors = marchwarden.ConfidenceFactors{QuerySpecificityMatch: 0.9, SourceAuthority: marchwarden.LowAuthority}
	for i, d := range docs {
		if d.Source == "" {
			d.Source = "web"
		}
		res.Citations = append(res.Citations, marchwarden.Citation{Source: d.Source, Locator: d.At, Title: d.Title, Published: d.Published, Authority: d.Authority,
			RawExcerpt: d.Text, ContentHash: blob.Of([]byte(d.Text)).String(), Span: &marchwarden.Span{Start: 0, End: len(d.Text)}, Origin: d.At, Confidence: 0.8})
		res.Claims = append(res.Claims, marchwarden.Claim{Text: d.Text, Citations: []int{i + 1}, Support: marchwarden.Supported})
		res.Answer += fmt.Sprintf("%s [%d] ", d.Text, i+1)
	}
	res.Normalize()
	return res
}

// answering is an act with the documents of a report stored.
func answering(docs ...doc) act {
	a := act{Result: reportOf(docs...)}
	for _, d := range docs {
		a.Stored = append(a.Stored, d.Text)
	}
	return a
}

// with is the act with its result changed.
func (a act) with(change func(*marchwarden.Result)) act {
	change(a.Result)
	return a
}

// lasting is the act drawn out.
func (a act) lasting(d time.Duration) act {
	a.Lasts = d
	return a
}

// after is the act drawn out, once another role has answered.
func (a act) after(role string, d time.Duration) act {
	a.After = role
	return a.lasting(d)
}

// troupe is a network of roles, each in a process of its own.
type troupe struct {
	*pool.Pool
	dir   string
	roles map[string]role

	mu       sync.Mutex                  // guards what follows
	answered map[[2]string]chan struct{} // by role and scene; closed when it has
}

// answer is closed when a role has answered in a scene.
func (tr *troupe) answer(name, scene string) chan struct{} {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	key := [2]string{name, scene}
	if tr.answered[key] == nil {
		tr.answered[key] = make(chan struct{})
	}
	return tr.answered[key]
}

// Dispatch asks a role, in its turn.
func (tr *troupe) Dispatch(ctx context.Context, name string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if acts := tr.roles[name].Acts[scene(req)]; len(acts) > 0 && acts[0].After != "" {
		select {
		case <-tr.answer(acts[0].After, scene(req)):
		case <-ctx.Done():
		}
	}
	res, err := tr.Pool.Dispatch(ctx, name, req, sink)
	done := tr.answer(name, scene(req))
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if !closed(done) {
		close(done)
	}
	return res, err
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// gather makes a troupe. Its processes start when they are first asked and end
// with the test.
func gather(t testing.TB, roles ...role) *troupe {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tr := &troupe{dir: t.TempDir(), roles: map[string]role{}, answered: map[[2]string]chan struct{}{}}
	dialer := &client.Dialer{Now: time.Now}
	var seats []pool.Seat
	for _, r := range roles {
		if r.Trust == "" {
			r.Trust = dispatch.Own
		}
		if r.Scope == "" {
			r.Scope = "matters of " + r.Name
		}
		r.Log = tr.logOf(r.Name)
		tr.roles[r.Name] = r
		file := filepath.Join(tr.dir, r.Name+".json")
		data, err := json.Marshal(r)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		seats = append(seats, pool.Seat{Member: r.Member, Open: func(ctx context.Context) (pool.Session, pool.Card, error) {
			s, err := dialer.Dial(ctx, client.Target{Command: []string{self}, Env: []string{roleFile + "=" + file}})
			if err != nil {
				return nil, pool.Card{}, err
			}
			return s, pool.Card{Contract: s.Card().Contract, ToolHash: s.Card().ToolHash}, nil
		}})
	}
	if tr.Pool, err = pool.New(pool.Config{Seats: seats, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// warm starts all processes, so that their start is not what is measured.
func (tr *troupe) warm(t testing.TB) {
	var all sync.WaitGroup
	for _, m := range tr.Members() {
		all.Go(func() {
			if _, err := tr.Dispatch(t.Context(), m.Name, marchwarden.Request{Question: "Are you there?", Context: "warm"}, nil); err != nil && m.Name != "garbler" {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func (tr *troupe) logOf(name string) string { return filepath.Join(tr.dir, name+".log") }

// entries is everything that a role was asked, in order.
func (tr *troupe) entries(t testing.TB, name string) []entry {
	t.Helper()
	data, err := os.ReadFile(tr.logOf(name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []entry
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// asked is what a role was asked in one context.
func (tr *troupe) asked(t testing.TB, name, context string) []marchwarden.Request {
	t.Helper()
	var out []marchwarden.Request
	for _, e := range tr.entries(t, name) {
		if scene(e.Request) == context {
			out = append(out, e.Request)
		}
	}
	return out
}

// some is a network of only some members, or of members described otherwise.
type some struct {
	dispatch.Dispatcher
	members []dispatch.Member
}

func (s some) Members() []dispatch.Member { return s.members }

// only is a network with some of its members, in the order given.
func only(d dispatch.Dispatcher, names ...string) dispatch.Dispatcher {
	s := some{Dispatcher: d}
	for _, name := range names {
		for _, m := range d.Members() {
			if m.Name == name {
				s.members = append(s.members, m)
			}
		}
	}
	return s
}
