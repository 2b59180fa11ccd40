package loop

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// gather runs the plan's searches, lets the reasoner choose among the hits and
// reads what it chose. A failing branch is a gap and never loses its siblings.
func (r *run) gather(ctx context.Context, plan reason.Plan) error {
	hits, err := r.search(ctx, plan.Searches)
	if err != nil || len(hits) == 0 {
		return err
	}
	reads, err := r.cfg.Reasoner.Choose(ctx, r.state, hits)
	if fatal(err) {
		return err
	}
	if err != nil {
		r.gaps = append(r.gaps, marchwarden.GapFor("choosing what to read", err))
		return r.note(&trace.Message{Head: head("choosing failed: %v", err), Iteration: r.state.Iteration})
	}
	reads, refused := r.admit(reads, hits)
	if refused > 0 {
		if err := r.note(&trace.Message{Head: head("%d documents were not read: no search of this step found them", refused), Iteration: r.state.Iteration}); err != nil {
			return err
		}
	}
	if len(reads) == 0 {
		return nil
	}
	locators := make([]string, len(reads))
	for i, rd := range reads {
		locators[i] = rd.Locator
	}
	if err := r.note(&trace.Message{Head: head("read %d of %d documents found", len(reads), len(hits)), Iteration: r.state.Iteration, Locators: locators}); err != nil {
		return err
	}
	return r.readAll(ctx, locators)
}

// each runs work for 0…n-1 with bounded parallelism. Work keeps its failure to
// itself; only a broken journal ends the others.
func (r *run) each(n int, work func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(r.cfg.Parallel)
	for i := range n {
		g.Go(func() error {
			if err := work(i); fatal(err) {
				return err
			}
			return nil
		})
	}
	return g.Wait()
}

// search runs the searches together and returns their hits, each locator once,
// without those that were read already.
func (r *run) search(ctx context.Context, searches []reason.Search) ([]search.Hit, error) {
	done := make([]reason.Searched, len(searches))
	err := r.each(len(searches), func(i int) error {
		q := search.Query{Text: searches[i].Query, Limit: hitsPerSearch, Filter: r.filter}
		r.live(marchwarden.StageSearch, i+1, len(searches), "searching "+r.engine.Name()+" for "+q.Text)
		hits, err := r.engine.Search(ctx, q)
		done[i] = reason.Searched{Query: q.Text, Reason: searches[i].Reason, Iteration: r.state.Iteration, Hits: hits, Err: err}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.state.Searches = append(r.state.Searches, done...)
	var fresh []search.Hit
	seen := map[string]bool{}
	for _, s := range done {
		if s.Err != nil {
			r.gaps = append(r.gaps, marchwarden.GapFor(fmt.Sprintf("search of %s for %q", r.engine.Name(), s.Query), s.Err))
		}
		for _, h := range s.Hits {
			if !seen[h.Locator] && !r.read[h.Locator] {
				fresh = append(fresh, h)
			}
			seen[h.Locator] = true
		}
	}
	return fresh, nil
}

// admit keeps the reads that point at a hit of this step, each once, up to the
// sources that are left, and counts those that point elsewhere. What a cap kept
// out is remembered.
func (r *run) admit(reads []reason.Read, hits []search.Hit) (admitted []reason.Read, refused int) {
	offered := map[string]string{}
	for _, h := range hits {
		offered[h.Locator] = h.Title
	}
	var wanted []reason.Read
	for _, rd := range reads {
		if _, ok := offered[rd.Locator]; !ok {
			refused++
		} else if !r.read[rd.Locator] {
			r.read[rd.Locator] = true
			wanted = append(wanted, rd)
		}
	}
	granted := r.meter.TakeSources(len(wanted))
	for _, rd := range wanted[granted:] {
		name := offered[rd.Locator]
		if name == "" {
			name = rd.Locator
		}
		r.leftover = append(r.leftover, name)
	}
	return wanted[:granted], refused
}

// readAll fetches the locators together and adds them to the evidence in the
// order they were chosen, so that passage ids do not depend on who was fastest.
func (r *run) readAll(ctx context.Context, locators []string) error {
	pages := make([]fetch.Page, len(locators))
	texts := make([]string, len(locators))
	errs := make([]error, len(locators))
	err := r.each(len(locators), func(i int) error {
		r.live(marchwarden.StageFetch, i+1, len(locators), "reading "+locators[i])
		pages[i], texts[i], errs[i] = r.readOne(ctx, locators[i])
		return errs[i]
	})
	if err != nil {
		return err
	}
	for i, locator := range locators {
		if errs[i] != nil {
			r.meter.ReturnSources(1) // the cap is on documents that were read
			r.state.Failed[locator] = errs[i]
			r.gaps = append(r.gaps, marchwarden.GapFor(locator, errs[i]))
			continue
		}
		if pages[i].NonText {
			r.gaps = append(r.gaps, marchwarden.Gap{Topic: locator, Category: marchwarden.ScopeExceeded,
				Detail: fmt.Sprintf("%s: no text could be read from a %s document", marchwarden.ExcerptNonText, pages[i].MediaType)})
			continue
		}
		r.state.Evidence.Add(pages[i], texts[i])
	}
	return nil
}

func (r *run) readOne(ctx context.Context, locator string) (fetch.Page, string, error) {
	outside := marchwarden.Errorf(marchwarden.CodeDenied, "%s is outside the source filter %s", locator, r.filter)
	if host := hostOf(locator); host != "" && !r.filter.Allows(host) {
		return fetch.Page{}, "", outside
	}
	page, err := r.fetcher.Fetch(ctx, locator)
	if err != nil {
		return page, "", err
	}
	if !r.filter.Allows(filterNames(page)...) {
		return page, "", outside
	}
	if page.NonText {
		return page, "", nil
	}
	text, err := r.cfg.Blobs.Get(context.WithoutCancel(ctx), page.Text)
	if err != nil {
		return page, "", storeError(err)
	}
	return page, string(text), nil
}

// filterNames are the names of a page that a source filter may allow. A page
// with an address of its own is judged by that host alone, whatever it says of
// itself; a local document by its file name or the origin it declares.
func filterNames(page fetch.Page) []string {
	if host := hostOf(page.Locator); host != "" {
		return []string{host}
	}
	return []string{page.Origin, path.Base(strings.ReplaceAll(page.Locator, `\`, "/"))}
}

// hostOf is the host of a locator that is an address, or "".
func hostOf(locator string) string {
	u, err := url.Parse(locator)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
