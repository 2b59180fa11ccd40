package ledger

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed prices.json
var pricesJSON []byte

// prices is the table as it is written in prices.json. Prices are USD per
// million tokens.
type prices struct {
	AsOf   string  `json:"as_of"`
	Models []price `json:"models"`
}

type price struct {
	// ID is a model, whose dated releases cost the same ("gpt-4.1" speaks for
	// "gpt-4.1-2025-04-14" and not for "gpt-4.1-mini"), or, with a slash at its
	// end, a family of which every member costs the same.
	ID     string  `json:"id"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite are for input that a provider's cache held or took
	// in; without them it costs what other input costs.
	CacheRead  *float64 `json:"cache_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
}

// Tokens is what model calls consumed, by what it costs.
type Tokens struct {
	In, Out               int // all input, and all output
	CacheRead, CacheWrite int // of In, read from and written to a cache
}

// Plus is the sum of both.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{t.In + o.In, t.Out + o.Out, t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite}
}

// table is read on first use: most commands need no price.
var table = sync.OnceValue(func() prices {
	var t prices
	if err := json.Unmarshal(pricesJSON, &t); err != nil {
		panic(fmt.Sprintf("ledger: the price table in the program: %v", err)) // unreachable: a test reads it
	}
	return t
})

// PricesAsOf is the date of the price table, as 2006-01-02.
func PricesAsOf() string { return table().AsOf }

// Estimate is what tokens cost by the price table. A model that the table does
// not name has no known cost; it is never guessed from a similar name.
func Estimate(model string, t Tokens) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || t.In < 0 || t.Out < 0 {
		return 0, false
	}
	read, write := clamp(t.CacheRead, t.In), clamp(t.CacheWrite, t.In)
	plain := max(0, t.In-read-write)
	cost := float64(plain)*p.Input + float64(t.Out)*p.Output + float64(read)*orInput(p.CacheRead, p) + float64(write)*orInput(p.CacheWrite, p)
	return cost / 1e6, true
}

func clamp(n, most int) int { return max(0, min(n, most)) }

func orInput(special *float64, p price) float64 {
	if special == nil {
		return p.Input
	}
	return *special
}

// EstimateTotal is Estimate for a call of which only the sum of its tokens is
// known. That tells the cost only where input and output cost the same.
func EstimateTotal(model string, tokens int) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || p.Input != p.Output {
		return 0, false
	}
	return Estimate(model, Tokens{In: tokens})
}

// find looks a model up. The name of its provider, which says where it was
// called, is not part of the name in the table where the provider makes it.
func find(model string) (price, bool) {
	for _, maker := range []string{"anthropic/", "openai/"} {
		model = strings.TrimPrefix(model, maker)
	}
	for _, p := range table().Models {
		if p.speaksFor(model) {
			return p, true
		}
	}
	return price{}, false
}

func (p price) speaksFor(model string) bool {
	rest, ok := strings.CutPrefix(model, p.ID)
	if !ok {
		return false
	}
	return rest == "" || strings.HasSuffix(p.ID, "/") || isRelease(rest)
}

// isRelease recognises what follows the name of a model in its dated releases:
// "-20250514" or "-2025-04-14".
func isRelease(s string) bool {
	digits := strings.ReplaceAll(s, "-", "")
	if !strings.HasPrefix(s, "-20") || len(digits) != 8 || len(s) != 9 && len(s) != 11 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}
