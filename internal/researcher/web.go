package researcher

// The researcher of the open web: search engines and a guarded fetcher that the caller chose. It reads no file, so that
// nothing private can leave through it except by the caller's own words.

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// WebName is the researcher's name in the network, in traces and in costs.
const WebName = "web"

// WebScope says in a sentence what the researcher covers.
const WebScope = "the open web: pages found by search engines, addresses in the question, and what those pages link to"

// WebConfig is what the researcher works with. The caller closes what it passes in.
type WebConfig struct {
	Lab
	Engine  search.Engine
	Fetcher fetch.Fetcher // takes http and https addresses only, and guards what it dials
	Secrets []string      // must never leave: a query or an address that holds one is refused, and replies are taken without
}

// NewWeb makes the researcher that answers from the web. It is safe for concurrent use.
func NewWeb(cfg WebConfig) marchwarden.Researcher {
	door := newCustoms(cfg.Secrets)
	if cfg.Model != nil && len(door.forms) > 0 {
		cfg.Model = &discreet{cfg.Model, door}
	}
	where := "the web by " + cfg.Engine.Name()
	return Prepared{cfg.Lab, WebName, func(_ context.Context, req marchwarden.Request) (Setup, error) {
		// The context may hold what is private, and an address may carry it out: only the question's own are read.
		return Setup{Where: where, Outside: true, Engine: &engine{cfg.Engine, door}, Fetcher: &fetcher{cfg.Fetcher, door}, Given: locator.InText(req.Question), Library: []string{where}}, nil
	}}
}

// customs keeps secrets in. It knows each in the ways that a simple trick would
// write it: in other case, spaced out, percent-encoded or escaped, in hexadecimal
// and in base64. No list of tricks is complete; what keeps secrets from a model is
// that no prompt ever holds one.
type customs struct {
	forms []string // as bare writes them
	hide  *secret.Redactor
}

// shortest is the length below which a value is too common to be looked for.
const shortest = 8

func newCustoms(secrets []string) customs {
	c := customs{hide: secret.New(secrets...)}
	for _, s := range secrets {
		if len(s) < shortest {
			continue
		}
		for _, form := range []string{s, hex.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s))} {
			c.forms = append(c.forms, strings.ToLower(strings.Map(seen, form)))
		}
	}
	return c
}

// seen drops what takes no ink.
func seen(r rune) rune {
	if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}

// bare is a text as customs compare it: decoded, in lower case, without spaces.
func bare(text string) string {
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		n := 0
		switch rest := text[i:]; {
		case rest[0] == '%' && len(rest) >= 3:
			n = 3
		case strings.HasPrefix(rest, `\u00`) && len(rest) >= 6:
			n = 6
		}
		if v, err := strconv.ParseUint(text[max(i, i+n-2):i+n], 16, 8); n > 0 && err == nil {
			decoded = append(decoded, byte(v))
			i += n - 1
			continue
		}
		decoded = append(decoded, text[i])
	}
	return strings.ToLower(strings.Map(seen, string(decoded)))
}

func (c customs) check(text string) error {
	if len(c.forms) == 0 {
		return nil
	}
	text = bare(text)
	if slices.ContainsFunc(c.forms, func(form string) bool { return strings.Contains(text, form) }) {
		return marchwarden.Errorf(marchwarden.CodeDenied, "it holds a key of this program, which must not leave")
	}
	return nil
}

// without is the text with no secret in it; a text that hides one by a trick is nothing.
func (c customs) without(text string) string {
	if text = c.hide.Text(text); c.check(text) != nil {
		return ""
	}
	return text
}

// discreet is a model whose replies hold no secret, whatever it was told to say.
type discreet struct {
	llm.Model
	door customs
}

// Generate makes the call.
func (d *discreet) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if heard := c.Heard; heard != nil {
		c.Heard = func(text string) { heard(d.door.without(text)) }
	}
	reply, err := d.Model.Generate(ctx, c)
	reply.Text = d.door.without(reply.Text)
	for i, call := range reply.Calls {
		reply.Calls[i].Name = d.door.without(call.Name)
		if input := []byte(d.door.without(string(call.Input))); json.Valid(input) {
			reply.Calls[i].Input = input
		} else {
			reply.Calls[i].Input = json.RawMessage("{}")
		}
	}
	return reply, err
}

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
