package ledger

import (
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// By is what a summary puts together.
type By string

// The groupings.
const (
	ByDay        By = "day" // in UTC
	ByModel      By = "model"
	ByResearcher By = "researcher"
)

// ParseBy reads a grouping; an unknown one is CodeInvalid and names the three.
func ParseBy(s string) (By, error) {
	switch b := By(s); b {
	case ByDay, ByModel, ByResearcher:
		return b, nil
	}
	return "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "by", Message: "must be day, model or researcher, not " + clip(s)}
}

func clip(s string) string { return `"` + clean(s) + `"` }

// Sum is what the calls of one group consumed together.
type Sum struct {
	Key         string  `json:"key"`
	Calls       int     `json:"calls"`
	Searches    int     `json:"searches"`
	TokensUsed  int     `json:"tokens_used"`
	WallTimeSec float64 `json:"wall_time_sec"`
	// CostUSD adds up the calls whose cost is known; UnknownCost counts the others.
	CostUSD     float64 `json:"cost_usd"`
	UnknownCost int     `json:"unknown_cost_calls"`
}

func (s *Sum) add(e Entry) {
	s.Calls++
	s.Searches += e.Searches
	s.TokensUsed += e.TokensUsed
	s.WallTimeSec += e.WallTimeSec
	if e.CostUSD == nil {
		s.UnknownCost++
	} else {
		s.CostUSD += *e.CostUSD
	}
}

// Summarize adds up the entries from since on (the zero time means all), by
// group in ascending order of key, and all of them together under "total".
func Summarize(entries []Entry, by By, since time.Time) (groups []Sum, total Sum) {
	total.Key = "total"
	index := map[string]int{}
	for _, e := range entries {
		if e.Time.Before(since) {
			continue
		}
		total.add(e)
		key := keyOf(e, by)
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, Sum{Key: key})
		}
		groups[i].add(e)
	}
	slices.SortFunc(groups, func(a, b Sum) int { return strings.Compare(a.Key, b.Key) })
	return groups, total
}

func keyOf(e Entry, by By) string {
	key := e.Time.UTC().Format(time.DateOnly)
	switch by {
	case ByModel:
		key = e.Model
	case ByResearcher:
		key = e.Researcher
	}
	if key == "" {
		return "unknown"
	}
	return key
}
