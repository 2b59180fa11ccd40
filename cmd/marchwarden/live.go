package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
)

// live runs the queries behind the citations of a database again and says whether
// the rows are what they were. Each document is read once.
func (v *verdicts) live(ctx context.Context, c *config, o deskOptions, blobs blob.Store, res *marchwarden.Result) error {
	var cited []marchwarden.Citation
	seen := map[string]bool{}
	for _, ct := range res.Citations {
		if ct.Source == "database" && !seen[ct.Locator+ct.ContentHash] {
			seen[ct.Locator+ct.ContentHash] = true
			cited = append(cited, ct)
		}
	}
	if len(cited) == 0 {
		v.a.note("no citation is of a database, so there is nothing to run again")
		return nil
	}
	db, err := v.a.openDatabase(ctx, c, o)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, ct := range cited {
		what := "live " + ct.Locator
		ref, err := blob.Parse(ct.ContentHash)
		if err != nil {
			v.check(what, err.Error())
			continue
		}
		stored, err := blobs.Get(ctx, ref)
		if err != nil {
			continue // said with the stored pieces
		}
		now, err := database.Live(ctx, db, ct.Locator, string(stored))
		switch {
		case errors.Is(err, marchwarden.CodeNotFound):
			v.check(what, "the row is gone")
		case err != nil:
			v.check(what, "cannot be run again: "+err.Error())
		case now != string(stored):
			v.check(what, "the rows have changed"+newLine(string(stored), now))
		default:
			v.check(what+": the rows are unchanged", "")
		}
	}
	return nil
}

// newLine is the first row that was not there when the document was stored, or "".
func newLine(stored, now string) string {
	was := strings.Split(stored, "\n")
	for line := range strings.Lines(now) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !slices.Contains(was, line) {
			return "; now: " + clip(line, 120)
		}
	}
	return ""
}
