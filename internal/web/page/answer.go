package page

import (
	"html/template"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Answer is the page of a run that has a result.
type Answer struct {
	Frame
	ID, Question, Context string
	Researcher            string
	Began                 time.Time
	Took                  time.Duration
	Partial               bool     // it was stopped before its end
	Warnings              []string // what a reader must know before all else
	Lead                  string   // above the answer: the short one, or that there is none
	LeadsTo               int      // the citation that it is from, or 0
	Body                  template.HTML
	Closest               []Near // to a question that is not answered
	// Evidence is the source in the panel; nil if none was chosen.
	Evidence       *Evidence
	Confidence     Confidence
	Claims         []Claim
	Support        string // the verdict whose claims are shown; "" is all
	Contradictions []Contradiction
	Gaps           []GapGroup
	Discoveries    []Discovery
	Questions      []OpenQuestion
	Decisions      []Decision // those about other things than gaps
	Rihlas         []Rihla
	Lanes          template.HTML
	Sources        []SourceLine
	Stages         template.HTML // tokens and time by stage
	Cost           []Fact
	Provenance     []Fact
	// Drift is the last check of the sources in one sentence, or "".
	Drift string
	Can   Can
}

// Can says what may be done with a run.
type Can struct {
	Resume, Rerun, Check, Delete bool
	// More proposes a token budget for resuming a run that ended at its cap; 0 uses what is left.
	More    int
	Exports []Export
}

// Export is a form in which a run can leave.
type Export struct{ Format, About string }

// Cites says that there is something to look at beside the answer: a result that cites
// nothing answers nothing, and has no confidence to speak of.
func (a Answer) Cites() bool { return len(a.Sources) > 0 || a.Evidence != nil }

// Costs says that something is known of what the run took.
func (a Answer) Costs() bool { return a.Stages != "" || len(a.Cost) > 0 || len(a.Provenance) > 0 }

// Standing is how many claims stand, and what is said of them: what is copied from a
// source is not proved by it.
func (a Answer) Standing() (s Standing) {
	quoted := 0
	for _, c := range a.Claims {
		switch marchwarden.Support(c.Support) {
		case marchwarden.Quoted:
			quoted++
			s.Count++
		case marchwarden.Supported:
			s.Count++
		}
	}
	switch quoted {
	case 0:
		s.Words = "supported"
	case s.Count:
		s.Words = "quoted"
	default:
		s.Words = "supported or quoted"
	}
	return s
}

// Standing is a number of claims and a word for them.
type Standing struct {
	Count int
	Words string
}

// Missing is how many gaps there are.
func (a Answer) Missing() (n int) {
	for _, g := range a.Gaps {
		n += len(g.Gaps)
	}
	return n
}

// Tally counts the claims by verdict, for the choice of those to show.
func (a Answer) Tally() []Option {
	all := []Option{{Value: "all", Name: "All", Count: len(a.Claims)}}
	for _, v := range verdicts {
		o := Option{Value: v.name, Name: v.title}
		for _, c := range a.Claims {
			if verdictOf(c.Support).name == v.name {
				o.Count++
			}
		}
		all = append(all, o)
	}
	at := 0
	for i, o := range all {
		if o.Value == a.Support {
			at = i
		}
	}
	all[at].Chosen = true
	return all
}

// Confidence is a number and what it was made of.
type Confidence struct {
	Value float64 // 0 to 1
	Words string  // what the number means, in a sentence
	// Factors are what it was computed from.
	Factors []Factor
}

// Factor is one of them.
type Factor struct {
	Name  string
	Words string // its value
	// Value is from 0 to 1, the more the better; what has no measure has none.
	Value *float64
	Why   string // how it bears on the number
}

// Contradiction is two excerpts that cannot both hold.
type Contradiction struct {
	Subject, Attribute, Detail string
	A, B                       Side
	Done                       []string // what the investigator did about it, in words
}

// Side is one of the two. Number is its citation, or 0.
type Side struct {
	Number                           int
	Title, Locator, Excerpt, Value   string
	Published, Authority, Researcher string
}

// Near is a passage that is near a question and no answer.
type Near struct{ Title, Locator, Excerpt, Reason string }

// OpenQuestion is a question that the research raised.
type OpenQuestion struct{ Question, Context, Priority string }

// Rihla is a journey that has ended.
type Rihla struct {
	Number, Parent    int
	Researcher        string
	Question, Reason  string
	Outcome           string
	TraceID           string // of its own run; "" if it is not here
	Citations, Tokens int
	Took              time.Duration
}

// Evidence is one source as the side panel shows it: the stored text around the
// excerpt.
type Evidence struct {
	RunID string
	// Preview says that the reader did not choose it: it fills the room beside an answer, and does
	// not come up over one.
	Preview       bool
	Number, Of    int // which of how many citations
	Title         string
	Locator       string
	Kind          string // web, file, arxiv, database…
	Author        string
	Origin        string
	Published     string
	Fetched       time.Time
	Authority     string
	Hash          string
	Start, End    int // of the excerpt in the stored text; both 0 if it is not known
	Confidence    *float64
	Claims        []Claim // that rest on it
	State, Detail string  // what became of it since, as in SourceLine, and more in words
	CheckedAt     time.Time
	// Text is the stored text around the excerpt; the piece with this number is the
	// excerpt itself, to the byte.
	Text                []Piece
	CutBefore, CutAfter bool
	Unchecked           bool   // known from its researcher's report alone
	Problem             string // why the text cannot be shown
	Excerpt             string // what to show then
	Notes               []string
}

// Source is the page of one whole source.
type Source struct {
	Frame
	RunID, Question string
	Evidence        Evidence // Text is the whole of it, every excerpt marked
	// Cut says that the text is longer than what is shown.
	Cut      bool
	Excerpts []SourceLine // the citations that are marked; Title is the excerpt's beginning
}
