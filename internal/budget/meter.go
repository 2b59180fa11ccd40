// Package budget enforces the caps of one research call: iterations, tokens,
// sources, money and wall time. Spending is reserve, then settle: a reservation that
// does not fit is refused before anything is spent, so that the tokens used
// exceed the budget only where a call uses more than was set aside for it; then
// nothing more is granted, and the usage says so. Prices and ledgers are package
// ledger's work.
package budget

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Meter counts what a run has used against its limits. It is safe for
// concurrent use.
type Meter struct {
	mu         sync.Mutex // guards what follows
	limits     marchwarden.Limits
	wall       time.Duration
	spent      int
	reserved   int
	held       int // kept back for synthesis
	iterations int
	sources    int
	exhausted  []string // what ran out, in order, each once
	over       int      // tokens used beyond the budget before it was extended

	counted                   bool  // there are prices
	unpriced                  bool  // something was used whose price is not known
	worst                     Money // of one token
	spentMoney, reservedMoney Money
	overMoney                 Money // spent beyond the cap before it was extended
}

// New makes a meter. A wall time of zero is no limit.
func New(l marchwarden.Limits, wall time.Duration) *Meter {
	return &Meter{limits: l, wall: wall}
}

// Extend lets a run that had ended go on: more is added to its limits, wall to its
// time, and what it had run out of is forgotten. spent and cost are what it had used at
// its end, which may be more than the meter has seen of it. Where that was over the
// budget, all of more is there to be used.
func (m *Meter) Extend(more marchwarden.Limits, wall time.Duration, spent int, cost Money) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent, m.spentMoney = max(m.spent, spent), max(m.spentMoney, cost)
	m.over, m.overMoney = m.overLocked(), m.overspentLocked()
	m.limits = m.limits.Plus(more)
	if m.wall > 0 {
		m.wall += wall
	}
	m.exhausted = nil
}

// Wall is the wall time as it is now; zero is no limit.
func (m *Meter) Wall() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall
}

// Limits are the limits as they are now.
func (m *Meter) Limits() marchwarden.Limits {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limits
}

// Hold keeps tokens back from ordinary reservations, for the synthesis that
// must always be possible. A later call replaces an earlier one; Hold(0)
// releases everything for the synthesis itself. At most half of the budget can
// be held, so that gathering is always possible too.
func (m *Meter) Hold(tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = max(0, min(tokens, m.limits.TokenBudget/2))
}

// Reservation is what is set aside for one call. Settle it exactly once.
type Reservation struct {
	m       *Meter
	tokens  int
	money   Money
	settled bool
}

// Reserve sets tokens aside, or fails with CodeExhausted and sets nothing aside.
func (m *Meter) Reserve(tokens int) (*Reservation, error) { return m.ReserveCost(tokens, 0) }

// ReserveCost is Reserve for what also costs money, at most so much. What was short is remembered.
func (m *Meter) ReserveCost(tokens int, cost Money) (*Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	short, err := "", error(nil)
	switch room, left := m.tokensLocked(), m.moneyLocked(); {
	case cost < 0 || tokens < 0:
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "negative reservation of %d tokens and %s", tokens, cost)
	case tokens > room:
		short, err = m.tokenCap(), marchwarden.Errorf(marchwarden.CodeExhausted, "%d tokens needed and %d left of a budget of %d", tokens, room, m.limits.TokenBudget)
	case cost > left:
		short, err = m.moneyCap(), marchwarden.Errorf(marchwarden.CodeExhausted, "%s needed and %s left of a cap of $%v", cost, left, m.limits.MaxCostUSD)
	}
	if err != nil {
		m.exhaustLocked(short)
		return nil, err
	}
	m.reserved, m.reservedMoney = m.reserved+tokens, m.reservedMoney+cost
	return &Reservation{m: m, tokens: tokens, money: cost}, nil
}

// Settle ends the reservation with what was really used. The caller should bound the call so that
// it uses no more than that. If it does all the same, the excess is counted against what is not
// reserved, held tokens included; where that does not cover it, it is remembered as exhaustion. A
// second Settle does nothing. A reservation that is never settled stays set aside, and is not used.
func (r *Reservation) Settle(used int) { r.SettleCost(used, 0) }

// SettleCost is Settle for what has cost money.
func (r *Reservation) SettleCost(used int, cost Money) {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.settled {
		return
	}
	r.settled = true
	m.reserved -= r.tokens
	used = max(0, used)
	if used > m.freeLocked() {
		m.exhaustLocked(m.tokenCap())
	}
	m.spent = min(m.spent, math.MaxInt-used) + used
	cost = max(0, cost)
	m.reservedMoney -= r.money
	if m.limits.MaxCostUSD > 0 && cost > m.leftLocked() {
		m.exhaustLocked(m.moneyCap())
	}
	m.spentMoney = min(m.spentMoney, math.MaxInt64-cost) + cost
}

// Room is how many tokens an ordinary reservation could get now, and the money is enough for.
func (m *Meter) Room() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(m.tokensLocked(), m.affordLocked())
}

func (m *Meter) tokensLocked() int { return max(0, m.freeLocked()-m.held) }

// freeLocked is what is neither used nor reserved; negative when too much was used.
func (m *Meter) freeLocked() int { return m.limits.TokenBudget - (m.spent - m.over) - m.reserved }

// overLocked is how many tokens were used beyond the budget.
func (m *Meter) overLocked() int { return max(0, m.spent-m.limits.TokenBudget) }

// Iterate starts the next iteration and returns its number, or fails with
// CodeExhausted when the cap is reached.
func (m *Meter) Iterate() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.iterations >= m.limits.MaxIterations {
		m.exhaustLocked(IterationCap(m.limits.MaxIterations))
		return 0, marchwarden.Errorf(marchwarden.CodeExhausted, "all %d iterations are used", m.limits.MaxIterations)
	}
	m.iterations++
	return m.iterations, nil
}

// TakeSources asks for n sources and returns how many may be fetched. Fewer than
// n means that the cap ended the work, and is remembered as exhaustion. Asking
// for none or fewer grants none.
func (m *Meter) TakeSources(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = max(0, n)
	granted := min(n, m.limits.MaxSources-m.sources)
	if granted < n {
		m.exhaustLocked(SourceCap(m.limits.MaxSources))
	}
	m.sources += granted
	return granted
}

// ReturnSources gives back sources that were taken and not read.
func (m *Meter) ReturnSources(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sources = max(0, m.sources-max(0, n))
}

// Elapsed tells the meter how long the run has taken, and fails with
// CodeExhausted when the wall time is over.
func (m *Meter) Elapsed(d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wall > 0 && d >= m.wall {
		m.exhaustLocked(WallCap(m.wall))
		return marchwarden.Errorf(marchwarden.CodeExhausted, "the wall time of %s is over", m.wall)
	}
	return nil
}

// Exhaust records that something else ended the work early, such as the caller. Where the
// room for tokens is small because the money is, that is what ran out.
func (m *Meter) Exhaust(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what == m.tokenCap() && m.affordLocked() < m.tokensLocked() {
		what = m.moneyCap()
	}
	m.exhaustLocked(what)
}

func (m *Meter) tokenCap() string { return TokenCap(m.limits.TokenBudget) }

func (m *Meter) exhaustLocked(what string) {
	if !slices.Contains(m.exhausted, what) {
		m.exhausted = append(m.exhausted, what)
	}
}

// Usage is what a run has used so far.
type Usage struct {
	Tokens     int
	Iterations int
	Sources    int
	OverBudget bool     // more tokens or money were used than there were
	CostUSD    *float64 // nil where a price is unknown
	Exhausted  []string // what ran out; empty when the budget sufficed
}

// Usage reports what has been used. Open reservations are not counted. Where
// calls used more tokens than the budget had, Exhausted says how many.
func (m *Meter) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	over, overspent := m.overLocked(), m.overspentLocked()
	u := Usage{Tokens: m.spent, Iterations: m.iterations, Sources: m.sources, OverBudget: over > 0 || overspent > 0, Exhausted: slices.Clone(m.exhausted)}
	if i := slices.Index(u.Exhausted, m.tokenCap()); i >= 0 && over > 0 {
		u.Exhausted[i] += fmt.Sprintf(" (the provider counted %d more)", over)
	}
	if i := slices.Index(u.Exhausted, m.moneyCap()); i >= 0 && overspent > 0 {
		u.Exhausted[i] += fmt.Sprintf(" (the provider counted %s more)", overspent)
	}
	if m.counted && !m.unpriced {
		u.CostUSD = new(m.spentMoney.USD())
	}
	return u
}

// What can run out, in the words that results and traces have for it. LimitOf reads
// them back, those of older traces included.

// TokenCap names a budget of n tokens.
func TokenCap(n int) string { return fmt.Sprintf("token budget of %d", n) }

// IterationCap names a cap of n iterations.
func IterationCap(n int) string { return fmt.Sprintf("cap of %d iterations", n) }

// SourceCap names a cap of n documents.
func SourceCap(n int) string { return fmt.Sprintf("cap of %d sources", n) }

// TryCap names the cap of n tries to read documents, which comes of the cap of
// documents.
func TryCap(n int) string { return fmt.Sprintf("cap of %d tries to read documents", n) }

// WallCap names a wall time.
func WallCap(d time.Duration) string { return fmt.Sprintf("wall time of %s", d) }

// TimeFor names the part of the wall time that something may take.
func TimeFor(what string) string { return "time for " + what }

// Limit is one of the limits of a run.
type Limit string

// The limits.
const (
	Tokens     Limit = "tokens"
	Iterations Limit = "iterations"
	Sources    Limit = "sources"
	Cost       Limit = "cost"
	Wall       Limit = "wall"
)

// LimitOf is the limit of which there would have to be more for what ran out; "" where
// it is none of them, such as the patience of the caller.
func LimitOf(what string) Limit {
	has := func(begin, end string) bool { return strings.HasPrefix(what, begin) && strings.HasSuffix(what, end) }
	switch {
	case has("token budget of ", ""):
		return Tokens
	case has("cap of ", " iterations"):
		return Iterations
	case has("cap of ", " sources"), has("cap of ", " tries to read documents"):
		return Sources
	case has("cost cap of $", ""):
		return Cost
	case has("wall time of ", ""), has("time for ", ""):
		return Wall
	}
	return ""
}

// Money is billionths of a US dollar: its sums are exact, in whatever order calls end.
type Money int64

// Dollars is the nearest Money; what a number cannot hold is the most that it can.
func Dollars(usd float64) Money { return Money(min(math.Round(usd*1e9), 1<<62)) }

// USD is the amount in dollars.
func (m Money) USD() float64 { return float64(m) / 1e9 }

// String is the amount for people, to four digits after the point at least.
func (m Money) String() string {
	if m > 0 && m < Dollars(0.0001) {
		return fmt.Sprintf("$%.9f", m.USD())
	}
	return fmt.Sprintf("$%.4f", m.USD())
}

// MoneyCap names a cap of so many dollars.
func MoneyCap(usd float64) string { return fmt.Sprintf("cost cap of $%v", usd) }

// Priced says that what the run costs is counted, and what one token of its model costs
// at most. Without it the cost is unknown.
func (m *Meter) Priced(worst Money) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted, m.worst = true, max(m.worst, worst)
}

// Unpriced says that something was used whose price is not known.
func (m *Meter) Unpriced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unpriced = true
}

// MoneyRoom is what an ordinary reservation could get now; without a cap it is no number
// that is ever reached.
func (m *Meter) MoneyRoom() Money {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moneyLocked()
}

// FreeRoom is Room for what costs no money.
func (m *Meter) FreeRoom() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokensLocked()
}

// moneyLocked keeps as large a part of the money back as Hold keeps of the tokens.
func (m *Meter) moneyLocked() Money {
	if m.limits.MaxCostUSD <= 0 {
		return math.MaxInt64
	}
	held := m.limits.MaxCostUSD * float64(m.held) / float64(max(1, m.limits.TokenBudget))
	return max(0, m.leftLocked()-Dollars(held))
}

// leftLocked is the money that is neither spent nor reserved; negative when too much was spent.
func (m *Meter) leftLocked() Money {
	return Dollars(m.limits.MaxCostUSD) - (m.spentMoney - m.overMoney) - m.reservedMoney
}

// affordLocked is how many tokens the money is enough for, whatever they are used for.
func (m *Meter) affordLocked() int {
	if m.limits.MaxCostUSD <= 0 || m.worst == 0 {
		return math.MaxInt
	}
	return int(m.moneyLocked() / m.worst)
}

// overspentLocked is how much was spent beyond the cap.
func (m *Meter) overspentLocked() Money {
	if m.limits.MaxCostUSD <= 0 {
		return 0
	}
	return max(0, m.spentMoney-Dollars(m.limits.MaxCostUSD))
}

func (m *Meter) moneyCap() string { return MoneyCap(m.limits.MaxCostUSD) }
