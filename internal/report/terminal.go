package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// ScreenOptions is what a screen says beyond the result itself. Every field may
// be zero; what is zero is left out.
type ScreenOptions struct {
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

// screen is a page for a terminal.
type screen struct{ *term.Page }

func bold(s string) term.Run   { return term.Run{Text: s, Look: term.Bold} }
func dim(s string) term.Run    { return term.Run{Text: s, Look: term.Dim} }
func normal(s string) term.Run { return term.Run{Text: s} }

// Screen writes a result as a screen: its warnings, what was asked and where it was looked
// for, the answer, the short one first, or what is closest to one, its sources with their
// excerpts, contradictions, gaps, discoveries, open questions, the rihlas of an
// investigation and what was done about their reports, and a footer with confidence, cost
// and trace. All text is cleaned. It writes once and returns the error of that write.
// Neither res nor o is changed, and res must not be nil.
func Screen(w io.Writer, st term.Style, res *marchwarden.Result, o ScreenOptions) error {
	p := screen{st.NewPage()}
	for _, w := range res.Warnings {
		p.Text("", "  ", term.Run{Text: "warning: ", Look: term.Yellow}, normal(term.CleanLine(w)))
	}
	p.header(o, res.CompletedQuestion)
	if lead := term.CleanLine(res.Lead()); lead != "" {
		p.Text("", "", bold(lead))
		p.Gap()
	}
	all := Blocks(res)
	if len(all) == 0 {
		p.Text("", "", term.Run{Text: "no answer", Look: term.Italic})
	}
	for i, b := range all {
		if i > 0 {
			p.Gap()
		}
		p.block(res, b)
	}
	rest := besides(res)
	groups := gaps(rest)
	for i, g := range groups {
		groups[i].Words = strings.ToLower(g.Words[:1]) + g.Words[1:]
	}
	if inSections(res) {
		p.gaps(whatIsMissing, groups)
		groups = nil
	}
	p.closest(res)
	p.sources(res.Citations, o.Verbose)
	p.contradictions(res)
	p.gaps("Gaps", groups)
	p.discoveries(rest.DiscoveryEvents)
	p.openQuestions(res)
	if len(res.Rihlas) > 0 {
		p.Gap()
		p.Text("", "", bold("Rihlas"), dim(" — who was sent with which question"))
	}
	for i, r := range res.Rihlas {
		p.rihla(i+1, len(res.Rihlas), r, rihlaFacts(r, !o.Verbose))
	}
	p.decisions(res, o.Verbose)
	p.footer(res, o)
	if o.Verbose {
		p.timings(o.Timings)
	}
	if len(o.Hints) > 0 {
		p.Gap()
	}
	for _, hint := range o.Hints {
		p.Unbroken("", hint, term.Dim) // it may hold a command
	}
	_, err := p.WriteTo(w)
	return err
}

// Plan writes the rihlas that an investigation would begin with: researcher,
// question and reason of each, by its number. Their other fields are not shown.
// All text is cleaned. It returns the error of its one write.
func Plan(w io.Writer, st term.Style, question, forecast string, rihlas []marchwarden.Rihla) error {
	p := screen{st.NewPage()}
	p.header(ScreenOptions{Question: question}, "")
	if len(rihlas) == 0 {
		p.Text("", "", term.Run{Text: "no researcher would be asked", Look: term.Italic})
	} else {
		p.Text("", "", bold("Plan"), dim(" — "+term.Plural(len(rihlas), "rihla")+", the most important first"))
	}
	for i, r := range rihlas {
		p.rihla(i+1, len(rihlas), r, []string{r.Reason})
	}
	if forecast != "" {
		p.Gap()
		p.Text("", "  ", dim("it would take "), normal(term.CleanLine(forecast)))
	}
	_, err := p.WriteTo(w)
	return err
}

func (p screen) header(o ScreenOptions, understood string) {
	shown := false
	for _, f := range []Fact{{"", o.Question}, {"understood as: ", understood}, {"library used: ", o.Library}, {"searched: ", o.Searched}} {
		value := term.CleanLine(f.Value)
		switch {
		case value == "":
			continue
		case f.Label == "":
			p.Text("", "", bold(value))
		default:
			p.Text("", "  ", dim(f.Label), normal(value))
		}
		shown = true
	}
	if shown {
		p.Gap()
	}
}

func (p screen) rihla(n, of int, r marchwarden.Rihla, facts []string) {
	head := "  " + term.Pad(term.Count(n), len(term.Count(of)), true) + " "
	indent := strings.Repeat(" ", len(head))
	p.Text(head, indent, headed(r.Researcher, r.Question)...)
	p.Note(indent, facts)
}

// headed is a bold head and what is said about it.
func headed(head, said string) []term.Run {
	head, said = term.CleanLine(head), term.CleanLine(said)
	if head == "" || said == "" {
		return []term.Run{normal(head + said)}
	}
	return []term.Run{bold(head), normal(" — " + said)}
}

func (p screen) closest(res *marchwarden.Result) {
	for i, c := range nearest(res) {
		if i == 0 {
			p.Section(notAnAnswer, term.Plain)
		}
		indent := p.SourceHead("•", c.Title, c.Locator)
		p.Note(indent, []string{c.Reason})
		p.excerpt(indent, c.RawExcerpt)
	}
}

func (p screen) excerpt(indent, text string) {
	if text = term.CleanLine(text); text != "" {
		p.Text(indent+"│ ", indent+"│ ", normal(text))
	}
}

func (p screen) sources(cs []marchwarden.Citation, verbose bool) {
	p.Section("Sources", term.Plain)
	if len(cs) == 0 {
		p.Text("  ", "  ", dim("none cited"))
	}
	for i, c := range cs {
		if i > 0 {
			p.Gap()
		}
		indent := p.SourceHead("["+term.Count(i+1)+"]", c.Title, c.Locator)
		p.Note(indent, citationFacts(c, verbose))
		if c.Unchecked {
			p.Text(indent, indent, term.Run{Text: "unchecked: known from its researcher's report alone", Look: term.Yellow})
		}
		p.excerpt(indent, c.RawExcerpt)
	}
}

func citationFacts(c marchwarden.Citation, verbose bool) []string {
	fetched, span := "", ""
	if c.FetchedAt != nil {
		fetched = c.FetchedAt.UTC().Format(time.DateOnly)
	}
	if c.Span != nil {
		span = term.Count(c.Span.Start) + " to " + term.Count(c.Span.End)
	}
	facts := []Fact{{"", c.Source}, {"published ", c.Published}, {"authority ", string(c.Authority)}, {"fetched ", fetched}, {"confidence ", unit(c.Confidence)}}
	if verbose {
		facts = append(facts, Fact{"origin ", c.Origin}, Fact{"bytes ", span}, Fact{"", c.ContentHash})
	}
	return said(facts...)
}

func (p screen) contradictions(res *marchwarden.Result) {
	for i, c := range res.Contradictions {
		if i == 0 {
			p.Section("Contradictions", term.Yellow)
		} else {
			p.Gap()
		}
		p.Text("  ", "  ", bold(contested(c)))
		if detail := term.CleanLine(c.Detail); detail != "" {
			p.Text("  ", "  ", normal(detail))
		}
		p.Abreast(sideRuns(res, c.A), sideRuns(res, c.B))
	}
}

func sideRuns(res *marchwarden.Result, s marchwarden.Side) [][]term.Run {
	var where []term.Run
	if n := sideNumber(res, s); n > 0 {
		where = append(where, term.Run{Text: "[" + term.Count(n) + "] ", Look: term.Tint})
	}
	if title := term.CleanLine(s.Title); title != "" {
		where = append(where, normal(title+" — "))
	}
	out := [][]term.Run{append(where, dim(term.CleanLine(s.Locator)))}
	if facts := sideFacts(s); len(facts) > 0 {
		out = append(out, []term.Run{dim(strings.Join(facts, " · "))})
	}
	if value := term.CleanLine(s.Value); value != "" {
		out = append(out, []term.Run{bold(value)})
	}
	if excerpt := term.CleanLine(s.RawExcerpt); excerpt != "" {
		out = append(out, []term.Run{normal("“" + excerpt + "”")})
	}
	return out
}

// besides is a result without the gaps and discoveries that only repeat a contradiction.
func besides(res *marchwarden.Result) *marchwarden.Result {
	shown := map[string]bool{}
	for _, c := range res.Contradictions {
		shown[c.Detail] = true
	}
	rest := &marchwarden.Result{}
	rest.Gaps = slices.DeleteFunc(slices.Clone(res.Gaps), func(g marchwarden.Gap) bool {
		return g.Category == marchwarden.ContradictorySources && shown[g.Detail]
	})
	rest.DiscoveryEvents = slices.DeleteFunc(slices.Clone(res.DiscoveryEvents), func(d marchwarden.DiscoveryEvent) bool {
		return d.Type == marchwarden.ContradictionDetected && shown[d.Reason]
	})
	return rest
}

func (p screen) gaps(title string, groups []GapGroup) {
	if len(groups) > 0 {
		p.Section(title, term.Plain)
	}
	for _, g := range groups {
		p.Text("  ", "  ", term.Run{Text: g.Words, Look: term.Italic})
		for _, x := range g.Gaps {
			p.Text("    • ", "      ", headed(x.Topic, x.Detail)...)
			for _, done := range x.Done {
				p.Text("      → ", "        ", dim(done))
			}
		}
	}
}

func (p screen) discoveries(ds []marchwarden.DiscoveryEvent) {
	if len(ds) > 0 {
		p.Section("Discoveries", term.Plain)
	}
	for _, d := range ds {
		kind := strings.TrimSuffix(discovery(d).Head, " detected")
		p.Text("  • ", "    ", append([]term.Run{dim(kind + ": ")}, headed(d.Query, d.Reason)...)...)
		ask := term.CleanLine(d.SuggestedResearcher)
		if ask != "" {
			ask = "ask the " + ask + " researcher"
		}
		p.Note("    ", append([]string{ask}, said(Fact{"met in ", d.SourceLocator})...))
	}
}

func (p screen) openQuestions(res *marchwarden.Result) {
	if len(res.OpenQuestions) > 0 {
		p.Section("Open questions", term.Plain)
	}
	const column = 8 // "medium" and two spaces
	for _, q := range openQuestions(res) {
		p.Text("  ", strings.Repeat(" ", 2+column), dim(columned(string(q.Priority), column)), normal(term.CleanLine(q.Question)))
		p.Note(strings.Repeat(" ", 2+column), said(Fact{"", q.Context}, Fact{"met in ", q.SourceLocator}))
	}
}

// columned is a word in a column of so many cells, two of which stay free.
func columned(s string, cells int) string {
	return term.Pad(term.Truncate(term.CleanLine(s), cells-2), cells, false)
}

const footRow = 11

func (p screen) footer(res *marchwarden.Result, o ScreenOptions) {
	p.Gap()
	look := term.Red // the bands of the contract
	switch {
	case res.Confidence >= 0.7:
		look = term.Green
	case res.Confidence >= 0.5:
		look = term.Yellow
	}
	score := term.Run{Text: unit(res.Confidence), Look: term.Bold.And(look)}
	p.Labelled("confidence", footRow, []term.Run{score, normal(" — ")}, ", ", factorWords(res.ConfidenceFactors)...)
	if n := len(res.Claims); n > 0 {
		p.Labelled("checked", footRow, []term.Run{normal(term.Plural(n, "claim") + " — ")}, ", ", claimWords(res.Claims)...)
	}
	p.Labelled("cost", footRow, nil, " · ", costWords(res, o)...)
	if !res.TraceID.Valid() {
		return
	}
	id := res.TraceID.String()
	p.Labelled("trace", footRow, nil, "", id)
	for _, verb := range []string{"verify", "replay"} {
		p.Unbroken(strings.Repeat(" ", footRow), "marchwarden "+verb+" "+id, term.Plain)
	}
}

func factorWords(f marchwarden.ConfidenceFactors) []string {
	contradiction, budget := "no contradiction", "within budget"
	if f.ContradictionDetected {
		contradiction = "contradiction found"
	}
	if f.BudgetExhausted {
		budget = "budget exhausted"
	}
	return []string{term.Plural(f.NumCorroboratingSources, "independent origin"), "authority " + known(string(f.SourceAuthority)),
		contradiction, "match " + unit(f.QuerySpecificityMatch), "recency " + known(string(f.Recency)), budget}
}

func claimWords(claims []marchwarden.Claim) []string {
	counts := map[string]int{}
	for _, c := range claims {
		counts[Verdict(c.Support)]++
	}
	var words []string
	for _, s := range []marchwarden.Support{marchwarden.Supported, marchwarden.Quoted, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Unchecked} {
		if n := counts[string(s)]; n > 0 {
			words = append(words, term.Count(n)+" "+string(s))
		}
	}
	return words
}

func costWords(res *marchwarden.Result, o ScreenOptions) []string {
	c := res.CostMetadata
	tokens := term.Plural(c.TokensUsed, "token")
	if o.Limits.TokenBudget > 0 {
		tokens += " of " + term.Count(o.Limits.TokenBudget)
	}
	sources := term.Plural(o.Sources, "source")
	if o.Sources <= 0 {
		cited := map[string]bool{}
		for _, c := range res.Citations {
			cited[cmp.Or(c.ContentHash, c.Locator)] = true
		}
		sources = term.Plural(len(cited), "source") + " cited"
	}
	by, over := c.ReasonerID, ""
	if by == c.ModelID {
		by = ""
	}
	switch {
	case c.OverBudget:
		over = "over budget"
	case c.BudgetExhausted:
		over = "budget exhausted"
	}
	parts := []string{term.Plural(c.IterationsRun, "iteration"), tokens, sources, term.Seconds(c.WallTimeSec)}
	return append(parts, said(Fact{"", c.ModelID}, Fact{"written by ", by}, Fact{"", o.Cost}, Fact{"", over})...)
}
