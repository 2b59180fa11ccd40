package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// absent is what a decorator without its counterpart says. A rerun never gets there; a run that is resumed
// does where what it read from is not kept any more.
func absent(what string) error {
	return marchwarden.Errorf(marchwarden.CodeNotRecorded, "there is no %s in a rerun", what)
}

// named says what is done in an effect, for the error of a panic.
var named = map[trace.Action]string{
	trace.ActionSearchComplete: "a search", trace.ActionFetchComplete: "a fetch", trace.ActionModelComplete: "a model call",
	trace.ActionEvidence: "getting hold of evidence", trace.ActionRihlaComplete: "asking a researcher",
}

// do runs an effect whose outcome is a JSON value of type T. A panic is an outcome like any other.
func do[T any](ctx context.Context, j Journal, e Effect, run func(context.Context) (T, error)) (T, error) {
	var v T
	out, err := j.Do(ctx, e, func(ctx context.Context) (out []byte, err error) {
		defer panics.Caught(&err, cmp.Or(named[e.Kind], "an effect"))
		v, err := run(ctx)
		if err != nil && reflect.ValueOf(&v).Elem().IsZero() {
			return nil, err
		}
		written, failed := json.Marshal(v)
		return written, errors.Join(err, failed)
	})
	if err != nil && len(out) == 0 {
		return v, err
	}
	if err := json.Unmarshal(out, &v); err != nil {
		return v, journalError(marchwarden.CodeCorrupt, err, "read a recorded %s", e.Kind)
	}
	return v, err
}

// read decodes an outcome for its step; that of a failed effect is zero.
func read[T any](out []byte) T {
	var v T
	_ = json.Unmarshal(out, &v) // out is nil or was just marshalled from a T
	return v
}

// IsFree reports whether an engine or a fetcher says that it costs nothing but time and reaches
// nothing outside this machine. One around another passes it on.
func IsFree(inner any) bool {
	f, ok := inner.(interface{ Free() bool })
	return ok && f.Free()
}

// triesOf is how often what an engine or a fetcher does is tried.
func triesOf(inner any) int {
	if IsFree(inner) {
		return freeTries
	}
	return usualTries
}

// Engine records searches. inner may be nil in a rerun; name is inner's name.
func Engine(j Journal, name string, inner search.Engine) search.Engine {
	return &engine{j, name, inner}
}

type engine struct {
	j     Journal
	name  string
	inner search.Engine
}

func (e *engine) Name() string { return e.name }

func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return do(ctx, e.j, Effect{
		Kind: trace.ActionSearchComplete,
		Input: struct {
			Engine, Query string
			Limit         int
			Filter        string
			Since         string `json:",omitempty"`
			Until         string `json:",omitempty"`
		}{e.name, q.Text, q.Limit, q.Filter.String(), q.Since, q.Until},
		Begin: &trace.Search{Head: head("search %s for %q", e.name, q.Text), Engine: e.name, Query: q.Text},
		Tries: triesOf(e.inner),
		Done: func(out []byte, err error) trace.Recorded {
			hits := read[[]search.Hit](out)
			s := &trace.SearchComplete{Engine: e.name, Query: q.Text, Hits: len(hits)}
			for _, h := range hits {
				s.Locators = append(s.Locators, h.Locator)
			}
			s.Head = outcomeHead(err, "%d documents for %q", len(hits), q.Text)
			return s
		},
	}, func(ctx context.Context) ([]search.Hit, error) {
		if e.inner == nil {
			return nil, absent("search engine")
		}
		return e.inner.Search(ctx, q)
	})
}

// Fetcher records fetches. inner may be nil in a rerun.
func Fetcher(j Journal, inner fetch.Fetcher) fetch.Fetcher { return &fetcher{j, inner} }

type fetcher struct {
	j     Journal
	inner fetch.Fetcher
}

func (f *fetcher) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	return do(ctx, f.j, Effect{
		Kind:  trace.ActionFetchComplete,
		Input: struct{ Locator string }{locator},
		Begin: &trace.Fetch{Head: head("read %s", locator), URL: locator},
		Tries: triesOf(f.inner),
		Done: func(out []byte, err error) trace.Recorded {
			p := read[fetch.Page](out)
			s := &trace.FetchComplete{
				Head: outcomeHead(err, "stored %d bytes of text of %s", p.TextBytes, locator),
				URL:  locator, ContentHash: p.Hash(), ContentLength: p.TextBytes,
				RawHash: p.Raw, RawLength: p.RawBytes, MediaType: p.MediaType, Extractor: p.Extractor, Also: p.Also,
			}
			if p.NonText {
				s.ContentLength = p.RawBytes
			}
			return s
		},
	}, func(ctx context.Context) (fetch.Page, error) {
		if f.inner == nil {
			return fetch.Page{}, absent("fetcher")
		}
		return f.inner.Fetch(ctx, locator)
	})
}

// Model records model calls. inner may be nil in a rerun; id is inner's id.
func Model(j Journal, id string, inner llm.Model) llm.Model { return &model{j, id, inner} }

type model struct {
	j     Journal
	id    string
	inner llm.Model
}

func (m *model) ID() string { return m.id }

func (m *model) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	input := struct {
		Model string
		Call  llm.Call
	}{m.id, c}
	rendered, err := json.Marshal(input)
	if err != nil {
		return llm.Reply{}, marchwarden.Wrap(err, marchwarden.CodeInternal, "describe a model call")
	}
	prompt := blob.Of(rendered)
	return do(ctx, m.j, Effect{
		Kind:  trace.ActionModelComplete,
		Input: input,
		Begin: &trace.Model{Head: head("ask %s to %s", m.id, c.Prompt), Model: m.id, Prompt: c.Prompt, TemplateHash: c.Template, PromptHash: prompt},
		Done: func(out []byte, err error) trace.Recorded {
			r := read[llm.Reply](out)
			s := &trace.ModelComplete{
				Head:  outcomeHead(err, "%s answered in %d tokens", r.By(m.id), r.Usage.Out),
				Model: r.By(m.id), Prompt: c.Prompt, TemplateHash: c.Template, PromptHash: prompt,
				TokensIn: r.Usage.In, TokensOut: r.Usage.Out, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite, Stop: string(r.Stop),
			}
			if err == nil {
				s.ReplyHash = blob.Of([]byte(r.Text))
			}
			return s
		},
	}, func(ctx context.Context) (llm.Reply, error) {
		if m.inner == nil {
			return llm.Reply{}, absent("model")
		}
		return m.inner.Generate(ctx, c)
	})
}

// Moment is what the clock and the caller said at one point of a run.
type Moment struct {
	Elapsed     time.Duration `json:"elapsed"`
	Interrupted bool          `json:"interrupted,omitempty"`
}

// Checkpoint reads the clock and whether the caller still wants the run, as a
// recorded effect. Each point of a run needs a name of its own. A run decides by
// checkpoints alone, never by looking at a context or a clock itself, or its
// rerun would decide differently.
func Checkpoint(ctx context.Context, j Journal, at string, clock func() time.Duration) (Moment, error) {
	return do(ctx, j, Effect{
		Kind:  trace.ActionCheckpoint,
		Input: struct{ At string }{at},
		Done: func(out []byte, err error) trace.Recorded {
			m := read[Moment](out)
			s := &trace.Checkpoint{Head: head("%s after %s", at, m.Elapsed.Round(time.Millisecond)), At: at, Interrupted: m.Interrupted}
			if m.Interrupted {
				s.Decision += "; the caller has stopped the run"
			}
			return s
		},
	}, func(ctx context.Context) (Moment, error) {
		return Moment{Elapsed: clock(), Interrupted: ctx.Err() != nil}, nil
	})
}

func head(format string, args ...any) trace.Head {
	return trace.Head{Decision: fmt.Sprintf(format, args...)}
}

// outcomeHead is the head of a completing step: what came back, or the failure.
func outcomeHead(err error, format string, args ...any) trace.Head {
	if err != nil {
		return head("failed: %v", err)
	}
	return head(format, args...)
}
