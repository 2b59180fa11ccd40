package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/registry"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// probeTime is how long a page may take to say that it is there.
const probeTime = 20 * time.Second

// publicSources are the sources whose locators may be asked about. The name of a file or the query
// behind a row stays private.
var publicSources = []string{"web", "arxiv"}

// cited is a locator and the numbers of the citations that have it.
type cited struct {
	locator string
	marks   string
}

// publicLocators are the locators of public sources, each once, in the order of the
// citations, and how many locators of other sources are left out.
func publicLocators(citations []marchwarden.Citation) (public []cited, left int) {
	private := map[string]bool{}
	for i, ct := range citations {
		if !slices.Contains(publicSources, ct.Source) {
			private[ct.Locator] = true
			continue
		}
		at := slices.IndexFunc(public, func(c cited) bool { return c.locator == ct.Locator })
		if at < 0 {
			at = len(public)
			public = append(public, cited{locator: ct.Locator})
		}
		public[at].marks += fmt.Sprintf("[%d]", i+1)
	}
	return public, len(private)
}

// online asks web servers and registries whether what the citations point to is
// there. What could not be asked is said, and counts neither way. Where a check
// needs no settings otherwise, c is nil and they are read here.
func (v *verdicts) online(ctx context.Context, c *settings.Settings, res *marchwarden.Result) error {
	public, left := publicLocators(res.Citations)
	if left > 0 {
		v.a.note("%s of files, databases and other sources outside the web are not asked about", term.Plural(left, "locator"))
	}
	if len(public) == 0 {
		v.a.note("no citation is of the web, so there is nothing to ask about")
		return nil
	}
	if c == nil {
		var err error
		if c, err = v.a.loadConfig(); err != nil {
			return err
		}
	}
	allow, err := network.FetchAllow(c)
	if err != nil {
		return err
	}
	pages := webfetch.New(webfetch.Config{Guard: guard.New(allow), Now: v.a.Now, UserAgent: v.a.UserAgent(), Timeout: probeTime, Clean: v.a.Hide.Bytes})
	api, indexes := v.a.OpenPapers(c)
	v.locators(ctx, registry.New(registry.Config{
		Pages: pages, ArXiv: api, Indexes: indexes, HandleURL: c.Text(settings.DOIURL), HTTP: v.a.ServiceClient(), UserAgent: v.a.UserAgent(),
	}), public)
	return pages.Close()
}

// locators asks about locators and prints every answer as it comes.
func (v *verdicts) locators(ctx context.Context, r *registry.Registry, public []cited) {
	marks := map[string]string{}
	var all []string
	for _, c := range public {
		marks[c.locator] = c.marks
		all = append(all, c.locator)
	}
	states := map[registry.State]int{}
	retracted, doubts := 0, 0
	r.CheckAll(ctx, all, func(s registry.Status) {
		if ctx.Err() != nil {
			return // it was stopped, which is no answer
		}
		states[s.State]++
		if s.Retracted {
			retracted++
		}
		if s.Doubt != "" {
			doubts++
		}
		v.answered("online "+marks[s.Locator]+" "+s.Locator, s)
	})
	if ctx.Err() != nil {
		return
	}
	var sum []string
	for _, state := range []registry.State{registry.Answered, registry.Registered, registry.Gone, registry.Absent, registry.Unchecked} {
		if states[state] > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if retracted > 0 {
		sum = append(sum, fmt.Sprintf("%d retracted", retracted))
	}
	v.print("%s asked about: %s", term.Plural(len(all), "locator"), strings.Join(sum, ", "))
	if n := states[registry.Unchecked]; n > 0 {
		v.a.note("%s could not be checked, which says nothing against what is there", term.Plural(n, "locator"))
	}
	if doubts > 0 {
		v.a.note("of %s it could not be found out whether the paper was retracted", term.Plural(doubts, "locator"))
	}
}

// answered prints one answer.
func (v *verdicts) answered(what string, s registry.Status) {
	says := func(state string) string {
		if s.Detail != "" {
			state += " (" + s.Detail + ")"
		}
		return state
	}
	unsure := ""
	if s.Doubt != "" {
		unsure = "; whether it was retracted is not known: " + s.Doubt
	}
	switch {
	case s.Retracted && s.Notice != "":
		v.check(what, says("retracted (by notice "+s.Notice+")"))
	case s.Retracted:
		v.check(what, says("retracted"))
	case s.Fails():
		v.check(what, says(string(s.State)))
	case s.State == registry.Unchecked:
		v.print("? %s: %s%s", what, says(string(s.State)), unsure)
	default:
		v.check(what+": "+says(string(s.State))+unsure, "")
	}
}
