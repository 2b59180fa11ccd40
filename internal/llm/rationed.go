package llm

// This part keeps a language model to what its provider allows all who use one engine together:
// requests, tokens and money. Package limit owns the waiting. It goes inside steady, because every
// attempt is a request of its own, outside the tracer, because waiting is not thinking, and below the
// journal, so that a rerun never waits nor counts:
//
//	NewSteady(NewRationed(tracer.Model(anthropic.New(…)), …), …)

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
)

// usualPause is for how long a provider is left alone that refuses and names no time: most limits are per second.
const usualPause = time.Second

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
	return &rationed{Model: m, limits: limits, now: now, provider: provider, prices: prices}
}

type rationed struct {
	Model
	limits   func(key string) dispatch.Limiter
	now      func() time.Time
	provider string
	prices   ledger.Prices
}

// Generate makes one call as New promises.
func (m *rationed) Generate(ctx context.Context, c Call) (Reply, error) {
	share, err := m.setAside(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	requests := m.limit(limit.Requests)
	// Last, as a slot of a second does not keep.
	asked, err := requests.Take(ctx, 1)
	if err != nil {
		share.settle(0, 0)
		return Reply{}, m.refused(err)
	}
	asked(1) // whatever comes of it
	done := false
	defer func() {
		if !done { // it panicked: what it used is unknown
			share.settle(share.tokens, share.money)
		}
	}()
	reply, err := m.Model.Generate(ctx, c)
	done = true
	share.settle(m.used(c, reply, err, share))
	if wait, ok := refusedUntil(err); ok {
		requests.Slow(m.now().Add(wait))
	}
	return reply, err
}

func (m *rationed) limit(measure string) dispatch.Limiter {
	return m.limits(limit.Key(m.provider, measure))
}

type share struct {
	tokens, money             int
	settleTokens, settleMoney func(used int)
}

func (s *share) settle(tokens, money int) {
	s.settleTokens(tokens)
	s.settleMoney(money)
}

// setAside waits until the worst case of a call fits.
func (m *rationed) setAside(ctx context.Context, c Call) (*share, error) {
	free := func(int) {}
	s := &share{settleTokens: free, settleMoney: free}
	if l := m.limit(limit.Tokens); l.Limited() {
		s.tokens = Estimate(c) + c.MaxTokens
		var err error
		if s.settleTokens, err = l.Take(ctx, s.tokens); err != nil {
			return nil, m.refused(err)
		}
	}
	l := m.limit(limit.Money)
	if !l.Limited() {
		return s, nil
	}
	in := Estimate(c)
	worst, known := m.cost(ledger.Tokens{In: in, Out: c.MaxTokens})
	if cached, _ := m.cost(ledger.Tokens{In: in, Out: c.MaxTokens, CacheWrite: in}); cached > worst {
		worst = cached
	}
	if !known {
		s.settle(0, 0)
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("there is a limit of money for %s, and the price of %s is unknown", m.provider, m.ID()),
			Hint: "set its price (MARCHWARDEN_PRICES), limit its tokens instead, or choose a model that is in the table of prices"}
	}
	settle, err := l.Take(ctx, worst)
	if err != nil {
		s.settle(0, 0)
		return nil, m.refused(err)
	}
	s.money, s.settleMoney = worst, settle
	return s, nil
}

// cost is what tokens cost, in millionths of a dollar, rounded up.
func (m *rationed) cost(t ledger.Tokens) (millionths int, known bool) {
	usd, known := m.prices.Estimate(m.ID(), t)
	return int(math.Ceil(usd * limit.Millionths)), known
}

// used is what a call used of its share, on the high side: all that is not known to be unused.
func (m *rationed) used(c Call, r Reply, err error, s *share) (tokens, money int) {
	u := r.Usage
	switch {
	case u.Total() == 0 && (err == nil || marchwarden.CodeOf(err) == marchwarden.CodeTimeout || marchwarden.CodeOf(err) == marchwarden.CodeTruncated):
		return s.tokens, s.money // it may have been at work
	case u.Total() == 0:
		return 0, 0
	case err != nil:
		u.Out = max(u.Out, c.MaxTokens)
	}
	money, _ = m.cost(ledger.Tokens{In: u.In, Out: u.Out, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	return u.Total(), money
}

func (m *rationed) refused(err error) error {
	return &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: m.ID() + " was not asked", Hint: marchwarden.HintOf(err), Err: err}
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
