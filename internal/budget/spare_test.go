package budget_test

import (
	"errors"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
)

// What a run can do without gets half of the room, without what is held and reserved,
// and is no exhaustion when it does not fit.
func TestSpare(t *testing.T) {
	t.Parallel()
	m := budget.New(marchwarden.Limits{TokenBudget: 1000}, 0)
	m.Hold(400)
	if _, err := m.Reserve(100); err != nil {
		t.Fatal(err)
	}
	for _, tokens := range []int{251, 1 << 40, -1} {
		if _, err := m.Spare(tokens, 0); !errors.Is(err, marchwarden.CodeExhausted) {
			t.Errorf("%d: %v", tokens, err)
		}
	}
	r, err := m.Spare(250, 0)
	if err != nil || m.Room() != 250 {
		t.Fatalf("%v, room for %d", err, m.Room())
	}
	r.Settle(300) // more than it said: paid all the same
	if use := m.Usage(); use.Tokens != 300 || len(use.Exhausted) != 0 || m.Room() != 200 {
		t.Errorf("%+v, room for %d", use, m.Room())
	}
	if _, err := m.Spare(0, 0); err != nil {
		t.Error(err)
	}
}
