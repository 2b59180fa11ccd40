package scale

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints a table for a terminal.
func (t Table) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	sheet := func(title string, rows [][]string) {
		fmt.Fprintf(out, "%s\n", title)
		for _, row := range rows {
			fmt.Fprintf(out, "  %s\n", strings.Join(row, "\t"))
		}
		fmt.Fprintln(out)
	}
	sheet(t.title(), t.rows())
	sheet("What gives way first as the load grows and nothing is added", t.limits())
	sheet("The busiest half hour, simulated at multiples of the load and of the workers, with the same hubs", t.growth())
	sheet("What it costs a day, by prices that are rounded", t.costs())
	return out.Flush()
}

// Markdown is the same as tables of a page.
func (t Table) Markdown() string {
	var b strings.Builder
	for i, rows := range [][][]string{t.rows(), t.limits(), t.growth(), t.costs()} {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, row := range rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
			if j == 0 {
				b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
			}
		}
	}
	return b.String()
}

func (t Table) title() string {
	l := t.Load
	return fmt.Sprintf("%s rihlas a day on %d hosts with %d slots, %d hubs; evidence in %s; log kept %g d, tasks %g d, ends %g d",
		amount(l.Rihlas, ""), l.Hosts, l.Slots, l.Hubs, l.Evidence, l.LogDays, l.TaskDays, l.DoneDays)
}

func (t Table) rows() [][]string {
	rows := [][]string{{"what", "mean", "peak"}}
	for _, r := range t.Rows {
		peak := ""
		if r.Peak >= 0 {
			peak = amount(r.Peak, r.Unit)
		}
		rows = append(rows, []string{r.What, amount(r.Mean, r.Unit), peak})
	}
	return rows
}

func (t Table) limits() [][]string {
	rows := [][]string{{"gives way", "at", "uses", "has", "then"}}
	for _, l := range t.Limits {
		rows = append(rows, []string{l.What, "×" + short(l.Multiple), amount(l.Uses, l.Unit), amount(l.Has, l.Unit), l.Then})
	}
	return rows
}

func (t Table) growth() [][]string {
	rows := [][]string{{"load", "appends", "wait of an append, 99 of 100", "wait for a slot, 99 of 100", "in flight", "memory of a hub", "streams of a hub", "gives way"}}
	for _, s := range t.Growth {
		rows = append(rows, []string{"×" + short(s.Multiple), amount(s.Appends, "/s"), amount(s.AppendWait, "s"), amount(s.QueueWait, "s"), amount(s.InFlight, ""),
			amount(s.Memory, "B"), amount(s.Disk, "B"), orNothing(strings.Join(s.GivesWay, ", "))})
	}
	return rows
}

func (t Table) costs() [][]string {
	rows := [][]string{{"what", "a day"}}
	for _, c := range t.Costs {
		rows = append(rows, []string{c.What, amount(c.Day, "$")})
	}
	return rows
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// FiguresMarkdown is what a plan is computed from, with its sources, as a table of a page.
func FiguresMarkdown() string {
	var b strings.Builder
	b.WriteString("| figure | | from |\n|---|---|---|\n")
	for _, f := range Figures() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.What, amount(f.Value, f.Unit), f.Source)
	}
	return b.String()
}

// amount is a number with its unit, to three digits: no more is known.
func amount(v float64, unit string) string {
	per := ""
	if rest, ok := strings.CutSuffix(unit, "/s"); ok {
		unit, per = rest, "/s"
	}
	if unit == "$" {
		return "$ " + amount(v, "")
	}
	if unit == "s" {
		switch {
		case v == 0:
			return "0"
		case v < 1:
			return short(v*1000) + " ms"
		case v >= 120:
			return short(v/60) + " min"
		}
		return short(v) + " s"
	}
	for _, scale := range []struct {
		from       float64
		bytes, any string
	}{{1e15, "PB", "P"}, {1e12, "TB", "T"}, {1e9, "GB", "G"}, {1e6, "MB", "M"}, {1e4, "kB", "k"}} {
		if v >= scale.from {
			div := scale.from
			if div == 1e4 {
				div = 1e3
			}
			if unit == "B" {
				return short(v/div) + " " + scale.bytes + per
			}
			return short(v/div) + " " + scale.any + per
		}
	}
	if unit == "B" {
		return short(v) + " B" + per
	}
	return strings.TrimSpace(short(v)+" "+unit) + per
}

// short is a number to three digits.
func short(v float64) string {
	switch {
	case v >= 100 || v == float64(int64(v)) && v < 1e6:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}
