// Package eval measures on public data, and on a folder that was written for it. It owns
// what a suite is, how its cases are sampled, run, kept and scored, the report of a run
// and the comparison of two. The suites themselves are packages below it, one for each
// kind of measure, listed by package suites; package desk opens the libraries that
// suites ask.
//
// A run is deterministic: the same suite, data, seed and program give the same report,
// but for the times in it. Every case stands by itself, so a run that was broken off
// goes on where it was, and a sample of the cases is a sample of the whole run.
package eval

import (
	"context"
	"io/fs"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

// Suite is one body of data and what is measured on it. Suites are values: making
// one reads nothing.
type Suite struct {
	Name  string // "squad2": small letters, digits and dashes
	Title string // "SQuAD 2.0, the whole pack as one library"
	// Files are all that the suite reads, below the data folder: "qa/squad2.jsonl.gz".
	// Their hashes are part of a report.
	Files []string
	// Optional are files that are read where they are there. Without them a suite has
	// fewer cases, and its notes say so.
	Optional []string
	// Own is data that is part of the program; nil is none. Its hashes are part of a
	// report, too.
	Own fs.FS
	// Parts are what a run can be about alone, such as "held"; none is all or nothing.
	Parts []string
	// OnDisk says that the suite asks folders on disk by Env.Folders, as 'ask' does, and
	// tells details of its cases.
	OnDisk bool
	// Licence and Measures are a few words each, for people.
	Licence, Measures string
	// Bars are what the metrics are held against, in the order of a report.
	Bars []Bar
	// Open reads the data. The session is the caller's to close.
	Open func(ctx context.Context, env Env) (Session, error)
}

// Bar is what a metric should reach. Zero for both AtLeast and AtMost is no bar: what
// is known is only told beside the value.
type Bar struct {
	Metric  string  `json:"metric"`
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"` // smaller is better
	// Smaller says that less is better where there is nothing to reach.
	Smaller bool `json:"smaller,omitempty"`
	// Known is what is published, or what a plain method reaches: "BM25 .312".
	Known string `json:"known,omitempty"`
}

// Bound reports whether there is anything to reach.
func (b Bar) Bound() bool { return b.AtLeast != 0 || b.AtMost != 0 }

// Reached reports whether a value is on the right side of the bar.
func (b Bar) Reached(v float64) bool {
	return (b.AtLeast == 0 || v >= b.AtLeast) && (b.AtMost == 0 || v <= b.AtMost)
}

// Session is a suite whose data has been read.
type Session interface {
	// Cases are the ids of all cases in a fixed order, each once.
	Cases() []string
	// Run measures one case by itself: same id, same row. It is safe for concurrent
	// use. An error ends the whole run, whose other rows are kept.
	Run(ctx context.Context, id string) (Row, error)
	// Score makes the metrics from the rows alone, whatever part of the cases they
	// are. It must not depend on their order.
	Score(rows []Row) []Metric
	// Close frees what Open opened.
	Close() error
}

// Noted is a session with something to say about a run as a whole, such as what it had to
// leave out.
type Noted interface {
	Notes() []string
}

// Row is what came of one case: all that Score needs, and no more.
type Row struct {
	ID string `json:"id"`
	// Group is what a case shares with others that are not independent of it, such
	// as the article; "" is a group of its own.
	Group string `json:"group,omitempty"`
	// Values are finite numbers by name. Where one has the name of a metric, it is the
	// part that this case has in it, and two runs can be compared by it.
	Values map[string]float64 `json:"values"`
	// Note is for people who look into a report.
	Note string `json:"note,omitempty"`
	// Tokens and USD are what the questions of the case cost. The harness fills them
	// in; USD is nil when a price is not known.
	Tokens int      `json:"tokens,omitempty"`
	USD    *float64 `json:"usd,omitempty"`
	// Traces are the runs behind the row, where they were kept.
	Traces []string `json:"traces,omitempty"`
}

// Metric is one number of a run.
type Metric struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	N     int     `json:"n"` // how many cases are behind it
}

// Mean is the metric of rows that have a value of that name: their mean.
func Mean(name string, rows []Row) Metric {
	m := Metric{Name: name}
	for _, r := range rows {
		if v, ok := r.Values[name]; ok {
			m.Value += v
			m.N++
		}
	}
	m.Value /= float64(max(1, m.N))
	return m
}

// Env is what a suite is opened with.
type Env struct {
	Data Data
	// Embed makes vectors; nil is to measure without any.
	Embed embed.Embedder
	// Reader reads claims with their evidence; nil is to measure without one.
	Reader reader.Reader
	// Desk opens libraries and asks questions as the user chose.
	Desk Desk
	// Folders keeps folders on disk and asks them; nil where no case is run.
	Folders Folders
	// Part is what the run is about alone, one of the suite's parts; "" is all.
	Part string
	// Details takes what a developer wants to know of a case beyond its row; its zero
	// value takes nothing.
	Details Details
	Seed    uint64
	// Now is what a suite takes for today.
	Now time.Time
	// Say tells about slow steps; never nil, and safe for concurrent use.
	Say func(string)
}

// Details is where the details of cases go.
type Details struct {
	// Add takes the details of a case, which become one line of JSON. It is safe for
	// concurrent use; nil is to tell none.
	Add func(id string, details any)
	// Held says that answers to questions which are held out may be told. A change that
	// was made after a look at them can no longer be measured by them.
	Held bool
}

// Trainer fits a small model that is kept in the repository.
type Trainer struct {
	Name string // what 'marchwarden-lab train' calls it
	// Writes is the committed file, below the module's root.
	Writes string
	Files  []string // as in a Suite
	// Fit gives the file's new content, and for people what cross-validation says
	// about it. It is deterministic.
	Fit func(ctx context.Context, env Env) (weights []byte, summary string, err error)
}
