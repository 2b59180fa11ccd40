//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// A caller of a shared server spends what its token is worth in a day, and no more: what it has spent is
// in the ledger, and what calls under way may spend is set aside. Others are not concerned.
func TestADayOfACaller(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	w.env = append(w.env, "MARCHWARDEN_PRICES=openai/gpt-test 3 15")
	home := w.home(t)
	spent, busy, free := w.token(t, home, "spent", "--max-cost-day", "2"), w.token(t, home, "busy", "--max-cost-day", "0.40"), w.token(t, home, "free")
	write(t, filepath.Join(home, ".marchwarden", "costs.jsonl"), fmt.Sprintf(`{"time":%q,"caller":"token:spent","cost_usd":1.99}`+"\n", time.Now().UTC().Format(time.RFC3339)))
	s := w.serve(t, home, append(slices.Clone(servings["web"]), "--rate", "10000")...)
	ask := map[string]any{"question": webtest.Startups, "depth": "shallow"}

	_, err := newHost(t, s.url, spent, eraModern).research(t.Context(), ask)
	tomorrow := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1).Format(time.RFC3339)
	if err == nil || !strings.Contains(err.Error(), "$2 that token:spent may spend in a day") || !strings.Contains(err.Error(), tomorrow) {
		t.Errorf("all is spent: %v", err)
	}
	if n := len(w.models.Turns()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}

	// A call under way has set aside what it may cost: here all of the day.
	held := w.hold(1)
	c := newHost(t, s.url, busy, eraModern)
	c.tasks = true
	if _, err := c.do(t.Context(), "tools/call", map[string]any{"name": "research", "arguments": map[string]any{"question": webtest.Startups, "constraints": map[string]any{"max_cost_usd": 5}}}); err != nil {
		t.Fatal(err)
	}
	arrives(t, held)
	one := newHost(t, s.url, busy, eraModern)
	if _, err := one.research(t.Context(), ask); err == nil || !strings.Contains(err.Error(), "set aside for calls under way") {
		t.Errorf("the rest is set aside: %v", err)
	}
	res, err := newHost(t, s.url, free, eraModern).research(t.Context(), ask)
	if err != nil || res.CostMetadata.CostUSD == nil || *res.CostMetadata.CostUSD <= 0 {
		t.Errorf("another caller: %+v, %v", res, err)
	}
	w.hold(0)
	eventually(t, "a call ended", func() bool {
		res, err = one.research(t.Context(), ask)
		return err == nil
	})
	if usd := res.CostMetadata.CostUSD; usd == nil || *usd <= 0 || *usd > 0.10 {
		t.Errorf("%+v", res.CostMetadata)
	}
	out, err := w.spec(home, "costs", "--by", "caller").run(0)
	if err != nil || !strings.Contains(string(out.stdout), "token:busy") || !strings.Contains(string(out.stdout), "token:free") {
		t.Errorf("%v: %s", err, out.stdout)
	}
}
