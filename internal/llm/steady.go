package llm

// This part makes a model that fails now and then one that can be relied on: it repeats failures
// that cost nothing, with pauses that fit into the caller's deadline. A failure that was charged is
// handed up at once: only the holder of the budget may pay for another attempt.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
)

// The calls that are made, the first pause between them, and the part that chance takes away, so that
// callers who failed together do not return together.
const (
	attempts     = 4
	firstPause   = 500 * time.Millisecond
	jitterPart   = 0.25
	longestAsked = 30 * time.Second // a provider that asks for a longer pause is not waited for
	usualPause   = time.Second      // for a provider that refuses and names no time: most limits are per second
)

// SteadyConfig says how to be steady. Now is needed; everything else has a default.
type SteadyConfig struct {
	Now func() time.Time // the clock; it must be set
	// Sleep waits for d, or until ctx ends and then fails. Nil is a real timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter draws from [0, 1). Nil draws at random.
	Jitter func() float64
}

type steady struct {
	Model
	cfg SteadyConfig
}

// NewSteady returns a model that repeats a call to m which failed, if its Usage is zero and its error
// says Retryable() or else has CodeRateLimited or CodeUnavailable. The pauses are 0.5, 1 and
// 2 s, each up to a quarter shorter, or what the error's RetryAfter() asks for. One that would be longer
// than half a minute or last until ctx's deadline is not begun: the failure is returned at once.
//
// It is safe for concurrent use if m is.
func NewSteady(m Model, cfg SteadyConfig) Model {
	if cfg.Sleep == nil {
		cfg.Sleep = httpapi.Sleep
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	return &steady{m, cfg}
}

// Generate makes one call as NewSteady promises.
func (m *steady) Generate(ctx context.Context, c Call) (Reply, error) {
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return Reply{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask %s", m.ID())
		}
		reply, err := m.Model.Generate(ctx, c)
		if err == nil || reply.Usage.Total() > 0 || ctx.Err() != nil || !retryable(err) {
			return reply, err
		}
		if attempt == attempts {
			return reply, marchwarden.Wrap(err, marchwarden.CodeOf(err), "%s failed %d times", m.ID(), attempt)
		}
		wait, err := m.pause(ctx, err, attempt)
		if err != nil {
			return reply, err
		}
		if err := m.cfg.Sleep(ctx, wait); err != nil {
			return reply, marchwarden.Wrap(err, marchwarden.CodeCanceled, "wait to ask %s again", m.ID())
		}
	}
}

// pause is how long to wait after a failure, or the failure itself where that would be too long.
func (m *steady) pause(ctx context.Context, err error, attempt int) (time.Duration, error) {
	wait, asked := retryAfter(err)
	if !asked {
		wait = firstPause << (attempt - 1)
		wait -= time.Duration(jitterPart * m.cfg.Jitter() * float64(wait))
	}
	left := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		left = deadline.Sub(m.cfg.Now())
	}
	switch {
	case asked && wait > longestAsked:
		return 0, m.later(err, wait, "a pause may take "+longestAsked.String())
	case asked && wait >= left:
		return 0, m.later(err, wait, "the deadline is in "+max(left, 0).Round(time.Millisecond).String())
	case wait >= left:
		return 0, marchwarden.Wrap(err, marchwarden.CodeOf(err), "%s failed %d times, and the deadline is in %v", m.ID(), attempt, max(left, 0).Round(time.Millisecond))
	}
	return wait, nil
}

// later is a failure whose remedy is to come back when there is no time for it.
func (m *steady) later(err error, wait time.Duration, because string) error {
	return &marchwarden.Error{
		Code:    marchwarden.CodeOf(err),
		Message: fmt.Sprintf("%s asks to come back in %v, and %s", m.ID(), wait, because),
		Hint:    "try again after " + m.cfg.Now().Add(wait).UTC().Format(time.RFC3339),
		Err:     err,
	}
}

func retryable(err error) bool {
	var own interface{ Retryable() bool }
	if errors.As(err, &own) {
		return own.Retryable()
	}
	code := marchwarden.CodeOf(err)
	return code == marchwarden.CodeRateLimited || code == marchwarden.CodeUnavailable
}

// retryAfter is the wait that a provider asks for; a wait of nothing is none.
func retryAfter(err error) (time.Duration, bool) {
	var own interface {
		RetryAfter() (time.Duration, bool)
	}
	if !errors.As(err, &own) {
		return 0, false
	}
	wait, ok := own.RetryAfter()
	return wait, ok && wait > 0
}

// This part keeps a language model to what its provider allows all who use one engine together:
// requests, tokens and money. Package limit owns the waiting. It goes inside steady, because every
// attempt is a request of its own, outside the tracer, because waiting is not thinking, and below the
// journal, so that a rerun never waits nor counts:
//
//	NewSteady(NewRationed(tracer.Model(anthropic.New(…)), …), …)

// NewRationed returns a model that waits for its share before each call. limits gives what is
// shared by a key, such as "anthropic/requests", "anthropic/tokens" and "anthropic/money".
//
// A call sets aside its worst case, the estimated input and the whole of MaxTokens, and gives back
// what was not used. One that the limits do not allow is not made: CodeExhausted if it can never fit,
// or not today, CodeRateLimited if the provider accepts no calls for longer than a call waits,
// CodeUnavailable if the engine cannot be asked, CodeInvalid if there is a limit of money and the
// model's price is unknown, to prices and to the program's own table. A nil model stays nil.
func NewRationed(m Model, limits func(key string) dispatch.Limiter, now func() time.Time, prices ledger.Prices) Model {
	if m == nil || limits == nil {
		return m
	}
	provider, _, _ := strings.Cut(m.ID(), "/")
	prices, _ = prices.Of(m.ID())
	return &rationed{Model: m, limits: limits, now: now, provider: provider, prices: prices}
}

type rationed struct {
	Model
	limits   func(key string) dispatch.Limiter
	now      func() time.Time
	provider string
	prices   ledger.Prices // of the model alone; none if it is unknown
}

// Generate makes one call as NewRationed promises.
func (m *rationed) Generate(ctx context.Context, c Call) (Reply, error) {
	in := Estimate(c)
	worst := map[string]int{limit.Tokens: in + c.MaxTokens, limit.Money: millionths(m.prices.Worst("", in, c.MaxTokens)), limit.Requests: 1}
	ends := map[string]func(int){}
	settle := func(used map[string]int) {
		for measure, end := range ends {
			end(used[measure])
		}
	}
	requests := m.limits(limit.Key(m.provider, limit.Requests))
	for _, measure := range []string{limit.Tokens, limit.Money, limit.Requests} { // the last, as a slot of a second does not keep
		l := m.limits(limit.Key(m.provider, measure))
		if measure != limit.Requests && !l.Limited() {
			continue
		}
		if measure == limit.Money && len(m.prices) == 0 {
			settle(nil)
			return Reply{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("there is a limit of money for %s, and the price of %s is unknown", m.provider, m.ID()),
				Hint: "set its price (MARCHWARDEN_PRICES), limit its tokens instead, or choose a model that is in the table of prices"}
		}
		end, err := l.Take(ctx, worst[measure])
		if err != nil {
			settle(nil)
			return Reply{}, &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: m.ID() + " was not asked", Hint: marchwarden.HintOf(err), Err: err}
		}
		ends[measure] = end
	}
	ends[limit.Requests](1)                // whatever comes of it
	reply, err := m.Model.Generate(ctx, c) // after a panic nothing is settled, and counts in full
	settle(m.used(c, reply, err, worst))
	if wait, ok := refusedUntil(err); ok {
		requests.Slow(m.now().Add(wait))
	}
	return reply, err
}

func millionths(usd float64) int { return int(math.Ceil(usd * limit.Millionths)) }

// used is what a call used of its worst case, on the high side: all that is not known to be unused.
func (m *rationed) used(c Call, r Reply, err error, worst map[string]int) map[string]int {
	u := r.Usage
	switch {
	case u.Total() == 0 && (err == nil || marchwarden.CodeOf(err) == marchwarden.CodeTimeout || marchwarden.CodeOf(err) == marchwarden.CodeTruncated):
		return worst // it may have been at work
	case u.Total() == 0:
		return nil
	case err != nil:
		u.Out = max(u.Out, c.MaxTokens)
	}
	usd, _ := m.prices.Cost(m.ID(), ledger.Tokens{In: u.In, Out: u.Out, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	return map[string]int{limit.Tokens: u.Total(), limit.Money: millionths(usd)}
}

// refusedUntil reports whether a fault asks all calls to stay away, and for how long. One of a provider that is
// down does so only if it names a time.
func refusedUntil(err error) (time.Duration, bool) {
	code := marchwarden.CodeOf(err)
	if code != marchwarden.CodeRateLimited && code != marchwarden.CodeUnavailable {
		return 0, false
	}
	if wait, ok := retryAfter(err); ok {
		return wait, true
	}
	return usualPause, code == marchwarden.CodeRateLimited
}
