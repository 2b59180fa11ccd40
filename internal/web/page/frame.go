package page

import (
	"html/template"
	"time"
)

// Frame is what every page has.
type Frame struct {
	Title string // of the window; the program's name is added
	CSRF  string // the token of the session's forms
	// User is who is signed in; "" is the local user, who cannot sign out.
	User string
	// Notice is one sentence about what was just done, or "".
	Notice string
	// Bare leaves out the navigation, for those who are not signed in.
	Bare bool
}

// Piece is a part of a text, marked or not. All pieces together are the text.
type Piece struct {
	Text string
	// Number is the citation that a marked piece is the excerpt of; 0 is plain text,
	// except where Mark says otherwise.
	Number int
	Mark   bool
}

// Fact is a label and what is to be said under it. A fact without a value is not
// shown.
type Fact struct{ Label, Value string }

// Fault is what is wrong with a field of a form. Field is its name in the form, or ""
// for the form as a whole.
type Fault struct{ Field, Message, Hint string }

// Option is one of several values of a field.
type Option struct {
	Value, Name string
	Chosen      bool
	Count       int // how many there are, shown if it is not 0
}

// Figure is a picture of numbers with its table.
type Figure struct {
	Title string
	About string // what it shows and what to look for, in a sentence
	Body  template.HTML
}

// Entry is a run in a list.
type Entry struct {
	ID, Question string
	// Snippet is where the words that were searched for stand.
	Snippet    []Piece
	Researcher string
	Status     string // complete, planned, interrupted, running, damaged
	Began      time.Time
	Took       time.Duration
	Confidence *float64
	Citations  int
	Gaps       int
	Tokens     int
	Cost       string // such as "$0.04", or "" if it is unknown
	Imported   bool
	Partial    bool
	Problem    string // why it is damaged
}

// Counted says that time and cost are known: a run that goes on, or was cut off, has
// taken more than what its record says so far.
func (e Entry) Counted() bool { return e.Partial || e.Status == "complete" || e.Status == "planned" }

// Unanswered says that the run came to its end and found nothing to cite.
func (e Entry) Unanswered() bool { return e.Status == "complete" && e.Citations == 0 }

// GapGroup is the gaps of one category, whose name is in words.
type GapGroup struct {
	Name string
	Gaps []Gap
}

// Gap is what was looked for and not found.
type Gap struct {
	Topic, Detail string
	From          string   // who reported it, or ""
	Done          []string // what the investigator did about it, in words
}

// Discovery is something met on the way.
type Discovery struct {
	Kind      string // in words: "new source"
	Query     string
	Reason    string
	Suggested string // researcher
	Locator   string
	From      string
}

// Decision is what the investigator did about a report.
type Decision struct {
	About  string // in words
	Topic  string
	Action string // in words: "followed"
	Reason string
	Rihla  int // what it led to, or 0
}

// Claim is a sentence of an answer with its evidence.
type Claim struct {
	Number    int // from one
	Text      string
	Support   string // supported, partial, unsupported, unchecked
	Citations []int
}

// SourceLine is a citation in a list.
type SourceLine struct {
	Number    int
	Title     string // or "", then the locator stands for it
	Locator   string
	Published string
	Authority string
	// State is what became of the source since: "" is not known, and else what
	// package drift calls it, such as unchanged, changed, gone.
	State string
}
