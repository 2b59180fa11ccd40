package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Number writes a value with what can be told apart: four digits behind the point, and
// none of a large whole number.
func Number(v float64) string {
	if math.Abs(v) >= 100 || v == math.Trunc(v) && math.Abs(v) > 1 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}

// String is what there is to reach, for people; "" if there is nothing.
func (b Bar) String() string {
	var parts []string
	if b.AtLeast != 0 {
		parts = append(parts, "≥ "+strconv.FormatFloat(b.AtLeast, 'g', -1, 64))
	}
	if b.AtMost != 0 {
		parts = append(parts, "≤ "+strconv.FormatFloat(b.AtMost, 'g', -1, 64))
	}
	return strings.Join(parts, ", ")
}

// Describe says in a few words how a run was set up.
func (s Settings) Describe() string {
	parts := []string{s.Mind}
	if s.Researcher != "" && s.Researcher != "files" {
		parts = append(parts, "by "+s.Researcher)
	}
	if s.Depth != "" && s.Depth != "balanced" {
		parts = append(parts, s.Depth)
	}
	if s.Embedder != "" {
		parts = append(parts, s.Embedder)
	} else {
		parts = append(parts, "no vectors")
	}
	if s.Part != "" {
		parts = append(parts, "part "+s.Part)
	}
	return strings.Join(parts, ", ")
}

// Command is what was typed for a run, as far as its numbers depend on it.
func (r *Report) Command() string {
	s := r.Settings
	words := []string{"marchwarden-lab run", r.Suite}
	if s.Part != "" {
		words = append(words, "--part", s.Part)
	}
	if s.Limit > 0 {
		words = append(words, "--limit", strconv.Itoa(s.Limit))
	}
	if s.Seed != 1 {
		words = append(words, "--seed", strconv.FormatUint(s.Seed, 10))
	}
	if s.Researcher != "" && s.Researcher != "files" {
		words = append(words, "--researcher", s.Researcher)
	}
	if provider, _, _ := strings.Cut(s.Mind, "/"); s.Mind != "" && provider != "extractive" {
		words = append(words, "--model", s.Mind)
	}
	if s.Depth != "" && s.Depth != "balanced" {
		words = append(words, "--depth", s.Depth)
	}
	if s.Embedder == "" {
		words = append(words, "--no-vectors")
	}
	return strings.Join(words, " ")
}

// Markdown is a table of the metrics of reports, by suite, with what they are held
// against and what is known, and below it how each was made.
func Markdown(reports []*Report) string {
	list := slices.SortedStableFunc(slices.Values(reports), func(a, b *Report) int { return cmp.Compare(a.Suite, b.Suite) })
	var b strings.Builder
	b.WriteString("| suite | measure | ours | n | to reach | | known of others |\n|---|---|---:|---:|---|---|---|\n")
	for _, r := range list {
		for _, m := range r.Metrics {
			h := r.Bar(m.Name)
			reached := ""
			if h.Reached != nil {
				reached = "reached"
				if !*h.Reached {
					reached = "**below**"
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s | %s |\n", cell(r.Suite), cell(m.Name), Number(m.Value), m.N, h.Bar, reached, cell(h.Known))
		}
	}
	b.WriteString("\n| suite | data | cases | with | date | tokens a case | seconds a case | command |\n|---|---|---:|---|---|---:|---:|---|\n")
	for _, r := range list {
		date, took := "", ""
		if r.Took != nil {
			date, took = r.Took.Began.Format("2006-01-02"), strconv.FormatFloat(r.Took.MedianSec, 'f', 3, 64)
		}
		cases := strconv.Itoa(r.Cases)
		if len(r.Rows) != r.Cases {
			cases = fmt.Sprintf("%d of %d", len(r.Rows), r.Cases)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %s | `%s` |\n", cell(r.Suite), cell(r.Title), cases, cell(r.Settings.Describe()), date, r.Tokens/max(1, len(r.Rows)), took, strings.ReplaceAll(cell(r.Command()), "`", "'"))
	}
	return b.String()
}

// cell makes text fit for a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ").Replace(s)
}
