// Package ledger keeps what every research call consumed: one JSON object a
// line in costs.jsonl, a table of prices, and sums over the lines.
//
// It owns the line, its file and the prices. Holding a call to its budget is
// package budget's work, and what to do when the ledger cannot be written is the
// caller's: a ledger failure must never harm a result.
//
// On disk, in the order of the calls that ended:
//
//	{"time":"…","trace_id":"…","researcher":"files","question":"…","model":"extractive/1","tokens_used":812, …,"format":2,"sum":"…"}\n
//
// Fields are only ever added; Format has the versions. A line is written by one write call in append mode
// and synced, so several processes share a ledger without a lock. A torn line is
// what a crash leaves: the next writer begins on a line of its own, and readers
// count the stump and go on.
package ledger

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// MaxQuestionChars is how much of a question the ledger keeps.
const MaxQuestionChars = 200

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	Answered    Outcome = "answered"    // with at least one citation
	Refused     Outcome = "refused"     // nothing stored answers the question
	Interrupted Outcome = "interrupted" // the caller stopped it; the result is partial
	Failed      Outcome = "failed"      // there is no result
)

// Entry is one research call.
type Entry struct {
	Time            time.Time           `json:"time"` // when the call ended
	TraceID         marchwarden.TraceID `json:"trace_id"`
	Researcher      string              `json:"researcher"`
	Caller          string              `json:"caller,omitempty"` // "local", "token:NAME" and such; "" is unknown
	Question        string              `json:"question"`         // cleaned, at most MaxQuestionChars
	Model           string              `json:"model"`
	TokensUsed      int                 `json:"tokens_used"`
	TokensIn        *int                `json:"tokens_in,omitempty"`  // nil when not known apart
	TokensOut       *int                `json:"tokens_out,omitempty"` // nil when not known apart
	Iterations      int                 `json:"iterations"`
	WallTimeSec     float64             `json:"wall_time_sec"`
	Searches        int                 `json:"searches"`
	BudgetExhausted bool                `json:"budget_exhausted"`
	Confidence      marchwarden.Unit    `json:"confidence"`
	CostUSD         *float64            `json:"cost_usd"` // null is unknown, which is not zero
	Outcome         Outcome             `json:"outcome"`
}

// EntryOf describes a call that gave a result. Searches, and a call that was
// interrupted, are the caller's to add: a result does not tell them.
func EntryOf(at time.Time, researcher, question string, res *marchwarden.Result) Entry {
	c := res.CostMetadata
	e := Entry{
		Time: at.UTC(), TraceID: res.TraceID, Researcher: researcher, Question: question, Model: c.ModelID,
		TokensUsed: c.TokensUsed, Iterations: c.IterationsRun, WallTimeSec: c.WallTimeSec,
		BudgetExhausted: c.BudgetExhausted, Confidence: res.Confidence, Outcome: Answered,
	}
	if len(res.Citations) == 0 {
		e.Outcome = Refused
	}
	// The sum of its tokens tells the cost only where input and output cost the same.
	if p, ok := Prices(nil).find(c.ModelID); ok && p.Input == p.Output && c.TokensUsed >= 0 {
		e.CostUSD = new(p.cost(Tokens{In: c.TokensUsed}))
	}
	return e
}

// Charge adds what the models of a call consumed, by model, and what that costs
// together: unknown as soon as one model's price is. A call without models is
// left as it is.
func (e *Entry) Charge(used map[string]Tokens) {
	if len(used) == 0 {
		return
	}
	in, out, usd, known := 0, 0, 0.0, true
	for _, model := range slices.Sorted(maps.Keys(used)) {
		t := used[model]
		price, ok := Prices(nil).find(model)
		in, out, usd, known = in+t.In, out+t.Out, usd+price.cost(t), known && ok && t.In >= 0 && t.Out >= 0
	}
	e.TokensIn, e.TokensOut, e.CostUSD = &in, &out, nil
	if known {
		e.CostUSD = &usd
	}
}

// clean makes text fit for one short line.
func clean(s string) string {
	line := plaintext.Line(s, MaxQuestionChars)
	if utf8.RuneCountInString(line) > MaxQuestionChars { // with the mark of what is cut
		line = plaintext.Line(s, MaxQuestionChars-1)
	}
	return line
}

// keys are what a summary puts together.
var keys = map[string]func(Entry) string{
	"day":        func(e Entry) string { return e.Time.UTC().Format(time.DateOnly) },
	"model":      func(e Entry) string { return e.Model },
	"researcher": func(e Entry) string { return e.Researcher },
	"caller":     func(e Entry) string { return e.Caller },
}

// Groupings are the names of what a summary puts together.
func Groupings() []string { return []string{"day", "model", "researcher", "caller"} }

// SpentBy is what the calls of a caller are known to have cost from a time on.
func SpentBy(entries []Entry, caller string, from time.Time) (usd float64) {
	for _, e := range entries {
		if e.Caller == clean(caller) && !e.Time.Before(from) && e.CostUSD != nil {
			usd += *e.CostUSD
		}
	}
	return usd
}

// Sum is what the calls of one group consumed together.
type Sum struct {
	Key         string  `json:"key"`
	Calls       int     `json:"calls"`
	Searches    int     `json:"searches"`
	TokensUsed  int     `json:"tokens_used"`
	WallTimeSec float64 `json:"wall_time_sec"`
	// CostUSD adds up the calls whose cost is known; UnknownCost counts the others.
	CostUSD     float64 `json:"cost_usd"`
	UnknownCost int     `json:"unknown_cost_calls"`
}

func (s *Sum) add(e Entry) {
	s.Calls++
	s.Searches += e.Searches
	s.TokensUsed += e.TokensUsed
	s.WallTimeSec += e.WallTimeSec
	if e.CostUSD == nil {
		s.UnknownCost++
	} else {
		s.CostUSD += *e.CostUSD
	}
}

// Summarize adds up the entries from since on (the zero time means all), by
// group in ascending order of key, and all of them together under "total". An unknown
// grouping is CodeInvalid.
func Summarize(entries []Entry, by string, since time.Time) (groups []Sum, total Sum, err error) {
	keyOf := keys[by]
	if keyOf == nil {
		return nil, total, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "by", Message: "must be day, model, researcher or caller, not \"" + clean(by) + "\""}
	}
	total.Key = "total"
	index := map[string]int{}
	for _, e := range entries {
		if e.Time.Before(since) {
			continue
		}
		total.add(e)
		key := cmp.Or(keyOf(e), "unknown")
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, Sum{Key: key})
		}
		groups[i].add(e)
	}
	slices.SortFunc(groups, func(a, b Sum) int { return strings.Compare(a.Key, b.Key) })
	return groups, total, nil
}

// Format is the version of the lines that are written. Each line carries its own:
//
//	1  the entry alone, with neither format nor sum
//	2  the entry, "format":2, and at the end "sum": 16 hex digits over all before it
//
// Every earlier version is read. A line of a later one is left out and left alone.
const Format = 2

// lines are those of a ledger; the program writes far shorter ones than it reads.
var lines = durable.Journal[Entry]{Tag: "marchwarden/ledger-line/v2", What: "entry", Format: Format, Most: 1 << 20,
	Sound: func(_ int, e Entry) bool { return !e.Time.IsZero() }}

// Append writes e as one line and syncs it. The file (mode 0600) and its folder
// (0700) are made when missing. Texts of e are cleaned of control characters and
// cut. An error means that the line may not be there; the ledger stays usable.
func Append(path string, e Entry) error {
	e.Question = clean(e.Question)
	e.Model, e.Researcher, e.Caller = clean(e.Model), clean(e.Researcher), clean(e.Caller)
	line := struct {
		Entry
		Format int `json:"format"`
	}{e, Format}
	return marchwarden.Wrap(lines.Append(path, line), marchwarden.CodeUnavailable, "append to ledger %s", path)
}

// Read reads a ledger in the order of its lines, and names those that are left out: torn,
// damaged, of a later format or no entry. A flipped bit in a line of format 1 is found only
// if the line is no longer an entry. A ledger that does not exist is empty.
func Read(path string) (entries []Entry, bad []durable.BadLine, err error) {
	entries, bad, err = lines.Read(path)
	return entries, bad, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read ledger %s", path)
}
