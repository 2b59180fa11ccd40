package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const libraryHelp = `Manage the folders that every 'marchwarden ask' searches.

Hidden files and what a .gitignore names are not indexed. The folders themselves
are never changed.`

func newLibrary(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "library", Short: "add, list, remove and search the folders of your library", Long: libraryHelp,
		Example: "  marchwarden library add ~/notes\n  marchwarden library search \"roof insulation\"",
		Args:    needCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLibraryAdd(a), newLibraryList(a), newLibraryRemove(a), newLibrarySearch(a))
	return cmd
}

func newLibraryAdd(a *app) *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use: "add DIR…", Short: "index folders and search them from now on",
		Long:    "Index folders and search them from now on. Adding a folder again brings its\nindex up to date; 'ask' does that by itself, too.",
		Example: "  marchwarden library add ~/notes ~/papers",
		Args:    argCount(1, 1000, "at least one folder"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runLibraryAdd(cmd.Context(), quiet, args) },
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func newLibraryList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list the folders of your library", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runLibraryList(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newLibraryRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove DIR…", Short: "search folders no longer; the folders themselves stay",
		Example: "  marchwarden library remove ~/papers",
		Args:    argCount(1, 1000, "at least one folder"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runLibraryRemove(cmd.Context(), args) },
	}
}

type librarySearchOptions struct {
	library  []string
	embedded bool
	limit    int
	json     bool
}

func newLibrarySearch(a *app) *cobra.Command {
	var o librarySearchOptions
	cmd := &cobra.Command{
		Use: "search WORDS…", Short: "search the library without writing an answer",
		Example: "  marchwarden library search --limit 3 \"alkaline soil\"",
		Args:    argCount(1, 1000, "words to search for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runLibrarySearch(cmd.Context(), o, strings.Join(args, " "))
		},
	}
	cmd.Flags().StringArrayVar(&o.library, "library", nil, "search the folder `DIR`; may be given several times")
	cmd.Flags().BoolVar(&o.embedded, "embedded", false, "search the embedded library too")
	cmd.Flags().IntVar(&o.limit, "limit", 10, "show at most `N` documents, 1 to 100")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (a *app) runLibraryAdd(ctx context.Context, quiet bool, args []string) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	var opened []*fetch.Folder
	defer func() { _ = network.CloseFolders(opened) }() // read-only
	for _, arg := range args {
		f, err := a.OpenFolder("DIR", arg)
		if err != nil {
			return err
		}
		opened = append(opened, f)
	}
	w := a.newWatch(c, askOptions{quiet: quiet, verbose: true}) // every file that cannot be read is named
	defer w.close()
	return a.withIndex(ctx, c, func(ix *local.Index) error {
		for _, f := range opened {
			if err := a.addFolder(ctx, c, ix, f, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// addFolder indexes a folder and remembers it. When ctx ends on the way, what was indexed stays and
// the next ask continues from there; a folder that cannot be indexed is not remembered.
func (a *app) addFolder(ctx context.Context, c *settings.Settings, ix *local.Index, f *fetch.Folder, w *watch) error {
	x := a.Extractor(c)
	defer x.Close()
	r, err := ix.Update(ctx, f, local.UpdateOptions{Extract: x, Now: a.Now, Progress: w.event})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if err := errors.Join(err, network.KeepFolder(c.FoldersPath(), f.Name)); err != nil {
		return err
	}
	for _, n := range r.Notes {
		w.warn(fmt.Sprintf("%s: %s", n.Name, n.Reason))
	}
	_, err = fmt.Fprintln(a.stdout, term.CleanLine(fmt.Sprintf("%s: %d documents (%d new, %d changed, %d gone, %d not readable)",
		f.Name, r.Added+r.Changed+r.Unchanged, r.Added, r.Changed, r.Removed, len(r.Notes))))
	return err
}

// withIndex opens the index of the user's folders for one piece of work.
func (a *app) withIndex(ctx context.Context, c *settings.Settings, work func(*local.Index) error) error {
	if err := os.MkdirAll(c.Home(), 0o700); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the home folder")
	}
	ix, err := local.Open(ctx, c.IndexPath())
	if err != nil {
		return err
	}
	return errors.Join(work(ix), ix.Close())
}

// folderRow is a row of 'library list', and its form in JSON. Fields are only
// ever added.
type folderRow struct {
	Path    string     `json:"path"`
	Files   int        `json:"files"`
	Bytes   int64      `json:"bytes"`
	Updated *time.Time `json:"updated,omitempty"`
	Missing bool       `json:"missing,omitempty"`
}

func (a *app) runLibraryList(ctx context.Context, asJSON bool) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	rows, err := a.folderRows(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.forPrograms(), rows)
	}
	if len(rows) == 0 {
		a.note("no folders were added yet, so the embedded library is searched; 'marchwarden library add DIR' adds one")
		return nil
	}
	var table [][]string
	for _, r := range rows {
		updated := "never"
		if r.Updated != nil {
			updated = a.inZone(*r.Updated)
		}
		if r.Missing {
			updated = "folder is missing"
		}
		table = append(table, []string{term.Count(r.Files), term.Bytes(r.Bytes), updated, r.Path})
	}
	return a.outStyle().Table(a.stdout, []string{"documents", "size", "indexed", "folder"}, table)
}

// folderRows joins what was added with what the index holds of it.
func (a *app) folderRows(ctx context.Context, c *settings.Settings) ([]folderRow, error) {
	kept, err := network.KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, err
	}
	rows := make([]folderRow, len(kept))
	infos := map[string]local.FolderInfo{}
	if len(kept) > 0 {
		err = a.withIndex(ctx, c, func(ix *local.Index) error {
			list, err := ix.Folders(ctx)
			for _, f := range list {
				infos[f.Path] = f
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for i, path := range kept {
		info := infos[path]
		rows[i] = folderRow{Path: path, Files: info.Files, Bytes: info.Bytes}
		if !info.Updated.IsZero() {
			rows[i].Updated = &info.Updated
		}
		if stat, err := os.Stat(path); err != nil || !stat.IsDir() {
			rows[i].Missing = true
		}
	}
	return rows, nil
}

func (a *app) runLibraryRemove(ctx context.Context, args []string) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return invalid("DIR", "use . for the working directory", "must not be blank")
		}
		path := a.Source().Absolute(arg, a.Dir)
		if err := network.ForgetFolder(c.FoldersPath(), path); err != nil {
			return err
		}
		err := a.withIndex(ctx, c, func(ix *local.Index) error { return ix.Remove(ctx, path) })
		if err != nil && !errors.Is(err, marchwarden.CodeNotFound) {
			return err
		}
		if _, err := fmt.Fprintln(a.stdout, term.CleanLine(path+" is no longer in the library")); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) runLibrarySearch(ctx context.Context, o librarySearchOptions, words string) error {
	if o.limit < 1 || o.limit > 100 {
		return invalid("--limit", "", fmt.Sprintf("must be from 1 to 100, not %d", o.limit))
	}
	if strings.TrimSpace(words) == "" {
		return invalid("WORDS", "", "must not be blank")
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	library, err := a.OpenLibrary(c, o.library, o.embedded)
	if err != nil {
		return err
	}
	defer func() { _ = network.CloseFolders(library) }() // read-only
	hits, err := a.search(ctx, c, library, search.Query{Text: words, Limit: o.limit})
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(a.forPrograms(), hits)
	}
	if len(hits) == 0 {
		a.note("no document of %s holds these words", term.Plural(len(library), "folder"))
		return nil
	}
	for i, h := range hits {
		if _, err := fmt.Fprintf(a.stdout, "%d. %s\n   %s\n   %s\n", i+1, term.CleanLine(h.Title), term.CleanLine(h.Locator), term.CleanLine(h.Snippet)); err != nil {
			return err
		}
	}
	return nil
}

// search brings the index up to date and searches it. Without folders of the
// user's the index is in memory, as it is for 'ask'.
func (a *app) search(ctx context.Context, c *settings.Settings, library []*fetch.Folder, q search.Query) (hits []search.Hit, err error) {
	x := a.Extractor(c)
	defer x.Close()
	path := ""
	for _, f := range library {
		if !f.Embedded() {
			path = c.IndexPath()
		}
	}
	ix, err := local.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ix.Close()) }()
	for _, f := range library {
		r, err := ix.Update(ctx, f, local.UpdateOptions{Extract: x, Now: a.Now})
		if err != nil {
			return nil, err
		}
		if len(r.Notes) > 0 {
			a.warn(fmt.Sprintf("%s of %s could not be read; 'marchwarden library add %s' tells which", term.Plural(len(r.Notes), "file"), f.Name, f.Name))
		}
	}
	vs, err := a.OpenVectors(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vs.Close()) }()
	e, pure := vs.Embedder.(embed.Pure)
	if !pure { // a provider of vectors is for research, which has a budget
		return listed(ix.Engine(library...).Search(ctx, q))
	}
	return listed(ix.EngineWith(e, library...).Search(ctx, q))
}

// listed is hits as a list, empty or not.
func listed(hits []search.Hit, err error) ([]search.Hit, error) {
	if hits == nil {
		hits = []search.Hit{}
	}
	return hits, err
}
