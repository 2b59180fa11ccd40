package term

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"github.com/rivo/uniseg"
)

// ResultOptions is what a screen says beyond the result itself. Every field may
// be zero; what is zero is left out.
type ResultOptions struct {
	Question string
	Limits   marchwarden.Limits // the caps the run had
	Library  string             // the documents that were searched: "embedded library (30 documents)"
	Searched string             // what was searched that is no library: "the web by searxng"
	Sources  int                // documents read; when zero, those cited are counted
	Cost     string             // the price in words: "no cost", "about $0.02"
	Hints    []string           // last lines: how to add keys or folders
	Verbose  bool               // adds hashes and spans of the citations, every decision, and Timings
	Timings  []Timing
}

// Timing is how long one stage took.
type Timing struct {
	Stage    string
	Duration time.Duration
}

// Result writes r as a screen: its warnings, what was asked and where it was looked for, the
// answer, the short one first, or what is closest to one, its sources with their excerpts, contradictions, gaps, discoveries,
// open questions, the rihlas of an investigation and what was done about their
// reports, and a footer with confidence, cost and trace. All text of r and
// o is cleaned. It writes once and returns the error of that write. Neither r nor
// o is changed, and r must not be nil.
func (st Style) Result(w io.Writer, r *marchwarden.Result, o ResultOptions) error {
	p := &page{st: st}
	for _, w := range r.Warnings {
		p.text("", "  ", Run{"warning: ", Yellow}, Run{CleanLine(w), Plain})
	}
	p.header(o)
	if lead := CleanLine(r.Lead()); lead != "" {
		p.text("", "", Run{lead, Bold})
		p.gap()
	}
	if strings.TrimSpace(r.Answer) == "" {
		p.text("", "", Run{"no answer", Italic})
	} else {
		p.markdown(r.Answer, len(r.Citations))
	}
	p.closest(r.Closest)
	p.sources(r.Citations, o.Verbose)
	p.contradictions(r)
	gaps, discoveries := besides(r)
	p.gaps(gaps)
	p.discoveries(discoveries)
	p.openQuestions(r.OpenQuestions)
	p.rihlas(r.Rihlas, o.Verbose)
	p.decisions(r, o.Verbose)
	p.footer(r, o)
	if o.Verbose {
		p.timings(o.Timings)
	}
	p.hints(o.Hints)
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Plan writes the rihlas that an investigation would begin with: researcher,
// question and reason of each, by its number. Their other fields are not shown.
// All text is cleaned. It returns the error of its one write.
func (st Style) Plan(w io.Writer, question string, rihlas []marchwarden.Rihla) error {
	p := &page{st: st}
	p.header(ResultOptions{Question: question})
	if len(rihlas) == 0 {
		p.text("", "", Run{"no researcher would be asked", Italic})
	} else {
		p.text("", "", Run{"Plan", Bold}, Run{" — " + Plural(len(rihlas), "rihla") + ", the most important first", Dim})
	}
	for i, r := range rihlas {
		p.rihla(i+1, len(rihlas), r, nonEmpty(CleanLine(r.Reason)))
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// rihlas lists whom a principal investigator asked what, and what came of it.
func (p *page) rihlas(rs []marchwarden.Rihla, verbose bool) {
	if len(rs) == 0 {
		return
	}
	p.gap()
	p.text("", "", Run{"Rihlas", Bold}, Run{" — who was sent with which question", Dim})
	for i, r := range rs {
		p.rihla(i+1, len(rs), r, rihlaFacts(r, verbose))
	}
}

// rihla writes one of so many by its number, with facts below.
func (p *page) rihla(n, of int, r marchwarden.Rihla, facts []string) {
	head := "  " + Pad(Count(n), len(Count(of)), true) + " "
	indent := strings.Repeat(" ", len(head))
	p.text(head, indent, headed(r.Researcher, r.Question)...)
	p.note(indent, facts)
}

// shownID is how much of a trace id tells it from those of the same moment; the
// commands take the beginning of an id for the whole.
const shownID = 18

func rihlaFacts(r marchwarden.Rihla, verbose bool) []string {
	outcome := CleanLine(r.Outcome)
	facts := nonEmpty(CleanLine(r.Reason), outcome)
	if r.Parent > 0 {
		facts = slices.Insert(facts, 0, "after rihla "+Count(r.Parent))
	}
	if r.Citations > 0 && !strings.Contains(outcome, "citation") {
		facts = append(facts, Plural(r.Citations, "citation"))
	}
	if verbose && r.TokensUsed > 0 {
		facts = append(facts, Plural(r.TokensUsed, "token"))
	}
	if r.WallTimeSec > 0 {
		facts = append(facts, Duration(seconds(r.WallTimeSec)))
	}
	if r.TraceID.Valid() {
		id := r.TraceID.String()
		if !verbose {
			id = id[:shownID]
		}
		facts = append(facts, "trace "+id)
	}
	return facts
}

func (p *page) header(o ResultOptions) {
	question, library, searched := CleanLine(o.Question), CleanLine(o.Library), CleanLine(o.Searched)
	if question != "" {
		p.text("", "", Run{question, Bold})
	}
	if library != "" {
		p.text("", "  ", Run{"library used: ", Dim}, Run{library, Plain})
	}
	if searched != "" {
		p.text("", "  ", Run{"searched: ", Dim}, Run{searched, Plain})
	}
	if question != "" || library != "" || searched != "" {
		p.gap()
	}
}

// factRow is the width of the footer's labels: "confidence" and a space.
const factRow = 11

// fact writes a labelled line of the footer: a head, if any, then a series.
func (p *page) fact(label string, head []Run, separator string, facts ...string) {
	rest := strings.Repeat(" ", factRow)
	cs := cells(append([]Run{{Pad(label, factRow, false), Dim}}, head...), 0)
	p.lay("", rest, append(cs, series(facts, separator, Plain)...))
}

func (p *page) footer(r *marchwarden.Result, o ResultOptions) {
	p.gap()
	score := fmt.Sprintf("%.2f", r.Confidence)
	p.fact("confidence", []Run{{score, Bold.and(confidenceLook(r.Confidence))}, {" — ", Plain}}, ", ", factorWords(r.ConfidenceFactors)...)
	if n := len(r.Claims); n > 0 {
		p.fact("checked", []Run{{Plural(n, "claim") + " — ", Plain}}, ", ", claimWords(r.Claims)...)
	}
	p.fact("cost", nil, " · ", costWords(r, o)...)
	if !r.TraceID.Valid() {
		return
	}
	id := r.TraceID.String()
	p.fact("trace", nil, "", id)
	for _, verb := range []string{"verify", "replay"} {
		// Not wrapped: a command is there to be copied.
		p.line(strings.Repeat(" ", factRow), "marchwarden "+verb+" "+id)
	}
}

// confidenceLook follows the bands of the contract.
func confidenceLook(u marchwarden.Unit) Look {
	switch {
	case u >= 0.7:
		return Green
	case u >= 0.5:
		return Yellow
	}
	return Red
}

// factorWords says all that a confidence was computed from.
func factorWords(f marchwarden.ConfidenceFactors) []string {
	authority, recency := CleanLine(string(f.SourceAuthority)), CleanLine(string(f.Recency))
	if authority == "" {
		authority = "unknown"
	}
	if recency == "" {
		recency = "unknown"
	}
	words := []string{Plural(f.NumCorroboratingSources, "independent origin"), "authority " + authority}
	if f.ContradictionDetected {
		words = append(words, "contradiction found")
	} else {
		words = append(words, "no contradiction")
	}
	words = append(words, fmt.Sprintf("match %.2f", f.QuerySpecificityMatch), "recency "+recency)
	if f.BudgetExhausted {
		return append(words, "budget exhausted")
	}
	return append(words, "within budget")
}

// claimWords counts the verdicts on the claims, in a fixed order. What is no
// verdict of the contract was not checked.
func claimWords(claims []marchwarden.Claim) []string {
	verdicts := []marchwarden.Support{marchwarden.Supported, marchwarden.Quoted, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Unchecked}
	counts := map[marchwarden.Support]int{}
	for _, c := range claims {
		if slices.Contains(verdicts, c.Support) {
			counts[c.Support]++
		} else {
			counts[marchwarden.Unchecked]++
		}
	}
	var words []string
	for _, s := range verdicts {
		if n := counts[s]; n > 0 {
			words = append(words, Count(n)+" "+string(s))
		}
	}
	return words
}

func costWords(r *marchwarden.Result, o ResultOptions) []string {
	c := r.CostMetadata
	tokens := Plural(c.TokensUsed, "token")
	if o.Limits.TokenBudget > 0 {
		tokens += " of " + Count(o.Limits.TokenBudget)
	}
	sources := Plural(o.Sources, "source")
	if o.Sources <= 0 {
		sources = Plural(distinctSources(r.Citations), "source") + " cited"
	}
	parts := []string{Plural(c.IterationsRun, "iteration"), tokens, sources, Duration(seconds(c.WallTimeSec))}
	by := CleanLine(c.ReasonerID)
	if by == c.ModelID {
		by = ""
	} else if by != "" {
		by = "written by " + by
	}
	for _, s := range []string{CleanLine(c.ModelID), by, CleanLine(o.Cost)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	switch {
	case c.OverBudget:
		parts = append(parts, "over budget")
	case c.BudgetExhausted:
		parts = append(parts, "budget exhausted")
	}
	return parts
}

// distinctSources counts the documents behind the citations.
func distinctSources(cs []marchwarden.Citation) int {
	seen := map[string]bool{}
	for _, c := range cs {
		seen[cmp.Or(c.ContentHash, c.Locator)] = true
	}
	return len(seen)
}

func (p *page) timings(ts []Timing) {
	if len(ts) == 0 {
		return
	}
	p.section("Timings", Plain)
	names, spans := make([]string, len(ts)), make([]string, len(ts))
	widest, longest := 0, 0
	for i, t := range ts {
		names[i], spans[i] = Truncate(CleanLine(t.Stage), minText/2), Duration(t.Duration)
		widest, longest = max(widest, uniseg.StringWidth(names[i])), max(longest, uniseg.StringWidth(spans[i]))
	}
	for i := range ts {
		p.line("  ", Pad(names[i], widest, false)+"  "+Pad(spans[i], longest, true))
	}
}

func (p *page) hints(hints []string) {
	if len(hints) > 0 {
		p.gap()
	}
	for _, h := range hints {
		p.line("", p.st.Paint(Dim, CleanLine(h))) // not wrapped: it may hold a command
	}
}
