// Package conform finds out from outside whether any MCP server keeps the research contract: it
// looks at what the server offers, asks it a real question, gives it bad input, and sees whether it
// is still there afterwards.
//
// It owns the list of checks and what each of them says to people. It does not own
// the contract, which is the root package's, nor the wire, which is mcpkit's. What
// a server's answers are worth is not judged here, only whether they can be checked.
package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/connector"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// cancelAfter is when a call is cancelled, which most research will not have ended by.
const cancelAfter = 150 * time.Millisecond

// Options are how to check.
type Options struct {
	// Question is one that the server should be able to answer; "" is about the capital of France.
	Question string
	// Limit is how long one call may take; 0 means two minutes.
	Limit time.Duration
}

// better are the checks that the contract does not ask for, and that a caller is better off with.
var better = []string{"contract-version", "input-optional", "output-schema", "structured", "progress"}

// Outcome is what a check found.
type Outcome string

// The outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Warn    Outcome = "warn"    // worth a look, and no reason to refuse the server
	Skipped Outcome = "skipped" // it could not be told
)

// Finding is one check and what it found, in a sentence.
type Finding struct {
	ID      string  `json:"id"`
	Level   string  `json:"level"` // must, or should
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail"`
}

// Report is what was found, in the order of the checks.
type Report struct {
	Server   string    `json:"server,omitempty"`
	Version  string    `json:"version,omitempty"`
	Protocol string    `json:"protocol,omitempty"`
	Contract string    `json:"contract,omitempty"`
	ToolHash string    `json:"tool_hash,omitempty"`
	Findings []Finding `json:"findings"`
	// Complete is false when the caller stopped the check.
	Complete bool `json:"complete"`
}

// OK says that the check was complete and nothing in it failed.
func (r Report) OK() bool {
	return r.Complete && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Outcome == Fail })
}

// Table is the findings in rows for people: check, level, outcome, what was seen.
func (r Report) Table() [][]string {
	rows := make([][]string, len(r.Findings))
	for i, f := range r.Findings {
		rows[i] = []string{f.ID, f.Level, string(f.Outcome), f.Detail}
	}
	return rows
}

// bench is one check under way.
type bench struct {
	dial     func(context.Context) (*client.Session, error)
	o        Options
	report   Report
	session  *client.Session
	progress int // the most that came in one call
}

// Check asks the server that dial connects to. It may dial several times: a server
// that ends is started again for the next check. Every session is closed. The end
// of ctx ends the check; what was found until then is in the report.
func Check(ctx context.Context, dial func(context.Context) (*client.Session, error), o Options) Report {
	b := &bench{dial: dial, o: Options{cmp.Or(o.Question, "What is the capital of France?"), cmp.Or(o.Limit, 2*time.Minute)}}
	defer b.hangUp()
	if b.connects(ctx) {
		b.surface()
		survives := func(ctx context.Context) { b.expect(ctx, "survive", "after bad input", b.quick()) }
		for _, step := range []func(context.Context){b.answers, b.refusals, survives, b.tolerance, b.together, b.canceled, b.tells} {
			if ctx.Err() == nil {
				step(ctx)
			}
		}
	}
	b.report.Complete = ctx.Err() == nil
	return b.report
}

func (b *bench) hangUp() {
	if b.session != nil {
		_ = b.session.Close()
		b.session = nil
	}
}

func (b *bench) note(id string, outcome Outcome, format string, args ...any) {
	level := "must"
	if slices.Contains(better, id) {
		level = "should"
	}
	b.report.Findings = append(b.report.Findings, Finding{id, level, outcome, fmt.Sprintf(format, args...)})
}

// verdict notes what is right, or, with another outcome, what is wrong.
func (b *bench) verdict(id string, ok bool, right string, otherwise Outcome, wrong string) {
	if ok {
		otherwise, wrong = Pass, right
	}
	b.note(id, otherwise, "%s", wrong)
}

// connects is the first check, and without it there is no other.
func (b *bench) connects(ctx context.Context) bool {
	s, err := b.dial(ctx)
	if err != nil {
		b.note("connect", Fail, "%v", withHint(err))
		return false
	}
	b.session = s
	c := s.Card()
	b.report.Server, b.report.Version, b.report.Protocol, b.report.Contract, b.report.ToolHash = c.Server, c.Version, c.Protocol, c.Contract, c.ToolHash
	b.note("connect", Pass, "speaks MCP %s and has a tool that takes a question", c.Protocol)
	return true
}

func withHint(err error) error {
	if hint := marchwarden.HintOf(err); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// call makes one call, on a new session if the last one is over.
func (b *bench) call(ctx context.Context, args map[string]any) (client.Reply, error) {
	if b.session != nil {
		select {
		case <-b.session.Done():
			b.hangUp()
		default:
		}
	}
	if b.session == nil {
		s, err := b.dial(ctx)
		if err != nil {
			return client.Reply{}, fmt.Errorf("connect again: %w", err)
		}
		b.session = s
	}
	reply, err := b.ask(ctx, b.session, args)
	b.progress = max(b.progress, reply.Progress)
	return reply, err
}

// ask makes one call within the limit.
func (b *bench) ask(ctx context.Context, s *client.Session, args map[string]any) (client.Reply, error) {
	limited, cancel := context.WithTimeout(ctx, b.o.Limit)
	defer cancel()
	reply, err := s.Call(limited, args)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = marchwarden.Errorf(marchwarden.CodeTimeout, "there was no answer within %v", b.o.Limit)
	}
	return reply, err
}

// quick is the cheapest request that is a real one.
func (b *bench) quick() map[string]any {
	return map[string]any{"question": b.o.Question, "depth": "shallow",
		"constraints": map[string]any{"max_iterations": 1, "token_budget": marchwarden.MinTokenBudget, "max_sources": 1}}
}

// refusals gives input that the contract forbids, and expects an error of the tool, which a caller can
// read and correct, and that the server lives on.
func (b *bench) refusals(ctx context.Context) {
	with := func(constraint string, v any) map[string]any {
		return map[string]any{"question": b.o.Question, "constraints": map[string]any{constraint: v}}
	}
	for _, bad := range []struct {
		id, what string
		args     map[string]any
	}{
		{"refuse-blank", "a blank question", map[string]any{"question": " \t "}},
		{"refuse-long", "a question of 501 characters", map[string]any{"question": strings.Repeat("é", marchwarden.MaxQuestionChars+1)}},
		{"refuse-depth", "an unknown depth", map[string]any{"question": b.o.Question, "depth": "bottomless"}},
		{"refuse-budget", "a token budget of 999", with("token_budget", marchwarden.MinTokenBudget-1)},
		{"refuse-iterations", "21 iterations", with("max_iterations", marchwarden.MaxIterations+1)},
	} {
		if ctx.Err() != nil {
			return
		}
		reply, err := b.call(ctx, bad.args)
		switch {
		case err == nil && reply.Failure != nil:
			b.note(bad.id, Pass, "%s is an error of the tool", bad.what)
		case err == nil:
			b.note(bad.id, Fail, "%s is accepted", bad.what)
		case b.alive() && marchwarden.CodeOf(err) == marchwarden.CodeUnavailable:
			b.note(bad.id, Warn, "%s is an error of the protocol; an error of the tool can be read and corrected by the caller", bad.what)
		default:
			b.note(bad.id, Fail, "%s: %v", bad.what, err)
		}
	}
}

// alive tells whether the session is still up, a moment after a call failed.
func (b *bench) alive() bool {
	if b.session == nil {
		return false
	}
	select {
	case <-b.session.Done():
		return false
	case <-time.After(cancelAfter):
		return true
	}
}

// expect makes a call that must be answered with a result.
func (b *bench) expect(ctx context.Context, id, when string, args map[string]any) {
	err := faultOf(b.call(ctx, args))
	b.verdict(id, err == nil, when+" it answers", Fail, fmt.Sprintf("%s: %v", when, err))
}

// faultOf is why a call gave no result, or nil.
func faultOf(reply client.Reply, err error) error {
	if err == nil {
		_, err = reply.Result()
	}
	return err
}

// tolerance is what a caller of tomorrow needs.
func (b *bench) tolerance(ctx context.Context) {
	novel := b.quick()
	novel["field_of_tomorrow"] = true
	novel["constraints"].(map[string]any)["max_hops"] = 3
	b.expect(ctx, "unknown-field", "with an optional field that it does not know,", novel)
}

// together makes two calls at once.
func (b *bench) together(ctx context.Context) {
	s := b.session
	if !b.alive() {
		b.note("concurrent", Skipped, "there is no connection for two calls at once")
		return
	}
	faults := make(chan error, 2)
	for range 2 {
		go func() { faults <- faultOf(b.ask(ctx, s, b.quick())) }()
	}
	err := errors.Join(<-faults, <-faults)
	b.verdict("concurrent", err == nil, "two calls at once are both answered", Fail, "two calls at once: "+plaintext.Line(fmt.Sprint(err), 3*maxShown))
}

// canceled cancels a call and asks again.
func (b *bench) canceled(ctx context.Context) {
	hasty, cancel := context.WithTimeout(ctx, cancelAfter)
	_, err := b.call(hasty, b.quick())
	cancel()
	after := "after a call was cancelled"
	if err == nil {
		after = "after a call that was to be cancelled and was answered before"
	}
	if !b.alive() {
		b.note("cancel", Fail, "the server ended when a call was cancelled")
		return
	}
	b.expect(ctx, "cancel", after, b.quick())
}

// tells looks whether progress came with any of the calls.
func (b *bench) tells(context.Context) {
	b.verdict("progress", b.progress > 0, "progress is sent while it works", Warn, "no progress was sent; people who wait, and hosts with a time limit, want to see some")
}

// CheckConnector tells whether a server can be used by its own tools to search and to fetch, and
// what it lacks. It searches for the question and reads the first document that is found.
func CheckConnector(ctx context.Context, open func(context.Context) (*connector.Connector, error), o Options) Report {
	b := &bench{o: o}
	ctx, done := context.WithTimeout(ctx, cmp.Or(o.Limit, 2*time.Minute))
	defer done()
	c, err := open(ctx)
	if err != nil {
		b.note("tools", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	defer c.Close()
	card := c.Card()
	b.report.Server, b.report.Version, b.report.Protocol, b.report.ToolHash = card.Server, card.Version, card.Protocol, card.ToolHash
	b.note("tools", Pass, "%s", c.Tools())
	setup, err := c.Prepare(ctx, marchwarden.Request{})
	if err != nil {
		b.note("search", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	hits, err := setup.Engine.Search(ctx, search.Query{Text: o.Question})
	switch {
	case err != nil:
		b.note("search", Fail, "%v", withHint(err))
		return b.done(ctx)
	case len(hits) == 0:
		b.note("search", Skipped, "nothing was found for %q; --question gives words that it knows", o.Question)
		return b.done(ctx)
	}
	b.note("search", Pass, "%d found; the first is %s, %q", len(hits), hits[0].Locator, hits[0].Title)
	page, err := setup.Fetcher.Fetch(ctx, hits[0].Locator)
	if err != nil {
		b.note("fetch", Fail, "%v", withHint(err))
		return b.done(ctx)
	}
	b.note("fetch", Pass, "%q has %d bytes of text", page.Title, page.TextBytes)
	return b.done(ctx)
}

func (b *bench) done(ctx context.Context) Report {
	b.report.Complete = !errors.Is(ctx.Err(), context.Canceled) // what took too long has failed
	return b.report
}
