package main

import (
	"context"
	"io"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/warc"
)

// exportWARC writes the pages that a run fetched as a compressed WARC file, and says
// what of its documents is not in it.
func (a *app) exportWARC(ctx context.Context, e export, w io.Writer) error {
	n, err := warc.Write(ctx, w, e.from, e.run, warc.Options{Now: a.Now, Version: programVersion()})
	if err != nil {
		return err
	}
	var left []string
	for _, part := range []struct {
		n       int
		are, is string
	}{
		{n.Private, "are not of the web and stay private", "is not of the web and stays private"},
		{n.NoBytes, "are known by their text alone", "is known by its text alone"},
		{n.BadAddress, "have an address that WARC does not take", "has an address that WARC does not take"},
	} {
		switch {
		case part.n == 1:
			left = append(left, "1 "+part.is)
		case part.n > 1:
			left = append(left, term.Count(part.n)+" "+part.are)
		}
	}
	if len(left) > 0 {
		a.note("%s written; of the other documents %s", term.Plural(n.Pages, "page"), strings.Join(left, ", "))
	}
	return nil
}
