package model

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

const (
	maxSearches  = 4
	maxReads     = 6
	maxCalls     = 256 // of a reply that are looked at
	queryChars   = 200
	guidedChars  = 1000 // of a query where a guide says what it may be
	reasonChars  = 200
	locatorChars = 2000

	noRoom = "The token budget has no room for a model to plan" // why a first step is planned without it
)

// Plan asks the model what to search and read. Where the model fails, the plan
// is the one of package extractive and comes with the fault; a budget that has
// no room for the question is no fault.
func (r *Reasoner) Plan(ctx context.Context, s *reason.State) (reason.Plan, error) {
	r.plainly = false
	if s.Past != r.past { // the model is asked again
		r.past, r.faults, r.mute = s.Past, 0, false
	}
	switch used := s.Meter.Usage(); {
	case s.Interrupted:
		return reason.Plan{Decision: "The caller stopped the run."}, nil
	case s.Model == nil || r.mute:
		return r.standIn(ctx, s)
	case used.Iterations >= s.Limits.MaxIterations:
		// The search is not known to be complete.
		return capped(s, budget.IterationCap(s.Limits.MaxIterations)), nil
	case used.Sources >= s.Limits.MaxSources:
		return capped(s, budget.SourceCap(s.Limits.MaxSources)), nil
	case len(s.Searches) == 0 && llm.Price(s.Scale, r.stepCall(s)) > s.Meter.Room():
		r.mute = true // there will not be more room later, and nothing ends: the question's own words do
		return r.opening(ctx, s, noRoom)
	}
	reply, err := r.askStep(ctx, s)
	if err != nil {
		return r.planFault(ctx, s, err)
	}
	return r.planOf(ctx, s, reply)
}

// askStep makes the call; once more, with all the room there is, if the reply was cut before it asked for anything.
func (r *Reasoner) askStep(ctx context.Context, s *reason.State) (llm.Reply, error) {
	c := r.stepCall(s)
	for again := true; ; again = false {
		reply, err := r.ask(ctx, s, c)
		if err != nil || reply.Stop != llm.StopLength || len(callsOf(reply)) > 0 {
			return reply, err
		}
		spare := min(thinking, s.Meter.Room()-llm.Price(s.Scale, c))
		if !again || spare < c.MaxTokens {
			return reply, marchwarden.Errorf(marchwarden.CodeTruncated, "its reply was cut at %d tokens, before it asked for anything", c.MaxTokens)
		}
		r.thinks = true
		c.MaxTokens += spare
	}
}

func capped(s *reason.State, what string) reason.Plan {
	s.Meter.Exhaust(what)
	return reason.Plan{Decision: "The " + what + " is reached."}
}

// planFault goes on without the model, which is asked once more later if the fault is one that comes and goes.
func (r *Reasoner) planFault(ctx context.Context, s *reason.State, fault error) (reason.Plan, error) {
	code := marchwarden.CodeOf(fault)
	if code == marchwarden.CodeExhausted {
		r.mute = len(s.Searches) == 0 // there will not be more room later
		if r.mute {
			return r.opening(ctx, s, noRoom)
		}
		return reason.Plan{Decision: "The token budget ended the planning."}, nil
	}
	r.faults++
	r.failed = true
	switch code {
	case marchwarden.CodeTruncated, marchwarden.CodeMalformed, marchwarden.CodeTimeout, marchwarden.CodeRateLimited:
		r.mute = r.faults > 1
	default:
		r.mute = true
	}
	plan, err := r.standIn(ctx, s)
	if err != nil {
		return reason.Plan{}, err
	}
	plan.Decision = "The model failed, so the question's own words lead on. " + plan.Decision
	return plan, marchwarden.Wrap(fault, code, "the model could not plan")
}

// opening is the first step without the model's help.
func (r *Reasoner) opening(ctx context.Context, s *reason.State, why string) (reason.Plan, error) {
	plan, err := r.standIn(ctx, s)
	plan.Decision = why + ". " + plan.Decision
	return plan, err
}

type step struct {
	plan    reason.Plan
	known   int // reads of something that was shown
	repeats int // searches and reads that were done already
	lost    int // calls that could not be read
	cut     int // calls beyond the limits
}

func (r *Reasoner) planOf(ctx context.Context, s *reason.State, reply llm.Reply) (reason.Plan, error) {
	v := newView(s.Nonce)
	calls := r.noted(s, reply)
	if key := fingerprint(calls); len(calls) > 0 && r.steps[key] {
		return reason.Plan{Decision: "The model asked for the same again, so the gathering ends."}, nil
	} else if len(calls) > 0 {
		r.steps[key] = true
	}
	st := r.readCalls(v, s, calls)
	if len(s.Searches) == 0 && s.Iteration <= 1 && len(st.plan.Searches)+st.known == 0 {
		plan, err := r.opening(ctx, s, "The model named nothing to search for")
		plan.Reads = st.plan.Reads // for the loop to refuse and count
		return plan, err
	}
	if len(st.plan.Searches)+len(st.plan.Reads) > 0 {
		st.plan.Decision = st.decision()
		return st.plan, nil
	}
	return r.ending(v, s, st, llm.WithoutThinking(reply.Text)), nil
}

// ending is a plan that ends the gathering, and why.
func (r *Reasoner) ending(v llm.Quoter, s *reason.State, st step, text string) reason.Plan {
	var p reason.Plan
	switch {
	case st.repeats > 0:
		p.Decision = "The model asked only for what was done already, so the gathering ends."
	case st.lost > 0:
		p.Decision = "Nothing that the model asked for could be understood, so the gathering ends."
	default:
		p.Complete = len(s.Evidence.Sources()) > 0 && saysDone(v.Line(text, 400))
		p.Decision = "The model asks for nothing further."
		if p.Complete {
			p.Decision = "The model holds the evidence for complete."
		}
	}
	if words := v.Line(text, reasonChars); words != "" {
		p.Decision += " It said: " + strconv.Quote(words)
	}
	return p
}

var doneWords = regexp.MustCompile(`(?i)\b(done|complete|sufficient|enough|answered)\b`)

// saysDone reports that a text holds the work for complete.
func saysDone(text string) bool {
	return strings.HasPrefix(strings.ToUpper(strings.TrimLeft(text, "*#_ \"")), "DONE") || doneWords.MatchString(text) && !lexicon.Negated(text)
}

func (st *step) decision() string {
	d := "The model asks for " + lexicon.Counted(len(st.plan.Searches), "search", "searches") + " and " + lexicon.Counted(len(st.plan.Reads), "document", "documents")
	for _, left := range []struct {
		n    int
		what string
	}{{st.cut, "beyond the limits of a step"}, {st.repeats, "done already"}, {st.lost, "not understood"}} {
		if left.n > 0 {
			d += fmt.Sprintf("; %d %s", left.n, left.what)
		}
	}
	return d + "."
}

// callsOf are the tool calls of a reply.
func callsOf(reply llm.Reply) []llm.ToolCall {
	if len(reply.Calls) > 0 {
		return reply.Calls
	}
	return llm.CallsIn(reply.Text)
}

// noted keeps the notes of a reply, which are its text where it has no call for them, and gives back its other calls.
func (r *Reasoner) noted(s *reason.State, reply llm.Reply) []llm.ToolCall {
	r.notes = ""
	if len(reply.Calls) > 0 && s.Limits.TokenBudget >= leanBelow {
		r.notes = llm.WithoutThinking(reply.Text)
	}
	return slices.DeleteFunc(slices.Clone(callsOf(reply)), func(c llm.ToolCall) bool {
		if c.Name != toolNote {
			return false
		}
		in := arguments(c)
		r.notes = "Plan: " + llm.Clip(in.Text("plan"), notesChars/2) + " Missing: " + in.Text("missing")
		return true
	})
}

// fingerprint tells steps apart by what they ask for, in whatever order.
func fingerprint(calls []llm.ToolCall) string {
	keys := make([]string, 0, min(len(calls), maxCalls))
	for _, c := range calls[:min(len(calls), maxCalls)] {
		in := arguments(c)
		key, _ := json.Marshal([]string{c.Name, in.Text("query"), in.Text("id"), in.Text("since"), in.Text("until")})
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), "\n")
}

// arguments are the fields of a call's input; a string that holds an object counts as that object.
func arguments(c llm.ToolCall) llm.Named {
	if s, ok := llm.Text(c.Input); ok {
		raw, _ := llm.Object(s)
		return llm.Fields(raw)
	}
	return llm.Fields(c.Input)
}

// readCalls turns calls into searches and reads. A call that cannot be read loses itself only.
func (r *Reasoner) readCalls(v llm.Quoter, s *reason.State, calls []llm.ToolCall) step {
	st := step{cut: max(0, len(calls)-maxCalls)}
	for _, sd := range s.Searches {
		r.asked[askedKey(s, sd.Query)] = true
	}
	done := readAlready(s)
	labels := r.labels(s)
	for _, c := range calls[:min(len(calls), maxCalls)] {
		in := arguments(c)
		why := v.Line(in.Text("reason"), reasonChars)
		switch c.Name {
		case toolSearch:
			r.readSearch(v, s, in, why, &st)
		case toolRead:
			id := strings.TrimSpace(in.Text("id"))
			if id == "" {
				st.lost++
				continue
			}
			locator, shown := llm.Clip(id, locatorChars), false // what is no label stands for itself, for the loop to refuse
			asked := strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(id, "["), "]"))
			if at := slices.IndexFunc(labels, func(l label) bool { return l.id == asked }); at >= 0 {
				locator, shown = labels[at].locator, true
			}
			switch {
			case done[locator]:
				st.repeats++
			case len(st.plan.Reads) == maxReads:
				st.cut++
			default:
				done[locator] = true
				st.plan.Reads = append(st.plan.Reads, reason.Read{Locator: locator, Reason: why})
				if shown {
					st.known++
				}
			}
		default:
			st.lost++
		}
	}
	return st
}

// queryOf is a query as it may be sent, or "". A guided query that is too long is none: half of it would ask for
// something else.
func queryOf(v llm.Quoter, s *reason.State, query string) string {
	if s.Guide == "" {
		return v.Line(query, queryChars)
	}
	if len(query) > 4*guidedChars {
		return ""
	}
	if query = v.Text(query); utf8.RuneCountInString(query) > guidedChars {
		return ""
	}
	return query
}

// askedKey tells queries apart: plain ones by their words, guided ones as they are written.
func askedKey(s *reason.State, query string) string {
	if s.Guide != "" {
		return query
	}
	return lexicon.SameWords(query)
}

func (r *Reasoner) readSearch(v llm.Quoter, s *reason.State, in llm.Named, why string, st *step) {
	query := queryOf(v, s, in.Text("query"))
	if query == "" {
		st.lost++
		return
	}
	sr := reason.Search{Query: query, Reason: why, Since: date(in.Text("since")), Until: date(in.Text("until"))}
	if sr.Since != "" && sr.Until != "" && sr.Since > sr.Until {
		sr.Since, sr.Until = "", ""
	}
	key := askedKey(s, query)
	if sr.Since+sr.Until != "" {
		key += "\n" + sr.Since + "\n" + sr.Until
	}
	switch {
	case r.asked[key]:
		st.repeats++
	case len(st.plan.Searches) == maxSearches:
		st.cut++
	default:
		r.asked[key] = true
		st.plan.Searches = append(st.plan.Searches, sr)
	}
}

// date is a day in the form of the contract, or "".
func date(s string) string {
	s = strings.TrimSpace(s)
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return ""
	}
	return s
}
