package scholar

// This part searches arXiv by its public API and gives what arXiv says of a
// paper. It owns that protocol: Atom, the way from a question to a query, errors
// that come as entries, and the rule that a program makes one request at a time
// and waits three seconds before the next. It does not read papers: their text is
// at arXiv's web site, which is a fetcher's business.

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

const arxivName = "arxiv"

// How long and how many papers a Client remembers: arXiv changes once a day.
const (
	memoryTime = 6 * time.Hour
	memorySize = 2000
)

// ArxivConfig says how to reach arXiv. Now is required; every other zero value stands
// for its default.
type ArxivConfig struct {
	BaseURL   string       // the part before /api/query; "" is https://export.arxiv.org
	HTTP      *http.Client // nil is a client of its own
	UserAgent string       // "" is "marchwarden"
	Timeout   time.Duration
	Now       func() time.Time
	// Pace is the least time between two requests; 0 is the three seconds that arXiv
	// asks for, and a private mirror may take less. Sleep waits; nil really does.
	Pace  time.Duration
	Sleep func(context.Context, time.Duration) error
}

// Arxiv asks arXiv, and is a search.Engine. The rule of three seconds holds for
// each Client, so a process has one. It is safe for concurrent use.
type Arxiv struct {
	api   httpapi.Service
	turns turns
	now   func() time.Time

	mu     sync.Mutex      // guards what follows
	papers map[ID]remember // by ID, at its version and, for the newest, without
}

type remember struct {
	paper Preprint
	until time.Time
}

var _ search.Engine = (*Arxiv)(nil)

// NewArxiv makes a client. Nothing is sent before the first search.
func NewArxiv(c ArxivConfig) *Arxiv {
	if c.Sleep == nil {
		c.Sleep = httpapi.Sleep
	}
	return &Arxiv{
		now:    c.Now,
		turns:  turns{gap: cmp.Or(c.Pace, Pace), now: c.Now, sleep: c.Sleep, turn: make(chan struct{}, 1)},
		papers: map[ID]remember{},
		api: httpapi.Service{
			Name: arxivName, Base: cmp.Or(c.BaseURL, "https://export.arxiv.org"), BaseField: "ARXIV_URL", HTTP: c.HTTP, UserAgent: c.UserAgent,
			MaxBytes: 8 << 20, Timeout: c.Timeout,
			NoRetry: true, // turns does, at the pace
		},
	}
}

// Name implements search.Engine.
func (*Arxiv) Name() string { return arxivName }

// Search implements search.Engine. Papers that the query names by their arXiv ids
// come first, then those that have all of its words; if there are none, those that
// have the more telling half. A query for another host than arxiv.org finds
// nothing. The date of a hit is that of its first version.
func (c *Arxiv) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	return searchPapers(q, func(ids []ID, _ search.Query) ([]search.Hit, error) {
		ids = slices.DeleteFunc(ids, func(id ID) bool { return id.ArXiv() == "" })
		found, err := c.Papers(ctx, ids...)
		return hits(found, ids), err
	}, func(t Terms, q search.Query) ([]search.Hit, error) {
		found, err := c.ask(ctx, url.Values{
			"search_query": {expression(t, q)}, "start": {"0"}, "max_results": {strconv.Itoa(q.Limit)}, "sortBy": {"relevance"}, "sortOrder": {"descending"},
		})
		c.keep(found, true)
		return hits(found, slices.Concat(t.IDs, t.Bare)), err
	}, arxivHost)
}

// hits are papers as found. A paper has the version in its locator only where the
// query asked for that version.
func hits(found []Preprint, asked []ID) []search.Hit {
	var out []search.Hit
	for _, p := range found {
		id := p.ID.Work()
		if slices.Contains(asked, p.ID) {
			id = p.ID
		}
		title := p.Title
		if p.Withdrawn() {
			title = MarkRetracted(title)
		}
		out = append(out, search.Hit{Locator: id.Locator(), Title: title, Snippet: p.Summary, Published: p.Published})
	}
	return out
}

// Papers looks papers up by their arXiv ids, each at the version of its ID, in one
// request at most. What arXiv does not have is not among the papers. Papers that
// were found or looked up before in the last hours are not asked for again.
func (c *Arxiv) Papers(ctx context.Context, ids ...ID) ([]Preprint, error) {
	var list []string
	papers := map[ID]Preprint{}
	c.mu.Lock()
	for _, id := range ids {
		if r, ok := c.papers[id]; ok && c.now().Before(r.until) {
			papers[id] = r.paper
		} else if id.ArXiv() != "" {
			list = append(list, id.Versioned())
		}
	}
	c.mu.Unlock()
	if len(list) > 0 {
		got, err := c.ask(ctx, url.Values{"id_list": {strings.Join(list, ",")}, "start": {"0"}, "max_results": {strconv.Itoa(len(list))}})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			i := slices.IndexFunc(got, func(p Preprint) bool { return p.ID == id || id.Version() == 0 && p.ID.Work() == id })
			if i >= 0 {
				papers[id] = got[i]
				c.keep(got[i:i+1], id.Version() == 0)
			}
		}
	}
	var out []Preprint
	for _, id := range ids {
		if p, ok := papers[id]; ok {
			out = append(out, p)
			delete(papers, id)
		}
	}
	return out, nil
}

// ask makes one request in its turn.
func (c *Arxiv) ask(ctx context.Context, query url.Values) ([]Preprint, error) {
	var body []byte
	err := c.turns.do(ctx, func() (err error) {
		body, err = c.api.Get(ctx, "api/query", query)
		return err
	})
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// keep remembers papers, and whether they are the newest versions.
func (c *Arxiv) keep(papers []Preprint, newest bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.papers) > memorySize {
		clear(c.papers)
	}
	for _, p := range papers {
		r := remember{p, c.now().Add(memoryTime)}
		if c.papers[p.ID] = r; newest {
			c.papers[p.ID.Work()] = r
		}
	}
}

// expression writes terms and dates in arXiv's search language.
func expression(t Terms, q search.Query) string {
	var parts []string
	for _, f := range []struct {
		field string
		terms []string
	}{{"au", t.Authors}, {"all", t.Phrases}, {"all", t.Words}} {
		for _, term := range f.terms {
			parts = append(parts, f.field+":"+quoted(term))
		}
	}
	if q.Since != "" || q.Until != "" {
		day := func(date, usual string) string { return cmp.Or(strings.ReplaceAll(date, "-", ""), usual) }
		parts = append(parts, "submittedDate:["+day(q.Since, "19910101")+"0000 TO "+day(q.Until, "29991231")+"2359]")
	}
	return strings.Join(parts, " AND ")
}

// quoted puts a term in quotation marks unless it is one plain word, which no
// operator is.
func quoted(term string) string {
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	if strings.ContainsFunc(term, odd) || lexicon.IsStop(term) {
		return `"` + term + `"`
	}
	return term
}

// Paper looks one paper up. CodeNotFound says that arXiv has no such paper.
func (c *Arxiv) Paper(ctx context.Context, id ID) (Preprint, error) {
	papers, err := c.Papers(ctx, id)
	if err != nil {
		return Preprint{}, err
	}
	if len(papers) == 0 {
		return Preprint{}, marchwarden.Errorf(marchwarden.CodeNotFound, "%s: there is no paper %s", arxivName, id.Versioned())
	}
	return papers[0], nil
}
