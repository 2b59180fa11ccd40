package model

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

const (
	verdictTokens = 24   // of the reply, for each claim
	judgeFrame    = 40   // of the reply, around them
	judgeThinking = 1000 // of a model that is not known to think
	// fewClaims are judged in a moment without a model, and the model is then asked about those that can stand. More are
	// judged while the model judges them, too, which costs it some that cannot: 40 take seconds.
	fewClaims = 8
	// sharedJudge is how many times as long as it need be a call to the judge may be for the sake of a cached beginning:
	// what is read from a cache costs a tenth, but a quarter more when it is written.
	sharedJudge = 3
)

// judge gives every claim its verdict: that of the judge without a model, or the model's where it thinks less of
// the claim. No word of a model makes a verdict better. The error is the model's fault.
func (r *Reasoner) judge(ctx context.Context, s *reason.State, d *reason.Draft) error {
	said := make([]verify.Opinion, len(d.Claims))
	var open []int // claims that the model can say something about
	for i, c := range d.Claims {
		if len(cited(s.Evidence, c.Passages)) > 0 { // or the gate drops it
			open = append(open, i)
		}
	}
	for _, i := range open {
		r.opinions.of(s, d.Claims[i]) // which goes on beside what follows
	}
	judged := slices.Clone(open)
	listen := func() (err error) {
		for _, i := range judged {
			if said[i], err = r.opinions.of(s, d.Claims[i])(); err != nil {
				return err
			}
		}
		return nil
	}
	fails := func(i int) bool { return said[i].Verdict.Wire() == marchwarden.Unsupported }
	if len(open) <= fewClaims {
		if err := listen(); err != nil {
			return err
		}
		open = slices.DeleteFunc(open, fails)
	}
	err := r.askJudge(ctx, s, d.Claims, open)
	if failed := listen(); failed != nil {
		return failed
	}
	for i, o := range said {
		if o.Verdict == "" {
			continue
		}
		if fails(i) {
			d.Claims[i].Support = marchwarden.Unchecked // by the model: it was not needed
		}
		weigh(d, &d.Claims[i], o)
	}
	return err
}

// standing orders verdicts, the best first.
var standing = []marchwarden.Support{marchwarden.Supported, marchwarden.Partial, marchwarden.Unchecked, marchwarden.Unsupported}

func weigh(d *reason.Draft, c *reason.Claim, o verify.Opinion) {
	local, model := o.Verdict.Wire(), c.Support
	c.Support, c.Judge, c.Conflict = local, marchwarden.JudgeLocal, o.Against()
	if model == marchwarden.Unchecked || model == "" {
		return
	}
	c.Judge = marchwarden.JudgeBoth
	if slices.Index(standing, model) > slices.Index(standing, local) {
		c.Support = model
	}
	if local != marchwarden.Unchecked {
		d.Judged++
		if (model == marchwarden.Supported) == (local == marchwarden.Supported) {
			d.Agreed++
		}
	}
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
	verdicts := llm.ListIn(reply.Text, "verdicts")
	if len(verdicts) == 0 {
		return marchwarden.Errorf(marchwarden.CodeMalformed, "the model's verdicts on its sentences could not be read")
	}
	rank := map[marchwarden.Support]int{marchwarden.Unsupported: 3, marchwarden.Partial: 2, marchwarden.Supported: 1}
	for _, item := range verdicts {
		fields := llm.Fields(item)
		at, _ := strconv.Atoi(strings.Trim(string(fields["claim"]), `" `))
		verdict := marchwarden.Support(strings.ToLower(strings.TrimSpace(fields.Text("support"))))
		if at < 1 || at > n {
			continue
		}
		if c := &claims[open[at-1]]; rank[verdict] > rank[c.Support] { // of two verdicts, the worse
			c.Support = verdict
		}
	}
	return nil
}

// judgeCall shows the first n open claims with their passages, as many as the room allows: after what the calls so far
// have in common, where the claims cite a good part of that, else alone.
func (r *Reasoner) judgeCall(s *reason.State, claims []reason.Claim, open []int) (llm.Call, int) {
	room := s.Meter.Room()
	for n := len(open); n > 0; n-- {
		c := r.judging(s, claims, open[:n], told{}, room)
		if shared := r.judging(s, claims, open[:n], r.told, room); llm.Price(s.Scale, shared) <= min(room, sharedJudge*llm.Price(s.Scale, c)) {
			c = shared
		}
		spare := room - llm.Price(s.Scale, c)
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

// judging asks about claims after what was told; their other passages come with them.
func (r *Reasoner) judging(s *reason.State, claims []reason.Claim, open []int, before told, room int) llm.Call {
	v := newView(s.Nonce)
	c := prompt("judge").Call()
	task := ""
	p := newPacker(v, s.Evidence, room, evidence.MaxPassageChars)
	if before.text != "" {
		c, task = r.begin(s, "judge", instructions("judge_more"))
		p.after(before)
	} else if roomy(s) {
		c.System += instructions("judge_more")
	}
	c.Schema = judgeSchema
	var lines []string
	for k, i := range open {
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
		if !before.ids[ps.ID] {
			lines = append(lines, p.line(ps))
		}
	}
	c.Input = task + v.Block("claims", lines)
	c.MaxTokens = judgeFrame + verdictTokens*len(open)
	return c
}

// matchOf is how likely the answer is right, by what the cited passages speak to and how many sentences stand.
func matchOf(s *reason.State, claims []reason.Claim, gaps []marchwarden.Gap) float64 {
	if len(claims) == 0 {
		return 0
	}
	held := map[string]bool{}
	for _, c := range claims {
		if c.Support == marchwarden.Unsupported {
			continue
		}
		for _, id := range c.Passages {
			if src, ps, ok := s.Evidence.Passage(id); ok {
				maps.Copy(held, lexicon.TermSet(ps.Text+"\n"+ps.Heading+"\n"+src.Page.Title))
			}
		}
	}
	match := share(s.Request.Question, held)
	if slices.ContainsFunc(gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.SourceNotFound }) {
		match *= 0.8
	}
	stand := 0.0
	for _, c := range claims {
		if c.Support.Stands() {
			stand++
		}
	}
	return matchBase + matchShare*match + matchStands*stand/float64(max(1, len(claims)))
}

// What the probability that a model's answer is right is made of.
const (
	matchBase   = 0.24
	matchShare  = 0.5
	matchStands = 0.1
)

// share is the share of the question's words that are held; names and numbers count more.
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

// This part reads along while a reply is written. A sentence that stands in it whole is judged at once, without a model,
// so that the judging ends soon after the draft, and is shown to those who wait. It decides nothing: what counts is the
// whole reply, and a rerun, which has no stream, comes to the same.

// opinions are what the judge without a model says of sentences on their passages, each found once. They are safe for
// concurrent use.
type opinions struct {
	mu    sync.Mutex // guards found
	found map[string]func() (verify.Opinion, error)
	work  sync.WaitGroup
	turns chan struct{} // as many are found at once as it has places: the program has other work meanwhile
}

// of begins to judge a claim, if that has not begun, and gives back what waits for the opinion. It takes milliseconds,
// and a rerun must come to the same: it is not broken off.
func (v *opinions) of(s *reason.State, c reason.Claim) func() (verify.Opinion, error) {
	key := c.Text
	for _, id := range c.Passages {
		key += "\x00" + string(id)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if o := v.found[key]; o != nil {
		return o
	}
	o := sync.OnceValues(func() (o verify.Opinion, err error) {
		v.turns <- struct{}{}
		defer func() { <-v.turns }()
		defer panics.Caught(&err, "the judge")
		return verify.NewJudge(s.Reader).Judge(context.Background(), c.Text, cited(s.Evidence, c.Passages))
	})
	v.found[key] = o
	v.work.Go(func() { _, _ = o() })
	return o
}

// readAlong has the sentences of replies, which may be written side by side, judged and shown while they are written;
// read is how they are read.
func (r *Reasoner) readAlong(s *reason.State, calls []llm.Call, read func(s *reason.State, text string) reason.Draft) {
	var mu sync.Mutex // guards said
	said := make([][]reason.Claim, len(calls))
	for i := range calls {
		calls[i].Heard = func(text string) {
			var err error // what goes wrong here is seen again when the reply is whole
			defer panics.Caught(&err, "reading along")
			claims := read(s, text).Claims
			for _, c := range claims {
				if len(cited(s.Evidence, c.Passages)) > 0 { // or the gate will drop it
					r.opinions.of(s, c)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			same := slices.EqualFunc(said[i], claims, func(x, y reason.Claim) bool { return x.Text == y.Text })
			if said[i] = claims; !same && s.Drafted != nil {
				s.Drafted(slices.Concat(said...))
			}
		}
	}
}

// answerBegun is an answer as far as it is written.
func answerBegun(s *reason.State, text string) reason.Draft {
	fields, _ := answerOf(text)
	d, _ := draftOf(s, fields)
	return d
}

// sectionBegun is a section as far as it is written, of whose last block claims may be missing.
func sectionBegun(s *reason.State, text string) reason.Draft {
	raw, _ := llm.Begun(text, 1)
	return sectionOf(s, raw)
}

// cited are the passages that exist, each under its title and headings.
func cited(set *evidence.Set, ids []evidence.ID) []verify.Excerpt {
	var out []verify.Excerpt
	for _, id := range ids {
		if src, ps, ok := set.Passage(id); ok {
			out = append(out, verify.Excerpt{Heading: strings.Trim(src.Page.Title+" › "+ps.Path, " ›"), Text: ps.Text})
		}
	}
	return out
}
