package verify

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/judge"
)

// Second is what the judge without a model says of a claim of a result.
type Second struct {
	Claim   marchwarden.Claim
	Opinion judge.Opinion
}

// Worse reports that the judge has a verdict, and thinks less of the claim than the
// result does. What it thinks more of is no matter: a result may be as strict as it likes.
func (s Second) Worse() bool {
	return s.Compared() && rank[s.Opinion.Verdict.Wire()] > rank[s.Claim.Support]
}

// rank orders verdicts, the best first.
var rank = map[marchwarden.Support]int{marchwarden.Supported: 0, marchwarden.Partial: 1, marchwarden.Unsupported: 2}

// Compared reports that both have a verdict.
func (s Second) Compared() bool {
	return !s.Opinion.Unsure() && s.Claim.Support != marchwarden.Unchecked
}

// SecondOpinions judges the claims of a result once more, each by the excerpts that it
// cites and by their words alone. They are a hint for people, no finding: what stands
// is what Check says. An error means only that ctx ended.
func SecondOpinions(ctx context.Context, res *marchwarden.Result) ([]Second, error) {
	j := judge.New(nil)
	var out []Second
	for _, c := range res.Claims {
		var excerpts []string
		for _, n := range c.Citations {
			if n >= 1 && n <= len(res.Citations) && res.Citations[n-1].RawExcerpt != marchwarden.ExcerptNonText {
				excerpts = append(excerpts, res.Citations[n-1].RawExcerpt)
			}
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		o, err := j.Judge(ctx, c.Text, excerpts)
		if err != nil {
			return out, err
		}
		out = append(out, Second{c, o})
	}
	return out, nil
}
