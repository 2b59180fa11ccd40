package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func facts(fs ...Fact) []Fact {
	return slices.DeleteFunc(fs, func(f Fact) bool { return f.Value == "" })
}

func (r *Report) about() []string {
	var out []string
	if r.Asked != "" {
		out = append(out, "asked as “"+plaintext.Fold(r.Asked)+"”")
	}
	if r.Result.Follows.Valid() {
		out = append(out, "follows run "+r.Result.Follows.String())
	}
	if who := plaintext.Fold(r.Researcher); who != "" {
		out = append(out, "answered by "+who)
	}
	if !r.StartedAt.IsZero() {
		out = append(out, r.StartedAt.UTC().Format("2 January 2006"))
	}
	return append(out, term.Plural(len(r.Result.Citations), "citation"), "confidence "+unit(r.Result.Confidence))
}

// notices are the warnings of the result, and what could not be read of its record.
func (r *Report) notices() []string {
	var out []string
	for _, w := range r.Result.Warnings {
		out = append(out, plaintext.Fold(w))
	}
	for _, p := range r.Problems {
		out = append(out, "the record of this run is damaged: "+plaintext.Fold(p))
	}
	return out
}

func unit(u marchwarden.Unit) string { return fmt.Sprintf("%.2f", float64(u)) }

func known(s string) string { return cmp.Or(plaintext.Fold(s), "unknown") }

func factors(f marchwarden.ConfidenceFactors) []Fact {
	return []Fact{
		{"Independent origins", term.Count(f.NumCorroboratingSources)},
		{"Authority of the sources", known(string(f.SourceAuthority))},
		{"Contradictions", map[bool]string{true: "found", false: "none found"}[f.ContradictionDetected]},
		{"Evidence on what was asked", unit(f.QuerySpecificityMatch)},
		{"Recency", known(string(f.Recency))},
		{"Budget", map[bool]string{true: "exhausted", false: "not exhausted"}[f.BudgetExhausted]},
	}
}

func citedFor(res *marchwarden.Result, citation int) []int {
	var out []int
	for i, c := range res.Claims {
		if slices.Contains(c.Citations, citation) {
			out = append(out, i+1)
		}
	}
	return out
}

// nearest are the passages that are shown with a refusal, under notAnAnswer.
func nearest(res *marchwarden.Result) []marchwarden.Closest {
	return res.Closest[:min(len(res.Closest), marchwarden.MaxClosest)]
}

const notAnAnswer = "Closest passages (not an answer)"

func (r *Report) sourceFacts(i int) []Fact {
	c, src := r.Result.Citations[i], r.source(i)
	var fetched, span string
	if c.FetchedAt != nil {
		fetched = c.FetchedAt.UTC().Format(time.RFC3339)
	}
	if c.Span != nil {
		span = fmt.Sprintf("%s to %s", term.Count(c.Span.Start), term.Count(c.Span.End))
	}
	return facts(
		Fact{"Kind", plaintext.Fold(c.Source)},
		Fact{"Author", plaintext.Fold(src.Page.Author)},
		Fact{"Published", plaintext.Fold(c.Published)},
		Fact{"Fetched", fetched},
		Fact{"Origin", plaintext.Fold(c.Origin)},
		Fact{"Authority", plaintext.Fold(string(c.Authority))},
		Fact{"Confidence", unit(c.Confidence)},
		Fact{"Bytes", span},
		Fact{"Stored text", plaintext.Fold(c.ContentHash)},
	)
}

// What is said of a source that only its researcher has seen, and of an excerpt with
// a problem before the problem.
const (
	unchecked = "Unchecked: known from its researcher's report alone."
	standsNot = "This excerpt does not stand: "
)

func heading(title, locator string) string {
	return cmp.Or(plaintext.Fold(title), plaintext.Fold(locator))
}

// gapGroups are the categories of the contract, in the order in which they are told, and their words.
var gapGroups = []GapGroup{
	{Category: marchwarden.SourceNotFound, Words: "Not found in what was searched"},
	{Category: marchwarden.AccessDenied, Words: "Could not be reached or read"},
	{Category: marchwarden.ContradictorySources, Words: "Sources disagree"},
	{Category: marchwarden.BudgetExhausted, Words: "The budget ended first"},
	{Category: marchwarden.ScopeExceeded, Words: "Needs another kind of researcher"},
}

// whatIsMissing is over the gaps of a report, at the end of its answer.
const whatIsMissing = "What was not found"

// inSections reports an answer that is a report: it has headings.
func inSections(res *marchwarden.Result) bool {
	return slices.ContainsFunc(Blocks(res), func(b marchwarden.Block) bool { return b.Type == marchwarden.Heading })
}

// gaps are the gaps by category; one that the contract does not have comes last, under its own name.
func gaps(res *marchwarden.Result) []GapGroup {
	groups := slices.Clone(gapGroups)
	for _, x := range res.Gaps {
		at := slices.IndexFunc(groups, func(g GapGroup) bool { return g.Category == x.Category })
		if at < 0 {
			at, groups = len(groups), append(groups, GapGroup{Category: x.Category, Words: known(string(x.Category))})
		}
		groups[at].Gaps = append(groups[at].Gaps, Gap{plaintext.Fold(x.Topic), plaintext.Fold(x.Detail), done(res, x)})
	}
	return slices.DeleteFunc(groups, func(g GapGroup) bool { return len(g.Gaps) == 0 })
}

// sameTopic reports whether the topic of a decision, which may have been cut, is another one.
func sameTopic(decided, topic string) bool {
	begin, cut := strings.CutSuffix(decided, "…")
	return begin == topic || cut && begin != "" && strings.HasPrefix(topic, begin)
}

func done(res *marchwarden.Result, g marchwarden.Gap) []string {
	var out []string
	for _, d := range res.Decisions {
		if d.About != string(g.Category) || !sameTopic(d.Topic, g.Topic) {
			continue
		}
		if words := decision(d); !slices.Contains(out, words) {
			out = append(out, words)
		}
	}
	return out
}

var actionWords = map[marchwarden.Action]string{
	marchwarden.Dispatched: "followed", marchwarden.Accepted: "accepted as it is", marchwarden.Flagged: "left for a person to look at",
	marchwarden.Withheld: "not followed, to keep private things private", marchwarden.Capped: "not followed, a limit was reached",
}

func decision(d marchwarden.Decision) string {
	words := cmp.Or(actionWords[d.Action], known(string(d.Action)))
	if d.Rihla > 0 {
		words += " by question " + term.Count(d.Rihla)
	}
	if reason := plaintext.Fold(d.Reason); reason != "" {
		words += ": " + reason
	}
	return words
}

func contested(c marchwarden.Contradiction) string {
	return cmp.Or(joined(": ", c.Subject, c.Attribute), "Two sides")
}

// sideNumber is the citation that a side is, or one of the same document in whose excerpt it stands, or 0.
func sideNumber(res *marchwarden.Result, s marchwarden.Side) int {
	if i := slices.IndexFunc(res.Citations, func(c marchwarden.Citation) bool { return c.Locator == s.Locator && c.RawExcerpt == s.RawExcerpt }); i >= 0 {
		return i + 1
	}
	if s.RawExcerpt == "" {
		return 0
	}
	document, _, _ := strings.Cut(s.Locator, "#") // citations say where in it, too
	return 1 + slices.IndexFunc(res.Citations, func(c marchwarden.Citation) bool {
		of, _, _ := strings.Cut(c.Locator, "#")
		return of == document && strings.Contains(c.RawExcerpt, s.RawExcerpt)
	})
}

// openQuestions are by priority; those of a priority that the contract does not have come last.
func openQuestions(res *marchwarden.Result) []marchwarden.OpenQuestion {
	rank := func(q marchwarden.OpenQuestion) uint {
		return uint(slices.Index([]marchwarden.Priority{marchwarden.High, marchwarden.Medium, marchwarden.Low}, q.Priority))
	}
	return slices.SortedStableFunc(slices.Values(res.OpenQuestions), func(a, b marchwarden.OpenQuestion) int { return cmp.Compare(rank(a), rank(b)) })
}

// rihlaFacts are what became of a rihla.
func rihlaFacts(r marchwarden.Rihla) []string {
	if strings.Contains(r.Outcome, "citation") {
		r.Citations = 0
	}
	return said(some("after question ", float64(r.Parent), term.Count(r.Parent)), Fact{"", r.Reason}, Fact{"", r.Outcome},
		some("", float64(r.Citations), term.Plural(r.Citations, "citation")), some("", float64(r.TokensUsed), term.Plural(r.TokensUsed, "token")),
		some("", r.WallTimeSec, term.Seconds(r.WallTimeSec)), Fact{"trace ", r.TraceID.String()})
}

// some is a fact that is not said of nothing.
func some(about string, n float64, words string) Fact {
	if n <= 0 {
		words = ""
	}
	return Fact{about, words}
}

func (r *Report) costs() []Fact {
	c := r.Result.CostMetadata
	tokens := term.Count(c.TokensUsed)
	if r.Limits.TokenBudget > 0 {
		tokens += " of " + term.Count(r.Limits.TokenBudget)
	}
	if c.OverBudget {
		tokens += ", over budget"
	}
	return facts(
		Fact{"Tokens", tokens}, Fact{"Iterations", term.Count(c.IterationsRun)}, some("Documents read", float64(c.SourcesRead), term.Count(c.SourcesRead)),
		Fact{"Time", term.Seconds(c.WallTimeSec)}, Fact{"Model", plaintext.Fold(c.ModelID)}, Fact{"Written by", plaintext.Fold(c.ReasonerID)},
	)
}

func (r *Report) provenance() []Fact {
	started := ""
	if !r.StartedAt.IsZero() {
		started = r.StartedAt.UTC().Format(time.RFC3339)
	}
	return facts(Fact{"Trace", r.Result.TraceID.String()}, Fact{"Started", started}, Fact{"Marchwarden", plaintext.Fold(r.Version)},
		Fact{"Contract", marchwarden.ContractVersion}, Fact{"Sources since", plaintext.Fold(r.Checked)})
}

// checking is how to check a report, with the commands apart from the words.
const checking = "Every excerpt above was cut from a stored text by the program. These commands hold all of it against the stored bytes again, and run the research again on what was recorded:"

func (r *Report) commands() []string {
	id := r.Result.TraceID.String()
	if id == "" {
		return nil
	}
	return []string{"marchwarden verify " + id, "marchwarden replay --rerun " + id}
}

func said(fs ...Fact) []string {
	var out []string
	for _, f := range fs {
		if v := plaintext.Fold(f.Value); v != "" {
			out = append(out, f.Label+v)
		}
	}
	return out
}

func joined(sep string, texts ...string) string {
	var out []string
	for _, t := range texts {
		if t = plaintext.Fold(t); t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, sep)
}

// Price is a cost in words; nil is unknown.
func Price(usd *float64) string {
	switch {
	case usd == nil:
		return "cost unknown"
	case *usd == 0:
		return "no cost"
	}
	return fmt.Sprintf("about $%.4f", *usd)
}
