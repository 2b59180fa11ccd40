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
	Unit   string  `json:"unit"`
	Models []price `json:"models"`
}

type price struct {
	// ID is a model, whose dated releases cost the same ("gpt-4.1" speaks for
	// "gpt-4.1-2025-04-14" and not for "gpt-4.1-mini"), or, with a slash at its
	// end, a family of which every member costs the same.
	ID     string  `json:"id"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
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

// Estimate is what a call costs by the price table. A model that the table does
// not name has no known cost; it is never guessed from a similar name.
func Estimate(model string, in, out int) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || in < 0 || out < 0 {
		return 0, false
	}
	return (float64(in)*p.Input + float64(out)*p.Output) / 1e6, true
}

// EstimateTotal is Estimate for a call of which only the sum of its tokens is
// known. That tells the cost only where input and output cost the same.
func EstimateTotal(model string, tokens int) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || p.Input != p.Output {
		return 0, false
	}
	return Estimate(model, tokens, 0)
}

func find(model string) (price, bool) {
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
