package page

import (
	"html/template"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Ask is the page on which a question is put. What was typed is given back as it was
// typed, with what is wrong about it.
type Ask struct {
	Frame
	Question, Context       string
	Depth                   string // the chosen one; "" is balanced
	TokenBudget, MaxSources string // as typed; "" leaves it to the depth
	Researchers             []Choice
	Faults                  []Fault
	Running, Recent         []Entry
	// Mind says who writes, such as a model's name; "" is that no model does.
	Mind string
}

// Choice is a researcher that may be asked.
type Choice struct {
	Name, Scope string
	// Leaves says that words of the question leave this machine, and Where to whom.
	Leaves bool
	Where  string
	Chosen bool
	Down   string // why it cannot be asked, or ""
}

// depth is a row of the choice of depths.
type depth struct {
	Value, Name, About string
	marchwarden.Limits
	Chosen bool
}

// Depths are the depths to choose from.
func (a Ask) Depths() []depth {
	all := []depth{
		{Value: string(marchwarden.Shallow), Name: "Shallow", About: "a quick look"},
		{Value: string(marchwarden.Balanced), Name: "Balanced", About: "the usual"},
		{Value: string(marchwarden.Deep), Name: "Deep", About: "follows more leads"},
	}
	for i := range all {
		all[i].Limits = marchwarden.Preset(marchwarden.Depth(all[i].Value))
		all[i].Chosen = a.Depth == all[i].Value || a.Depth == "" && all[i].Value == string(marchwarden.Balanced)
	}
	return all
}

// Fault is what is wrong with a field, or nil.
func (a Ask) Fault(field string) *Fault { return faultOf(a.Faults, field) }

func faultOf(all []Fault, field string) *Fault {
	for i := range all {
		if all[i].Field == field {
			return &all[i]
		}
	}
	return nil
}

// Run is the page of a run that goes on.
type Run struct {
	Frame
	ID, Question, Context string
	Live                  Live
	CanCancel             bool
}

// Live is what changes on it.
type Live struct {
	ID string
	// State is what the run is at, in a word; Summary is how it stands, in a short
	// sentence that is read aloud now and then.
	State, Summary string
	Over           bool // it goes on no more
	Interrupted    bool
	Began          time.Time
	Elapsed        time.Duration // since, at the time of this picture
	Tokens, Budget int
	Citations      int
	Lanes          template.HTML // of package chart
	Journeys       []Journey     // the lanes as a list, with what each is at
	Gaps           []GapGroup
	Discoveries    []Discovery
	Decisions      []Decision
}

// Journey is a lane in words.
type Journey struct {
	Number               int // 0 is the investigator, or the only researcher
	Researcher, Question string
	State                string // planned, planning, searching, reading, writing, checking, done, failed
	Doing                string
	Iteration            int
	Tokens, Budget       int
	Searches, Documents  int
	Citations            int
}
