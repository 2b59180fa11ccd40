package llm

import (
	"context"
	"fmt"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Metered is a model under a meter. Every call reserves its worst case first: the
// estimated input and the whole of MaxTokens. What does not fit is refused with
// CodeExhausted before anything is spent; so is what the money is not enough for. A provider that counts more than was
// estimated raises all later estimates of the run. It is safe for concurrent use.
type Metered struct {
	inner Model // recorded: a rerun settles the same usage
	meter *budget.Meter
	note  func(trace.Step) error
	live  func(prompt string) // told before each call

	prices  ledger.Prices // of those that may answer; nil counts no money
	vectors string        // has a price, too, and is no model

	mu    sync.Mutex // guards what follows
	scale float64    // the worst ratio of counted to estimated input so far, at least 1
	who   []string   // has answered, in order, each once
	paid  bool       // a call has cost tokens
}

// NewMetered puts a meter in front of inner. What the calls cost is counted by the prices that the start of a
// run has, but for that of its vectors; without any, nothing is. note records what the trace should say, live
// is told the name of the prompt before each call.
func NewMetered(inner Model, meter *budget.Meter, start *trace.Start, note func(trace.Step) error, live func(prompt string)) *Metered {
	m := &Metered{inner: inner, meter: meter, prices: start.Prices, vectors: start.Vectors, note: note, live: live, scale: 1}
	if m.prices != nil {
		meter.Priced(max(m.worst(1, 0), m.worst(0, 1)))
	}
	return m
}

// worst is what so many tokens cost at most.
func (m *Metered) worst(in, out int) budget.Money {
	return budget.Dollars(m.prices.Worst(m.vectors, in, out))
}

// ID is the inner model's.
func (m *Metered) ID() string { return m.inner.ID() }

// Answered are the models that have answered, in order, each once.
func (m *Metered) Answered() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.who)
}

// Paid reports whether a call has cost tokens.
func (m *Metered) Paid() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.paid
}

// Generate makes one call as GenerateAll does.
func (m *Metered) Generate(ctx context.Context, c Call) (Reply, error) {
	replies, errs := m.GenerateAll(ctx, []Call{c})
	return replies[0], errs[0]
}

// passing are faults that come and go.
var passing = []marchwarden.Code{marchwarden.CodeTruncated, marchwarden.CodeMalformed, marchwarden.CodeUnavailable, marchwarden.CodeTimeout}

// GenerateAll makes calls side by side and gives their outcomes in order. One that broke off after it had cost
// something is repeated once, under a reservation of its own; what cost nothing was repeated below already.
func (m *Metered) GenerateAll(ctx context.Context, calls []Call) ([]Reply, []error) {
	replies, errs := m.once(ctx, calls)
	for i, c := range calls {
		if replies[i].Usage.Total() == 0 || !slices.Contains(passing, marchwarden.CodeOf(errs[i])) {
			continue
		}
		c.Attempt++
		again, failed := m.once(ctx, []Call{c})
		again[0].Usage = again[0].Usage.Add(replies[i].Usage)
		replies[i] = again[0]
		if marchwarden.CodeOf(failed[0]) != marchwarden.CodeExhausted { // without room for another try the fault is what happened
			errs[i] = failed[0]
		}
	}
	return replies, errs
}

// once makes each call once. All are reserved, in order, before the first is made, and settled, in order, when all are
// back: which of them is faster changes nothing.
func (m *Metered) once(ctx context.Context, calls []Call) ([]Reply, []error) {
	replies, errs := make([]Reply, len(calls)), make([]error, len(calls))
	ends := make([]func(Reply, error) (Reply, error), len(calls))
	for i, c := range calls {
		ends[i], errs[i] = m.begin(c)
	}
	var all sync.WaitGroup
	for i, c := range calls {
		if ends[i] != nil {
			m.live(c.Prompt)
			all.Go(func() { replies[i], errs[i] = m.inner.Generate(ctx, c) })
		}
	}
	all.Wait()
	for i, end := range ends {
		if end != nil {
			replies[i], errs[i] = end(replies[i], errs[i])
		}
	}
	return replies, errs
}

// begin reserves what a call may cost. What it returns ends the call with its outcome.
func (m *Metered) begin(c Call) (end func(Reply, error) (Reply, error), err error) {
	if c.MaxTokens <= 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "a call of %s has no bound on its reply", c.Prompt)
	}
	estimate := Estimate(c)
	in := Scaled(m.Scale, estimate)
	worst := m.worst(in, c.MaxTokens)
	res, err := m.meter.ReserveCost(in+c.MaxTokens, worst)
	if err != nil {
		return nil, err
	}
	return func(reply Reply, err error) (Reply, error) {
		used := reply.Usage.Total()
		switch {
		case err != nil && used > 0: // how much of the reply had been written is unknown
			used = max(used, reply.Usage.In+c.MaxTokens)
		case err == nil:
			used = max(used, leastUsed(c, reply))
		}
		res.SettleCost(used, m.cost(c, reply, err, worst))
		m.learn(estimate, used, reply, err)
		if over := used - in - c.MaxTokens; over > 0 {
			if noted := m.note(&trace.Message{Head: trace.Head{Decision: fmt.Sprintf("%s counted %d tokens more than the %d that were set aside", m.ID(), over, in+c.MaxTokens)}}); noted != nil {
				return reply, noted
			}
		}
		return reply, err
	}, nil
}

// cost is what a call has cost, by the provider's count. Under a cap that is not believed where the
// program's own count is larger; nor is it then that a call which broke off has cost nothing.
func (m *Metered) cost(c Call, r Reply, err error, worst budget.Money) budget.Money {
	u, capped := r.Usage, m.meter.Limits().MaxCostUSD > 0
	code := marchwarden.CodeOf(err)
	switch {
	case m.prices == nil:
		return 0
	case u.Total() == 0 && capped && (code == marchwarden.CodeTimeout || code == marchwarden.CodeTruncated):
		return worst
	case u.Total() == 0 && err != nil:
		return 0
	case err != nil:
		u.Out = max(u.Out, c.MaxTokens)
	case capped:
		u.In, u.Out = max(u.In, Estimate(c)), max(u.Out, r.Shown())
	}
	usd, known := m.prices.Cost(r.By(m.ID()), ledger.Tokens{In: u.In, Out: u.Out, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	if !known {
		m.meter.Unpriced()
		return m.worst(u.In, u.Out)
	}
	return budget.Dollars(usd)
}

// leastUsed is what a call took at least, whatever its provider says: a token for every eight bytes.
func leastUsed(c Call, r Reply) int {
	n := len(c.System) + len(c.Shown()) + len(r.Text)
	for _, call := range r.Calls {
		n += len(call.Name) + len(call.Input)
	}
	return n / 8
}

// Scale is the worst ratio of counted to estimated input so far, at least 1:
// what a reasoner must reckon with that wants its calls to fit.
func (m *Metered) Scale() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scale
}

// learn notes what a call has cost, and who gave the reply. It raises the scale when
// the provider counted more than was estimated. A count beyond all reason says nothing about the tokenizer.
func (m *Metered) learn(estimate, used int, r Reply, err error) {
	const most = 4
	m.mu.Lock()
	defer m.mu.Unlock()
	m.paid = m.paid || used > 0
	if ratio := float64(r.Usage.In) / float64(max(estimate, 1)); ratio > m.scale && ratio <= most {
		m.scale = ratio
	}
	if err != nil {
		return
	}
	who := r.By(m.ID())
	if !slices.Contains(m.who, who) {
		m.who = append(m.who, who)
	}
}
