package model

import (
	"context"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// What a verdict may cost, in tokens.
const (
	verdictTokens = 24   // of the reply, for each claim
	judgeFrame    = 40   // of the reply, around them
	judgeThinking = 1000 // of a model that is not known to think
)

// judge gives every claim its verdict: the model's where it was asked and gave
// one, and never more than the words and numbers of the passages allow. The
// error is the model's fault.
func (r *Reasoner) judge(ctx context.Context, s *reason.State, claims []reason.Claim) error {
	var open []int // claims that the model can say something about
	for i := range claims {
		texts := cited(s.Evidence, claims[i].Passages)
		switch {
		case len(texts) == 0: // the gate drops it
		case !sharesWord(claims[i].Text, texts) && sharesWord(s.Request.Question, texts):
			// Passages that do not even share a word with the question are in another
			// language; then words tell nothing.
			claims[i].Support = marchwarden.Unsupported
		default:
			open = append(open, i)
		}
	}
	err := r.askJudge(ctx, s, claims, open)
	for _, i := range open {
		if missesNumber(claims[i].Text, cited(s.Evidence, claims[i].Passages)) && claims[i].Support != marchwarden.Unsupported {
			claims[i].Support = marchwarden.Partial
		}
	}
	return err
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

// sharesWord reports that a sentence and the texts have a content word in common.
func sharesWord(sentence string, texts []string) bool {
	words := map[string]bool{}
	for _, t := range texts {
		for _, w := range lexicon.Terms(t) {
			words[w] = true
		}
	}
	return slices.ContainsFunc(lexicon.Terms(sentence), func(w string) bool { return words[w] })
}

// missesNumber reports that a sentence holds a number that no text holds,
// however either writes it.
func missesNumber(sentence string, texts []string) bool {
	held := map[float64]bool{}
	for _, t := range texts {
		for _, n := range figures(t) {
			held[n] = true
		}
		for _, q := range lexicon.Quantities(t) {
			held[q.Value] = true
		}
		for _, n := range spelled(t) {
			held[n] = true
		}
	}
	stated := map[int]bool{} // where a quantity begins that is held as a whole
	for _, q := range lexicon.Quantities(sentence) {
		switch {
		case held[q.Value] || held[-q.Value]:
			for _, t := range lexicon.Tokens(q.Text) {
				stated[q.Start+t.Start] = true
			}
		case !calendar[q.Unit]: // the parts of a date are looked at one by one
			return true
		}
	}
	return slices.ContainsFunc(lexicon.Tokens(sentence), func(t lexicon.Token) bool {
		n, ok := figure(t)
		return ok && !held[n] && !stated[t.Start]
	})
}

// calendar are the units of days and hours, which can be written in many ways.
var calendar = map[string]bool{"date": true, "time": true, "year": true, "decade": true, "ordinal": true}

// figures are the numbers that a text writes in digits.
func figures(s string) []float64 {
	var out []float64
	for _, t := range lexicon.Tokens(s) {
		if n, ok := figure(t); ok {
			out = append(out, n)
		}
	}
	return out
}

// figure is the number that a token begins with: 1990 of "1990s".
func figure(t lexicon.Token) (float64, bool) {
	digits := strings.ReplaceAll(t.Text, ",", "")
	end := 0
	for end < len(digits) && (digits[end] >= '0' && digits[end] <= '9' || digits[end] == '.') {
		end++
	}
	if !t.Number || end == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimRight(digits[:end], "."), 64)
	return n, err == nil
}

var (
	ones = numbered(0, 1, "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens = numbered(20, 10, "twenty thirty forty fifty sixty seventy eighty ninety")
	nths = numbered(1, 1, "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
	// scales follow a number; aliases stand for one.
	scales  = map[string]float64{"dozen": 12, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9}
	aliases = map[string]float64{"once": 1, "single": 1, "twice": 2, "both": 2, "pair": 2, "double": 2, "half": 50}
)

// numbered gives words the numbers from first on, step apart.
func numbered(first, step float64, words string) map[string]float64 {
	m := map[string]float64{}
	for i, w := range strings.Fields(words) {
		m[w] = first + float64(i)*step
	}
	return m
}

// spelled are the numbers that a text writes as words: "twelve", "twenty-one",
// "third", "two hundred".
func spelled(s string) []float64 {
	var out []float64
	ten, last := 0.0, 0.0 // the "twenty" of "twenty-one", the "two" of "two hundred"
	for _, t := range lexicon.Tokens(s) {
		w := strings.ToLower(t.Text)
		if d, ok := tens[w]; ok {
			ten, last = d, d
			out = append(out, d)
			continue
		}
		if n, ok := ones[w]; ok {
			last = n
			if n < 10 {
				last += ten
			}
			out = append(out, last)
		} else if n, ok := scales[w]; ok {
			last = max(1, last) * n
			out = append(out, last)
		} else {
			if n, ok := nths[w]; ok {
				out = append(out, ten+n)
			} else if n, ok := aliases[w]; ok {
				out = append(out, n)
			}
			last = 0
		}
		ten = 0
	}
	return out
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
