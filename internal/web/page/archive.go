package page

import (
	"net/url"
	"time"
)

// History is the page of past runs. What was typed is given back as it was typed.
type History struct {
	Frame
	Words                        string
	Statuses, Researchers        []Option
	MinCost, MaxCost             string
	MinConfidence, MaxConfidence string
	Since, Until                 string // 2006-01-02
	Faults                       []Fault
	Entries                      []Entry
	Total, From, To              int // "From to To of Total", counted from one
	Newer, Older                 url.Values
	// With is the run that another is to be compared with, chosen beforehand.
	With string
}

// Fault is what is wrong with a field, or nil.
func (h History) Fault(field string) *Fault { return faultOf(h.Faults, field) }

// Filtered says that some runs are left out on purpose.
func (h History) Filtered() bool {
	return h.Words != "" || h.narrowed()
}

// Narrowed says that the filters besides the words are in use, so that they are
// shown open.
func (h History) Narrowed() bool { return h.narrowed() || len(h.Faults) > 0 }

func (h History) narrowed() bool {
	for _, o := range append(append([]Option{}, h.Statuses...), h.Researchers...) {
		if o.Chosen {
			return true
		}
	}
	return h.MinCost+h.MaxCost+h.MinConfidence+h.MaxConfidence+h.Since+h.Until != ""
}

// Numbers is the page of figures over many runs.
type Numbers struct {
	Frame
	Spans   []Option // over how many days, of which one is chosen
	Facts   []Fact   // totals
	Figures []Figure
}

// Compare is two runs side by side.
type Compare struct {
	Frame
	A, B Entry
	// Rows are measures of both, such as confidence, its factors, tokens.
	Rows []Measure
	// Claims are those of both, first those in both, and what became of each.
	Claims  []Pair
	Sources []Shared
	Gaps    []Shared
}

// Measure is one value of both runs.
type Measure struct{ Name, A, B, Difference string }

// Pair is a claim of both runs, or of one: the other is nil.
type Pair struct {
	A, B    *Claim
	Changed bool // the words or the verdict
}

// Shared is something that both runs have, or one of them.
type Shared struct {
	Text, Locator string
	InA, InB      bool
}

// Drift is a check of the sources of a run.
type Drift struct {
	Frame
	ID, Question string
	CheckedAt    time.Time // zero: there was none yet
	Summary      string
	Sources      []DriftSource
	Claims       []DriftClaim
	CanCheck     bool
}

// DriftSource is what became of a document and its passages.
type DriftSource struct {
	Title, Locator string
	State          string // unchanged, changed, gone, refused, unanswered, unchecked
	Detail         string
	MovedTo        string
	Fetched        time.Time
	Passages       []DriftPassage
}

// DriftPassage is what became of an excerpt.
type DriftPassage struct {
	Citation int
	State    string // present, altered, missing, unknown
	Excerpt  string
	// Diff is how an altered passage came about, in order.
	Diff []Edit
}

// Edit is some words of a passage: kept, or only then, or only now. A space stands
// between two edits.
type Edit struct {
	Text       string
	Went, Came bool
}

// DriftClaim is what became of a sentence.
type DriftClaim struct {
	Text      string
	State     string // kept, weakened, lost, unknown
	Citations []int
}

// SignIn is the page for those who are not known yet.
type SignIn struct {
	Frame
	// Team says that there are tokens to sign in with; else the way in is a link
	// that the program prints.
	Team          bool
	Problem, Hint string // what is wrong, and what helps
	// Next is where one wanted to go, a path of this server; "" for none.
	Next string
	// Elsewhere says that one came by a link of another site, for which browsers hold
	// back the cookie: who is in already needs but follow a link to Next.
	Elsewhere bool
}

// Problem is the page of what went wrong.
type Problem struct {
	Frame
	Status   int
	Headline string
	Message  string
	Hint     string
	Code     string
	// Back is where to go on from here, a path of this server; "" is the first page.
	Back string
}

// Confirm asks once more before something is done that cannot be undone.
type Confirm struct {
	Frame
	ID, Question string // the run that it is about
	Act          Act
	Headline     string
	Message      string
	Facts        []Fact
	Button       string
}
