package trace

import marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"

// Pointers are what the words of the caller lead to.
type Pointers struct {
	// Given are the addresses in the caller's words, which may be read unsearched.
	Given []string `json:"given,omitempty"`
	// Talk is the conversation that the run continues; nil for one that stands alone.
	Talk *Talk `json:"talk,omitempty"`
}

// Talk is a conversation, as far as those may know it whom the run asks.
type Talk struct {
	// Turns are the runs that went before, the first one first. A rihla has none: it is
	// told the whole question.
	Turns []Turn `json:"turns,omitempty"`
	// Kept is how many documents those runs have stored that can be read again, Searched
	// what they searched for the same question, and Answered that they found an answer to
	// it with no fewer iterations.
	Kept     int      `json:"kept,omitempty"`
	Searched []string `json:"searched,omitempty"`
	Answered bool     `json:"answered,omitempty"`
	// Asked is the question as it was typed, where that of the request is completed.
	Asked string `json:"asked,omitempty"`
}

// Turn is one run of a conversation. One whose findings are private and may not be told
// has nothing but what its caller typed.
type Turn struct {
	TraceID  marchwarden.TraceID `json:"trace_id"`
	Asked    string              `json:"asked"`              // as it was typed
	Question string              `json:"question,omitempty"` // as it was understood
	Short    string              `json:"short,omitempty"`    // the answer in a few words
	Answer   string              `json:"answer,omitempty"`   // its beginning
}
