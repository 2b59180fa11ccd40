package report

import (
	"cmp"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// View is a report as plain data, in the words of its other forms, for a page that
// another package makes. All of its texts are text and no markup, and all but the
// excerpts are on one line; most of them come from outside, so who writes them into a
// page escapes them. The answer is not in it: see Sentences.
type View struct {
	Title   string   // the question
	About   []string // facts for the line under the title
	Notices []string // what a reader must know before all else

	Lead    string     // the line above the answer: the short one, or that there is none
	LeadsTo int        // the citation that it is from, or 0
	Closest []SideView // with a refusal: passages that are no answer

	Confidence string // a number from 0 to 1, with two digits behind the point
	Factors    []Fact // what it was computed from

	Claims         []ClaimView
	Contradictions []ContradictionView
	Gaps           []GapGroup
	Missing        bool // the gaps stand at the end of the answer, which is a report
	Discoveries    []Item
	Questions      []Item // by priority
	Rihlas         []Item // in their order, so that they count from one
	Sources        []SourceView
	Documents      [][]int // the numbers of Sources, those of one document together, in the order of the first of each

	Cost       []Fact
	Provenance []Fact   // which run it was
	Commands   []string // how to check it; nil when the run is not known
}

// Fact is a label and what is to be said under it.
type Fact struct{ Label, Value string }

// Item is one thing of a list: what it is, what it says and what else is known of it.
type Item struct {
	Head  string // from the program, or a name; "" for none
	Text  string
	Facts []string
}

// ClaimView is a claim. Verdict is one of the contract's, whatever the result has.
type ClaimView struct {
	Number  int // from one
	Text    string
	Verdict string
	Sources []int // the citations that it rests on, from one; those that exist
}

// ContradictionView is two sides that cannot both hold.
type ContradictionView struct {
	About  string // what they disagree about
	Detail string
	Sides  [2]SideView
}

// SideView is one side of a contradiction.
type SideView struct {
	Name    string // "One side" or "The other side"
	Source  int    // the citation that it is, from one; 0 for none
	Heading string
	Locator string
	Address string // where on the web it is: http or https; "" for nowhere
	Facts   []string
	Value   string
	Excerpt string // as it stands in the source, line ends and all
}

// GapGroup is the gaps of one category.
type GapGroup struct {
	Category marchwarden.GapCategory
	Words    string
	Gaps     []Gap
}

// Gap is one gap.
type Gap struct {
	Topic, Detail string
	Done          []string // what an investigator did about it
}

// SourceView is a cited source without its text, which Report.Excerpt gives.
type SourceView struct {
	Number    int // from one
	Heading   string
	Locator   string
	Published string
	Document  string // the locator without a page or a line
	Excerpt   string // as it was cut from the source
	Address   string // where on the web it is: http or https; "" for nowhere
	// Problems are what is to be known before the excerpt is believed.
	Problems []string
	Facts    []Fact
	Got      []Fact // how its text was got: where it was found in the end, and by what
	Claims   []int  // those that rest on it, from one
}

// View is the report as plain data.
func (r *Report) View() *View {
	res := r.Result
	v := &View{Title: cmp.Or(plaintext.Fold(r.Question), "Research report"), About: r.about(), Notices: r.notices(), Confidence: unit(res.Confidence), Factors: factors(res.ConfidenceFactors), Lead: plaintext.Fold(res.Lead()),
		Gaps: gaps(res), Missing: inSections(res), Cost: r.costs(), Provenance: r.provenance(), Commands: r.commands()}
	if s := res.ShortAnswer; s != nil && s.Citation >= 1 && s.Citation <= len(res.Citations) {
		v.LeadsTo = s.Citation
	}
	for i, c := range res.Claims {
		v.Claims = append(v.Claims, ClaimView{Number: i + 1, Text: plaintext.Fold(c.Text), Verdict: Verdict(c.Support), Sources: existing(c.Citations, len(res.Citations))})
	}
	for _, c := range nearest(res) {
		v.Closest = append(v.Closest, SideView{Heading: heading(c.Title, c.Locator), Locator: plaintext.Fold(c.Locator), Address: webAddress(c.Locator),
			Facts: said(Fact{"", c.Reason}), Excerpt: c.RawExcerpt})
	}
	for _, c := range res.Contradictions {
		v.Contradictions = append(v.Contradictions, ContradictionView{About: contested(c), Detail: plaintext.Fold(c.Detail),
			Sides: [2]SideView{sideView(res, oneSide, c.A), sideView(res, otherSide, c.B)}})
	}
	for _, d := range res.DiscoveryEvents {
		v.Discoveries = append(v.Discoveries, Item{Head: strings.ReplaceAll(known(string(d.Type)), "_", " "), Text: joined(" — ", d.Query, d.Reason),
			Facts: said(Fact{"ask the researcher ", d.SuggestedResearcher}, Fact{"met in ", d.SourceLocator})})
	}
	for _, q := range openQuestions(res) {
		v.Questions = append(v.Questions, Item{Text: plaintext.Fold(q.Question), Facts: said(Fact{"priority ", string(q.Priority)}, Fact{"", q.Context}, Fact{"met in ", q.SourceLocator})})
	}
	for _, x := range res.Rihlas {
		v.Rihlas = append(v.Rihlas, Item{Head: known(x.Researcher), Text: plaintext.Fold(x.Question), Facts: rihlaFacts(x)})
	}
	for i := range res.Citations {
		v.Sources = append(v.Sources, r.sourceView(i))
	}
	v.Documents = byDocument(res, func(c marchwarden.Citation) string { return whole(c.Locator) })
	return v
}

// The names of the sides of a contradiction.
const (
	oneSide   = "One side"
	otherSide = "The other side"
)

func sideView(res *marchwarden.Result, name string, s marchwarden.Side) SideView {
	return SideView{Name: name, Source: sideNumber(res, s), Heading: heading(s.Title, s.Locator), Locator: plaintext.Fold(s.Locator), Address: webAddress(s.Locator),
		Facts: said(Fact{"published ", s.Published}, Fact{"authority ", string(s.Authority)}, Fact{"reported by ", s.Researcher}), Value: plaintext.Fold(s.Value), Excerpt: s.RawExcerpt}
}

func (r *Report) sourceView(i int) SourceView {
	c := r.Result.Citations[i]
	v := SourceView{Number: i + 1, Heading: heading(c.Title, c.Locator), Locator: plaintext.Fold(c.Locator), Published: plaintext.Fold(c.Published), Document: plaintext.Fold(whole(c.Locator)), Excerpt: c.RawExcerpt, Address: webAddress(c.Locator),
		Facts: r.sourceFacts(i), Got: got(r.source(i).Page), Claims: citedFor(r.Result, i+1)}
	if c.Unchecked {
		v.Problems = append(v.Problems, unchecked)
	}
	if p := r.source(i).Problem; p != "" {
		v.Problems = append(v.Problems, standsNot+plaintext.Fold(p)+".")
	}
	return v
}

// got says how the text of a source was got, as far as the record tells.
func got(p fetch.Page) []Fact {
	found := plaintext.Fold(p.URL)
	if found == plaintext.Fold(p.Locator) {
		found = ""
	}
	read := ""
	if p.TextBytes > 0 {
		read = term.Bytes(int64(p.TextBytes)) + " of text"
		if p.RawBytes > 0 {
			read += " from " + term.Bytes(int64(p.RawBytes))
		}
	}
	return facts(Fact{"Found at", found}, Fact{"Media type", plaintext.Fold(p.MediaType)}, Fact{"Read by", plaintext.Fold(p.Extractor)}, Fact{"Size", read})
}

// webAddress is where on the web a locator leads, in the one form of an address, or "".
func webAddress(at string) string {
	if id, ok := scholar.ParseID(at); ok {
		at = id.URL()
	}
	to, _ := locator.Canonical(at)
	return to
}

// Window is an excerpt at its place in a stored text.
type Window struct {
	Before, Excerpt, After string // as they stand there, line ends and all
	// Earlier and Later are how many bytes of the text are not shown, before the
	// window and after it.
	Earlier, Later int
}

// Excerpt is the excerpt of the citation with an index, from zero, at its place in the
// stored text, with so many characters before it and as many after it, cut between
// words. It is false, and the window holds the citation's excerpt alone, when there
// is no text that the excerpt is known to stand in; SourceView.Problems says why.
func (r *Report) Excerpt(i, chars int) (Window, bool) {
	c, text := r.Result.Citations[i], r.source(i).Text
	if c.Span == nil || !c.Span.In(len(text)) {
		return Window{Excerpt: c.RawExcerpt}, false
	}
	from, to := window(text, *c.Span, chars)
	return Window{Before: text[from:c.Span.Start], Excerpt: text[c.Span.Start:c.Span.End], After: text[c.Span.End:to], Earlier: from, Later: len(text) - to}, true
}
