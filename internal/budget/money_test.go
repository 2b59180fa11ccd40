package budget_test

import (
	"math"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
)

// Whatever calls side by side set aside, their money is never more than the cap; what they did not
// need comes back, and the sum does not depend on who ends first.
func TestMoneyIsSetAside(t *testing.T) {
	t.Parallel()
	m := budget.New(marchwarden.Limits{TokenBudget: math.MaxInt / 2, MaxCostUSD: 1}, 0)
	m.Priced(budget.Dollars(15e-6))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 50 {
				r, err := m.ReserveCost(100, budget.Dollars(0.0301))
				if err != nil {
					continue
				}
				r.SettleCost(50, budget.Dollars(0.0007))
			}
		})
	}
	all.Wait()
	for { // on a busy machine they give up before the money is spent
		r, err := m.ReserveCost(100, budget.Dollars(0.0301))
		if err != nil {
			break
		}
		r.SettleCost(50, budget.Dollars(0.0007))
	}
	use := m.Usage()
	if use.CostUSD == nil || *use.CostUSD > 1 || *use.CostUSD < 0.96 || use.OverBudget {
		t.Errorf("%+v", use)
	}
	if calls := math.Round(*use.CostUSD / 0.0007); *use.CostUSD != budget.Dollars(calls*0.0007).USD() {
		t.Errorf("%v is not what %v calls cost", *use.CostUSD, calls)
	}
}

// The room for a model's tokens is what the money is enough for; what is free has all of them. What a
// lack of money leaves no room for is said to be that.
func TestRoomByMoney(t *testing.T) {
	t.Parallel()
	m := budget.New(marchwarden.Limits{TokenBudget: 10_000, MaxCostUSD: 0.03}, 0)
	m.Priced(budget.Dollars(15e-6))
	if m.Room() != 2000 || m.FreeRoom() != 10_000 {
		t.Errorf("room for %d, and %d that are free", m.Room(), m.FreeRoom())
	}
	m.Hold(4000) // as large a part of the money is held
	if m.Room() != 1200 || m.FreeRoom() != 6000 {
		t.Errorf("held: room for %d, and %d that are free", m.Room(), m.FreeRoom())
	}
	m.Exhaust(budget.TokenCap(10_000))
	if _, err := m.ReserveCost(10, budget.Dollars(0.02)); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		t.Error(err)
	}
	if use := m.Usage(); len(use.Exhausted) != 1 || use.Exhausted[0] != budget.MoneyCap(0.03) || budget.LimitOf(use.Exhausted[0]) != budget.Cost {
		t.Errorf("%+v", use)
	}
	r, err := m.ReserveCost(10, budget.Dollars(0.01))
	if err != nil {
		t.Fatal(err)
	}
	r.SettleCost(10, budget.Dollars(0.05))
	if use := m.Usage(); !use.OverBudget || use.Exhausted[0] != "cost cap of $0.03 (the provider counted $0.0200 more)" || m.Room() != 0 {
		t.Errorf("%+v, room for %d", use, m.Room())
	}
	m.Hold(0)
	m.Extend(marchwarden.Limits{MaxCostUSD: 0.03}, 0, 0, 0)
	if m.MoneyRoom() != budget.Dollars(0.03) {
		t.Errorf("extended: %s", m.MoneyRoom())
	}
	m.Unpriced()
	if m.Usage().CostUSD != nil {
		t.Error("something has no price, and the cost is known")
	}
}
