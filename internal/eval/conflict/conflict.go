// Package conflict measures whether documents that contradict each other are reported
// as doing so, and documents that agree are not. It owns two suites: ramdocs, in which
// some documents were given a wrong answer, and agreeing, whose documents come from one
// encyclopaedia. It does not find contradictions: package verify does.
package conflict

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Suites are the suites of this package.
func Suites() []eval.Suite { return []eval.Suite{ramdocs(), agreeing()} }

// The metrics of ramdocs.
//
// A question has a conflict if a document labelled "misinfo" stands beside one labelled
// "correct" with the answer for the same thing, or beside another "misinfo" with another
// answer. Documents that rightly answer for different things of one name do not conflict.
const (
	// recall is the share of these questions for which at least one report is true when
	// all documents are compared: each excerpt holds one of two such answers, and each
	// value is of it; a surname stands for a name and a year for a date.
	recall = "conflicts reported"
	// pairRecall is the same over pairs of documents, each compared alone. Many documents
	// labelled "correct" merely have the answer somewhere in them.
	pairRecall = "pairs reported"
	// Every other report is a false one, true as it may be of something that the question
	// does not ask. alarmed is the share of the questions without a conflict that have
	// any report, falseEach how many false ones there are for each question of all, and
	// precision the share of the reports that are true.
	alarmed   = "alarmed without conflict"
	falseEach = "false reports per question"
	precision = "precision"
	// The same in a whole run with the documents as a library: among its contradictions,
	// and whether the excerpts of its citations and contradictions hold two such answers.
	runRecall = "conflicts reported by a run"
	runAlarm  = "alarmed without conflict by a run"
	runShown  = "both answers shown by a run"
)

func ramdocs() eval.Suite {
	return eval.Suite{
		Name: "ramdocs", Title: "RAMDocs: ambiguous questions, wrong and right documents",
		Files: []string{"conflict/ramdocs.jsonl.gz"}, Licence: "MIT",
		Measures: "conflicts between documents that are reported, and false alarms",
		Bars: []eval.Bar{
			{Metric: recall, AtLeast: 0.70},
			{Metric: precision, AtLeast: 0.85},
			{Metric: alarmed, AtMost: 0.10},
			{Metric: falseEach, AtMost: 0.10},
		},
		Open: openRAMDocs,
	}
}

// row is a question of RAMDocs: documents that answer it rightly, wrongly or not at all.
// Most names are shared by several things, which is why there may be several right
// answers, each with its own documents. The wrong answers are all about the first of
// these things: their documents are copies of one about it, or speak of it, with the
// answer replaced.
type row struct {
	Question  string
	Documents []document
	Gold      []string `json:"gold_answers"`
	Wrong     []string `json:"wrong_answers"`
}

type document struct{ Text, Type, Answer string }

type ramSession struct {
	desk   eval.Desk
	reader reader.Reader
	rows   []row
}

func openRAMDocs(_ context.Context, env eval.Env) (eval.Session, error) {
	rows, err := eval.Rows[row](env.Data, "conflict/ramdocs")
	if err != nil {
		return nil, err
	}
	for i, r := range rows {
		if len(r.Gold) == 0 {
			return nil, fmt.Errorf("question %d of conflict/ramdocs has no right answer", i)
		}
	}
	return &ramSession{env.Desk, env.Reader, rows}, nil
}

// Cases are the questions by their numbers.
func (s *ramSession) Cases() []string { return numbers(len(s.rows)) }

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(i)
	}
	return out
}

func at[T any](list []T, id string) (T, error) {
	i, err := strconv.Atoi(id)
	if err != nil || i < 0 || i >= len(list) {
		var none T
		return none, fmt.Errorf("there is no case %q", id)
	}
	return list[i], nil
}

// Run compares all documents of a question, each two of them that conflict, and asks
// the question of a library of them.
func (s *ramSession) Run(ctx context.Context, id string) (eval.Row, error) {
	r, err := at(s.rows, id)
	if err != nil {
		return eval.Row{}, err
	}
	out := eval.Row{ID: id, Values: map[string]float64{}}
	conflicted := r.pairs(ctx, s.reader, out.Values)
	all := make([]int, len(r.Documents))
	for i := range all {
		all[i] = i
	}
	reports := r.find(ctx, s.reader, all...)
	hits := 0
	for _, c := range reports {
		if r.hit(c) {
			hits++
		}
	}
	out.Values["reports"], out.Values["true reports"] = float64(len(reports)), float64(hits)
	out.Values[falseEach] = float64(len(reports) - hits)
	if conflicted {
		out.Values[recall] = share(hits > 0)
	} else {
		out.Values[alarmed] = share(len(reports) > 0)
	}
	return out, s.ask(ctx, r, conflicted, out.Values)
}

// share is a truth as a number.
func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func noText(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }

// ask runs the question over its documents and notes what the result shows.
func (s *ramSession) ask(ctx context.Context, r row, conflicted bool, values map[string]float64) (err error) {
	docs := eval.Docs{}
	for i, d := range r.Documents {
		if !strings.ContainsFunc(d.Text, noText) { // bytes of some other format, which no library takes
			docs[fmt.Sprintf("d%d.txt", i)] = d.Text
		}
	}
	lib, err := s.desk.Open(ctx, "ramdocs", docs.FS())
	if err != nil {
		return err
	}
	defer func() {
		if closing := lib.Close(); err == nil {
			err = closing
		}
	}()
	res, err := lib.Ask(ctx, marchwarden.Request{Question: r.Question})
	if err != nil {
		return err
	}
	values["confidence"] = float64(res.Confidence)
	if len(res.Citations) > 0 {
		values["right"] = share(slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool {
			return slices.ContainsFunc(r.Gold, func(g string) bool { return holdsWords(c.RawExcerpt, g) })
		}))
	}
	if !conflicted {
		values[runAlarm] = share(len(res.Contradictions) > 0)
		return nil
	}
	values[runRecall] = share(slices.ContainsFunc(res.Contradictions, r.hit))
	var shown []string
	note := func(locator, excerpt string) {
		shown = append(shown, r.answers(marchwarden.Side{Locator: locator, RawExcerpt: excerpt, Value: excerpt})...)
	}
	for _, c := range res.Citations {
		note(c.Locator, c.RawExcerpt)
	}
	for _, c := range res.Contradictions {
		note(c.A.Locator, c.A.RawExcerpt)
		note(c.B.Locator, c.B.RawExcerpt)
	}
	values[runShown] = share(slices.ContainsFunc(shown, func(x string) bool { return !sameWords(x, shown[0]) }))
	return nil
}

// Score sums up. The precision is over all reports, not over questions.
func (s *ramSession) Score(rows []eval.Row) []eval.Metric {
	return []eval.Metric{
		eval.Mean(recall, rows), eval.Mean(alarmed, rows), eval.Mean(falseEach, rows),
		portion(precision, rows, "true reports", "reports"), portion(pairRecall, rows, "pairs found", "pairs"),
		eval.Mean(runRecall, rows), eval.Mean(runAlarm, rows), eval.Mean(runShown, rows),
	}
}

// portion is the sum of one value over the sum of another.
func portion(name string, rows []eval.Row, part, whole string) eval.Metric {
	m := eval.Metric{Name: name}
	of := 0.0
	for _, r := range rows {
		m.Value += r.Values[part]
		of += r.Values[whole]
	}
	m.Value /= max(1, of)
	m.N = int(of)
	return m
}

// Close frees nothing.
func (s *ramSession) Close() error { return nil }

// pairs counts the pairs of documents in conflict and those found, and reports whether
// there are any.
func (r row) pairs(ctx context.Context, read reader.Reader, values map[string]float64) bool {
	pairs, found := 0, 0
	for i := range r.Documents {
		for j := range i {
			if r.conflict(i, j) {
				pairs++
				if slices.ContainsFunc(r.find(ctx, read, j, i), r.hit) {
					found++
				}
			}
		}
	}
	values["pairs"], values["pairs found"] = float64(pairs), float64(found)
	return pairs > 0
}

// find compares the documents with these numbers.
func (r row) find(ctx context.Context, read reader.Reader, numbers ...int) []marchwarden.Contradiction {
	set := &evidence.Set{}
	for _, i := range numbers {
		add(set, fmt.Sprintf("d%d", i), "", r.Documents[i].Text)
	}
	return verify.Contradictions(ctx, read, r.Question, set, passages(set))
}

func add(set *evidence.Set, locator, title, text string) {
	set.Add(fetch.Page{Locator: locator, Title: title, Text: blob.Of([]byte(text))}, text)
}

func passages(set *evidence.Set) []evidence.ID {
	var out []evidence.ID
	for _, p := range set.Passages() {
		out = append(out, p.ID)
	}
	return out
}

// number is that of the document that a locator names.
func number(locator string) (int, bool) {
	locator, _, _ = strings.Cut(locator, "#")
	name := path.Base(locator[strings.LastIndexByte(locator, ':')+1:])
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "d"), ".txt"))
	return n, err == nil
}
