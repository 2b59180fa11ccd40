package marchwarden

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a request, as the contract states them. Characters are Unicode
// code points.
const (
	MaxQuestionChars = 500
	MaxContextChars  = 2000
	MinIterations    = 1
	MaxIterations    = 20
	MinTokenBudget   = 1000
	MinSources       = 1

	MaxWritingChars = 500 // of audience and of instructions
	MinLength       = 20  // words
	MaxLength       = 5000
	MinOutputTokens = 200
	MaxCostUSD      = 10_000
)

// MaxRequestBytes bounds a request on the wire. The longest legal texts are below
// half of it, whatever escapes they use; the rest is room for a source filter.
const MaxRequestBytes = 64 << 10

// Request is the input of one research call.
type Request struct {
	// Question is what to find out. It may be omitted only when Resume is set.
	Question string `json:"question,omitempty"`
	// Context is what the caller already knows: the researcher avoids repeating
	// it, or refocuses by it.
	Context string `json:"context,omitempty"`
	// Depth picks the constraint preset; empty means Balanced.
	Depth Depth `json:"depth,omitempty"`
	// Constraints override the preset, each on its own.
	Constraints *Constraints `json:"constraints,omitempty"`
	// Format is the form of the answer; empty goes by the depth, see Form.
	Format Format `json:"format,omitempty"`
	// Length is about how many words the answer has; 0 goes by the form.
	Length int `json:"length,omitempty"`
	// Audience and Instructions say for whom and how to write, never what is true.
	Audience     string `json:"audience,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// Follow is the trace id of an earlier run of the same caller: the question
	// continues that conversation.
	Follow string `json:"follow,omitempty"`
	// Resume resumes an earlier run of the same caller: one that was cut off or
	// stopped, or one that ended at a cap if Constraints, which are added to what it
	// had, give it more. A run that has nothing left to do is returned.
	Resume string `json:"resume,omitempty"`
}

// Constraints override single values of the depth preset. A nil field means
// that the preset decides.
type Constraints struct {
	MaxIterations *int   `json:"max_iterations,omitempty"`
	TokenBudget   *int   `json:"token_budget,omitempty"`
	MaxSources    *int   `json:"max_sources,omitempty"`
	SourceFilter  string `json:"source_filter,omitempty"`
	// MaxCostUSD caps what the models of this research may cost, in US dollars.
	MaxCostUSD *float64 `json:"max_cost_usd,omitempty"`
	// Since and Until bound when a source was published, as 2006-01-02, both inclusive.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	// MaxOutputTokens caps the text that a host's model is given of the result.
	MaxOutputTokens *int `json:"max_output_tokens,omitempty"`
}

// Format is the form of an answer.
type Format string

// The forms. An empty Format goes by the depth of the request.
const (
	Brief  Format = "brief"  // a few sentences
	Plain  Format = "answer" // paragraphs
	Report Format = "report" // an answer in short, sections, lists and tables
	Table  Format = "table"  // a comparison as one table
)

// Form is the form that a request asks for: its Format, or by its depth brief,
// answer or report.
func (r Request) Form() Format {
	switch {
	case r.Format != "":
		return r.Format
	case r.Depth == Shallow:
		return Brief
	case r.Depth == Deep:
		return Report
	}
	return Plain
}

// Depth is how thoroughly to research.
type Depth string

// The depths. An empty Depth in a request means Balanced.
const (
	Shallow  Depth = "shallow"
	Balanced Depth = "balanced"
	Deep     Depth = "deep"
)

// Limits are the caps that one call runs under: the preset of its depth with
// the request's constraints laid over it.
type Limits struct {
	MaxIterations int `json:"max_iterations"`
	TokenBudget   int `json:"token_budget"`
	MaxSources    int `json:"max_sources"`
	// MaxCostUSD is what models may cost, in US dollars; 0 is no cap.
	MaxCostUSD float64 `json:"max_cost_usd,omitempty"`
}

// Plus are the limits with more added to each; what does not fit into a number is the
// largest one.
func (l Limits) Plus(more Limits) Limits {
	add := func(a, b int) int {
		if b > math.MaxInt-a {
			return math.MaxInt
		}
		return a + b
	}
	sum := Limits{MaxIterations: add(l.MaxIterations, more.MaxIterations), TokenBudget: add(l.TokenBudget, more.TokenBudget), MaxSources: add(l.MaxSources, more.MaxSources)}
	if l.MaxCostUSD > 0 { // nothing is added to no cap
		sum.MaxCostUSD = l.MaxCostUSD + more.MaxCostUSD
	}
	return sum
}

var presets = map[Depth]Limits{
	Shallow:  {MaxIterations: 2, TokenBudget: 5000, MaxSources: 5},
	Balanced: {MaxIterations: 5, TokenBudget: 20000, MaxSources: 10},
	Deep:     {MaxIterations: 8, TokenBudget: 60000, MaxSources: 20},
}

// Preset returns the caps of a depth; the zero Depth is Balanced. Calling it
// with a depth that Validate refuses gives zero Limits.
func Preset(d Depth) Limits { return presets[cmp.Or(d, Balanced)] }

// Limits lays the request's constraints over its depth's preset. The request
// must be valid.
func (r Request) Limits() Limits {
	l := Preset(r.Depth)
	if r.Constraints == nil {
		return l
	}
	set := func(dst *int, v *int) {
		if v != nil {
			*dst = *v
		}
	}
	set(&l.MaxIterations, r.Constraints.MaxIterations)
	set(&l.TokenBudget, r.Constraints.TokenBudget)
	set(&l.MaxSources, r.Constraints.MaxSources)
	if v := r.Constraints.MaxCostUSD; v != nil {
		l.MaxCostUSD = *v
	}
	return l
}

// Filter is the request's source filter; a request without one allows every
// source. The request must be valid; a filter that cannot be read allows none.
func (r Request) Filter() SourceFilter {
	if r.Constraints == nil {
		return SourceFilter{}
	}
	f, err := ParseSourceFilter(r.Constraints.SourceFilter)
	if err != nil {
		return SourceFilter{entries: []string{""}, hosts: []string{""}} // unreachable unless Validate was skipped
	}
	return f
}

// Covers reports whether a date of publication, 2006-01-02, lies within the request's
// bounds. One that is not known does.
func (r Request) Covers(published string) bool {
	c := r.Constraints
	return c == nil || published == "" || (c.Since == "" || published >= c.Since) && (c.Until == "" || published <= c.Until)
}

// Validate checks every rule of the contract and returns an *Error that names
// the field and its limit, or nil.
func (r Request) Validate() error {
	if r.Resume != "" {
		if _, err := ParseTraceID(r.Resume); err != nil {
			return invalid("resume", "pass the trace_id of an earlier result", "%q is not a trace id", clip(r.Resume, 60))
		}
	}
	if err := r.validateText(); err != nil {
		return err
	}
	if r.Depth != "" && !known(r.Depth) {
		return invalid("depth", "", "must be shallow, balanced or deep, not %q", clip(string(r.Depth), 40))
	}
	if err := r.validateWriting(); err != nil {
		return err
	}
	return r.Constraints.validate()
}

// validateWriting checks what says how to write, and what the question follows.
func (r Request) validateWriting() error {
	if r.Format != "" && !known(r.Format) {
		return invalid("format", "", "must be brief, answer, report or table, not %q", clip(string(r.Format), 40))
	}
	if r.Length != 0 && (r.Length < MinLength || r.Length > MaxLength) {
		return invalid("length", "", "must be from %d to %d words, not %d", MinLength, MaxLength, r.Length)
	}
	for field, text := range map[string]string{"audience": r.Audience, "instructions": r.Instructions} {
		if !utf8.ValidString(text) {
			return invalid(field, "", "must be valid UTF-8")
		}
		if n := utf8.RuneCountInString(text); n > MaxWritingChars {
			return invalid(field, "", "must be at most %d characters, has %d", MaxWritingChars, n)
		}
	}
	if r.Follow == "" {
		return nil
	}
	if _, err := ParseTraceID(r.Follow); err != nil {
		return invalid("follow", "pass the trace_id of an earlier result", "%q is not a trace id", clip(r.Follow, 60))
	}
	if r.Resume != "" {
		return invalid("follow", "resume continues one run; follow asks a new question", "cannot be given together with resume")
	}
	return nil
}

func (r Request) validateText() error {
	switch {
	case !utf8.ValidString(r.Question):
		return invalid("question", "", "must be valid UTF-8")
	case strings.TrimSpace(r.Question) == "" && (r.Resume == "" || r.Question != ""):
		return invalid("question", "ask something in 1 to 500 characters", "must not be blank")
	case utf8.RuneCountInString(r.Question) > MaxQuestionChars:
		return invalid("question", "put what you already know into context", "must be at most %d characters, has %d", MaxQuestionChars, utf8.RuneCountInString(r.Question))
	case !utf8.ValidString(r.Context):
		return invalid("context", "", "must be valid UTF-8")
	case utf8.RuneCountInString(r.Context) > MaxContextChars:
		return invalid("context", "", "must be at most %d characters, has %d", MaxContextChars, utf8.RuneCountInString(r.Context))
	}
	return nil
}

func (c *Constraints) validate() error {
	if c == nil {
		return nil
	}
	if v := c.MaxIterations; v != nil && (*v < MinIterations || *v > MaxIterations) {
		return invalid("constraints.max_iterations", "", "must be from %d to %d, not %d", MinIterations, MaxIterations, *v)
	}
	if v := c.TokenBudget; v != nil && *v < MinTokenBudget {
		return invalid("constraints.token_budget", "", "must be at least %d, not %d", MinTokenBudget, *v)
	}
	if v := c.MaxSources; v != nil && *v < MinSources {
		return invalid("constraints.max_sources", "", "must be at least %d, not %d", MinSources, *v)
	}
	if v := c.MaxOutputTokens; v != nil && *v < MinOutputTokens {
		return invalid("constraints.max_output_tokens", "", "must be at least %d, not %d", MinOutputTokens, *v)
	}
	if v := c.MaxCostUSD; v != nil && !(*v > 0 && *v <= MaxCostUSD) {
		return invalid("constraints.max_cost_usd", "for example 0.50", "must be more than 0 and at most %d, not %v", MaxCostUSD, *v)
	}
	if err := validDates(c.Since, c.Until); err != nil {
		return err
	}
	_, err := ParseSourceFilter(c.SourceFilter)
	return err
}

func validDates(since, until string) error {
	for _, d := range []struct{ field, date string }{{"constraints.since", since}, {"constraints.until", until}} {
		if d.date == "" {
			continue
		}
		if _, err := time.Parse(time.DateOnly, d.date); err != nil {
			return invalid(d.field, "for example 2024-05-31", "must be a date such as 2024-05-31, not %q", clip(d.date, 40))
		}
	}
	if since != "" && until != "" && since > until {
		return invalid("constraints.until", "", "must not be before since, %s", since)
	}
	return nil
}

// DecodeRequest reads one request from its wire form and validates it. Unknown
// fields are ignored, so that a newer caller can talk to an older researcher; a
// wrong type is an error that names the field.
func DecodeRequest(data []byte) (Request, error) {
	var r Request
	if len(data) > MaxRequestBytes {
		return r, invalid("request", "", "must be at most %d bytes, has %d", MaxRequestBytes, len(data))
	}
	if !utf8.Valid(data) {
		return r, invalid("request", "", "must be valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&r); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return r, invalid(cmp.Or(wrong.Field, "request"), "", "must be %s, not %s", jsonKind(wrong.Type.Kind()), wrong.Value)
		}
		return r, invalid("request", "", "is not a JSON object: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return r, invalid("request", "", "has text after the JSON object")
	}
	return r, r.Validate()
}
