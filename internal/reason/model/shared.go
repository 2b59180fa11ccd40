package model

// This part is what the calls of one run have in common where the budget has room for that: the instructions that hold
// for all, the tools, the question, and the passages that were shown, to which every call adds and of which none changes
// any. A provider's cache then gives most of a call back for a tenth of its price.

import (
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

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
func (r *Reasoner) begin(s *reason.State, p llm.Prompt, more string) (llm.Call, string) {
	question := newView(s.Nonce).Question(s.Request, s.Limits.TokenBudget, s.Now)
	if !roomy(s) {
		return p.Call(), question
	}
	if r.told.text == "" {
		r.told = told{question + "\n", map[evidence.ID]bool{}, map[int]bool{}}
	}
	c := llm.Prompt{Name: p.Name, Text: commonText + p.Text + more}.Call()
	c.System, c.Tools, c.Shared = commonText, fullTools, r.told.text
	return c, p.Text + more
}

// forget has a call begin with the question alone, and the calls after it, too: what was told takes up more than most
// tokens, or is not to be shown again.
func (r *Reasoner) forget(c *llm.Call, s *reason.State, most int) {
	if roomy(s) && llm.EstimateText(c.Shared) > most {
		r.told = told{}
		again, _ := r.begin(s, llm.Prompt{}, "")
		c.Shared = again.Shared
	}
}

// show packs evidence into a call, as much as the tokens allow besides what was told before. A roomy call has whole
// passages, in its shared part; another has so many characters of each, in the lines that are returned.
func (r *Reasoner) show(c *llm.Call, s *reason.State, tokens, chars int) (*packer, []string) {
	v := newView(s.Nonce)
	if !roomy(s) {
		p := newPacker(v, s.Evidence, tokens, chars)
		p.fill(s)
		return p, p.lines()
	}
	p := newPacker(v, s.Evidence, tokens-llm.EstimateText(v.Open("sources")+v.End()+"\n"), evidence.MaxPassageChars)
	p.after(r.told)
	p.fill(s)
	if lines := p.lines(); len(lines) > 0 {
		r.told = told{r.told.text + v.Block("sources", lines) + "\n", p.taken, p.heads}
		c.Shared = r.told.text
	}
	return p, nil
}
