package pi

// This part is the planner that asks a language model which researchers to
// send with which questions. It owns the prompt, what is shown in it, and the
// reading of the reply. It sees the question and the descriptions of members, but
// for those of private sources, and nothing that was found.
//
// Nothing the model says is trusted, and neither is a member's scope, which may
// come from a stranger: members are data between markers, a name in the reply
// stands for a member or for nothing, a bad item loses that item, and the whole
// question goes out whatever the model makes of it.

import (
	"context"
	_ "embed" // the prompt
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// adviserVersion changes when the prompt, or what is done with a model's words, does.
const adviserVersion = "advise/3"

// adviser asks a model. It keeps no state and is safe for concurrent use if its fallback is.
type adviser struct {
	fallback Planner
	model    string
}

// PlannerFor is the planner of a run: one that asks the model of this id, for people who read what
// failed, or, for "", the plain one itself. Where the model does not plan, the plain one does; it
// must not ask a model itself.
func PlannerFor(id string, plain Planner) Planner {
	if id == "" {
		return plain
	}
	return &adviser{plain, id}
}

func (p *adviser) ID() string { return adviserVersion }

// Plan asks the model. The whole question reaches at least one of the members to
// whom the fallback would send it. Where the model fails or the budget has no room
// for it, the plan is the fallback's and comes with the fault.
func (p *adviser) Plan(ctx context.Context, b *Brief) ([]Sending, error) {
	plain, failed := p.fallback.Plan(context.WithoutCancel(ctx), b)
	if b.Model == nil || len(b.Members) == 0 || b.Most < 2 {
		return plain, failed
	}
	proposed, err := p.ask(ctx, b)
	if err != nil {
		return plain, errors.Join(failed, marchwarden.Wrap(err, marchwarden.CodeOf(err), "%s could not plan the investigation", p.model))
	}
	if len(proposed) == 0 {
		return plain, failed
	}
	return withWhole(b, proposed, plain), failed
}

// ask makes the call; once more, with up to half of the room there is, if the reply was cut before it held anything.
// A reply that proposes nothing is no fault.
func (p *adviser) ask(ctx context.Context, b *Brief) ([]Sending, error) {
	c, err := planCall(b)
	if err != nil {
		return nil, err
	}
	for again := true; ; again = false {
		reply, err := b.Model.Generate(ctx, c)
		if err != nil {
			return nil, err
		}
		if reply.Stop == llm.StopRefusal {
			return nil, marchwarden.Errorf(marchwarden.CodeRefused, "it would not answer the %s prompt", c.Prompt)
		}
		items := llm.ListIn(reply.Text, "rihlas")
		cut := reply.Stop == llm.StopLength && len(items) == 0
		if spare := min(thinking, b.Meter.Room()/2-llm.Price(b.Model.Scale, c)); cut && again && spare >= c.MaxTokens {
			c.MaxTokens += spare
			continue
		}
		switch {
		case cut:
			return nil, marchwarden.Errorf(marchwarden.CodeTruncated, "its reply was cut at %d tokens, before it proposed anything", c.MaxTokens)
		case items == nil:
			return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "its reply could not be read")
		}
		proposed := readPlan(b, items)
		if len(items) > 0 && len(proposed) == 0 {
			return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "nothing that it proposed can be sent")
		}
		return proposed, nil
	}
}

// readPlan turns proposals into rihlas. One that names no member, asks nothing, points somewhere the user did not, or
// repeats another is left out.
func readPlan(b *Brief, items []json.RawMessage) []Sending {
	v := llm.NewQuoter(b.Nonce)
	given := addressesIn(b.Request.Question)
	seen := map[string]bool{}
	var out []Sending
	for _, item := range items {
		fields := llm.Fields(item)
		s := Sending{
			Researcher: memberNamed(v, b.Members, fields.Text("researcher")),
			Question:   v.Line(fields.Text("question"), marchwarden.MaxQuestionChars),
			Reason:     v.Line(verify.Unlink(v.Line(fields.Text("reason"), 2*reasonChars), given), reasonChars),
		}
		if s.Researcher == "" || !strings.ContainsFunc(s.Question, unicode.IsLetter) || verify.Unlink(s.Question, given) != s.Question {
			continue
		}
		if flatten(s.Question) == flatten(b.Request.Question) {
			s.Question = b.Request.Question
		}
		if !seen[sendingKey(s)] {
			seen[sendingKey(s)] = true
			out = append(out, s)
		}
	}
	return out
}

// memberNamed is the member that a reply names as it was shown, or "".
func memberNamed(v llm.Quoter, members []dispatch.Member, name string) string {
	name = v.Line(strings.Trim(name, " \t\n`\"'"), nameChars)
	if name == "" {
		return ""
	}
	i := slices.IndexFunc(members, func(m dispatch.Member) bool { return strings.EqualFold(v.Line(m.Name, nameChars), name) })
	if i < 0 {
		return ""
	}
	return members[i].Name
}

// addressesIn knows the addresses that a text holds, as written there or in their canonical form.
func addressesIn(question string) func(address string) bool {
	known := map[string]bool{}
	verify.Unlink(question, func(a string) bool { known[a] = true; return true })
	for _, a := range locator.InText(question) {
		known[a] = true
	}
	return func(a string) bool { return known[a] }
}

// sendingKey is the same for two rihlas that ask the same researcher the same.
func sendingKey(s Sending) string { return s.Researcher + "\n" + flatten(s.Question) }

// withWhole bounds the proposals and sees to it that the whole question goes to a member that the plain plan sends it
// to, the first one if the model left it out, and to all whose scope the model was not told.
func withWhole(b *Brief, proposed, plain []Sending) []Sending {
	whole := slices.DeleteFunc(slices.Clone(plain), func(s Sending) bool { return flatten(s.Question) != flatten(b.Request.Question) })
	if len(whole) == 0 {
		whole = []Sending{{Researcher: b.Members[0].Name, Question: b.Request.Question, Reason: "the whole question"}}
	}
	proposed = proposed[:min(len(proposed), b.Most)]
	there := func(w Sending) bool {
		return slices.ContainsFunc(proposed, func(s Sending) bool { return sendingKey(w) == sendingKey(s) })
	}
	var out []Sending
	for _, w := range whole {
		if slices.Contains(b.Untold, w.Researcher) && !there(w) && len(out) < b.Most {
			out = append(out, w)
		}
	}
	if len(out) == 0 && !slices.ContainsFunc(whole, there) {
		out = whole[:1:1]
	}
	return append(out, proposed[:min(len(proposed), b.Most-len(out))]...)
}

var (
	//go:embed prompts/plan.md
	planText string
	//go:embed prompts/plan_more.md
	planMore string // where there is room for examples
)

// planSchema is strict, as providers want it.
var planSchema = json.RawMessage(`{"type":"object","properties":{"rihlas":{"type":"array","items":{"type":"object","properties":{"researcher":{"type":"string"},"question":{"type":"string"},"reason":{"type":"string"}},"required":["researcher","question","reason"],"additionalProperties":false}}},"required":["rihlas"],"additionalProperties":false}`)

const (
	promptName   = "investigate"
	reasonChars  = 200
	nameChars    = 64
	shownMembers = 64
	untold       = "sources of the user's own" // stands for a scope that is not shown

	// What a plan may cost, in tokens.
	adviceShare = 0.25 // of the token budget
	planMost    = 4000
	roomyFrom   = 16_000
	leastReply  = 160
	mostReply   = 1500
	sendTokens  = 90 // of one rihla in the reply
	thinking    = 4000
)

// scopeChars are how much of a scope is shown, as the room allows.
var scopeChars = []int{300, 120, 40, 0}

// planCall asks for the plan. The members' scopes shrink until the call leaves half of the reply that would be well;
// then the reply does. What does not fit even so is CodeExhausted, and nothing is asked.
func planCall(b *Brief) (llm.Call, error) {
	text := planText
	if b.Limits.TokenBudget >= roomyFrom {
		text += planMore
	}
	c := llm.Prompt{Name: promptName, Text: text}.Call()
	c.Schema = planSchema
	v := llm.NewQuoter(b.Nonce)
	whole := min(b.Meter.Room(), int(adviceShare*float64(b.Limits.TokenBudget)), planMost)
	well := min(mostReply, 80+sendTokens*b.Most)
	for _, chars := range scopeChars {
		told := v.Question(b.Request, b.Limits.TokenBudget, b.Now) + fmt.Sprintf("Rihlas: at most %d\n", b.Most) + v.Block("researchers", memberLines(v, b, chars))
		c.Input, c.MaxTokens = llm.Limit(well)+told, 0
		c.MaxTokens = min(well, whole-llm.Price(b.Model.Scale, c))
		c.Input = llm.Limit(c.MaxTokens) + told
		if c.MaxTokens >= max(leastReply, well/2) || chars == 0 && c.MaxTokens >= leastReply {
			return c, nil
		}
	}
	return c, marchwarden.Errorf(marchwarden.CodeExhausted, "%d tokens can be spent on a plan, %d more are needed", whole, leastReply-c.MaxTokens)
}

// memberLines are the members, each with so many characters of its scope.
func memberLines(v llm.Quoter, b *Brief, chars int) []string {
	var out []string
	for _, m := range b.Members[:min(len(b.Members), shownMembers)] {
		name := v.Line(m.Name, nameChars)
		if name == "" {
			continue
		}
		if slices.Contains(b.Untold, m.Name) {
			m.Scope = untold
		}
		if scope := v.Line(m.Scope, chars); chars > 0 && scope != "" {
			name += " | " + scope
		}
		out = append(out, "- "+name)
	}
	return out
}
