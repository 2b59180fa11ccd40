package llm

// This part makes a model that fails now and then one that can be relied on: it repeats failures
// that cost nothing, with pauses that fit into the caller's deadline. A failure that was charged is
// handed up at once: only the holder of the budget may pay for another attempt.

import (
	"cmp"
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

// attempts bounds the calls to the model.
const attempts = 4

// The first pause between attempts, the longest, and the part that chance takes away, so that callers who failed
// together do not return together.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 8 * time.Second
	jitterPart   = 0.25
)

// SteadyConfig says how to be steady. Now is needed; everything else has a default.
type SteadyConfig struct {
	Now func() time.Time // the clock; it must be set
	// Sleep waits for d, or until ctx ends and then fails. Nil is a real timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter draws from [0, 1). Nil draws at random.
	Jitter func() float64
	// MaxWait bounds one pause; 0 means 30 s. A provider that asks for more is not waited for.
	MaxWait time.Duration
}

type steady struct {
	Model
	cfg SteadyConfig
}

// NewSteady returns a model that repeats a call to m which failed, if its Usage is zero and its error
// says Retryable() or else has CodeRateLimited or CodeUnavailable. The pauses are 0.5, 1, 2, 4 and then
// 8 s, each up to a quarter shorter, or what the error's RetryAfter() asks for. One that would be longer
// than MaxWait or last until ctx's deadline is not begun: the failure is returned at once.
//
// The Reply's Usage is that of all calls together, on errors too. It is safe for concurrent use if m is.
func NewSteady(m Model, cfg SteadyConfig) Model {
	if cfg.Sleep == nil {
		cfg.Sleep = httpapi.Sleep
	}
	if cfg.Jitter == nil {
		cfg.Jitter = rand.Float64
	}
	cfg.MaxWait = cmp.Or(cfg.MaxWait, 30*time.Second)
	return &steady{m, cfg}
}

// left is the time until ctx's deadline, without end if it has none.
func (m *steady) left(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return deadline.Sub(m.cfg.Now())
}

// Generate makes one call as NewSteady promises.
func (m *steady) Generate(ctx context.Context, c Call) (Reply, error) {
	var usage Usage
	for attempt := 1; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return Reply{Usage: usage}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask %s", m.ID())
		}
		reply, err := m.Model.Generate(ctx, c)
		free := reply.Usage.Total() == 0
		reply.Usage = reply.Usage.Add(usage)
		usage = reply.Usage
		if err == nil || !free || ctx.Err() != nil || !retryable(err) {
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
		wait = backoff(attempt, m.cfg.Jitter())
	}
	left := m.left(ctx)
	switch {
	case asked && wait > m.cfg.MaxWait:
		return 0, m.later(err, wait, "a pause may take "+m.cfg.MaxWait.String())
	case asked && wait >= left:
		return 0, m.later(err, wait, "the deadline is in "+max(left, 0).Round(time.Millisecond).String())
	case wait >= left:
		return 0, marchwarden.Wrap(err, marchwarden.CodeOf(err), "%s failed %d times, and the deadline is in %v", m.ID(), attempt, max(left, 0).Round(time.Millisecond))
	}
	return min(wait, m.cfg.MaxWait), nil
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

// backoff is the pause after a number of failures.
func backoff(attempt int, jitter float64) time.Duration {
	d := longestPause
	if attempt < 5 { // the fifth pause has reached the longest, and a shift has a limit
		d = firstPause << (attempt - 1)
	}
	return d - time.Duration(jitterPart*jitter*float64(d))
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
	asked, err := requests.Take(ctx, 1) // last, as a slot of a second does not keep
	if err != nil {
		share.settle(0, 0)
		return Reply{}, m.refused(err)
	}
	asked(1)                               // whatever comes of it
	reply, err := m.Model.Generate(ctx, c) // after a panic the share is not settled, and counts in full
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
