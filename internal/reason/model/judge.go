package model

import (
	"context"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/judge"
)

// What a verdict may cost, in tokens.
const (
	verdictTokens = 24   // of the reply, for each claim
	judgeFrame    = 40   // of the reply, around them
	judgeThinking = 1000 // of a model that is not known to think
)

// judge gives every claim its verdict: the model's where it was asked and gave one,
// the worse of the two where the judge without a model is sure that the passages
// deny the claim or do not state it, and that one's alone where the model said
// nothing. What neither is sure of stays unchecked. The error is the model's fault.
func (r *Reasoner) judge(ctx context.Context, s *reason.State, d *reason.Draft) error {
	claims := d.Claims
	var open []int // claims that the model can say something about
	for i := range claims {
		texts := cited(s.Evidence, claims[i].Passages)
		switch {
		case len(texts) == 0: // the gate drops it
		case !judge.Shares(claims[i].Text, texts) && judge.Shares(s.Request.Question, texts):
			// Passages that do not even share a word with the question are in another
			// language; then words tell nothing.
			claims[i].Support = marchwarden.Unsupported
		default:
			open = append(open, i)
		}
	}
	err := r.askJudge(ctx, s, claims, open)
	offline := judge.New(free(s.Vectors))
	for _, i := range open {
		texts := cited(s.Evidence, claims[i].Passages)
		// It takes milliseconds, and a rerun must come to the same: it is not broken off.
		o, failed := offline.Judge(context.WithoutCancel(ctx), claims[i].Text, texts)
		if failed == nil {
			weigh(d, &claims[i], o)
		}
		if judge.MissesNumber(claims[i].Text, texts) && claims[i].Support != marchwarden.Unsupported {
			claims[i].Support = marchwarden.Partial
		}
	}
	return err
}

// weigh puts the two verdicts on a claim together and counts them.
func weigh(d *reason.Draft, c *reason.Claim, o judge.Opinion) {
	second := o.Verdict.Wire()
	if c.Support != marchwarden.Unchecked && !o.Unsure() {
		d.Judged++
		if (c.Support == marchwarden.Supported) == (second == marchwarden.Supported) {
			d.Agreed++
		}
	}
	switch {
	case c.Support == marchwarden.Unchecked:
		c.Support = o.Wire()
	case o.Sure:
		c.Support = second
	}
	c.Conflict = o.Against()
}

// free is an embedder that costs nothing, or nil.
func free(e embed.Embedder) embed.Embedder {
	if p, ok := e.(embed.Pure); ok {
		return p
	}
	return nil
}

// cited are the texts of the passages that exist.
func cited(set *evidence.Set, ids []evidence.ID) []string {
	var out []string
	for _, id := range ids {
		if _, ps, ok := set.Passage(id); ok {
			out = append(out, ps.Text)
		}
	}
	return out
}

// askJudge asks the model about as many of the open claims as there is room for.
func (r *Reasoner) askJudge(ctx context.Context, s *reason.State, claims []reason.Claim, open []int) error {
	call, n := r.judgeCall(s, claims, open)
	if n == 0 {
		return nil
	}
	reply, err := r.ask(ctx, s, call)
	if marchwarden.CodeOf(err) == marchwarden.CodeExhausted {
		return nil // there was no room after all
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeOf(err), "the model could not judge its sentences")
	}
	raw, ok := llm.Object(reply.Text)
	verdicts := list(raw)
	if fields := object(raw); fields != nil {
		verdicts = list(fields["verdicts"])
	}
	if !ok || len(verdicts) == 0 {
		return marchwarden.Errorf(marchwarden.CodeMalformed, "the model's verdicts on its sentences could not be read")
	}
	rank := map[marchwarden.Support]int{marchwarden.Unsupported: 3, marchwarden.Partial: 2, marchwarden.Supported: 1}
	for _, item := range verdicts {
		fields := object(item)
		at, _ := strconv.Atoi(strings.Trim(string(fields["claim"]), `" `))
		word, _ := text(fields["support"])
		verdict := marchwarden.Support(strings.ToLower(strings.TrimSpace(word)))
		if at < 1 || at > n {
			continue
		}
		if c := &claims[open[at-1]]; rank[verdict] > rank[c.Support] { // of two verdicts, the worse
			c.Support = verdict
		}
	}
	return nil
}

// judgeCall shows the first n open claims with their passages, as many as the
// room allows; each passage is shown once.
func (r *Reasoner) judgeCall(s *reason.State, claims []reason.Claim, open []int) (llm.Call, int) {
	v := newView(s.Nonce)
	room := s.Meter.Room()
	build := func(n int) llm.Call {
		c := judgePrompt.call()
		c.Schema = judgeSchema
		p := newPacker(v, s.Evidence, room, evidence.MaxPassageChars)
		var lines []string
		for k, i := range open[:n] {
			line := strconv.Itoa(k+1) + ". " + v.Line(claims[i].Text, claimChars)
			for _, id := range claims[i].Passages {
				if _, ps, ok := s.Evidence.Passage(id); ok {
					line += " " + string(id)
					p.add(ps)
				}
			}
			lines = append(lines, line)
		}
		for _, ps := range p.passages() {
			lines = append(lines, p.line(ps))
		}
		c.Input = v.Block("claims", lines)
		c.MaxTokens = judgeFrame + verdictTokens*n
		return c
	}
	for n := len(open); n > 0; n-- {
		c := build(n)
		spare := room - price(s, c)
		if spare < 0 {
			continue
		}
		most := judgeThinking
		if r.thinks {
			most = thinking
		}
		c.MaxTokens += min(spare, most) // a model may think first
		return c, n
	}
	return llm.Call{}, 0
}

// matchOf is how much of what was asked the cited passages and their titles
// speak to.
func matchOf(s *reason.State, claims []reason.Claim, gaps []marchwarden.Gap) float64 {
	held := map[string]bool{}
	for _, c := range claims {
		if c.Support == marchwarden.Unsupported {
			continue
		}
		for _, id := range c.Passages {
			if src, ps, ok := s.Evidence.Passage(id); ok {
				for _, w := range lexicon.Terms(ps.Text + "\n" + ps.Heading + "\n" + src.Page.Title) {
					held[w] = true
				}
			}
		}
	}
	match := share(s.Request.Question, held)
	if slices.ContainsFunc(gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.SourceNotFound }) {
		match *= 0.8
	}
	return match
}

// shareOf is the share of the question's words that a text holds.
func shareOf(question, text string) float64 {
	held := map[string]bool{}
	for _, w := range lexicon.Terms(text) {
		held[w] = true
	}
	return share(question, held)
}

// share is the share of the question's words that are held; names and numbers
// count more.
func share(question string, held map[string]bool) float64 {
	sum, all := 0.0, 0.0
	for i, t := range lexicon.Tokens(question) {
		if t.Stop {
			continue
		}
		weight := 1.0
		if t.Number || t.Capital && i > 0 {
			weight = 1.5
		}
		all += weight
		if held[t.Stem] {
			sum += weight
		}
	}
	return sum / max(all, 1)
}
