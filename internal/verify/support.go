package verify

import (
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

// CheckSupport judges the claims of a result once more that were not called quoted or
// unsupported, each by the excerpts that it cites, and notes on the report which of
// them the excerpts deny or say nothing of. What the judge merely cannot confirm is no
// problem. The reader may be nil. An error means only that ctx ended.
func CheckSupport(ctx context.Context, r reader.Reader, res *marchwarden.Result, report *Report) error {
	j := NewJudge(r)
	for i, c := range res.Claims {
		if c.Support == marchwarden.Quoted || c.Support == marchwarden.Unsupported || report.Claims[i].Problem != "" {
			continue
		}
		var excerpts []Excerpt
		for _, n := range c.Citations {
			if x := res.Citations[n-1]; x.RawExcerpt != marchwarden.ExcerptNonText {
				excerpts = append(excerpts, Excerpt{Heading: x.Title, Text: x.RawExcerpt})
			}
		}
		o, err := j.Judge(ctx, c.Text, excerpts)
		if err != nil {
			return err
		}
		if o.Verdict.Wire() == marchwarden.Unsupported {
			report.Claims[i].Problem = fmt.Sprintf("it is called %s, and judged again it is %s: %s", c.Support, o.Verdict, strings.Join(o.Reasons[:min(maxReasons, len(o.Reasons))], "; "))
		}
	}
	return nil
}

// maxReasons is how much of an opinion a problem names.
const maxReasons = 3
