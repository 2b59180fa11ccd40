package audit

import (
	"context"
	"errors"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
)

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
