// Package trace is the journal of one research call: typed steps, one JSON
// object a line, in a file named by the trace id.
//
// It owns the steps, the file and its reader. What is worth
// recording is the loop's affair; answering from a record is package replay's.
//
// On disk (docs/trace-format.md says it for people):
//
//	{"step":1,"action":"start","timestamp":"…","decision":"…", …the step's own fields,"sum":"…"}\n
//
// Steps are numbered from 1 without holes, in the order of their lines. A line is
// written by one write call and fsynced before Append returns; a torn last line
// is what a crash leaves, and is cut on open. A line ends with a checksum over
// itself and the one before it, so that no bit of a trace can change unnoticed
// (since format 2). The writer of a trace holds a lock on its file. Fields are
// only ever added; a reader keeps a step whose action it does not know as Unknown.
package trace

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
)

// Format is the version of the line format, carried by every start step. Format 1
// had no checksums; it can still be read. A later one is refused.
const Format = 2

// Action is the kind of a step.
type Action string

// The actions.
const (
	ActionStart             Action = "start"
	ActionIteration         Action = "iteration_start"
	ActionMessage           Action = "agent_message"
	ActionSearch            Action = "web_search"
	ActionSearchComplete    Action = "web_search_complete"
	ActionFetch             Action = "fetch_url"
	ActionFetchComplete     Action = "fetch_url_complete"
	ActionModel             Action = "model_call"
	ActionModelComplete     Action = "model_call_complete"
	ActionEmbedComplete     Action = "embed_complete"
	ActionCheckpoint        Action = "checkpoint"
	ActionBudgetExhausted   Action = "budget_exhausted"
	ActionSynthesisStart    Action = "synthesis_start"
	ActionSynthesisComplete Action = "synthesis_complete"
	ActionSynthesisError    Action = "synthesis_error"
	ActionVerify            Action = "verify"
	ActionComplete          Action = "complete"
	ActionClarified         Action = "clarified"
	ActionPlan              Action = "plan"
	ActionRihla             Action = "rihla"
	ActionRihlaUnderWay     Action = "rihla_under_way"
	ActionRihlaComplete     Action = "rihla_complete"
	ActionArrival           Action = "rihla_arrived"
	ActionDecision          Action = "decision"
	ActionEvidence          Action = "evidence_checked"
	ActionResume            Action = "resume"
)

// Head is what every step has. Append fills in all of it but Decision.
type Head struct {
	Step      int       `json:"step"`
	Action    Action    `json:"action"`
	Timestamp time.Time `json:"timestamp"`
	// Decision is a sentence that a person can read.
	Decision string `json:"decision"`
}

// Header gives the package's own code access to the head of any step.
func (h *Head) Header() *Head { return h }

// Step is one of the step types of this package, by pointer.
type Step interface{ Header() *Head }

// ActionID identifies the whole description of an effect: its kind and input.
type ActionID struct{ blob.Ref }

// Effect is what a finished effect adds to its step: what was asked and what
// came back, both by hash. The output is in the blob store before the step is
// in the trace.
type Effect struct {
	ActionID ActionID `json:"action_id"`
	OutputID blob.Ref `json:"output_id"`
	// Error is the code of a failed effect; its output then holds the error.
	Error     marchwarden.Code `json:"error,omitempty"`
	ElapsedMS float64          `json:"elapsed_ms"`
	// Retried says that the effect was under way once before, when its run was cut
	// off: whether it was carried out then, and charged for, is unknown.
	Retried bool `json:"retried,omitempty"`
	// Part is how many ends the run had gone past when it came by the effect.
	Part int `json:"part,omitempty"`
}

// Record is the effect itself, so that steps which embed it can be found.
func (e *Effect) Record() *Effect { return e }

// Begun is what a step adds that begins an effect: which one. An effect that is
// begun and not finished was under way when its run was cut off.
type Begun struct {
	ActionID ActionID `json:"action_id,omitzero"`
}

// Begins is the effect that a step begins, so that steps which embed it can be found.
func (b *Begun) Begins() *ActionID { return &b.ActionID }

// Beginning is a step that begins an effect.
type Beginning interface {
	Step
	Begins() *ActionID
}

// Recorded is a step that finishes an effect.
type Recorded interface {
	Step
	Record() *Effect
}

// Start opens a trace with everything that a rerun needs to know.
type Start struct {
	Head
	Format     int                 `json:"format"`
	TraceID    marchwarden.TraceID `json:"trace_id"`
	Researcher string              `json:"researcher"`
	Mind       string              `json:"mind"`    // the reasoner's id
	Engine     string              `json:"engine"`  // the search engine's name
	Version    string              `json:"version"` // of the program
	Request    marchwarden.Request `json:"request"`
	Limits     marchwarden.Limits  `json:"limits"`
	StartedAt  time.Time           `json:"started_at"`
	Wall       time.Duration       `json:"wall_ns,omitempty"`     // how long it may gather; 0 is no limit
	Deadline   time.Duration       `json:"deadline_ns,omitempty"` // how long it may take in all; 0 is no limit
	// Model is the language model's id, or "" for a reasoner without one; Mind is then
	// the same and MindVersion says which reasoner asks it.
	Model       string `json:"model,omitempty"`
	MindVersion string `json:"mind_version,omitempty"`
	Instruments
	Pointers
	// Library says what was searched and in which state, for people.
	Library []string `json:"library,omitempty"`
	// Fingerprint is a hash over the names and contents of all documents in it.
	Fingerprint string `json:"library_fingerprint,omitempty"`
	// Gaps are failures met before the run began; they are in its result.
	Gaps []marchwarden.Gap `json:"gaps,omitempty"`
	// Guide says to a reasoner with a model what its searches may ask for, such as the
	// tables of a database.
	Guide string `json:"guide,omitempty"`
	// PartOf says that the run is a rihla of an investigation, which has its own trace.
	PartOf bool `json:"part_of_investigation,omitempty"`
	// Investigation is what an investigator depends on besides; nil for others.
	Investigation *Investigation `json:"investigation,omitempty"`
	// Choice is who was asked with what, by which the run resumes. Flags are how earlier
	// versions recorded that: a command line.
	Choice    *marchwarden.Choice `json:"choice,omitempty"`
	Flags     []string            `json:"flags,omitempty"`
	Additions `json:"-"`
}

// Instruments are what a run reads and judges with, apart from its reasoner.
type Instruments struct {
	// Gate names the rules of the grounding gate, or is "" for the first ones.
	Gate string `json:"gate,omitempty"`
	// Vectors is the id of what made sentence vectors, or "" for a run without. They are
	// computed again.
	Vectors string `json:"vectors,omitempty"`
	// Reader is the id of what read passages with the question, or "" for a run
	// without. Its readings are made again.
	Reader string `json:"reader,omitempty"`
	// Prices are those of what the run may ask, by which its cost is counted. Runs that
	// were recorded before costs were counted have none.
	Prices ledger.Prices `json:"prices,omitempty"`
	// Calibration is the table by which earlier versions turned the score of the result
	// into a probability. New runs have none: the score is the confidence.
	Calibration json.RawMessage `json:"calibration,omitempty"`
}

// Additions are what the resume steps added to a run.
type Additions struct {
	// Extended are the additions with which the run went past its ends, Lengthened is
	// the time it got when it was cut off, and Worked is how long it had worked when it
	// went on last.
	Extended   []Extension
	Lengthened []Lengthening
	Worked     time.Duration
}

// Iteration begins one round of planning and gathering.
type Iteration struct {
	Head
	Iteration int `json:"iteration"`
}

// Message is a decision of the reasoner.
type Message struct {
	Head
	Iteration int      `json:"iteration,omitempty"`
	Queries   []string `json:"queries,omitempty"`
	Locators  []string `json:"locators,omitempty"`
	// Refused counts documents that were asked for and that nothing in the run
	// had offered.
	Refused int `json:"refused,omitempty"`
}

// Search asks an engine.
type Search struct {
	Head
	Begun
	Engine string `json:"engine"`
	Query  string `json:"query"`
}

// SearchComplete is an engine's answer.
type SearchComplete struct {
	Head
	Effect
	Engine   string   `json:"engine"`
	Query    string   `json:"query"`
	Hits     int      `json:"hits"`
	Locators []string `json:"locators,omitempty"`
}

// Fetch asks for a document.
type Fetch struct {
	Head
	Begun
	URL string `json:"url"`
}

// FetchComplete is a document that was stored, or the failure to get it.
type FetchComplete struct {
	Head
	Effect
	URL           string   `json:"url"`
	ContentHash   blob.Ref `json:"content_hash"` // of the extracted text, or of the bytes as fetched when there is none; "" when the fetch failed
	ContentLength int      `json:"content_length"`
	RawHash       blob.Ref `json:"raw_hash"` // of the bytes as fetched
	RawLength     int      `json:"raw_length"`
	MediaType     string   `json:"media_type,omitempty"`
	Extractor     string   `json:"extractor,omitempty"`
	// Also are further bytes that the document was made of.
	Also []blob.Ref `json:"also,omitempty"`
}

// Model asks a language model.
type Model struct {
	Head
	Begun
	Model      string   `json:"model"`
	Prompt     string   `json:"prompt"`      // the prompt's name
	PromptHash blob.Ref `json:"prompt_hash"` // of the whole rendered call
	// TemplateHash is of the prompt's file.
	TemplateHash string `json:"template_hash,omitempty"`
}

// ModelComplete is a model's reply.
type ModelComplete struct {
	Head
	Effect
	Model      string   `json:"model"`
	Prompt     string   `json:"prompt"`
	PromptHash blob.Ref `json:"prompt_hash"`
	ReplyHash  blob.Ref `json:"reply_hash"` // of the reply's text; "" when the call failed
	TokensIn   int      `json:"tokens_in"`  // cached ones included
	TokensOut  int      `json:"tokens_out"`
	CacheRead  int      `json:"cache_read,omitempty"`
	CacheWrite int      `json:"cache_write,omitempty"`
	Stop       string   `json:"stop,omitempty"` // why the model stopped
	// TemplateHash is of the prompt's file.
	TemplateHash string `json:"template_hash,omitempty"`
}

// Checkpoint is the clock and the caller's patience, read at one point of the
// run. Both are effects like any other, so that a rerun sees what the run saw.
type Checkpoint struct {
	Head
	Effect
	At          string `json:"at"`
	Interrupted bool   `json:"interrupted,omitempty"`
}

// BudgetExhausted says which caps ended the work.
type BudgetExhausted struct {
	Head
	What []string `json:"what"`
}

// SynthesisStart begins the writing of the answer.
type SynthesisStart struct {
	Head
	Sources  int `json:"sources"`
	Passages int `json:"passages"`
}

// SynthesisComplete is a draft.
type SynthesisComplete struct {
	Head
	Claims int `json:"claims"`
}

// SynthesisError is a synthesis that failed.
type SynthesisError struct {
	Head
	Error marchwarden.Code `json:"error"`
}

// Verify is what the grounding gate let through and what it did not.
type Verify struct {
	Head
	Citations      int `json:"citations"`
	Claims         int `json:"claims"`
	DroppedClaims  int `json:"dropped_claims"`
	DroppedCells   int `json:"dropped_cells,omitempty"`
	UnknownIDs     int `json:"unknown_ids"`
	DroppedQuotes  int `json:"dropped_quotes"`
	DroppedLeads   int `json:"dropped_leads"` // discoveries and open questions
	DroppedShort   int `json:"dropped_short,omitempty"`
	Contradictions int `json:"contradictions"`
	RefusedReads   int `json:"refused_reads,omitempty"` // documents asked for that nothing had offered
	// Judged is how many claims a model and the local judge gave a verdict on, and Agreed on how many they said the same.
	Judged int `json:"judged,omitempty"`
	Agreed int `json:"agreed,omitempty"`
}

// Complete closes a trace. A trace without it belongs to a run that is still
// going on or was cut off.
type Complete struct {
	Head
	Result      blob.Ref         `json:"result"` // the result as it left the process
	TokensUsed  int              `json:"tokens_used"`
	Iterations  int              `json:"iterations_run"`
	Citations   int              `json:"citations"`
	Confidence  marchwarden.Unit `json:"confidence"`
	Interrupted bool             `json:"interrupted,omitempty"`
}

// Unknown is a step of an action that this version does not know. It can be read
// and encoded again, not appended. One that Dir.Skim passed over has no Raw.
type Unknown struct {
	Head
	Raw json.RawMessage `json:"-"` // the line as it was read, without its checksum
}

// MarshalJSON gives the line as it was read, so that nothing of it is lost.
func (u *Unknown) MarshalJSON() ([]byte, error) { return u.Raw, nil }

// kinds has a step of each action.
var kinds = map[Action]Step{
	ActionStart: &Start{}, ActionIteration: &Iteration{}, ActionMessage: &Message{}, ActionSearch: &Search{}, ActionSearchComplete: &SearchComplete{},
	ActionFetch: &Fetch{}, ActionFetchComplete: &FetchComplete{}, ActionModel: &Model{}, ActionModelComplete: &ModelComplete{},
	ActionEmbedComplete: &EmbedComplete{}, ActionCheckpoint: &Checkpoint{}, ActionBudgetExhausted: &BudgetExhausted{},
	ActionSynthesisStart: &SynthesisStart{}, ActionSynthesisComplete: &SynthesisComplete{}, ActionSynthesisError: &SynthesisError{},
	ActionVerify: &Verify{}, ActionComplete: &Complete{}, ActionResume: &Resume{}, ActionClarified: &Clarified{}, ActionPlan: &Plan{}, ActionRihla: &Rihla{},
	ActionRihlaUnderWay: &RihlaUnderWay{}, ActionRihlaComplete: &RihlaComplete{}, ActionArrival: &Arrival{}, ActionDecision: &Decision{}, ActionEvidence: &Evidence{},
}

var actions = func() map[reflect.Type]Action {
	all := map[reflect.Type]Action{}
	for a, s := range kinds {
		all[reflect.TypeOf(s)] = a
	}
	return all
}()

// newStep makes an empty step of an action, or nil for one it does not know.
func newStep(a Action) Step {
	if kind := kinds[a]; kind != nil {
		return reflect.New(reflect.TypeOf(kind).Elem()).Interface().(Step)
	}
	return nil
}

// Refs are the blobs that a step depends on.
func Refs(s Step) []blob.Ref {
	var refs []blob.Ref
	if e, ok := s.(Recorded); ok {
		refs = append(refs, e.Record().OutputID)
	}
	switch s := s.(type) {
	case *FetchComplete:
		refs = append(append(refs, s.RawHash, s.ContentHash), s.Also...)
	case *Complete:
		refs = append(refs, s.Result)
	case *Evidence:
		refs = append(refs, s.ContentHash)
	}
	return slices.DeleteFunc(refs, func(r blob.Ref) bool { return !r.Valid() })
}
