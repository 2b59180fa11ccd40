package budget

import (
	"fmt"
	"math"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

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

// purse is what a run costs, and what of it is known.
type purse struct {
	counted         bool  // there are prices
	unknown         bool  // something was used whose price is not known
	worst           Money // of one token
	spent, reserved Money
	over            Money // spent beyond the cap before it was extended
}

// Priced says that what the run costs is counted, and what one token of its model costs
// at most. Without it the cost is unknown.
func (m *Meter) Priced(worst Money) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purse.counted, m.purse.worst = true, max(m.purse.worst, worst)
}

// Unpriced says that something was used whose price is not known.
func (m *Meter) Unpriced() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purse.unknown = true
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
	return Dollars(m.limits.MaxCostUSD) - (m.purse.spent - m.purse.over) - m.purse.reserved
}

// affordLocked is how many tokens the money is enough for, whatever they are used for.
func (m *Meter) affordLocked() int {
	if m.limits.MaxCostUSD <= 0 || m.purse.worst == 0 {
		return math.MaxInt
	}
	return int(m.moneyLocked() / m.purse.worst)
}

// overspentLocked is how much was spent beyond the cap.
func (m *Meter) overspentLocked() Money {
	if m.limits.MaxCostUSD <= 0 {
		return 0
	}
	return max(0, m.purse.spent-Dollars(m.limits.MaxCostUSD))
}

// takeLocked sets tokens and money aside, if room is enough for the tokens and there is
// so much money. What was short is remembered unless it can be done without.
func (m *Meter) takeLocked(tokens, room int, cost Money) (*Reservation, error) {
	short, err := "", error(nil)
	switch left := m.moneyLocked(); {
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
	m.reserved += tokens
	if m.limits.MaxCostUSD > 0 {
		m.purse.reserved += cost
	} else {
		cost = 0
	}
	return &Reservation{m: m, tokens: tokens, money: cost}, nil
}

func (m *Meter) moneyCap() string { return MoneyCap(m.limits.MaxCostUSD) }
