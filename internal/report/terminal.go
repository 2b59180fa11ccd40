package report

import (
	"cmp"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Options is what is said beyond the result itself. Every field may be zero; what is zero is left out.
type Options struct {
	Searched string   // where was looked: "embedded library (30 documents)", "the web by searxng"
	Cost     string   // the price in words: "no cost", "about $0.02"
	Hints    []string // last lines: how to see more, how to add keys or folders
	// Reading says these besides.
	Notices []string // what a reader must know, before what the report says of that
	Verbose bool     // adds hashes, spans, how each text was got, and every decision
}

// inside is how results name the reader inside the program.
var inside = regexp.MustCompile(`extractive/[0-9]+`)

// screen is a page for a terminal.
type screen struct{ *term.Page }

func bold(s string) term.Run   { return term.Run{Text: s, Look: term.Bold} }
func dim(s string) term.Run    { return term.Run{Text: s, Look: term.Dim} }
func normal(s string) term.Run { return term.Run{Text: s} }

// Screen writes the first screen of a result: its warnings, the answer, the short one first, or
// that there is none and what is closest to one, a line for each source, a line for what sources
// disagree about and one for what is missing, how far to trust it, and hints. What is behind it
// is Reading's. All text is cleaned. It writes once and returns the error of that write. Neither
// res nor o is changed, and res must not be nil.
func Screen(w io.Writer, st term.Style, res *marchwarden.Result, o Options) error {
	p := screen{st.NewPage()}
	for _, w := range res.Warnings {
		p.Text("", "  ", term.Run{Text: "warning: ", Look: term.Yellow}, normal(inside.ReplaceAllString(term.CleanLine(w), "the reader inside")))
	}
	if understood := term.CleanLine(res.CompletedQuestion); understood != "" {
		p.Text("", "  ", dim("understood as: "), normal(understood))
		p.Gap()
	}
	all := Blocks(res)
	if len(res.Citations) == 0 && (res.Refused() || len(all) == 0) {
		p.refusal(res, o)
	} else {
		p.answer(res, all)
	}
	p.documents(res)
	p.Gap()
	if lines := disagreements(res); len(lines) > 0 {
		p.Line("", term.Run{Text: "Sources disagree" + counted(len(lines)) + ": ", Look: term.Yellow}, normal(lines[0]))
	}
	if missing := missing(res); missing != "" {
		p.Line("", normal(missing))
	}
	p.Series("", trust(res, o)...)
	for _, hint := range o.Hints {
		p.Text("", "  ", dim(term.CleanLine(hint)))
	}
	_, err := p.WriteTo(w)
	return err
}

func (p screen) answer(res *marchwarden.Result, all []marchwarden.Block) {
	if lead := term.CleanLine(res.Lead()); lead != "" {
		p.Text("", "", bold(lead))
		p.Gap()
	}
	for i, b := range all {
		if i > 0 {
			p.Gap()
		}
		p.block(res, b)
	}
}

// dontKnow begins every refusal.
const dontKnow = "I don't know"

// refusal says that there is no answer and why, where was looked, and what comes closest.
func (p screen) refusal(res *marchwarden.Result, o Options) {
	why := strings.TrimSpace(strings.TrimPrefix(term.CleanLine(res.Answer), dontKnow+"."))
	why = strings.Replace(why, "; the gaps say why.", ".", 1) // which stand below, under another name
	looked := "Looked through: "
	if cause, none := unreachable(res); none {
		why, looked = "nothing could be reached or read"+cause, "Tried: "
	}
	if why == "" {
		why = "there is no answer."
	}
	if r, n := utf8.DecodeRuneInString(why); !strings.HasPrefix(why, "I ") {
		why = string(unicode.ToLower(r)) + why[n:]
	}
	p.Text("", "", bold(dontKnow+": "), normal(why))
	if where := term.CleanLine(o.Searched); where != "" {
		p.Text("", "  ", dim(looked), normal(where))
	}
	for _, c := range nearest(res)[:min(len(res.Closest), 1)] {
		p.Gap()
		p.Entry("Closest, though no answer:", c.Title, place(c.Locator), address(c.Citation()))
		if text := plaintext.Brief(term.CleanLine(c.RawExcerpt), 300); text != "" {
			p.Text("  │ ", "  │ ", normal(text))
		}
	}
}

// unreachable reports a result for which nothing could be read, and says why: of the errors of a
// network the last words, and all of another.
func unreachable(res *marchwarden.Result) (why string, none bool) {
	others := func(g marchwarden.Gap) bool { return g.Category != marchwarden.AccessDenied }
	if len(res.Gaps) == 0 || slices.ContainsFunc(res.Gaps, others) {
		return "", false
	}
	detail := term.CleanLine(res.Gaps[0].Detail)
	if strings.Contains(detail, ": dial ") {
		return " (" + strings.Trim(detail[strings.LastIndex(detail, ": ")+1:], " .") + "). Is this machine online?", true
	}
	return ": " + cmp.Or(detail, term.CleanLine(res.Gaps[0].Topic)), true
}

// documents writes a line for each cited document, with the numbers that its citations have.
func (p screen) documents(res *marchwarden.Result) {
	for i, numbers := range byDocument(res, func(c marchwarden.Citation) string { return whole(c.Locator) }) {
		if i == 0 {
			p.Gap()
		}
		c := res.Citations[numbers[0]-1]
		number, at := "", place(c.Locator)
		for _, n := range numbers {
			number += "[" + term.Count(n) + "]"
			if _, line, ok := strings.Cut(res.Citations[n-1].Locator, "#L"); ok && n != numbers[0] && !strings.HasSuffix(at, line) {
				at += ", " + line
			}
		}
		if c.Unchecked {
			at += ", not checked here"
		}
		p.Entry(number, c.Title, at, address(c))
	}
}

// place is a locator as people write it: the line of a file behind a colon.
func place(locator string) string {
	if name, ok := strings.CutPrefix(locator, "db:"); ok { // the title has the query
		name, _, _ = strings.Cut(name, "?")
		return "db:" + name
	}
	document, at := verify.CutPlace(locator)
	return document + strings.NewReplacer("#L", ":", "#page=", ", page ").Replace(at)
}

// address is where a source can be opened: on the web, or a file of this machine that was read
// here; "" for nowhere.
func address(c marchwarden.Citation) string {
	if c.Source != "file" {
		return webAddress(c.Locator)
	}
	path := whole(c.Locator)
	if c.Unchecked || !filepath.IsAbs(path) || strings.HasPrefix(path, "//") {
		return ""
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// disagreements are what sources disagree about, a line each.
func disagreements(res *marchwarden.Result) []string {
	var out []string
	shown := map[string]bool{}
	for _, c := range res.Contradictions {
		shown[c.Detail] = true
		side := func(s marchwarden.Side) string {
			said := term.CleanLine(cmp.Or(s.Value, s.Title, s.Locator))
			if n := sideNumber(res, s); n > 0 {
				said = marked(said, []int{n})
			}
			return said
		}
		out = append(out, cmp.Or(term.CleanLine(c.Subject), contested(c))+", "+side(c.A)+" or "+side(c.B))
	}
	for _, g := range res.Gaps {
		if g.Category == marchwarden.ContradictorySources && !shown[g.Detail] {
			out = append(out, term.CleanLine(cmp.Or(g.Detail, g.Topic)))
		}
	}
	return out
}

// counted says how many there are where only the first is shown.
func counted(n int) string {
	if n < 2 {
		return ""
	}
	return " (" + term.Count(n) + ")"
}

// briefGaps are the words for gaps on a line that has them all.
var briefGaps = map[marchwarden.GapCategory]string{
	marchwarden.SourceNotFound:  "Not found",
	marchwarden.AccessDenied:    "Could not be read",
	marchwarden.BudgetExhausted: "Left out, as the budget ended",
	marchwarden.ScopeExceeded:   "Not in these sources",
}

// missing is what was not found, and why, on one line; "" for nothing. A refusal has said it.
func missing(res *marchwarden.Result) string {
	var parts []string
	if _, none := unreachable(res); none && len(res.Citations) == 0 {
		return ""
	}
	for _, g := range gaps(res) {
		if g.Category == marchwarden.ContradictorySources || g.Category == marchwarden.SourceNotFound && res.Refused() {
			continue
		}
		topic := cmp.Or(g.Gaps[0].Topic, g.Gaps[0].Detail)
		if g.Category == marchwarden.AccessDenied {
			topic = joined(", ", g.Gaps[0].Topic, g.Gaps[0].Detail)
		}
		parts = append(parts, cmp.Or(briefGaps[g.Category], g.Words)+counted(len(g.Gaps))+": "+topic)
	}
	return strings.Join(parts, " · ")
}

// trust is how far an answer can be trusted, and what it took, in words.
func trust(res *marchwarden.Result, o Options) []term.Run {
	var runs []term.Run
	for _, words := range Grounds(res) {
		runs = append(runs, normal(words))
	}
	c := res.CostMetadata
	if by := writer(res); len(res.Citations) > 0 && by != "" {
		runs = append(runs, normal("written by "+by))
	}
	if len(res.Citations) > 0 {
		words, look := Sure(res.Confidence)
		runs = append(runs, term.Run{Text: words, Look: look})
	}
	over := ""
	if c.OverBudget {
		over = "over budget"
	}
	return append(runs, normal(term.Seconds(c.WallTimeSec)), normal(o.Cost), normal(over))
}

// Sure is a confidence in words, by the bands of the contract, with its number, and how it looks.
func Sure(confidence marchwarden.Unit) (words string, look term.Look) {
	words, look = "not sure", term.Red
	switch {
	case confidence >= 0.9:
		words, look = "very sure", term.Green
	case confidence >= 0.7:
		words, look = "fairly sure", term.Green
	case confidence >= 0.5:
		words, look = "somewhat sure", term.Yellow
	}
	return words + " (" + unit(confidence) + ")", look
}

// writer is the model that wrote an answer; "" for the reader inside, which copies.
func writer(res *marchwarden.Result) string {
	by := cmp.Or(res.CostMetadata.ReasonerID, res.CostMetadata.ModelID)
	if inside.MatchString(by) {
		return ""
	}
	return by
}

// Grounds says what the sentences of an answer rest on: copied text is quoted, whatever a judge
// says of it, and supported is what the judge found to be.
func Grounds(res *marchwarden.Result) []string {
	documents, counts := map[string]bool{}, map[marchwarden.Support]int{}
	for _, c := range res.Citations {
		documents[whole(c.Locator)] = true
	}
	copied := writer(res) == ""
	for _, c := range res.Claims {
		support := marchwarden.Support(Verdict(c.Support))
		if copied && support == marchwarden.Supported {
			support = marchwarden.Quoted
		}
		counts[support]++
	}
	from := term.Plural(len(documents), "document")
	switch n := len(res.Claims); {
	case len(documents) == 0:
		return nil
	case n == 0:
		return []string{"from " + from}
	case counts[marchwarden.Quoted] == n:
		return []string{"quoted from " + from}
	case counts[marchwarden.Supported] == n:
		return []string{"supported by " + from}
	}
	out := []string{term.Plural(len(res.Claims), "sentence") + " from " + from}
	inPart := "supported in part"
	if copied {
		inPart = "quoted in part"
	}
	for _, s := range []struct {
		support marchwarden.Support
		words   string
	}{{marchwarden.Supported, "supported"}, {marchwarden.Quoted, "quoted"}, {marchwarden.Partial, inPart}, {marchwarden.Unsupported, "not supported"}, {marchwarden.Unchecked, "not checked"}} {
		switch n := counts[s.support]; {
		case n == len(res.Claims):
			return []string{s.words + ", from " + from}
		case n > 0:
			out = append(out, term.Count(n)+" "+s.words)
		}
	}
	return out
}

// Plan writes the questions that an investigation would begin with: researcher,
// question and reason of each, by its number. Their other fields are not shown.
// All text is cleaned. It returns the error of its one write.
func Plan(w io.Writer, st term.Style, question, forecast string, rihlas []marchwarden.Rihla) error {
	p := screen{st.NewPage()}
	if question = term.CleanLine(question); question != "" {
		p.Text("", "", bold(question))
		p.Gap()
	}
	if len(rihlas) == 0 {
		p.Text("", "", term.Run{Text: "no researcher would be asked", Look: term.Italic})
	} else {
		p.Text("", "", bold("Plan"), dim(" — who would be asked what, the most important first"))
	}
	var all []Item
	for _, r := range rihlas {
		all = append(all, Item{Head: term.CleanLine(r.Researcher), Text: term.CleanLine(r.Question), Facts: []string{r.Reason}})
	}
	p.asked("ask ", all)
	if forecast != "" {
		p.Gap()
		p.Text("", "  ", dim("it would take "), normal(term.CleanLine(forecast)))
	}
	_, err := p.WriteTo(w)
	return err
}
