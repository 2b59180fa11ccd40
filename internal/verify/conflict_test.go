package verify

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/squadtest"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files in testdata")
	show   = flag.Bool("show", false, "log what was reported and what was missed")
)

var raceEnabled = false // see race_test.go

// A little below what was reached when this was first measured. Never lower the
// floor and never raise the ceilings.
const (
	recallFloor   = 0.56 // of the questions with a conflict, the share that has it reported
	alarmsCeiling = 0.03 // false alarms for each question
	quietCeiling  = 1    // false alarms on all questions about sources that agree
)

// conflictRow is a question of RAMDocs: documents that answer it rightly, wrongly
// or not at all. Most names are shared by several things, which is why there may
// be several right answers, each with its own documents. The wrong answers are all
// about the first of these things: their documents are copies of one about it,
// or speak of it, with the answer replaced.
type conflictRow struct {
	Question  string
	Documents []conflictDocument
	Gold      []string `json:"gold_answers"`
	Wrong     []string `json:"wrong_answers"`
}

type conflictDocument struct {
	Text, Type, Answer string
}

// conflict reports whether documents i and j are labelled as saying what cannot
// both hold of the first thing of the question's name.
func (r conflictRow) conflict(i, j int) bool {
	a, b := r.Documents[i], r.Documents[j]
	if b.Type == "misinfo" && a.Type != "misinfo" {
		a, b = b, a
	}
	if a.Type != "misinfo" || sameWords(a.Answer, b.Answer) {
		return false
	}
	return b.Type == "misinfo" || b.Type == "correct" && sameWords(b.Answer, r.Gold[0])
}

// hit reports whether a contradiction is a true one: one side gives the right
// answer and the other a wrong one, or both give different wrong ones, in the
// excerpt and in the value.
func (r conflictRow) hit(c marchwarden.Contradiction) bool {
	a, b := r.answers(c.A), r.answers(c.B)
	for _, x := range a {
		for _, y := range b {
			if !sameWords(x, y) && (r.wrong(x) || r.wrong(y)) {
				return true
			}
		}
	}
	return false
}

func (r conflictRow) wrong(answer string) bool { return !sameWords(answer, r.Gold[0]) }

// answers are those of the first thing that a side gives. A wrong answer may be
// the right one of another thing: in that thing's documents it does not count.
func (r conflictRow) answers(s marchwarden.Side) []string {
	var i int
	if _, err := fmt.Sscanf(s.Locator, "d%d", &i); err != nil {
		return nil
	}
	d := r.Documents[i]
	var out []string
	for k, w := range append([]string{r.Gold[0]}, r.Wrong...) {
		if (holdsWords(s.RawExcerpt, w) && touches(s.Value, w) || partOf(s.Value, w)) && (k == 0 || d.Type != "correct" || !sameWords(d.Answer, w)) {
			out = append(out, w)
		}
	}
	return out
}

func stemsOf(s string) []string {
	var out []string
	for _, t := range lexicon.Tokens(s) {
		out = append(out, t.Stem)
	}
	return out
}

func sameWords(a, b string) bool { return slices.Equal(stemsOf(a), stemsOf(b)) }

// holdsWords reports whether the words of an answer follow each other in a text.
func holdsWords(text, answer string) bool {
	return strings.Contains(" "+strings.Join(stemsOf(text), " ")+" ", " "+strings.Join(stemsOf(answer), " ")+" ")
}

// touches reports whether a value has a word of an answer.
func touches(value, answer string) bool {
	words := stemsOf(answer)
	return slices.ContainsFunc(lexicon.Tokens(value), func(t lexicon.Token) bool { return !t.Stop && slices.Contains(words, t.Stem) })
}

// partOf reports whether a value has words of an answer only: a surname, or the
// year of a date.
func partOf(value, answer string) bool {
	words, n := stemsOf(answer), 0
	for _, t := range lexicon.Tokens(value) {
		if !t.Stop && !slices.Contains(words, t.Stem) {
			return false
		}
		if !t.Stop {
			n++
		}
	}
	return n > 0
}

// set holds the documents with these numbers.
func (r conflictRow) set(numbers ...int) *evidence.Set {
	set := &evidence.Set{}
	for _, i := range numbers {
		d := r.Documents[i]
		addPage(set, fmt.Sprintf("d%d", i), "", d.Text)
	}
	return set
}

// tally is what was measured of some questions.
type tally struct {
	questions, conflicted, found int
	reports, alarms              int
	pairs, pairsFound            int
}

func (m *tally) add(t *testing.T, r conflictRow) {
	all := make([]int, len(r.Documents))
	conflicted := false
	for i := range r.Documents {
		all[i] = i
		for j := range i {
			if r.conflict(i, j) {
				conflicted = true
				m.pairs++
				pair := r.set(j, i)
				if slices.ContainsFunc(Contradictions(r.Question, pair, ids(pair)), r.hit) {
					m.pairsFound++
				}
			}
		}
	}
	set := r.set(all...)
	found := false
	for _, c := range Contradictions(r.Question, set, ids(set)) {
		m.reports++
		verdict := "hit"
		if r.hit(c) {
			found = true
		} else {
			m.alarms++
			verdict = "false alarm"
		}
		log(t, verdict, r.Question, c)
	}
	m.questions++
	if conflicted {
		m.conflicted++
		if found {
			m.found++
		} else if *show {
			t.Logf("missed: %s %q against %q", r.Question, r.Gold[0], r.Wrong)
		}
	}
}

func log(t *testing.T, verdict, question string, c marchwarden.Contradiction) {
	if *show {
		t.Logf("%s: %s\n  %s, %s: %q | %q\n  A %s\n  B %s", verdict, question, c.Subject, c.Attribute, c.A.Value, c.B.Value, c.A.RawExcerpt, c.B.RawExcerpt)
	}
}

func (m tally) recall() float64 { return ratio(m.found, m.conflicted) }

func (m tally) alarmRate() float64 { return ratio(m.alarms, m.questions) }

func (m tally) String() string {
	return fmt.Sprintf("questions %d\nwith a conflict %d\nrecall %.3f\npairs of documents in conflict %d\npair recall %.3f\nreports %d\nprecision %.3f\nfalse alarms per question %.3f\n",
		m.questions, m.conflicted, m.recall(), m.pairs, ratio(m.pairsFound, m.pairs), m.reports, ratio(m.reports-m.alarms, m.reports), m.alarmRate())
}

func ratio(n, of int) float64 { return float64(n) / float64(max(1, of)) }

// TestConflict measures on RAMDocs which conflicts between documents are
// reported, and compares with testdata/conflict.txt, which -update rewrites. All
// documents of a question are sources, all their passages are compared.
//
//   - A question has a conflict if a document labelled "misinfo" stands beside
//     one labelled "correct" with the answer for the same thing, or beside another
//     "misinfo" with another answer. Documents that rightly answer for different
//     things of one name do not conflict.
//   - Recall is the share of these questions for which at least one report is
//     true: each excerpt holds one of two such answers, and each value is of it; a
//     surname stands for a name and a year for a date.
//   - Pair recall is the same over pairs of documents, each compared alone with
//     the question. It is low because many documents labelled "correct" merely
//     have the answer somewhere in them.
//   - Every other report is a false alarm, true as it may be of something that the
//     question does not ask. Precision is the share of reports that are true.
//
// The floors in contradict.go were chosen with these sets in sight, so that new
// text may fare worse: on the half of the questions that was not looked at until
// the end, recall was 0.11 and precision 0.24 below the other half at first.
//
// Neither recall can reach one: some answers stand in tables and menus of which no
// reader could tell whom they are about.
//
// The other sets are of encyclopaedia articles, each paragraph as a source. They
// are not known to contradict each other, so whatever is reported on them counts
// as a false alarm.
func TestConflict(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("conflict: skipped with -short and -race, which tell nothing new about it")
	}
	var m tally
	for _, r := range datatest.Rows[conflictRow](t, "conflict/ramdocs") {
		m.add(t, r)
	}
	report := "# contradictions between documents, see TestConflict\nramdocs\n" + m.String()
	quiet := 0
	for _, l := range []struct {
		name  string
		count func(*testing.T) (alarms, asked int)
	}{{"squad2", squadAlarms}, {"hotpot", hotpotAlarms}, {"musique", musiqueAlarms}} {
		alarms, asked := l.count(t)
		quiet += alarms
		report += fmt.Sprintf("%s\nquestions %d\nfalse alarms %d\n", l.name, asked, alarms)
	}
	t.Log("\n" + report)
	if m.recall() < recallFloor {
		t.Errorf("recall is %.3f, below the floor of %.3f", m.recall(), recallFloor)
	}
	if m.alarmRate() > alarmsCeiling {
		t.Errorf("%.3f false alarms per question, over the ceiling of %.3f", m.alarmRate(), alarmsCeiling)
	}
	if quiet > quietCeiling {
		t.Errorf("%d false alarms where sources agree, over the ceiling of %d", quiet, quietCeiling)
	}
	datatest.Golden(t, "testdata/conflict.txt", report, *update)
}

// squadAlarms asks questions spread over SQuAD2's articles.
func squadAlarms(t *testing.T) (alarms, asked int) {
	const each = 40
	for _, a := range squadtest.Read(t) {
		set := &evidence.Set{}
		var questions []string
		for i, p := range a.Paragraphs {
			addPage(set, fmt.Sprintf("p%d", i), a.Name(), p.Context)
			for _, q := range p.QAs {
				questions = append(questions, q.Question)
			}
		}
		for i := range each {
			alarms += reported(t, questions[i*len(questions)/each], set)
			asked++
		}
	}
	return alarms, asked
}

func hotpotAlarms(t *testing.T) (alarms, asked int) {
	for _, r := range datatest.Rows[struct {
		Question string
		Context  [][2]any // title, sentences
	}](t, "multidoc/hotpot100") {
		set := &evidence.Set{}
		for i, c := range r.Context {
			var text strings.Builder
			for _, s := range c[1].([]any) {
				text.WriteString(s.(string))
			}
			addPage(set, fmt.Sprintf("p%d", i), c[0].(string), text.String())
		}
		alarms += reported(t, r.Question, set)
		asked++
	}
	return alarms, asked
}

func musiqueAlarms(t *testing.T) (alarms, asked int) {
	for _, r := range datatest.Rows[struct {
		Question   string
		Paragraphs []struct {
			Title string
			Text  string `json:"paragraph_text"`
		}
	}](t, "multidoc/musique100-hippo") {
		set := &evidence.Set{}
		for i, p := range r.Paragraphs {
			addPage(set, fmt.Sprintf("p%d", i), p.Title, p.Text)
		}
		alarms += reported(t, r.Question, set)
		asked++
	}
	return alarms, asked
}

func addPage(set *evidence.Set, locator, title, text string) {
	set.Add(fetch.Page{Locator: locator, Title: title, Text: blob.Of([]byte(text))}, text)
}

func reported(t *testing.T, question string, set *evidence.Set) int {
	found := Contradictions(question, set, ids(set))
	for _, c := range found {
		log(t, "false alarm", question, c)
	}
	return len(found)
}
