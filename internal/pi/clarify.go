package pi

// This part asks the user back: one call has the model name what it needs to know before anything is spent on research,
// and what the user answers is the user's own words, as the context of the request is. Questions are a model's text:
// cleaned, short, few, and without addresses of its own. A reply that cannot be read asks nothing.

import (
	"context"
	_ "embed" // the prompt
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

//go:embed prompts/clarify.md
var clarifyText string

const clarifyName = "clarify"

var clarifySchema = json.RawMessage(`{"type":"object","properties":{"questions":{"type":"array","items":{"type":"string"}}},"required":["questions"],"additionalProperties":false}`)

const (
	maxUnclear   = 3 // questions to the user
	unclearChars = 200
	answerChars  = 600
	unclearReply = 600 // tokens, thinking included
)

// clarify has the user answer what the model asks. The answers stand before the context of the request, of which a
// prompt may have room for the beginning alone.
func (r *run) clarify(ctx context.Context) error {
	thinking, done := replay.Limited(ctx, time.Duration(planShare*float64(r.start.Wall)))
	defer done()
	questions, err := unclear(replay.Shield(thinking), r.brief())
	if replay.Fatal(err) {
		return err
	}
	if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeExhausted { // a small budget is no fault
		r.failed("asking back", err)
	}
	if len(questions) == 0 {
		return nil
	}
	heard, err := replay.Clarify(r.caller, r.j, questions, func(ctx context.Context) []string {
		ask := r.world.asker(ctx)
		if ask == nil { // it goes on where no user is
			return nil
		}
		answers := ask(ctx, r.start.Model, questions)
		answers = answers[:min(len(answers), len(questions))]
		for i := range answers {
			answers[i] = plaintext.Line(answers[i], answerChars)
		}
		return answers
	}, r.clock)
	if err != nil {
		return err
	}
	if heard.Interrupted {
		r.leave()
	}
	start := *r.start
	start.Waited(heard.Elapsed, heard.Took)
	start.Request.Context = withAnswers(start.Request.Context, questions, heard.Answers)
	r.start = &start
	return nil
}

// asker is what asks the user who is behind a context; nil for none, as there is in a rerun.
func (c *Config) asker(ctx context.Context) Asker {
	if c == nil || c.Ask == nil {
		return nil
	}
	return c.Ask(ctx)
}

// timed are the contexts of the whole run and of its gathering, as long as there is time left for them.
func (r *run) timed(ctx context.Context) (whole, gathering context.Context, done func()) {
	start := *r.start
	if r.clock != nil {
		start.Worked = r.clock()
	}
	whole, all := replay.Limited(ctx, replay.Left(&start, start.Deadline))
	gathering, some := replay.Limited(whole, replay.Left(&start, start.Wall))
	return whole, gathering, func() { some(); all() }
}

// withAnswers is a context with what the user was asked and has answered.
func withAnswers(known string, questions, answers []string) string {
	var said []string
	for i, a := range answers[:min(len(answers), len(questions))] {
		if a = plaintext.Line(a, answerChars); a != "" { // earlier versions recorded it as it was typed
			said = append(said, questions[i]+" "+a)
		}
	}
	if len(said) == 0 {
		return known
	}
	return plaintext.Clip(strings.TrimSpace(strings.Join(said, "\n")+"\n"+known), marchwarden.MaxContextChars-1)
}

// unclear asks the model what only the user can know.
func unclear(ctx context.Context, b *Brief) ([]string, error) {
	if b.Model == nil {
		return nil, nil
	}
	v := llm.NewQuoter(b.Nonce)
	c := llm.Prompt{Name: clarifyName, Text: clarifyText}.Call()
	c.Schema, c.MaxTokens = clarifySchema, unclearReply
	c.Input = llm.Limit(unclearReply) + v.Question(b.Request, b.Limits.TokenBudget, b.Now)
	if llm.Price(b.Scale, c) > int(adviceShare*float64(b.Limits.TokenBudget)) {
		return nil, marchwarden.Errorf(marchwarden.CodeExhausted, "too few tokens to ask back")
	}
	reply, err := b.Model.Generate(ctx, c)
	if err != nil || reply.Stop == llm.StopRefusal {
		return nil, err
	}
	raw, _ := llm.Object(reply.Text)
	given := addressesIn(b.Request.Question)
	var out []string
	for _, item := range llm.List(llm.Fields(raw)["questions"]) {
		said, _ := llm.Text(item)
		q := v.Line(said, unclearChars)
		if !strings.ContainsFunc(q, unicode.IsLetter) || verify.Unlink(q, given) != q || slices.Contains(out, q) {
			continue
		}
		if out = append(out, q); len(out) == maxUnclear {
			break
		}
	}
	return out, nil
}
