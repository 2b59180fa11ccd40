package pi

import (
	_ "embed" // the prompt
	"encoding/json"
	"fmt"
	"math"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

//go:embed prompts/plan.md
var planText string

const promptName = "investigate"

// planSchema is strict, as providers want it.
var planSchema = json.RawMessage(`{"type":"object","properties":{"rihlas":{"type":"array","items":{"type":"object","properties":{"researcher":{"type":"string"},"question":{"type":"string"},"reason":{"type":"string"}},"required":["researcher","question","reason"],"additionalProperties":false}}},"required":["rihlas"],"additionalProperties":false}`)

// What a plan may cost, in tokens.
const (
	adviceShare = 0.25 // of the token budget
	planMost    = 4000
	leastReply  = 160
	mostReply   = 1500
	sendTokens  = 90 // of one rihla in the reply
	thinking    = 4000
)

const (
	nameChars    = 64
	shownMembers = 64
)

// scopeChars are how much of a scope is shown, as the room allows.
var scopeChars = []int{300, 120, 40, 0}

// planCall asks for the plan. The members' scopes shrink until the call leaves half of the reply that would be well;
// then the reply does. What does not fit even so is CodeExhausted, and nothing is asked.
func planCall(b *Brief) (llm.Call, error) {
	c := llm.Prompt{Name: promptName, Text: planText}.Call()
	c.Schema = planSchema
	v := llm.NewQuoter(b.Nonce)
	whole := min(roomFor(b), int(adviceShare*float64(b.Limits.TokenBudget)), planMost)
	well := min(mostReply, 80+sendTokens*b.Most)
	for _, chars := range scopeChars {
		told := v.Question(b.Request, b.Limits.TokenBudget, b.Now) + fmt.Sprintf("Rihlas: at most %d\n", b.Most) + v.Block("researchers", memberLines(v, b, chars))
		c.Input, c.MaxTokens = llm.Limit(well)+told, 0
		c.MaxTokens = min(well, whole-llm.Price(b.Scale, c))
		c.Input = llm.Limit(c.MaxTokens) + told
		if c.MaxTokens >= max(leastReply, well/2) || chars == 0 && c.MaxTokens >= leastReply {
			return c, nil
		}
	}
	return c, marchwarden.Errorf(marchwarden.CodeExhausted, "%d tokens can be spent on a plan, %d more are needed", whole, leastReply-c.MaxTokens)
}

// untold stands for a scope that is not shown.
const untold = "sources of the user's own"

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

// roomFor is how many tokens a call could get now.
func roomFor(b *Brief) int {
	if b.Meter == nil {
		return math.MaxInt
	}
	return b.Meter.Room()
}
