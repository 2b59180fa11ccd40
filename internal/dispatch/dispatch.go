// Package dispatch is the boundary between an investigator and the researchers
// that it sends on journeys: who there is, and how one of them is asked. Where a
// researcher runs (in this process, in a child process, behind an address) is the
// affair of an implementation such as package pool; an investigator cannot tell.
//
// The package owns the words of the boundary and does nothing itself.
package dispatch

import (
	"context"
	"errors"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Member is one researcher of a network, as its owner described it.
type Member struct {
	Name  string `json:"name"`
	Scope string `json:"scope"` // one sentence on what it covers
	// Transport says for people where it runs: "in process", a command, an address.
	Transport string `json:"transport,omitempty"`
	// Share is its weight when a budget is split; 0 counts as 1.
	Share float64 `json:"share,omitempty"`
	Trust Trust   `json:"trust,omitempty"`
	// Private says that what it reports comes from sources of the user's own, such
	// as files or a database, which others must not learn of.
	Private bool `json:"private,omitempty"`
	// OpenWorld says that what it is asked leaves this machine.
	OpenWorld bool `json:"open_world,omitempty"`
}

// Trust is how far a researcher's own word on its sources goes.
type Trust string

// The degrees of trust.
const (
	// Own is a researcher of this program, which stores what it cites where every process can look.
	Own Trust = "own"
	// Known is an external researcher whose stored documents are taken for what they say they are,
	// if it hands them over by hash. The default.
	Known Trust = "known"
	// Unknown is one whose documents are fetched again, whatever it hands over.
	Unknown Trust = "unknown"
)

// Dispatcher asks members. It is safe for concurrent use.
type Dispatcher interface {
	// Members are all that may be asked, in the order of their configuration. A
	// member may be out of order all the same; asking it says so.
	Members() []Member
	// Dispatch asks one member. It keeps the promises of
	// marchwarden.Researcher.Research; beyond them, a researcher that is not there,
	// died, or gave no result that can be read is an error with CodeUnavailable,
	// CodeMalformed or CodeUnsupported, and says who. The deadline of ctx is the
	// member's too: one that can hand over a partial result in time does.
	Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)
	// Evidence is the stored content that a member cited, by its hash
	// ("sha256:…"), checked against it. CodeNotFound and CodeUnsupported say that
	// the member has none to give.
	Evidence(ctx context.Context, member, hash string) ([]byte, error)
}

// ErrNotAsked is in the chain of an error after which nothing can have been spent:
// the member was not reached.
var ErrNotAsked = errors.New("not asked")

// NotAsked puts ErrNotAsked into the chain of err, whose words stay as they are.
func NotAsked(err error) error {
	if err == nil {
		return nil
	}
	return notAsked{err}
}

type notAsked struct{ error }

func (n notAsked) Unwrap() error      { return n.error }
func (notAsked) Is(target error) bool { return target == ErrNotAsked }

// Said is a failure in the words of a researcher, which may hold anything: a stack, a
// path, a secret. They are for those who run the researcher. What callers of an external
// one are told is Plain.
type Said struct {
	Words error
	Plain *marchwarden.Error
}

// Error gives the words.
func (s *Said) Error() string { return s.Words.Error() }

// Unwrap exposes the code, which both have.
func (s *Said) Unwrap() error { return s.Words }
