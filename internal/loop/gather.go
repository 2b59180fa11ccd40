package loop

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// gather runs the plan's searches and reads together, and reads what the reasoner chooses among the new hits. A failing
// branch is a gap and never loses its siblings.
func (r *run) gather(ctx context.Context, plan reason.Plan) error {
	offered, err := r.offered(plan.Reads)
	if err != nil {
		return err
	}
	wanted, err := r.admit(offered)
	if err != nil {
		return err
	}
	var hits []search.Hit
	var side errgroup.Group
	side.Go(func() (err error) {
		defer panics.Caught(&err, "searching")
		hits, err = r.search(ctx, plan.Searches)
		return err
	})
	read, err := r.readAll(ctx, wanted)
	if err := errors.Join(side.Wait(), err); err != nil {
		return err
	}
	r.keep(read)
	hits = slices.DeleteFunc(hits, func(h search.Hit) bool { return r.state.Asked[h.Locator] })
	if len(hits) == 0 {
		return nil
	}
	offered, err = r.offered(r.cfg.Reasoner.Choose(r.state, hits))
	for failed := 1; failed > 0 && err == nil; { // best first; what cannot be read gives its place to the next
		failed, err = r.readOffered(ctx, offered)
	}
	return err
}

// readOffered reads those of the documents that were not asked for yet, as many as there may be, and returns how many
// could not be read.
func (r *run) readOffered(ctx context.Context, offered []string) (failed int, err error) {
	wanted, err := r.admit(offered)
	if err != nil || len(wanted) == 0 {
		return 0, err
	}
	read, err := r.readAll(ctx, wanted)
	if err != nil {
		return 0, err
	}
	return r.keep(read), nil
}

// each runs work for 0…n-1 with bounded parallelism. Only a broken journal, or a panic, is the run's failure.
func (r *run) each(n int, work func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range n {
		g.Go(func() (err error) {
			defer panics.Caught(&err, "gathering")
			if err := work(i); replay.Fatal(err) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// search runs the searches together and returns their hits, each locator once.
func (r *run) search(ctx context.Context, searches []reason.Search) ([]search.Hit, error) {
	done := make([]reason.Searched, len(searches))
	err := r.each(len(searches), func(i int) error {
		s := searches[i]
		q := search.Query{Text: s.Query, Limit: hitsPerSearch, ByWords: s.ByWords, Filter: r.filter}
		q.Since, q.Until = r.dates(s)
		r.live(marchwarden.StageSearch, i+1, len(searches), "searching "+r.engine.Name()+" for "+q.Text)
		hits, err := r.engine.Search(ctx, q)
		done[i] = reason.Searched{Query: q.Text, Reason: s.Reason, Iteration: r.state.Iteration, Hits: hits, Err: err}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.state.Searches = append(r.state.Searches, done...)
	var fresh []search.Hit
	seen := map[string]bool{}
	for i, s := range done {
		if s.Err != nil {
			r.searchGap(s)
		}
		if marchwarden.CodeOf(s.Err) == marchwarden.CodeCanceled {
			r.undone.Searches = append(r.undone.Searches, searches[i])
		}
		for _, h := range s.Hits {
			if !seen[h.Locator] {
				fresh = append(fresh, h)
			}
			seen[h.Locator] = true
		}
	}
	return fresh, nil
}

// dates are the bounds of a search: the request's, which its own may only narrow.
func (r *run) dates(s reason.Search) (since, until string) {
	since, until = s.Since, s.Until
	if c := r.start.Request.Constraints; c != nil {
		since = max(since, c.Since)
		if c.Until != "" && (until == "" || until > c.Until) {
			until = c.Until
		}
		if since != "" && until != "" && since > until { // what the search wants lies outside
			return c.Since, c.Until
		}
	}
	return since, until
}

// searchGap says that a search failed. Searches that failed alike have one gap.
func (r *run) searchGap(s reason.Searched) {
	gap := marchwarden.GapFor(fmt.Sprintf("search of %s for %q", r.engine.Name(), s.Query), s.Err)
	alike := slices.IndexFunc(r.gaps, func(g missed) bool {
		return g.Category == gap.Category && g.Detail == gap.Detail && strings.HasPrefix(g.Topic, "search of ")
	})
	if alike < 0 {
		r.addGap(gap, s.Err)
		return
	}
	r.countGivenUp(s.Err)
	if topic := &r.gaps[alike].Topic; !strings.Contains(*topic, fmt.Sprintf("%q", s.Query)) && len(*topic) < maxTopic {
		*topic += fmt.Sprintf(", %q", s.Query)
	}
}

// attemptsPerSource bounds the fetches for one document that is read: what fails is given back to the cap.
const attemptsPerSource = 3

// offered is the provenance gate: the locators of the reads that the caller's words, a search or a page of this run
// offered, each once. What else is asked for, such as an address that a model made up, is refused and counted.
func (r *run) offered(reads []reason.Read) ([]string, error) {
	var offered []string
	refused := 0
	for _, rd := range reads {
		loc := rd.Locator
		if canonical, ok := locator.Canonical(loc); ok {
			loc = canonical
		}
		switch {
		case !r.state.Offered(loc):
			refused++
		case !slices.Contains(offered, loc):
			offered = append(offered, loc)
		}
	}
	if refused == 0 {
		return offered, nil
	}
	r.refused += refused
	return offered, r.j.Note(&trace.Message{Head: head("%d documents were not read: nothing in this run had offered them", refused), Iteration: r.state.Iteration, Refused: refused})
}

// admit takes those that were not asked for yet, up to the sources that are left. What a cap kept out is remembered.
func (r *run) admit(offered []string) ([]string, error) {
	wanted := slices.DeleteFunc(slices.Clone(offered), func(loc string) bool { return r.state.Asked[loc] })
	if len(wanted) == 0 {
		return nil, nil
	}
	granted := r.meter.TakeSources(len(wanted))
	tries := attemptsPerSource * r.state.Limits.MaxSources
	if left := max(0, tries-r.attempts); granted > left {
		r.meter.ReturnSources(granted - left)
		r.meter.Exhaust(budget.TryCap(tries))
		granted = left
	}
	r.attempts += granted
	for _, loc := range wanted[granted:] {
		r.leave(r.name(loc))
		r.undone.Reads = append(r.undone.Reads, reason.Read{Locator: loc})
	}
	wanted = wanted[:granted]
	for _, loc := range wanted {
		r.state.Asked[loc] = true
		r.leftover = slices.DeleteFunc(r.leftover, func(name string) bool { return name == r.name(loc) })
	}
	return wanted, r.j.Note(&trace.Message{Head: head("read %d documents", len(wanted)), Iteration: r.state.Iteration, Locators: wanted})
}

// leave remembers what a cap kept the run from doing, each once.
func (s *shortfall) leave(what string) {
	if !slices.Contains(s.leftover, what) {
		s.leftover = append(s.leftover, what)
	}
}

// name is what people call a document that was offered.
func (r *run) name(locator string) string {
	for _, s := range r.state.Searches {
		for _, h := range s.Hits {
			if h.Locator != locator {
				continue
			}
			if title := r.plain(h.Title, maxTopic); title != "" { // anybody may have written it
				return title
			}
		}
	}
	return locator
}

// reading is one document as it was read, or why it was not.
type reading struct {
	locator string
	page    fetch.Page
	text    *evidence.Reading // nil where there is no text
	err     error
}

func (r *run) readAll(ctx context.Context, locators []string) ([]reading, error) {
	read := make([]reading, len(locators))
	err := r.each(len(locators), func(i int) error {
		r.live(marchwarden.StageFetch, i+1, len(locators), "reading "+locators[i])
		page, text, err := r.readOne(ctx, locators[i])
		read[i] = reading{locators[i], page, text, err}
		return err
	})
	return read, err
}

// keep adds what was read to the evidence, in the order it was chosen: passage ids must not depend on who was fastest. It
// returns how many could not be read.
func (r *run) keep(read []reading) (failed int) {
	for _, rd := range read {
		switch {
		case rd.err != nil:
			failed++
			if marchwarden.CodeOf(rd.err) == marchwarden.CodeCanceled {
				r.undone.Reads = append(r.undone.Reads, reason.Read{Locator: rd.locator})
			}
			r.meter.ReturnSources(1) // the cap is on documents that were read
			r.state.Failed[rd.locator] = rd.err
			gap := marchwarden.GapFor(rd.locator, rd.err)
			gap.Detail = strings.TrimPrefix(gap.Detail, fmt.Sprintf("fetch %q: ", rd.locator)) // the topic says it
			r.addGap(gap, rd.err)
		case !r.start.Request.Covers(rd.page.Published):
			failed++
			r.outdated++
			r.meter.ReturnSources(1)
		case rd.page.NonText:
			r.addGap(marchwarden.Gap{Topic: rd.locator, Category: marchwarden.ScopeExceeded,
				Detail: fmt.Sprintf("%s: no text could be read from a %s document", marchwarden.ExcerptNonText, rd.page.MediaType)}, nil)
		default:
			r.state.Evidence.AddRead(rd.page, rd.text)
		}
	}
	return failed
}

func (r *run) readOne(ctx context.Context, loc string) (fetch.Page, *evidence.Reading, error) {
	outside := func(what string) error {
		return marchwarden.Errorf(marchwarden.CodeDenied, "%s is outside the source filter %s", what, r.filter)
	}
	if host := locator.Host(loc); host != "" && !r.filter.Allows(host) {
		return fetch.Page{}, nil, outside(host)
	}
	page, err := r.fetcher.Fetch(ctx, loc)
	if err != nil {
		return page, nil, err
	}
	if !r.filter.Allows(filterNames(page)...) {
		return page, nil, outside(filterNames(page)[0])
	}
	if page.NonText {
		return page, nil, nil
	}
	if text, ok := r.texts.LoadAndDelete(page.Text); ok {
		return page, text.(*evidence.Reading), nil
	}
	text, err := r.textOf(context.WithoutCancel(ctx), page)
	return page, text, err
}

// textOf reads the stored text of a page, until ctx ends.
func (r *run) textOf(ctx context.Context, page fetch.Page) (*evidence.Reading, error) {
	text, err := blob.Text(context.WithoutCancel(ctx), r.cfg.Blobs, page.Text)
	if err != nil {
		return nil, outcome.StoreError(err)
	}
	return r.state.Evidence.Read(ctx, text)
}

// reads is a fetcher whose documents are read, passage by passage, before they count as fetched: what takes the processor
// long ends at the deadline, and is recorded, too.
type reads struct {
	fetch.Fetcher
	r *run
}

func (f reads) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	page, err := f.Fetcher.Fetch(ctx, locator)
	if err != nil || page.NonText {
		return page, err
	}
	text, err := f.r.textOf(ctx, page)
	switch {
	case err == nil:
		f.r.texts.Store(page.Text, text)
	case ctx.Err() != nil:
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "fetch %q", locator)
	}
	return page, nil // a text that is not stored is found out where it is taken in
}

func (f reads) Free() bool { return replay.IsFree(f.Fetcher) }

// filterNames are the names of a page that a source filter may allow: the host of its address, or for a local document
// its file name and the origin it declares.
func filterNames(page fetch.Page) []string {
	if host := locator.Host(page.URL); host != "" {
		return []string{host} // the locator's host was allowed before the fetch; this is where it led
	}
	if host := locator.Host(page.Locator); host != "" {
		return []string{host}
	}
	return []string{page.Origin, path.Base(strings.ReplaceAll(page.Locator, `\`, "/"))}
}
