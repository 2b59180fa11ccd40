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
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
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

	arxiv, handle, indexes service
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
		tired: map[string]*breaker{scholar.Crossref: {}, scholar.OpenAlex: {}},
	}
}

// Check finds out about one locator. It always has an answer: where no service could be asked, or
// ctx ends, it is Unchecked with the reason.
func (r *Registry) Check(ctx context.Context, loc string) Status {
	s := Status{State: Unchecked, Detail: "no web address, DOI or arXiv id"}
	switch paper, address := nameOf(loc); {
	case address != "":
		s = r.page(ctx, paper, address)
	case paper.ArXiv() != "":
		s = r.preprint(ctx, paper)
	case !paper.Zero():
		s = r.doi(ctx, paper)
	}
	s.Locator = loc
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

// Retracted are those of the locators that name papers which were taken back, each with what is
// known of it. No page is asked for, and what no service answered is left out.
func (r *Registry) Retracted(ctx context.Context, locators []string) map[string]string {
	found := map[string]string{}
	for _, loc := range locators {
		paper, address := nameOf(loc)
		var s Status
		switch {
		case paper.Zero():
			continue
		case address != "":
			s.note(r.standing(ctx, paper))
		default:
			s = r.Check(ctx, loc)
		}
		if s.Retracted {
			found[loc] = cmp.Or(s.Detail, strings.TrimSpace("retracted "+s.Notice))
		}
	}
	return found
}

// page asks a web server. A paper that the address surely names is asked about, too,
// but only for a retraction: the address may hold more than its DOI.
func (r *Registry) page(ctx context.Context, paper scholar.ID, address string) Status {
	s := Status{State: Answered}
	at, err := r.cfg.Pages.Probe(ctx, address)
	switch {
	case err != nil && marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
		s = Status{State: Gone, Detail: line(cause(err))}
	case err != nil:
		s = Status{State: Unchecked, Detail: line(cause(err))}
	case at != address:
		s.Detail = "it is now at " + scholar.Line(at, 300)
	}
	if !paper.Zero() {
		s.note(r.standing(ctx, paper))
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

// service answers one question at a time.
type service struct {
	turn  sync.Mutex
	tired breaker // guarded by turn
}

// do asks when its turn has come, or fails with the reason why it is not asked any
// more. CodeNotFound is an answer, every other error a failure of the service.
func (s *service) do(ctx context.Context, ask func() error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if ctx.Err() != nil {
		return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "the check was stopped")
	}
	if err := s.tired.open(); err != nil {
		return err
	}
	err := ask()
	if ctx.Err() == nil {
		s.tired.note(err)
	}
	return err
}

// breaker spares a service that fails, and the user the wait for it.
type breaker struct {
	failures int // in a row
	last     error
}

// mostFailures is how often in a row a service may fail before it is left alone.
const mostFailures = 2

// open is why the service is left alone; nil if it is not.
func (b *breaker) open() error {
	if b.failures < mostFailures {
		return nil
	}
	return marchwarden.Errorf(marchwarden.CodeOf(b.last), "left alone after %d failures: %s", b.failures, line(b.last))
}

func (b *breaker) note(err error) {
	if err == nil || marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		b.failures, b.last = 0, nil
		return
	}
	b.failures, b.last = b.failures+1, err
}

// nameOf reads a locator: the paper that it names, or its address, and then the paper that
// the address surely says. Links to arXiv and to doi.org are the papers they lead to.
func nameOf(loc string) (paper scholar.ID, address string) {
	if id, ok := scholar.ParseID(loc); ok {
		return id, ""
	}
	address, ok := locator.Canonical(loc)
	if !ok {
		return scholar.ID{}, ""
	}
	paper, _ = inAddress(address)
	return paper, address
}

// publisher is how publishers put a DOI into the path of an article: behind a word
// for what follows, and at the path's end but for the form of the article.
var publisher = regexp.MustCompile(`^(?:/[^/]+)?/(?:doi|articles?|chapter|book)(?:/(?:abs|full|fullHtml|pdf|epdf|pdfdirect|pdfplus|epub|book))?/(10\.[0-9]{4,9}/[^/]+?)(?:/(?:full|abstract|pdf|html|meta))?/?$`)

// inAddress is the paper whose DOI an address holds, if its end is certain.
func inAddress(address string) (scholar.ID, bool) {
	u, err := url.Parse(address)
	if err != nil {
		return scholar.ID{}, false
	}
	found := u.Query().Get("id") // as in journals.plos.org/plosone/article?id=10.1371/…
	if m := publisher.FindStringSubmatch(u.Path); m != nil {
		found = m[1]
	}
	if !strings.HasPrefix(found, "10.") || strings.HasSuffix(strings.ToLower(found), ".pdf") || strings.HasSuffix(strings.ToLower(found), ".html") {
		return scholar.ID{}, false
	}
	return scholar.ParseID(found)
}
