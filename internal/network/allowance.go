package network

import (
	"context"
	"fmt"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// allowances are what calls under way have set aside of what their callers may spend in a day.
type allowances struct {
	mu   sync.Mutex
	open map[string]float64 // USD by caller
}

// quarter is the part of a day's money that a call gets which names no cap of its own, so that
// a caller can ask several questions at once.
const quarter = 0.25

// allow gives a call its part of what its caller may spend in a day, as the cap of its cost. What
// is spent is in the ledger, and what others under way may spend is set aside until they call done.
// A run that is resumed has its cap. With nothing left the call is refused: CodeExhausted.
func (h *Host) allow(ctx context.Context, c *settings.Settings, req *marchwarden.Request) (done func(), err error) {
	who := access.From(ctx)
	if who.MaxCostDay <= 0 {
		return func() {}, nil
	}
	h.allowed.mu.Lock()
	defer h.allowed.mu.Unlock()
	today := h.Now().UTC().Truncate(24 * time.Hour)
	entries, _, err := ledger.Read(c.Text(settings.Ledger))
	if err != nil {
		return nil, err
	}
	left := who.MaxCostDay - ledger.SpentBy(entries, who.ID, today) - h.allowed.open[who.ID]
	if left < 1e-9 {
		return nil, &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: fmt.Sprintf("the $%v that %s may spend in a day are spent, or set aside for calls under way", who.MaxCostDay, who.ID),
			Hint: "there is more from " + today.AddDate(0, 0, 1).Format(time.RFC3339) + "; a call under way returns what it does not need"}
	}
	share := min(left, who.MaxCostDay*quarter)
	if req.Resume == "" {
		var cons marchwarden.Constraints
		if req.Constraints != nil {
			cons = *req.Constraints
		}
		if cons.MaxCostUSD != nil {
			share = min(left, *cons.MaxCostUSD)
		}
		cons.MaxCostUSD, req.Constraints = &share, &cons
	}
	if h.allowed.open == nil {
		h.allowed.open = map[string]float64{}
	}
	h.allowed.open[who.ID] += share
	return func() {
		h.allowed.mu.Lock()
		defer h.allowed.mu.Unlock()
		if h.allowed.open[who.ID] -= share; h.allowed.open[who.ID] < 1e-9 {
			delete(h.allowed.open, who.ID)
		}
	}, nil
}
