package term

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// sideBySide is the least width of a page that shows two excerpts abreast.
const sideBySide = 70

// section opens a section with its title.
func (p *page) section(title string, look Look) {
	p.gap()
	p.text("", "", Run{title, Bold.and(look)})
}

// sources lists the citations by their numbers, each with its excerpt in full.
func (p *page) sources(cs []marchwarden.Citation, verbose bool) {
	p.section("Sources", Plain)
	if len(cs) == 0 {
		p.text("  ", "  ", Run{"none cited", Dim})
	}
	for i, c := range cs {
		if i > 0 {
			p.gap()
		}
		number := "[" + Count(i+1) + "]"
		indent := strings.Repeat(" ", 2+len(number)+1)
		p.sourceHead(number+" ", indent, CleanLine(c.Title), CleanLine(c.Locator))
		p.note(indent, citationFacts(c, verbose))
		if c.Unchecked {
			p.text(indent, indent, Run{"unchecked: known from its researcher's report alone", Yellow})
		}
		if excerpt := CleanLine(c.RawExcerpt); excerpt != "" {
			p.text(indent+"│ ", indent+"│ ", Run{excerpt, Plain})
		}
	}
}

// closest shows what comes nearest to a question that is not answered.
func (p *page) closest(cs []marchwarden.Closest) {
	if len(cs) == 0 {
		return
	}
	p.section("Closest passages (not an answer)", Plain)
	for _, c := range cs[:min(len(cs), marchwarden.MaxClosest)] {
		p.sourceHead("• ", "    ", CleanLine(c.Title), CleanLine(c.Locator))
		p.note("    ", nonEmpty(CleanLine(c.Reason)))
		if excerpt := CleanLine(c.RawExcerpt); excerpt != "" {
			p.text("    │ ", "    │ ", Run{excerpt, Plain})
		}
	}
}

// sourceHead writes number, title and locator. A locator that does not fit beside
// them has a line of its own, unbroken, so that it can be copied or followed.
func (p *page) sourceHead(number, indent, title, locator string) {
	runs := []Run{{number, Tint}}
	if title == "" || locator == "" {
		p.line("  ", p.st.render(cells(append(runs, Run{title + locator, Bold}), 0)))
		return
	}
	runs = append(runs, Run{title, Bold})
	whole := cells(append(slices.Clone(runs), Run{" — ", Dim}, Run{locator, Plain}), 0)
	if l := line(whole); l.width()+2 <= p.st.textWidth() {
		p.line("  ", p.st.render(l))
		return
	}
	p.text("  ", indent, runs...)
	p.line(indent, locator)
}

// citationFacts is the line under a source.
func citationFacts(c marchwarden.Citation, verbose bool) []string {
	var facts []string
	if kind := CleanLine(c.Source); kind != "" {
		facts = append(facts, kind)
	}
	facts = append(facts, standing(c.Published, c.Authority)...)
	if c.FetchedAt != nil {
		facts = append(facts, "fetched "+c.FetchedAt.UTC().Format("2006-01-02"))
	}
	facts = append(facts, fmt.Sprintf("confidence %.2f", c.Confidence))
	if !verbose {
		return facts
	}
	if origin := CleanLine(c.Origin); origin != "" {
		facts = append(facts, "origin "+origin)
	}
	if c.Span != nil {
		facts = append(facts, "bytes "+Count(c.Span.Start)+" to "+Count(c.Span.End))
	}
	if hash := CleanLine(c.ContentHash); hash != "" {
		facts = append(facts, hash)
	}
	return facts
}

// standing is what a document says for itself, as far as it is known.
func standing(published string, authority marchwarden.Authority) []string {
	var facts []string
	if date := CleanLine(published); date != "" {
		facts = append(facts, "published "+date)
	}
	if a := CleanLine(string(authority)); a != "" {
		facts = append(facts, "authority "+a)
	}
	return facts
}

// contradictions shows the two sides of each abreast, or one above the other on
// a narrow page.
func (p *page) contradictions(r *marchwarden.Result) {
	if len(r.Contradictions) == 0 {
		return
	}
	p.section("Contradictions", Yellow)
	for i, c := range r.Contradictions {
		if i > 0 {
			p.gap()
		}
		p.text("  ", "  ", Run{contested(c), Bold})
		if detail := CleanLine(c.Detail); detail != "" {
			p.text("  ", "  ", Run{detail, Plain})
		}
		a, b := side(c.A, r.Citations), side(c.B, r.Citations)
		if width := p.st.textWidth(); width >= sideBySide {
			column := (width - 2 - 3) / 2
			p.columns("  ", column, stack(a, column), stack(b, column))
			continue
		}
		p.barred(a)
		p.text("  ", "  ", Run{"against", Dim})
		p.barred(b)
	}
}

// contested is what two sides disagree about.
func contested(c marchwarden.Contradiction) string {
	return strings.Join(nonEmpty(CleanLine(c.Subject), CleanLine(c.Attribute)), ": ")
}

// barred writes the paragraphs of one side behind a bar.
func (p *page) barred(paragraphs [][]Run) {
	for _, runs := range paragraphs {
		p.text("  │ ", "  │ ", runs...)
	}
}

// side is the paragraphs of one side: where it stands, what is known of that
// source, what it says.
func side(s marchwarden.Side, cs []marchwarden.Citation) [][]Run {
	where := []Run{{CleanLine(s.Locator), Dim}}
	if i := slices.IndexFunc(cs, func(c marchwarden.Citation) bool { return c.Locator == s.Locator && c.RawExcerpt == s.RawExcerpt }); i >= 0 {
		where = append([]Run{{"[" + Count(i+1) + "] ", Tint}}, where...)
	}
	if title := CleanLine(s.Title); title != "" {
		where = slices.Insert(where, len(where)-1, Run{title + " — ", Plain})
	}
	out := [][]Run{where}
	facts := standing(s.Published, s.Authority)
	if who := CleanLine(s.Researcher); who != "" {
		facts = append(facts, "reported by "+who)
	}
	if len(facts) > 0 {
		out = append(out, []Run{{strings.Join(facts, " · "), Dim}})
	}
	if value := CleanLine(s.Value); value != "" {
		out = append(out, []Run{{value, Bold}})
	}
	if excerpt := CleanLine(s.RawExcerpt); excerpt != "" {
		out = append(out, []Run{{"“" + excerpt + "”", Plain}})
	}
	return out
}

// stack wraps paragraphs into one column.
func stack(paragraphs [][]Run, width int) []line {
	var out []line
	for _, runs := range paragraphs {
		out = append(out, wrap(cells(runs, 0), width, width)...)
	}
	return out
}

// besides leaves out the gaps and discoveries that only repeat a contradiction:
// it is shown side by side already.
func besides(r *marchwarden.Result) ([]marchwarden.Gap, []marchwarden.DiscoveryEvent) {
	shown := map[string]bool{}
	for _, c := range r.Contradictions {
		shown[c.Detail] = true
	}
	gaps := slices.DeleteFunc(slices.Clone(r.Gaps), func(g marchwarden.Gap) bool {
		return g.Category == marchwarden.ContradictorySources && shown[g.Detail]
	})
	discoveries := slices.DeleteFunc(slices.Clone(r.DiscoveryEvents), func(d marchwarden.DiscoveryEvent) bool {
		return d.Type == marchwarden.ContradictionDetected && shown[d.Reason]
	})
	return gaps, discoveries
}

// gapWords says for each category, in the order they are listed, what it means.
var gapWords = []struct {
	category marchwarden.GapCategory
	words    string
}{
	{marchwarden.SourceNotFound, "not found in what was searched"},
	{marchwarden.AccessDenied, "could not be reached or read"},
	{marchwarden.ContradictorySources, "sources disagree"},
	{marchwarden.BudgetExhausted, "the budget ended first"},
	{marchwarden.ScopeExceeded, "needs another kind of researcher"},
}

// gaps lists the gaps grouped by category. A category that is not in the
// contract comes last, under its own name.
func (p *page) gaps(gs []marchwarden.Gap) {
	if len(gs) == 0 {
		return
	}
	p.section("Gaps", Plain)
	known := map[marchwarden.GapCategory]bool{}
	for _, g := range gapWords {
		known[g.category] = true
		p.gapGroup(g.words, gs, g.category)
	}
	for _, g := range gs {
		if !known[g.Category] {
			known[g.Category] = true
			p.gapGroup(CleanLine(string(g.Category)), gs, g.Category)
		}
	}
}

func (p *page) gapGroup(words string, gs []marchwarden.Gap, category marchwarden.GapCategory) {
	first := true
	for _, g := range gs {
		if g.Category != category {
			continue
		}
		if first {
			p.text("  ", "  ", Run{words, Italic})
			first = false
		}
		p.text("    • ", "      ", headed(g.Topic, g.Detail)...)
	}
}

// headed is a bold head and what is said about it.
func headed(head, said string) []Run {
	head, said = CleanLine(head), CleanLine(said)
	if head == "" || said == "" {
		return []Run{{head + said, Plain}}
	}
	return []Run{{head, Bold}, {" — " + said, Plain}}
}

var discoveryWords = map[marchwarden.DiscoveryType]string{
	marchwarden.RelatedResearch:       "related research",
	marchwarden.NewSource:             "new source",
	marchwarden.ContradictionDetected: "contradiction",
}

func (p *page) discoveries(ds []marchwarden.DiscoveryEvent) {
	if len(ds) == 0 {
		return
	}
	p.section("Discoveries", Plain)
	for _, d := range ds {
		kind, ok := discoveryWords[d.Type]
		if !ok {
			kind = CleanLine(string(d.Type))
		}
		p.text("  • ", "    ", append([]Run{{kind + ": ", Dim}}, headed(d.Query, d.Reason)...)...)
		var notes []string
		if who := CleanLine(d.SuggestedResearcher); who != "" {
			notes = append(notes, "ask the "+who+" researcher")
		}
		p.note("    ", append(notes, met(d.SourceLocator)...))
	}
}

// note writes a dim line of facts, if there are any.
func (p *page) note(indent string, facts []string) {
	if len(facts) > 0 {
		p.lay(indent, indent, series(facts, " · ", Dim))
	}
}

// met says where something was met.
func met(locator string) []string {
	if l := CleanLine(locator); l != "" {
		return []string{"met in " + l}
	}
	return nil
}

// openQuestions lists the questions by priority, those of one priority in the
// order of the result.
func (p *page) openQuestions(qs []marchwarden.OpenQuestion) {
	if len(qs) == 0 {
		return
	}
	p.section("Open questions", Plain)
	order := []marchwarden.Priority{marchwarden.High, marchwarden.Medium, marchwarden.Low}
	rank := func(q marchwarden.OpenQuestion) int {
		if i := slices.Index(order, q.Priority); i >= 0 {
			return i
		}
		return len(order)
	}
	sorted := slices.Clone(qs)
	slices.SortStableFunc(sorted, func(a, b marchwarden.OpenQuestion) int { return rank(a) - rank(b) })
	const column = 8 // "medium" and two spaces
	indent := strings.Repeat(" ", 2+column)
	for _, q := range sorted {
		label := Pad(Truncate(CleanLine(string(q.Priority)), column-2), column, false)
		p.text("  ", indent, Run{label, Dim}, Run{CleanLine(q.Question), Plain})
		p.note(indent, append(nonEmpty(CleanLine(q.Context)), met(q.SourceLocator)...))
	}
}
