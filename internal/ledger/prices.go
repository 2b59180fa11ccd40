package ledger

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

//go:embed prices.json
var pricesJSON []byte

// Price is what the tokens of a model cost, in USD per million.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite are for input that a provider's cache held or took
	// in; without them it costs what other input costs.
	CacheRead  *float64 `json:"cache_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
}

// Prices are prices by the ids of models: those that the user has set, or those of a run.
type Prices map[string]Price

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
var table = sync.OnceValue(func() (t struct {
	AsOf   string `json:"as_of"`
	Models []struct {
		// ID is a model, whose dated releases cost the same ("gpt-4.1" speaks for
		// "gpt-4.1-2025-04-14" and not for "gpt-4.1-mini"), or, with a slash at its
		// end, a family of which every member costs the same.
		ID string `json:"id"`
		Price
	} `json:"models"`
}) {
	if err := json.Unmarshal(pricesJSON, &t); err != nil {
		panic(fmt.Sprintf("ledger: the price table in the program: %v", err)) // unreachable: a test reads it
	}
	return t
})

// PricesAsOf is the date of the price table, as 2006-01-02.
func PricesAsOf() string { return table().AsOf }

// ParsePrices reads lines such as "anthropic/claude-sonnet-5-5 3 15 0.30": the id of a model, and
// USD per million tokens of input, of output, and of input that a cache held.
func ParsePrices(lines []string) (Prices, error) {
	all := Prices{}
	for _, line := range lines {
		f := strings.Fields(line)
		var usd []float64
		for _, text := range f[min(1, len(f)):] {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n >= 0 && n <= marchwarden.MaxCostUSD) {
				return nil, fmt.Errorf("%q must be a price from 0 to %d", clean(text), marchwarden.MaxCostUSD)
			}
			usd = append(usd, n)
		}
		if len(usd) != 2 && len(usd) != 3 {
			return nil, fmt.Errorf("%q must be MODEL INPUT OUTPUT [CACHED], in USD per million tokens", clean(line))
		}
		p := Price{Input: usd[0], Output: usd[1]}
		if len(usd) == 3 {
			p.CacheRead = &usd[2]
		}
		all[f[0]] = p
	}
	return all, nil
}

// Of are the prices of models, as p or else the program's own table has them, for a run to
// record; missing are those that are not known.
func (p Prices) Of(models ...string) (known Prices, missing []string) {
	known = Prices{}
	for _, id := range models {
		price, ok := p.find(id)
		switch {
		case ok:
			known[id] = price
		case id != "":
			missing = append(missing, id)
		}
	}
	return known, missing
}

// Known refuses a cap of money over models whose price is not known.
func Known(limits marchwarden.Limits, missing []string) error {
	if limits.MaxCostUSD <= 0 || len(missing) == 0 {
		return nil
	}
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "constraints.max_cost_usd",
		Message: "cannot be kept: the price of " + strings.Join(missing, " and of ") + " is not known",
		Hint:    "set it in USD per million tokens, such as MARCHWARDEN_PRICES=\"" + missing[0] + " 3 15\" or prices in config.yaml; models on this machine, such as ollama/qwen3, cost nothing"}
}

// Cost is what tokens of a model cost, by p alone.
func (p Prices) Cost(model string, t Tokens) (usd float64, known bool) {
	price, ok := p[model]
	return price.cost(t), ok
}

func (p Price) cost(t Tokens) float64 {
	read, write := clamp(t.CacheRead, t.In), clamp(t.CacheWrite, t.In)
	plain := max(0, t.In-read-write)
	return (float64(plain)*p.Input + float64(t.Out)*p.Output + float64(read)*p.orInput(p.CacheRead) + float64(write)*p.orInput(p.CacheWrite)) / 1e6
}

// Worst is what tokens cost at most, whichever of the models is asked, but for one, and whatever its cache does.
func (p Prices) Worst(not string, in, out int) (usd float64) {
	for id, price := range p {
		if id != not {
			usd = max(usd, price.cost(Tokens{In: in, Out: out}), price.cost(Tokens{In: in, Out: out, CacheWrite: in}))
		}
	}
	return usd
}

func clamp(n, most int) int { return max(0, min(n, most)) }

func (p Price) orInput(special *float64) float64 {
	if special == nil {
		return p.Input
	}
	return *special
}

// find looks a model up, in the table without the name of its provider where that makes it. A price is never
// guessed from a similar name.
func (p Prices) find(model string) (Price, bool) {
	if own, ok := p[model]; ok {
		return own, true
	}
	for _, maker := range []string{"anthropic/", "openai/"} {
		model = strings.TrimPrefix(model, maker)
	}
	for _, m := range table().Models {
		if rest, ok := strings.CutPrefix(model, m.ID); ok && (rest == "" || strings.HasSuffix(m.ID, "/") || release.MatchString(rest)) {
			return m.Price, true
		}
	}
	return Price{}, false
}

// release is what follows the name of a model in its dated releases.
var release = regexp.MustCompile(`^-20(\d{6}|\d\d-\d\d-\d\d)$`)
