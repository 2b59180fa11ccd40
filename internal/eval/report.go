package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// reportFormat is the version of a report. Fields are only ever added.
const reportFormat = 1

// Report is the outcome of a run. Two runs of the same program on the same data
// have the same bytes, but for Took.
type Report struct {
	Format   int      `json:"format"`
	Suite    string   `json:"suite"`
	Title    string   `json:"title"`
	Settings Settings `json:"settings"`
	Version  string   `json:"version"`
	Data     []File   `json:"data"`
	Cases    int      `json:"cases"` // that the suite has; rows are those that were run
	// Notes are what the suite says about the run as a whole.
	Notes   []string `json:"notes,omitempty"`
	Metrics []Metric `json:"metrics"`
	Bars    []Held   `json:"bars"`
	Tokens  int      `json:"tokens"`
	// USD is what the run cost by the price table; nil where a price is not known. A
	// run that asked no model has cost nothing.
	USD  *float64 `json:"usd"`
	Rows []Row    `json:"rows"`
	Took *Took    `json:"took,omitempty"`
}

// Held is a metric that was held against its bar.
type Held struct {
	Bar
	Value   float64 `json:"value"`
	N       int     `json:"n"`
	Reached *bool   `json:"reached,omitempty"` // nil where there is nothing to reach
}

// Took is how long a run took, which is not the same twice.
type Took struct {
	Began    time.Time `json:"began"`
	WallSec  float64   `json:"wall_sec"` // of the last start
	Resumed  int       `json:"resumed"`  // rows that an earlier start had made
	Parallel int       `json:"parallel"`
	// Seconds by case: all together, the median, and the slowest of twenty and of all.
	SumSec    float64 `json:"sum_sec"`
	MedianSec float64 `json:"median_sec"`
	P95Sec    float64 `json:"p95_sec"`
	MaxSec    float64 `json:"max_sec"`
}

func (t *Took) count(secs []float64) {
	if len(secs) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(secs))
	for _, s := range sorted {
		t.SumSec += s
	}
	at := func(p float64) float64 { return sorted[int(p*float64(len(sorted)-1))] }
	t.MedianSec, t.P95Sec, t.MaxSec = at(0.5), at(0.95), at(1)
}

// finish holds the metrics against the bars and adds up the costs.
func (r *Report) finish(bars []Bar) error {
	for _, m := range r.Metrics {
		if m.Name == "" || math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			return fmt.Errorf("the metric %q is %v", m.Name, m.Value)
		}
	}
	r.Bars = []Held{}
	for _, b := range bars {
		m, ok := r.Metric(b.Metric)
		if !ok {
			continue // the sample holds no case that speaks to it
		}
		h := Held{Bar: b, Value: m.Value, N: m.N}
		if b.Bound() {
			reached := b.Reached(m.Value)
			h.Reached = &reached
		}
		r.Bars = append(r.Bars, h)
	}
	usd, known := 0.0, true
	for _, row := range r.Rows {
		r.Tokens += row.Tokens
		switch {
		case row.USD != nil:
			usd += *row.USD
		case row.Tokens > 0:
			known = false
		}
	}
	if known {
		r.USD = &usd
	}
	return nil
}

// Metric finds a metric by its name.
func (r *Report) Metric(name string) (Metric, bool) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return r.Metrics[i], true
}

// Bar finds what a metric was held against; the zero Held if there is nothing.
func (r *Report) Bar(name string) Held {
	i := slices.IndexFunc(r.Bars, func(h Held) bool { return h.Metric == name })
	if i < 0 {
		return Held{}
	}
	return r.Bars[i]
}

// Below are the bars that were not reached.
func (r *Report) Below() []Held {
	return slices.DeleteFunc(slices.Clone(r.Bars), func(h Held) bool { return h.Reached == nil || *h.Reached })
}

// Encode writes a report: indented, but for its rows, which have a line each.
func (r *Report) Encode() ([]byte, error) {
	head := *r
	head.Rows = nil
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(head); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the report")
	}
	const none = "\n  \"rows\": null" // no string holds a plain newline
	before, after, ok := bytes.Cut(buf.Bytes(), []byte(none))
	if !ok {
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "encode the report: it has no place for rows")
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString("\n  \"rows\": [")
	rows := json.NewEncoder(&out)
	rows.SetEscapeHTML(false)
	for i, row := range r.Rows {
		if i > 0 {
			out.Truncate(out.Len() - 1) // the newline of the one before
			out.WriteString(",")
		}
		out.WriteString("\n    ")
		if err := rows.Encode(row); err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "encode a row")
		}
	}
	out.WriteString("  ]")
	out.Write(after)
	return out.Bytes(), nil
}

// DecodeReport reads a report. What is none, or one of a later version, is
// CodeInvalid.
func DecodeReport(data []byte) (*Report, error) {
	var r Report
	err := json.Unmarshal(data, &r)
	switch {
	case err != nil:
	case r.Format == 0 || r.Suite == "":
		err = errors.New("it is not the report of an evaluation")
	case r.Format > reportFormat:
		err = fmt.Errorf("it has format %d, of a later version of this program", r.Format)
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the report")
	}
	return &r, nil
}
