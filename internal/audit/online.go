package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

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
// there. What could not be asked is said, and counts neither way.
func (a *Audit) online(ctx context.Context, res *marchwarden.Result) error {
	public, left := publicLocators(res.Citations)
	if left > 0 {
		a.cfg.Note("%s of files, databases and other sources outside the web are not asked about", term.Plural(left, "locator"))
	}
	if len(public) == 0 {
		a.cfg.Note("no citation is of the web, so there is nothing to ask about")
		return nil
	}
	r, end, err := a.cfg.Registry()
	if err != nil {
		return err
	}
	a.locators(ctx, r, public)
	return end()
}

// locators asks about locators and prints every answer as it comes.
func (a *Audit) locators(ctx context.Context, r *Registry, public []cited) {
	marks := map[string]string{}
	var all []string
	for _, c := range public {
		marks[c.locator] = c.marks
		all = append(all, c.locator)
	}
	states := map[State]int{}
	retracted, doubts := 0, 0
	r.CheckAll(ctx, all, func(s Status) {
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
		a.answered("online "+marks[s.Locator]+" "+s.Locator, s)
	})
	if ctx.Err() != nil {
		return
	}
	var sum []string
	for _, state := range []State{Answered, Registered, Gone, Absent, Unchecked} {
		if states[state] > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if retracted > 0 {
		sum = append(sum, fmt.Sprintf("%d retracted", retracted))
	}
	a.print("%s asked about: %s", term.Plural(len(all), "locator"), strings.Join(sum, ", "))
	if n := states[Unchecked]; n > 0 {
		a.cfg.Note("%s could not be checked, which says nothing against what is there", term.Plural(n, "locator"))
	}
	if doubts > 0 {
		a.cfg.Note("of %s it could not be found out whether the paper was retracted", term.Plural(doubts, "locator"))
	}
}

// answered prints one answer.
func (a *Audit) answered(what string, s Status) {
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
		a.check(what, says("retracted (by notice "+s.Notice+")"))
	case s.Retracted:
		a.check(what, says("retracted"))
	case s.Fails():
		a.check(what, says(string(s.State)))
	case s.State == Unchecked:
		a.print("? %s: %s%s", what, says(string(s.State)), unsure)
	default:
		a.check(what+": "+says(string(s.State))+unsure, "")
	}
}
