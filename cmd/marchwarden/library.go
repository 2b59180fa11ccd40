package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newLibrary(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use: "library", Short: "add, list, remove and search the folders of your library",
	}, newLibraryAdd(a), newLibrarySearch(a),
		a.listing("list", "list the folders of your library", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
			rows, err := network.FolderInfos(ctx, c)
			if err != nil {
				return err
			}
			var table [][]string
			for _, r := range rows {
				updated := "never"
				if !r.Updated.IsZero() {
					updated = a.inZone(r.Updated)
				}
				if r.Missing {
					updated = "folder is missing"
				}
				table = append(table, []string{term.Count(r.Files), term.Bytes(r.Bytes), updated, r.Path})
			}
			return a.show(rows, []string{"documents", "size", "indexed", "folder"}, table, "no folders were added yet, so the embedded library is searched; 'marchwarden library add DIR' adds one")
		}),
		a.verb("remove DIR…", "search folders no longer; the folders themselves stay", folders, func(ctx context.Context, c *settings.Settings, args []string) error {
			for _, arg := range args {
				if strings.TrimSpace(arg) == "" {
					return invalid("DIR", "use . for the working directory", "must not be blank")
				}
				path := a.Source().Absolute(arg, a.Dir)
				if err := network.RemoveFolder(ctx, c, path); err != nil {
					return err
				}
				if err := a.print("%s\n", term.CleanLine(path+" is no longer in the library")); err != nil {
					return err
				}
			}
			return nil
		}))
}

var folders = argCount(1, 1000, "at least one folder")

func newLibraryAdd(a *app) *cobra.Command {
	var quiet bool
	cmd := a.verb("add DIR…", "index folders and search them from now on", folders, func(ctx context.Context, c *settings.Settings, args []string) error {
		var opened []*fetch.Folder
		defer func() { _ = network.CloseFolders(opened) }() // read-only
		for _, arg := range args {
			f, err := a.OpenFolder("DIR", arg)
			if err != nil {
				return err
			}
			opened = append(opened, f)
		}
		w := newWatch(a, c, askOptions{quiet: quiet, verbose: true}) // every file that cannot be read is named
		defer w.close()
		for _, f := range opened {
			if err := addFolder(ctx, a, c, f, w); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func newLibrarySearch(a *app) *cobra.Command {
	var o network.Options
	var limit int
	words := argCount(1, 1000, "words to search for")
	cmd := a.listing("search WORDS…", "search the library without writing an answer", words, func(ctx context.Context, c *settings.Settings, args []string) error {
		q := search.Query{Text: strings.Join(args, " "), Limit: limit}
		if strings.TrimSpace(q.Text) == "" {
			return invalid("WORDS", "", "must not be blank")
		}
		library, err := a.OpenLibrary(c, o.Library, o.Embedded)
		if err != nil {
			return err
		}
		defer func() { _ = network.CloseFolders(library) }() // read-only
		hits, err := a.SearchLibrary(ctx, c, library, q)
		if err != nil {
			return err
		}
		if a.json {
			return printJSON(a.forPrograms(), hits)
		}
		if len(hits) == 0 {
			a.note("no document of %s holds these words", term.Plural(len(library), "folder"))
			return nil
		}
		page := a.outStyle().NewPage()
		for i, h := range hits {
			indent := page.SourceHead(term.Count(i+1)+".", h.Title, h.Locator)
			page.Text(indent, indent, term.Run{Text: term.CleanLine(h.Snippet)})
		}
		_, err = page.WriteTo(a.stdout)
		return err
	})
	optionFlags(cmd, &o, "library", "embedded")
	countFlag(cmd.Flags(), &limit, "limit", 10, 1, 100, "show at most `N` documents, 1 to 100")
	return cmd
}

func addFolder(ctx context.Context, a *app, c *settings.Settings, f *fetch.Folder, w *watch) error {
	r, err := network.AddFolder(ctx, &a.Host, c, f, w.event)
	if err != nil {
		return err
	}
	for _, n := range r.Notes {
		w.warn(fmt.Sprintf("%s: %s", n.Name, n.Reason))
	}
	left := ""
	if r.Skipped.String() != "" {
		left = "  left out: " + term.CleanLine(r.Skipped.String()) + "\n"
	}
	return a.print("%s: %s (%d new, %d changed, %d gone, %d not readable)\n%s",
		term.CleanLine(f.Name), term.Plural(r.Added+r.Changed+r.Unchanged, "document"), r.Added, r.Changed, r.Removed, len(r.Notes), left)
}
