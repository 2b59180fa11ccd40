package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

const doctorHelp = `Show every setting with its value and where it came from, and what is
available, what is not, and why. Secrets are masked. With --online every service
that is set is called once: a search of each engine, a few tokens of each model,
one question to each index of papers; and the database is opened. 'marchwarden
researchers' is what starts and dials the researchers.
What is missing in the home folder is made by the first 'marchwarden ask'; all
that doctor changes is that unfinished files, which interrupted writes left over
an hour ago, are removed.

EXIT STATUS
  0    everything that this version needs works
  1    something is broken; it is named
  2    wrong usage, or a setting that cannot be read`

func newDoctor(a *app) *cobra.Command {
	var asJSON, online bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "show settings and where they came from, and what works", Long: doctorHelp, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), asJSON, online) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&online, "online", false, "call every service that is set, to check keys and reachability")
	return cmd
}

// The states of a part.
const (
	partOK     = "ok"
	partOff    = "off"
	partBroken = "broken"
)

// settingRow and partRow are rows of 'doctor', and their form in JSON. Fields are
// only ever added.
type settingRow struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Env    string `json:"env"`
}

type partRow struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

type checkup struct {
	Settings []settingRow `json:"settings"`
	Parts    []partRow    `json:"parts"`
}

func (a *app) runDoctor(ctx context.Context, asJSON, online bool) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	if err := cmp.Or(readableSettings(c), a.ReadableVectors(c)); err != nil {
		return err
	}
	r := checkup{Settings: settingRows(c), Parts: a.parts(ctx, c)}
	services := a.servicePartsOf(c)
	if online {
		a.note("calling every service that is set…")
		r.Parts = append(r.Parts, a.tryOnline(ctx, services)...)
	} else {
		for _, s := range services {
			r.Parts = append(r.Parts, s.partRow)
		}
	}
	if asJSON {
		err = printJSON(a.forPrograms(), r)
	} else {
		err = a.printCheckup(r)
	}
	if err != nil {
		return err
	}
	return brokenParts(r.Parts)
}

// readableSettings checks the settings whose values a research reads itself.
func readableSettings(c *settings.Settings) error {
	for _, name := range []string{settings.Model, settings.Fallback} {
		if text := c.Text(name); text != "" && text != network.NoModel {
			if _, _, err := network.ParseModel(text, c.Label(name)); err != nil {
				return err
			}
		}
	}
	_, _, err := network.NamedEngines(c, "")
	if err == nil {
		_, err = network.FetchAllow(c)
	}
	return err
}

// brokenParts is the error of a checkup; what is wrong with each part was shown.
func brokenParts(parts []partRow) error {
	const most = 5
	var names []string
	n := 0
	for _, p := range parts {
		if p.State != partBroken {
			continue
		}
		if n++; !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	switch list := strings.Join(names, ", "); n {
	case 0:
		return nil
	case 1:
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "1 part is broken: %s; see above", list)
	default:
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "%d parts are broken: %s; see above", n, list)
	}
}

func (a *app) printCheckup(r checkup) error {
	var rows [][]string
	for _, s := range r.Settings {
		rows = append(rows, []string{s.Name, s.Origin, s.Env, s.Value})
	}
	if err := a.outStyle().Table(a.stdout, []string{"setting", "from", "environment", "value"}, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.stdout); err != nil {
		return err
	}
	rows = nil
	for _, p := range r.Parts {
		rows = append(rows, []string{p.Name, p.State, p.Detail})
	}
	return a.outStyle().Table(a.stdout, []string{"part", "state", "detail"}, rows)
}

func settingRows(c *settings.Settings) []settingRow {
	var rows []settingRow
	for _, s := range settings.All {
		v := c.Values[s.Name]
		shown := strings.Join(v.Texts, string(os.PathListSeparator))
		if s.Secret {
			shown = masked(shown)
		}
		if s.Personal && shown != "" { // an address may end in its password
			shown = masked(".")
		}
		if u, err := url.Parse(shown); s.Kind == settings.Address && err == nil {
			shown = u.Redacted()
		}
		if shown == "" {
			shown = "not set"
		}
		rows = append(rows, settingRow{Name: s.Name, Value: shown, Origin: v.Origin, Env: s.Env})
	}
	return rows
}

// masked hides a secret. The last four characters of a long one stay, so that
// two keys can be told apart.
func masked(secret string) string {
	const longEnough, shown = 12, 4
	switch r := []rune(secret); {
	case len(r) == 0:
		return ""
	case len(r) > longEnough:
		return "…" + string(r[len(r)-shown:])
	}
	return "…"
}

// parts looks at everything that a research needs or could use.
func (a *app) parts(ctx context.Context, c *settings.Settings) []partRow {
	rows := []partRow{
		settingsFile(settings.FromFile, filepath.Join(c.Home(), settings.FromFile)), settingsFile(settings.FromDotEnv, filepath.Join(a.Dir, settings.FromDotEnv)),
		writable("home", c.Home(), true), writable("traces", c.Text(settings.TraceDir), true),
		writable("evidence", c.BlobPath(), true), writable("ledger", c.Text(settings.Ledger), false),
		ledgerLines(c), embeddedPart(),
	}
	if swept := a.sweep(ctx, c); swept.Detail != "" {
		rows = append(rows, swept)
	}
	rows = append(rows, a.folderParts(ctx, c)...)
	rows = append(rows, indexPart(c),
		partRow{"documents", partOK, "Markdown, text, HTML, PDF, Word, CSV, JSON and source code; PDF needs nothing installed"},
	)
	rows = append(rows, keptVectors(c))
	rows = append(rows, a.researcherParts(c)...)
	return append(rows, a.clusterPart(ctx, c))
}

// settingsFile says whether a file of settings is there; it was read already.
func settingsFile(name, path string) partRow {
	if _, err := os.Stat(path); err != nil {
		return partRow{name, partOff, path + " is not there, which is fine"}
	}
	return partRow{name, partOK, path}
}

// indexPart is the index of the user's folders.
func indexPart(c *settings.Settings) partRow {
	info, err := os.Stat(c.IndexPath())
	if err != nil {
		return partRow{"index", partOff, "not made yet; the first folder makes it"}
	}
	return partRow{"index", partOK, fmt.Sprintf("%s, %s", c.IndexPath(), term.Bytes(info.Size()))}
}

// writable tries whether a folder or a file can be written, without changing
// it. What does not exist yet must have a parent in which it can be made.
func writable(name, path string, isDir bool) partRow {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if problem := tryFolder(nearest(path)); problem != "" {
			return partRow{name, partBroken, fmt.Sprintf("%s cannot be made: %s", path, problem)}
		}
		return partRow{name, partOK, path + " (will be made)"}
	case err != nil:
		return partRow{name, partBroken, fmt.Sprintf("%s cannot be used: %s", path, durable.Cause(err))}
	case info.IsDir() != isDir:
		return partRow{name, partBroken, fmt.Sprintf("%s is there and is %s", path, map[bool]string{true: "a folder, not a file", false: "no folder"}[info.IsDir()])}
	}
	problem := ""
	if isDir {
		problem = tryFolder(path)
	} else {
		problem = tryFile(path)
	}
	if problem != "" {
		return partRow{name, partBroken, fmt.Sprintf("%s cannot be written: %s", path, problem)}
	}
	return partRow{name, partOK, path}
}

// nearest is the closest folder above path that exists.
func nearest(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Stat(parent); err == nil || parent == path {
			return parent
		}
		path = parent
	}
}

func tryFolder(path string) (problem string) {
	f, err := os.CreateTemp(path, ".marchwarden-*.tmp")
	if err != nil {
		return durable.Cause(err)
	}
	if err := discard(f); err != nil {
		return durable.Cause(err)
	}
	return ""
}

func tryFile(path string) (problem string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return durable.Cause(err)
	}
	return ""
}

func ledgerLines(c *settings.Settings) partRow {
	entries, skipped, err := ledger.Read(c.Text(settings.Ledger))
	if err != nil {
		return partRow{"ledger lines", partBroken, err.Error()}
	}
	detail := fmt.Sprintf("calls recorded: %s; prices as of %s", term.Count(len(entries)), ledger.PricesAsOf())
	if skipped > 0 {
		detail += "; left out: " + term.Plural(skipped, "torn or foreign line")
	}
	return partRow{"ledger lines", partOK, detail}
}

// sweep removes what crashes left in the evidence store, and says so if there
// was any. Nothing that old belongs to a living writer.
func (a *app) sweep(ctx context.Context, c *settings.Settings) partRow {
	if _, err := os.Stat(c.BlobPath()); err != nil {
		return partRow{} // nothing is stored yet
	}
	store, err := blobdir.Open(c.BlobPath())
	if err != nil {
		return partRow{"evidence sweep", partBroken, err.Error()}
	}
	defer store.Close()
	n, err := store.Sweep(ctx, a.Now().Add(-time.Hour))
	switch {
	case err != nil:
		return partRow{"evidence sweep", partBroken, err.Error()}
	case n > 0:
		return partRow{"evidence sweep", partOK, "removed what interrupted writes left: " + term.Plural(n, "unfinished file")}
	}
	return partRow{}
}

func embeddedPart() partRow {
	names, err := fs.Glob(corpus.FS(), "*.md")
	if err != nil || len(names) == 0 {
		return partRow{corpus.Name, partBroken, "no documents in the program"}
	}
	return partRow{corpus.Name, partOK, fmt.Sprintf("%d documents, searched when there is no folder or with --embedded", len(names))}
}

// folderParts are the folders that every ask searches.
func (a *app) folderParts(ctx context.Context, c *settings.Settings) []partRow {
	var rows []partRow
	for _, path := range c.List(settings.Library) {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			rows = append(rows, partRow{"folder", partBroken, path + " (from " + c.Origin(settings.Library) + ") is no folder that can be opened"})
			continue
		}
		rows = append(rows, partRow{"folder", partOK, path + " (from " + c.Origin(settings.Library) + ")"})
	}
	kept, err := a.folderRows(ctx, c)
	if err != nil {
		return append(rows, partRow{"index", partBroken, err.Error()})
	}
	for _, f := range kept {
		row := partRow{"folder", partOK, fmt.Sprintf("%s (added; %s in the index)", f.Path, term.Plural(f.Files, "document"))}
		if f.Missing {
			row.State, row.Detail = partBroken, f.Path+" (added) is missing; 'marchwarden library remove "+f.Path+"' forgets it"
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = append(rows, partRow{"folders", partOff, "none; 'marchwarden library add DIR' adds one"})
	}
	return rows
}
