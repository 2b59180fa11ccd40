package audit

// This part asks those who keep the names whether what a citation points to exists: web
// servers for addresses, the registries of DOIs and arXiv for papers, and the indexes of
// papers for retractions. It owns the three states of an answer and the rule between them:
// what no service answered is unchecked, and never absent. It sends the locator and nothing
// else, and it reads no document.

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// Kind is what a locator names.
type Kind string

// The kinds of locators.
const (
	URL   Kind = "url"
	DOI   Kind = "doi"
	ArXiv Kind = "arxiv"
	Other Kind = "other" // nothing that a service knows
)

// State is what was found out about a locator.
type State string

// The states. A page is Answered or Gone, a paper Registered or Absent; Unchecked says that no
// service that knows has answered.
const (
	Answered   State = "answered"
	Gone       State = "gone"
	Registered State = "registered"
	Absent     State = "absent"
	Unchecked  State = "unchecked"
)

// Status is what became of the question about one locator.
type Status struct {
	Locator string
	Kind    Kind
	State   State
	// Retracted says that the paper was taken back, and Notice is the DOI of the
	// notice where it is known.
	Retracted bool
	Notice    string
	// Detail says more on one line: who answered what, or why none did.
	Detail string
	// Doubt says why it is not known whether the paper was retracted; "" if it is, or
	// if the locator names no paper.
	Doubt string
}

// Fails reports whether something is known to be wrong.
func (s Status) Fails() bool { return s.State == Gone || s.State == Absent || s.Retracted }

// Prober finds out whether a web page is there and where it is now; CodeNotFound
// says that it is not, and any other error nothing. It is safe for concurrent use.
type Prober interface {
	Probe(ctx context.Context, url string) (at string, err error)
}

// RegistryConfig is who is asked. Pages, ArXiv and Indexes are required.
type RegistryConfig struct {
	Pages   Prober
	ArXiv   *scholar.Arxiv
	Indexes *scholar.Service
	// HandleURL is where the handles of DOIs are looked up; "" is https://doi.org.
	HandleURL string
	HTTP      *http.Client // for the handles; nil is a client of its own
	UserAgent string
	Timeout   time.Duration // of one question about a handle; 0 is ten seconds
}

// Registry asks. It is safe for concurrent use; every service is asked one question
// at a time, and one that fails twice in a row is left alone from then on.
type Registry struct {
	cfg     RegistryConfig
	handles httpapi.Service

	arxiv, handle, indexes *service
	tired                  map[string]*breaker // of the indexes, by name; guarded by the turn at indexes
}

// NewRegistry makes a Registry. Nothing is sent before the first question.
func NewRegistry(c RegistryConfig) *Registry {
	return &Registry{
		cfg: c,
		handles: httpapi.Service{
			Name: "doi.org", Base: cmp.Or(c.HandleURL, "https://doi.org"), BaseField: "DOI_URL", HTTP: c.HTTP, UserAgent: c.UserAgent,
			Timeout: cmp.Or(c.Timeout, 10*time.Second), Answers: []int{http.StatusNotFound},
		},
		arxiv: newService(), handle: newService(), indexes: newService(),
		tired: map[string]*breaker{scholar.Crossref: {}, scholar.OpenAlex: {}},
	}
}

// Check finds out about one locator. It always has an answer: where no service could be asked, or
// ctx ends, it is Unchecked with the reason.
func (r *Registry) Check(ctx context.Context, loc string) Status {
	n := nameOf(loc)
	var s Status
	switch n.kind {
	case DOI:
		s = r.doi(ctx, n.paper)
	case ArXiv:
		s = r.preprint(ctx, n.paper)
	case URL:
		s = r.page(ctx, n)
	default:
		s = Status{State: Unchecked, Detail: "no web address, DOI or arXiv id"}
	}
	s.Locator, s.Kind = loc, n.kind
	return s
}

// mostAtOnce is how many locators are asked about at the same time.
const mostAtOnce = 8

// CheckAll checks locators, several at a time, and calls each with every Status as
// it comes, one call after the other.
func (r *Registry) CheckAll(ctx context.Context, locators []string, each func(Status)) {
	r.prepare(ctx, locators)
	var mu sync.Mutex // held while each runs
	var g errgroup.Group
	g.SetLimit(mostAtOnce)
	for _, loc := range locators {
		g.Go(func() error {
			s := r.Check(ctx, loc)
			mu.Lock()
			defer mu.Unlock()
			each(s)
			return nil
		})
	}
	_ = g.Wait() // no question returns an error
}

// page asks a web server. A paper that the address surely names is asked about, too,
// but only for a retraction: the address may hold more than its DOI.
func (r *Registry) page(ctx context.Context, n name) Status {
	s := Status{State: Answered}
	at, err := r.cfg.Pages.Probe(ctx, n.address)
	switch {
	case err != nil && marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
		s = Status{State: Gone, Detail: line(cause(err))}
	case err != nil:
		s = Status{State: Unchecked, Detail: line(cause(err))}
	case at != n.address:
		s.Detail = "it is now at " + scholar.Line(at, 300)
	}
	if !n.paper.Zero() {
		r.standing(ctx, n.paper).into(&s)
	}
	return s
}

// cause is what is behind an error about an address, which the status names anyway.
func cause(err error) error {
	var e *marchwarden.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err
	}
	return err
}

// line is an error that fits on one.
func line(err error) string { return scholar.Line(err.Error(), 300) }
