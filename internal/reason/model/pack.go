package model

import (
	"maps"
	"math"
	"strconv"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

const (
	titleChars = 100 // of a source's title that are shown
	briefTitle = 50  // … where there is little room
	briefBelow = 900 // tokens of allowance that are little room
)

// packer takes passages while they fit an allowance of tokens, as they will be shown, each source with its heading.
type packer struct {
	v     llm.Quoter
	set   *evidence.Set
	chars int // of a passage that are shown
	brief bool
	left  int
	taken map[evidence.ID]bool
	told  told // of what was taken, what was shown before this part
	heads map[int]bool
	shown map[evidence.ID]string // lines made so far
}

func newPacker(v llm.Quoter, set *evidence.Set, tokens, chars int) *packer {
	return &packer{v: v, set: set, chars: chars, brief: tokens < briefBelow, left: tokens, taken: map[evidence.ID]bool{}, heads: map[int]bool{}, shown: map[evidence.ID]string{}}
}

// after takes what was told before, which costs nothing.
func (p *packer) after(t told) {
	p.brief, p.told = false, t
	p.taken, p.heads = maps.Clone(t.ids), maps.Clone(t.heads)
}

// head is the line above the passages of a source, a short title alone where there is little room.
func (p *packer) head(src *evidence.Source) string {
	id := "S" + strconv.Itoa(src.N)
	if p.brief && src.Page.Title != "" {
		return id + " " + p.v.Line(src.Page.Title, briefTitle)
	}
	line := id + describe(p.v, src.Page.Title, src.Page.Locator, src.Page.Published, titleChars)
	if class := confidence.Authority(src.Page); p.told.text != "" && class != marchwarden.LowAuthority {
		line += " | " + string(class)
	}
	return line
}

// describe is a document in a few words: title, host, date.
func describe(v llm.Quoter, title, locator, published string, chars int) string {
	line := " " + v.Line(title, chars)
	if title == "" {
		line = " " + v.Line(locator, chars)
	}
	if host := hostOf(locator); host != "" {
		line += " | " + v.Line(host, 60)
	}
	if published != "" {
		line += " | " + v.Line(published, 10)
	}
	return line
}

// line is a passage with its label, or "" when nothing of it can be shown.
func (p *packer) line(ps evidence.Passage) string {
	line, ok := p.shown[ps.ID]
	if !ok {
		if text := p.v.Line(ps.Text, p.chars); text != "" {
			line = "[" + string(ps.ID) + "] " + text
		}
		p.shown[ps.ID] = line
	}
	return line
}

// cost is what showing a passage adds, for the first of a source with its head.
func (p *packer) cost(ps evidence.Passage, first bool) int {
	n := llm.EstimateText(p.line(ps)) + 1
	if src, _, ok := p.set.Passage(ps.ID); ok && first {
		n += llm.EstimateText(p.head(src)) + 1
	}
	return n
}

func (p *packer) add(ps evidence.Passage) bool {
	if p.taken[ps.ID] || p.line(ps) == "" {
		return false
	}
	c := p.cost(ps, !p.heads[ps.Source])
	if c > p.left {
		return false
	}
	p.left -= c
	p.taken[ps.ID], p.heads[ps.Source] = true, true
	return true
}

// fill takes the passages that serve some queries best, in stems.
func (p *packer) fill(queries [][]string) {
	price := func(ps evidence.Passage, first bool) int {
		if p.line(ps) == "" {
			return math.MaxInt // nothing of it can be shown
		}
		if p.told.ids[ps.ID] {
			return 0
		}
		return p.cost(ps, first && !p.heads[ps.Source])
	}
	for _, ps := range evidence.PackFor(p.set, queries, p.left, price) {
		p.add(ps.Passage)
	}
}

// queriesOf are the question and the queries of the run so far as stems, each once.
func queriesOf(s *reason.State) [][]string {
	texts := []string{s.Request.Question}
	for _, sd := range s.Searches {
		texts = append(texts, sd.Query)
	}
	var queries [][]string
	heard := map[string]bool{}
	for _, text := range texts {
		if terms, key := lexicon.Terms(text), lexicon.SameWords(text); len(terms) > 0 && !heard[key] {
			heard[key] = true
			queries = append(queries, terms)
		}
	}
	return queries
}

// passages are those taken, sources in order and each in the order of its text.
func (p *packer) passages() []evidence.Passage {
	var out []evidence.Passage
	for _, src := range p.set.Sources() {
		for _, ps := range src.Passages {
			if p.taken[ps.ID] {
				out = append(out, ps)
			}
		}
	}
	return out
}

// lines are the passages as they are shown, each source under its head; those told before are left out.
func (p *packer) lines() []string {
	var out []string
	last := 0
	for _, ps := range p.passages() {
		if p.told.ids[ps.ID] {
			continue
		}
		if ps.Source != last && !p.told.heads[ps.Source] {
			src, _, _ := p.set.Passage(ps.ID)
			out = append(out, p.head(src))
			last = ps.Source
		}
		out = append(out, p.line(ps))
	}
	return out
}

// This part is what the calls of one run have in common where the budget has room for that: the instructions that hold
// for all, the tools, the question, and the passages that were shown, to which every call adds and of which none changes
// any. A provider's cache then gives most of a call back for a tenth of its price.

// roomyFrom is the token budget from which calls begin alike and prompts are told in full; below it each is as short as
// can be.
const roomyFrom = 24_000

func roomy(s *reason.State) bool { return s.Limits.TokenBudget >= roomyFrom }

// told is what the calls of the run have shown in common. The zero value has shown nothing.
type told struct {
	text  string // parts, each with a blank line after it
	ids   map[evidence.ID]bool
	heads map[int]bool // sources whose heading was shown
}

// begin makes a call of a prompt, and the text that follows the limit of the reply in its input. more is added
// to the prompt where there is room for it.
func (r *Reasoner) begin(s *reason.State, name, more string) (llm.Call, string) {
	p, question := prompt(name), newView(s.Nonce).Question(s.Request, s.Limits.TokenBudget, s.Now)
	if !roomy(s) {
		return p.Call(), question
	}
	if r.told.text == "" {
		r.told = told{question + "\n", map[evidence.ID]bool{}, map[int]bool{}}
	}
	common := instructions("common")
	c := llm.Prompt{Name: name, Text: common + p.Text + more}.Call()
	c.System, c.Tools, c.Shared = common, fullTools, r.told.text
	return c, p.Text + more
}

// forget has a call begin with the question alone, and the calls after it, too: what was told takes up more than most
// tokens, or is not to be shown again.
func (r *Reasoner) forget(c *llm.Call, s *reason.State, most int) {
	if roomy(s) && llm.EstimateText(c.Shared) > most {
		r.told = told{}
		again, _ := r.begin(s, c.Prompt, "")
		c.Shared = again.Shared
	}
}

// show packs evidence into a call, as much as the tokens allow beyond what was told before. A roomy call has whole
// passages, in its shared part; another has so many characters of each, in the lines that are returned.
func (r *Reasoner) show(c *llm.Call, s *reason.State, tokens, chars int) (*packer, []string) {
	v := newView(s.Nonce)
	if !roomy(s) {
		p := newPacker(v, s.Evidence, tokens, chars)
		p.fill(queriesOf(s))
		return p, p.lines()
	}
	p := newPacker(v, s.Evidence, tokens-llm.EstimateText(v.Open("sources")+v.End()+"\n"), evidence.MaxPassageChars)
	p.after(r.told)
	p.fill(queriesOf(s))
	if lines := p.lines(); len(lines) > 0 {
		r.told = told{r.told.text + v.Block("sources", lines) + "\n", p.taken, p.heads}
		c.Shared = r.told.text
	}
	return p, nil
}
