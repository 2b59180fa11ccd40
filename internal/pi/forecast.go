package pi

import (
	"fmt"
	"maps"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// What calls are at least: how many a rihla makes, to plan, write and judge; how many more the investigator makes for
// several rihlas, to write and judge; and the tokens of one, of which so many are input.
const (
	callsOfRihla = 3
	callsOfPI    = 2
	leastCall    = 1000
	leastInput   = 800
)

// Forecast says what an investigation would come to that sends the rihlas of its plan: at least, if all goes straight,
// and at most, by its caps. For people.
func Forecast(start *trace.Start, rihlas int) string {
	if start.Investigation == nil || rihlas == 0 {
		return ""
	}
	if start.Model == "" {
		return "no model, and no cost"
	}
	limits := start.LimitsNow()
	low := callsOfRihla * rihlas
	if rihlas > 1 {
		low += callsOfPI
	}
	most := max(rihlas, start.Investigation.MaxRihlas)*(limits.MaxIterations+callsOfRihla) + callsOfPI
	low = min(low, max(1, limits.TokenBudget/leastCall))
	high := max(low, min(most, limits.TokenBudget/(leastCall/2)))
	text := fmt.Sprintf("%d to %d calls of %s, %d to %d tokens", low, high, start.Model, low*leastCall, max(low*leastCall, limits.TokenBudget))
	least, known := start.Prices.Cost(start.Model, ledger.Tokens{In: low * leastInput, Out: low * (leastCall - leastInput)})
	if !known {
		return text + "; the price is unknown: MARCHWARDEN_PRICES can set it"
	}
	models := slices.DeleteFunc(slices.Collect(maps.Keys(start.Prices)), func(id string) bool { return id == start.Vectors })
	dear := max(least, start.Prices.Worst(models, 0, limits.TokenBudget), start.Prices.Worst(models, limits.TokenBudget, 0))
	if limits.MaxCostUSD > 0 {
		least, dear = min(least, limits.MaxCostUSD), min(dear, limits.MaxCostUSD)
	}
	if dear == 0 {
		return text + ", no cost"
	}
	return text + fmt.Sprintf(", $%.4f to $%.4f", least, dear)
}
