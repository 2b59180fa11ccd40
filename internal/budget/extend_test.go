package budget_test

import (
	"math"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
)

// More than fits into a number is as many as there can be, and never less than before.
func TestMoreThanANumberHolds(t *testing.T) {
	t.Parallel()
	most := marchwarden.Limits{TokenBudget: math.MaxInt, MaxIterations: math.MaxInt, MaxSources: math.MaxInt}
	for _, had := range []marchwarden.Limits{{}, {TokenBudget: 1000, MaxIterations: 1, MaxSources: 1}, most} {
		if got := had.Plus(most); got != most {
			t.Errorf("%+v and the most there can be are %+v", had, got)
		}
		m := budget.New(had, time.Minute)
		for range 3 {
			m.Extend(most, time.Minute, 700, 0)
		}
		if got := m.Limits(); got != most {
			t.Errorf("%+v extended by the most there can be is %+v", had, got)
		}
		if use := m.Usage(); use.Tokens != 700 || m.Room() != math.MaxInt-700 {
			t.Errorf("%+v, room for %d", use, m.Room())
		}
		if m.Wall() != 4*time.Minute {
			t.Errorf("wall %v", m.Wall())
		}
	}
	less := marchwarden.Limits{TokenBudget: 5, MaxIterations: 2, MaxSources: 3}
	if got := less.Plus(marchwarden.Limits{TokenBudget: 1, MaxIterations: 1, MaxSources: 1}); got != (marchwarden.Limits{TokenBudget: 6, MaxIterations: 3, MaxSources: 4}) {
		t.Errorf("%+v", got)
	}
}

// What a run had used at its end counts when it goes on, and what it ran out of is
// forgotten.
func TestWhatWasSpentBeforeAnExtensionCounts(t *testing.T) {
	t.Parallel()
	m := budget.New(marchwarden.Limits{TokenBudget: 1000, MaxIterations: 1, MaxSources: 1}, 0)
	r, err := m.Reserve(400)
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(400)
	m.Exhaust("a cap")
	m.Extend(marchwarden.Limits{TokenBudget: 500}, time.Hour, 900, 0)
	if use := m.Usage(); use.Tokens != 900 || len(use.Exhausted) != 0 || m.Room() != 600 {
		t.Errorf("%+v, room for %d", use, m.Room())
	}
	if m.Wall() != 0 {
		t.Errorf("a run without a limit has got one: %v", m.Wall())
	}
	m.Extend(marchwarden.Limits{}, 0, 300, 0)
	if use := m.Usage(); use.Tokens != 900 {
		t.Errorf("what is known to be spent was forgotten: %+v", use)
	}
}

// A run that used more than its budget says how much, and all of what it is given later
// is there to be used. What is never settled is set aside, and not used.
func TestOverBudget(t *testing.T) {
	t.Parallel()
	m := budget.New(marchwarden.Limits{TokenBudget: 5000}, 0)
	r, err := m.Reserve(3000)
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(105_352)
	if use := m.Usage(); use.Tokens != 105_352 || !use.OverBudget || len(use.Exhausted) != 1 || use.Exhausted[0] != "token budget of 5000 (the provider counted 100352 more)" || m.Room() != 0 {
		t.Errorf("%+v, room for %d", use, m.Room())
	}
	m.Extend(marchwarden.Limits{TokenBudget: 2000}, 0, 105_352, 0)
	if use := m.Usage(); use.Tokens != 105_352 || !use.OverBudget || len(use.Exhausted) != 0 || m.Room() != 2000 {
		t.Errorf("extended: %+v, room for %d", use, m.Room())
	}
	if r, err = m.Reserve(1500); err != nil {
		t.Fatal(err)
	}
	if use := m.Usage(); use.Tokens != 105_352 || m.Room() != 500 {
		t.Errorf("set aside: %+v, room for %d", use, m.Room())
	}
	r.Settle(math.MaxInt)
	if use := m.Usage(); use.Tokens != math.MaxInt || m.Room() != 0 {
		t.Errorf("more than a number holds: %+v, room for %d", use, m.Room())
	}
}
