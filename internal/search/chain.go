package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Chain is an engine that asks the first of engines and, when that fails or finds
// nothing, the next. Its name is theirs joined by "+".
//
// The hits of an engine that stood in come with an error that names every engine
// that failed, and why; the error's code is the first one's, and
// never CodeNotFound. If no engine answered there are no hits. An engine that
// answered without a hit is no failure. When ctx ends no further engine is asked
// and the error is CodeCanceled. Hits are each once by canonical URL, and
// the filter and the date range hold for every one of them.
func Chain(engines ...Engine) Engine { return chain(engines) }

type chain []Engine

// Name implements Engine.
func (c chain) Name() string {
	names := make([]string, len(c))
	for i, e := range c {
		names[i] = e.Name()
	}
	return strings.Join(names, "+")
}

// Search implements Engine.
func (c chain) Search(ctx context.Context, q Query) ([]Hit, error) {
	var hits []Hit
	errs := make([]error, len(c))
	sources := 0
	for i, e := range c {
		var found []Hit
		err := ctx.Err()
		if err == nil {
			found, err = e.Search(ctx, q)
		}
		if err != nil && ctx.Err() != nil {
			return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s: the search was stopped", c.Name())
		}
		errs[i] = err
		before := len(hits)
		for _, h := range found { // each engine keeps the promises of Engine for its own hits
			known := slices.ContainsFunc(hits, func(o Hit) bool { return o.Locator == h.Locator })
			if !known && (q.Limit <= 0 || len(hits) < q.Limit) {
				hits = append(hits, h)
			}
		}
		if len(hits) > before {
			sources++
		}
		if err == nil && len(hits) > 0 {
			break
		}
	}
	if sources > 1 {
		scoreByRank(hits) // scores of different engines do not compare
	}
	if len(c) == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "no search engine is configured")
	}
	return hits, Failed(c, errs)
}

// named puts the engine's name before an error. A fault is never CodeNotFound:
// that would tell the reader there is nothing to find.
func named(name string, err error) error {
	code, hint := marchwarden.CodeOf(err), marchwarden.HintOf(err)
	if errors.Is(err, marchwarden.CodeNotFound) {
		code, err = marchwarden.CodeUnavailable, errors.New(err.Error())
	}
	if strings.HasPrefix(err.Error(), name+":") && marchwarden.CodeOf(err) == code {
		return err
	}
	return &marchwarden.Error{Code: code, Message: name, Hint: hint, Err: err}
}

// failures are the errors of several engines.
type failures []error

// Error gives one line.
func (f failures) Error() string {
	s := make([]string, len(f))
	for i, err := range f {
		s[i] = err.Error()
	}
	return strings.Join(s, "; ")
}

// Unwrap exposes every failure.
func (f failures) Unwrap() []error { return f }

// Failed is one error, on one line, for the engines that failed, or nil; errs are theirs by
// place. It names every one of them. Its code is the first one's, and its hint the first
// there is.
func Failed(engines []Engine, errs []error) error {
	var f failures
	hint := ""
	for i, err := range errs {
		if err != nil {
			f = append(f, named(engines[i].Name(), err))
			hint = cmp.Or(hint, marchwarden.HintOf(err))
		}
	}
	if len(f) == 0 {
		return nil
	}
	message := "the search engine failed"
	if len(engines) > 1 {
		message = fmt.Sprintf("%d of %d search engines failed", len(f), len(engines))
	}
	return &marchwarden.Error{Code: marchwarden.CodeOf(f[0]), Message: message, Hint: hint, Err: f}
}
