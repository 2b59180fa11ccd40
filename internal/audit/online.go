package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// publicSources are those whose locators may be asked about; others stay private.
var publicSources = []string{"web", "arxiv"}

// publicLocators are the locators of public sources, each once, with the marks of the
// citations that have it, and how many other locators are left out.
func publicLocators(citations []marchwarden.Citation) (public []string, marks map[string]string, left int) {
	marks = map[string]string{}
	private := map[string]bool{}
	for i, ct := range citations {
		if !slices.Contains(publicSources, ct.Source) {
			private[ct.Locator] = true
			continue
		}
		if marks[ct.Locator] == "" {
			public = append(public, ct.Locator)
		}
		marks[ct.Locator] += fmt.Sprintf("[%d]", i+1)
	}
	return public, marks, len(private)
}

// online asks web servers and registries whether what the citations point to is there, and
// prints every answer as it comes. What could not be asked is said, and counts neither way.
func (a *Audit) online(ctx context.Context, res *marchwarden.Result) error {
	public, marks, left := publicLocators(res.Citations)
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
	states, doubts := map[string]int{}, 0
	r.CheckAll(ctx, public, func(s Status) {
		if ctx.Err() != nil {
			return // it was stopped, which is no answer
		}
		states[string(s.State)]++
		if s.Retracted {
			states["retracted"]++
		}
		if s.Doubt != "" {
			doubts++
		}
		a.answered("online "+marks[s.Locator]+" "+s.Locator, s)
	})
	if ctx.Err() == nil {
		a.sumUp(len(public), states, doubts)
	}
	return end()
}

// sumUp says how the questions about locators were answered.
func (a *Audit) sumUp(asked int, states map[string]int, doubts int) {
	var sum []string
	for _, state := range []string{string(Answered), string(Registered), string(Gone), string(Absent), string(Unchecked), "retracted"} {
		if n := states[state]; n > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", n, state))
		}
	}
	a.print("%s asked about: %s", term.Plural(asked, "locator"), strings.Join(sum, ", "))
	if n := states[string(Unchecked)]; n > 0 {
		a.cfg.Note("%s could not be checked, which says nothing against what is there", term.Plural(n, "locator"))
	}
	if doubts > 0 {
		a.cfg.Note("of %s it could not be found out whether the paper was retracted", term.Plural(doubts, "locator"))
	}
}

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

// live runs the queries behind the citations of a database again and says whether
// the rows are what they were. Each document is read once.
func (a *Audit) live(ctx context.Context, blobs blob.Store, res *marchwarden.Result) error {
	var cited []marchwarden.Citation
	seen := map[string]bool{}
	for _, ct := range res.Citations {
		if ct.Source == "database" && !seen[ct.Locator+ct.ContentHash] {
			seen[ct.Locator+ct.ContentHash] = true
			cited = append(cited, ct)
		}
	}
	if len(cited) == 0 {
		a.cfg.Note("no citation is of a database, so there is nothing to run again")
		return nil
	}
	db, err := a.cfg.Database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, ct := range cited {
		what := "live " + ct.Locator
		ref, err := blob.Parse(ct.ContentHash)
		if err != nil {
			a.check(what, err.Error())
			continue
		}
		stored, err := blobs.Get(ctx, ref)
		if err != nil {
			continue // said with the stored pieces
		}
		now, err := database.Live(ctx, db, ct.Locator, string(stored))
		where := ""
		if now.Elsewhere != "" {
			where = "; " + now.Elsewhere
		}
		switch {
		case errors.Is(err, marchwarden.CodeNotFound):
			a.check(what, "gone: "+err.Error()+where)
		case err != nil:
			a.check(what, "cannot be run again: "+err.Error()+where)
		case len(now.Changes) > 0:
			a.check(what, "the rows have changed: "+strings.Join(now.Changes, ", ")+where)
		default:
			a.check(what+": the rows are unchanged"+where, "")
		}
	}
	return nil
}
