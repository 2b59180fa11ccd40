package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const (
	stepShare   = 0.28 // of the token budget that one step may cost at most
	guidedShare = 0.4  // the same with a guide: where rows are the evidence, asking is most of the work
	stepMost    = 6000 // tokens that one step may cost at most
	leastRoomy  = 2600 // tokens that a step may cost at least where prompts are told in full
	leastStep   = 220  // tokens of a step's reply: a few calls
	shownHits   = 14
	shownLinks  = 8
	shownGiven  = 5
	shownFailed = 6
	guideChars  = 600 // of one line of the guide
	notesChars  = 800
)

// detail is how many characters of a passage, a hit's snippet and its title a step shows.
type detail struct{ passage, snippet, title int }

// detailFor spends an allowance of tokens on more things rather than on longer ones.
func detailFor(tokens int) detail {
	switch {
	case tokens < 400:
		return detail{160, 0, briefTitle}
	case tokens < 1200:
		return detail{240, 80, titleChars}
	}
	return detail{360, 160, titleChars}
}

// stepCall asks what to do next. Its size depends on the budget and the iterations left, not on what was gathered.
func (r *Reasoner) stepCall(s *reason.State) llm.Call {
	rounds := max(1, s.Limits.MaxIterations-s.Iteration+1)
	share := stepShare
	if s.Guide != "" {
		share = guidedShare
	}
	whole := min(s.Meter.Room()/rounds, int(share*float64(s.Limits.TokenBudget)), stepMost)
	c, task := r.begin(s, "step", instructions("step_more"))
	switch {
	case s.Limits.TokenBudget < leanBelow:
		c.Tools = tools
	case roomy(s): // what it has in common with others is worth fewer rounds
		whole = max(whole, min(leastRoomy, s.Meter.Room()))
	default:
		c.Tools = fullTools[:2]
	}
	c.MaxTokens = min(1200, max(leastStep, (whole-500)/4))
	if r.thinks { // fewer rounds, each with time to think
		extra := min(thinking, s.Meter.Room()/2)
		c.MaxTokens, whole = c.MaxTokens+extra, min(whole+extra, s.Meter.Room())
	}

	v := newView(s.Nonce)
	c.Input = llm.Limit(c.MaxTokens) + task +
		fmt.Sprintf("Turn %d of %d, %d of %d pages read\n", s.Iteration, s.Limits.MaxIterations, s.Meter.Usage().Sources, s.Limits.MaxSources)
	if failed := r.failures(s); len(failed) > 0 {
		c.Input += "Unreadable: " + strings.Join(failed, ", ") + "\n"
	}
	if notes := v.Line(r.notes, min(notesChars, whole/8)); notes != "" {
		c.Input += v.Block("notes", []string{"notes: " + notes})
	}
	left := func() int {
		return llm.Unscaled(s.Scale, whole-c.MaxTokens-llm.Scaled(s.Scale, llm.Estimate(c)+llm.EstimateText(v.Open("known")+v.End())))
	}
	r.forget(&c, s, (left()+llm.EstimateText(c.Shared))*3/4) // what is new has a quarter at least
	c.Input += guide(v, s, left())
	c.Input += v.Block("known", r.known(&c, s, left()))
	return c
}

// guide is what the searches of this run may ask for, as far as the allowance goes; "" where plain words do.
func guide(v llm.Quoter, s *reason.State, tokens int) string {
	if s.Guide == "" {
		return ""
	}
	rule := fmt.Sprintf("Searches: the guide says what a query may be. At most %d characters on one line, no comments in it.\n", guidedChars)
	share := tokens * 2 / 3
	if len(s.Searches) == 0 {
		share = tokens * 9 / 10
	}
	const more = 16 // tokens of the line that counts what is left out
	l := lister{left: share - llm.EstimateText(rule+v.Open("guide")+v.End()) - more}
	left := 0
	for line := range strings.Lines(s.Guide) {
		if line = v.Line(line, guideChars); line != "" && !l.add("guide: "+line) {
			left++
		}
	}
	if len(l.lines) == 0 {
		return ""
	}
	if left > 0 {
		l.lines = append(l.lines, fmt.Sprintf("guide: %d lines more have no room here", left))
	}
	return rule + v.Block("guide", l.lines)
}

// failures are the ids of documents that could not be read, with the codes.
func (r *Reasoner) failures(s *reason.State) []string {
	ids := map[string]string{}
	for _, l := range r.labels(s) {
		ids[l.locator] = l.id
	}
	var out []string
	for locator, err := range s.Failed {
		if id := ids[locator]; id != "" {
			out = append(out, id+" "+string(marchwarden.CodeOf(err)))
		}
	}
	slices.Sort(out)
	return out[max(0, len(out)-shownFailed):]
}

// label is an id that a locator was shown under.
type label struct{ id, locator string }

// labels are those of all that was shown, and of hits that were not.
func (r *Reasoner) labels(s *reason.State) []label {
	var out []label
	for i, l := range r.links {
		out = append(out, label{"L" + strconv.Itoa(i+1), l})
	}
	for i, h := range hitsOf(s) {
		out = append(out, label{"H" + strconv.Itoa(i+1), h.Locator})
	}
	for i, l := range s.Given {
		out = append(out, label{"U" + strconv.Itoa(i+1), l})
	}
	return out
}

// hitsOf are the hits of all searches in their order, each locator once. Hit n is H n: an id never changes.
func hitsOf(s *reason.State) []search.Hit {
	var out []search.Hit
	seen := map[string]bool{}
	for _, sd := range s.Searches {
		for _, h := range sd.Hits {
			if !seen[h.Locator] {
				seen[h.Locator] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// lister gathers lines under an allowance.
type lister struct {
	lines []string
	left  int
}

func (l *lister) add(line string) bool {
	cost := llm.EstimateText(line) + 1
	if cost > l.left {
		return false
	}
	l.left -= cost
	l.lines = append(l.lines, line)
	return true
}

// known is what the run has met, within an allowance: searched, what could be read next, and the passages, which a roomy
// call has in its shared part.
func (r *Reasoner) known(c *llm.Call, s *reason.State, tokens int) []string {
	v := newView(s.Nonce)
	done := readAlready(s)
	ids := lister{left: tokens / 2}
	for i, l := range s.Given[:min(len(s.Given), shownGiven)] {
		if !done[l] {
			ids.add("U" + strconv.Itoa(i+1) + " " + v.Line(l, 120))
		}
	}
	for _, sd := range s.Searches[max(0, len(s.Searches)-8):] {
		ids.add(searchedLine(v, s, sd))
	}
	show := detailFor(tokens)
	all := hitsOf(s)
	for _, n := range openHits(s, done) {
		h := all[n]
		line := "H" + strconv.Itoa(n+1) + describe(v, h.Title, h.Locator, h.Published, show.title)
		if text := v.Line(h.Snippet, show.snippet); show.snippet > 0 && text != "" {
			line += " | " + text
		}
		ids.add(line)
	}
	links := lister{left: tokens / 8}
	for _, l := range r.worthOffering(s, done) {
		n := slices.Index(r.links, l)
		if n < 0 {
			n = len(r.links)
		}
		if !links.add("L" + strconv.Itoa(n+1) + " " + v.Line(l, 100)) {
			break
		}
		if n == len(r.links) {
			r.links = append(r.links, l) // from now on this is its id
		}
	}
	rest := ids.left + links.left + tokens - tokens/2 - tokens/8
	if roomy(s) {
		rest = rest * 2 / 3 // the next steps add to what this one tells
	}
	_, lines := r.show(c, s, rest, show.passage)
	return slices.Concat(ids.lines, links.lines, lines)
}

// searchedLine is one search and what came of it. A guided query is shown at length, with what was wrong with it.
func searchedLine(v llm.Quoter, s *reason.State, sd reason.Searched) string {
	chars, outcome := 60, fmt.Sprintf(" (%d hits)", len(sd.Hits))
	if sd.Err != nil {
		outcome = " (" + string(marchwarden.CodeOf(sd.Err)) + ")"
	}
	if s.Guide != "" {
		chars = 300
		if sd.Err != nil {
			outcome = " (" + v.Line(sd.Err.Error(), 200) + ")"
		}
	}
	return "searched: " + v.Line(sd.Query, chars) + outcome
}

// openHits are the positions in hitsOf of those not read yet, best first.
func openHits(s *reason.State, done map[string]bool) []int {
	score := fusedRanks(s.Searches)
	all := hitsOf(s)
	var open []int
	for i, h := range all {
		if !done[h.Locator] {
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(score[all[b].Locator], score[all[a].Locator]) })
	return open[:min(len(open), shownHits)]
}

// pathWords separates the words of an address.
var pathWords = strings.NewReplacer("-", " ", "_", " ", "/", " ", ".", " ", "?", " ", "=", " ", "&", " ", "+", " ", "%20", " ")

// worthOffering are links of the pages that were read, by how many words of the question their addresses share.
func (r *Reasoner) worthOffering(s *reason.State, done map[string]bool) []string {
	asked := lexicon.TermSet(s.Request.Question)
	skip := map[string]bool{}
	for _, h := range hitsOf(s) {
		skip[h.Locator] = true
	}
	for _, l := range s.Given {
		skip[l] = true
	}
	const most = 400 // links of one page that are looked at
	var out []string
	points := map[string]int{}
	for _, src := range s.Evidence.Sources() {
		for _, l := range src.Page.Links[:min(len(src.Page.Links), most)] {
			if skip[l] || done[l] {
				continue
			}
			skip[l] = true
			for t := range lexicon.TermSet(pathWords.Replace(llm.ClipBytes(l, 300))) {
				if asked[t] {
					points[l]++
				}
			}
			if points[l] > 0 {
				out = append(out, l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(points[b], points[a]) })
	return out[:min(len(out), shownLinks)]
}
