package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// How long an engine of a chain is left alone: one that refuses the key, and one
// that failed this many times in a row for any other reason.
const (
	deniedPause  = 10 * time.Minute
	failurePause = time.Minute
	failureLimit = 3
)

// Chain is an engine that asks the first of engines and, when that fails or finds
// nothing, the next. Its name is theirs joined by "+". now is the clock that
// pauses are measured by.
//
// The hits of an engine that stood in come with an error that names every engine
// that failed or was skipped, and why; the error's code is the first one's, and
// never CodeNotFound. If no engine answered there are no hits. An engine that
// answered without a hit is no failure. When ctx ends no further engine is asked
// and the error is CodeCanceled.
//
// An engine that failed with CodeDenied is skipped for ten minutes, one that
// failed three times in a row for one. Hits are each once by canonical URL, and
// the filter and the date range hold for every one of them.
func Chain(engines []Engine, now func() time.Time) Engine {
	c := &chain{now: now}
	for _, e := range engines {
		c.links = append(c.links, &link{engine: e})
	}
	return c
}

type chain struct {
	links []*link
	now   func() time.Time
}

// Name implements Engine.
func (c *chain) Name() string {
	names := make([]string, len(c.links))
	for i, l := range c.links {
		names[i] = l.engine.Name()
	}
	return strings.Join(names, "+")
}

// Search implements Engine.
func (c *chain) Search(ctx context.Context, q Query) ([]Hit, error) {
	var hits []Hit
	var failed failures
	sources := 0
	for _, l := range c.links {
		if ctx.Err() != nil {
			return nil, canceled(ctx, c.Name())
		}
		if err := l.paused(c.now()); err != nil {
			failed = append(failed, err)
			continue
		}
		found, err := l.engine.Search(ctx, q)
		if err != nil && ctx.Err() != nil {
			return nil, canceled(ctx, c.Name())
		}
		err = l.settle(err, c.now())
		if err != nil {
			failed = append(failed, err)
		}
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
	if len(c.links) == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "no search engine is configured")
	}
	return hits, failed.err(len(c.links))
}

func canceled(ctx context.Context, name string) error {
	return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s: the search was stopped", name)
}

// link is one engine of a chain and its record.
type link struct {
	engine Engine

	mu     sync.Mutex
	inARow int       // failures since the last answer; guarded by mu
	until  time.Time // skipped before this moment; guarded by mu
	last   error     // the failure that led to it; guarded by mu
}

// paused returns why the engine is not asked at this moment, or nil.
func (l *link) paused(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.until) {
		return nil
	}
	left := l.until.Sub(now).Round(time.Second)
	return &marchwarden.Error{Code: marchwarden.CodeOf(l.last), Hint: marchwarden.HintOf(l.last),
		Message: fmt.Sprintf("skipped for another %v", left), Err: l.last}
}

// settle records how a search ended and returns its failure with the engine's
// name, or nil.
func (l *link) settle(err error, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.inARow, l.until, l.last = 0, time.Time{}, nil
		return nil
	}
	err = named(l.engine.Name(), err)
	l.inARow++
	switch {
	case marchwarden.CodeOf(err) == marchwarden.CodeDenied:
		l.until, l.last = now.Add(deniedPause), err
	case l.inARow >= failureLimit:
		l.until, l.last = now.Add(failurePause), err
	}
	return err
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

// failures are the engines that gave no answer, in the order of the chain.
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

// err is the error of a chain of n engines, or nil.
func (f failures) err(n int) error {
	if len(f) == 0 {
		return nil
	}
	e := &marchwarden.Error{Code: marchwarden.CodeOf(f[0]), Message: fmt.Sprintf("%d of %d search engines failed", len(f), n), Err: f}
	if n == 1 {
		e.Message = "the search engine failed"
	}
	for _, err := range f {
		if e.Hint = marchwarden.HintOf(err); e.Hint != "" {
			break
		}
	}
	return e
}
