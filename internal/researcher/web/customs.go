package web

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// customs keeps secrets in. It knows each in the ways that a simple trick would
// write it: in other case, spaced out, percent-encoded or escaped, in hexadecimal
// and in base64. No list of tricks is complete; what keeps secrets from a model is
// that no prompt ever holds one.
type customs struct{ secret *regexp.Regexp } // nil: there are none

// shortest is the length below which a value is too common to be looked for.
const shortest = 8

func newCustoms(secrets []string) customs {
	var forms []string
	for _, s := range secrets {
		if len(s) >= shortest {
			raw := []byte(s)
			forms = append(forms, spelled(s), spelled(hex.EncodeToString(raw)), spelled(base64.RawStdEncoding.EncodeToString(raw)))
		}
	}
	if len(forms) == 0 {
		return customs{}
	}
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) }) // one secret may be a part of another
	return customs{regexp.MustCompile("(?i)" + strings.Join(forms, "|"))}
}

// spelled is a pattern for a value, each byte of it plain or encoded, with what
// cannot be seen between them.
func spelled(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if i > 0 {
			b.WriteString(`[\s\p{Cf}]*`)
		}
		c := value[i]
		fmt.Fprintf(&b, `(?:%s|%%%02x|\\u00%02x)`, regexp.QuoteMeta(string(rune(c))), c, c)
	}
	return b.String()
}

func (c customs) check(text string) error {
	if c.secret != nil && c.secret.MatchString(text) {
		return marchwarden.Errorf(marchwarden.CodeDenied, "it holds a key of this program, which must not leave")
	}
	return nil
}

// without is the text with no secret in it.
func (c customs) without(text string) string {
	return c.secret.ReplaceAllString(text, "(removed)")
}

// discreet is a model whose replies hold no secret, whatever it was told to say:
// neither results nor traces nor later prompts get one.
type discreet struct {
	llm.Model
	door customs
}

// Generate makes the call.
func (d *discreet) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	reply, err := d.Model.Generate(ctx, c)
	reply.Text = d.door.without(reply.Text)
	for i, call := range reply.Calls {
		reply.Calls[i].Name = d.door.without(call.Name)
		if d.door.check(string(call.Input)) != nil {
			reply.Calls[i].Input = []byte(d.door.without(string(call.Input)))
		}
	}
	return reply, err
}

// engine searches for what may be asked outside.
type engine struct {
	search.Engine
	door customs
}

// Search refuses a query that holds a secret.
func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := e.door.check(q.Text); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeDenied, "a search was refused")
	}
	return e.Engine.Search(ctx, q)
}

// fetcher fetches what may be asked for outside.
type fetcher struct {
	fetch.Fetcher
	door customs
}

// Fetch refuses an address that holds a secret.
func (f *fetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	if err := f.door.check(locator); err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeDenied, "a fetch was refused")
	}
	return f.Fetcher.Fetch(ctx, locator)
}
