package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// The states of a part.
const (
	PartOK     = "ok"
	PartOff    = "off"
	PartBroken = "broken"
)

// Part is something that a research needs or could use, as 'doctor' shows it. Fields are only
// ever added.
type Part struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

// Doctor looks at what a research needs or could use, as the settings have it.
type Doctor struct {
	h *Host
	c *settings.Settings
}

// NewDoctor checks the settings whose values a research reads itself, and makes a doctor for the rest.
func NewDoctor(h *Host, c *settings.Settings) (Doctor, error) {
	d := Doctor{h, c}
	return d, d.checkSettings()
}

// Parts looks at everything on this machine that a research needs or could use.
func (d Doctor) Parts(ctx context.Context) []Part {
	rows := []Part{
		settingsFile(settings.FromFile, filepath.Join(d.c.Home(), settings.FromFile)), settingsFile(settings.FromDotEnv, filepath.Join(d.h.Dir, settings.FromDotEnv)),
		writable("home", d.c.Home(), true), writable("traces", d.c.Text(settings.TraceDir), true),
		writable("evidence", d.c.BlobPath(), true), writable("ledger", d.c.Text(settings.Ledger), false),
		ledgerLines(d.c), embeddedPart(),
	}
	if swept := d.sweep(ctx); swept.Detail != "" {
		rows = append(rows, swept)
	}
	rows = append(rows, d.folderParts(ctx)...)
	rows = append(rows, indexPart(d.c),
		Part{"documents", PartOK, extract.Formats + "; PDF needs nothing installed"},
	)
	rows = append(rows, keptVectors(d.c))
	return append(rows, d.researcherParts()...)
}

// settingsFile says whether a file of settings is there; it was read already.
func settingsFile(name, path string) Part {
	if _, err := os.Stat(path); err != nil {
		return Part{name, PartOff, path + " is not there, which is fine"}
	}
	return Part{name, PartOK, path}
}

// indexPart is the index of the user's folders.
func indexPart(c *settings.Settings) Part {
	info, err := os.Stat(c.IndexPath())
	if err != nil {
		return Part{"index", PartOff, "not made yet; the first folder makes it"}
	}
	return Part{"index", PartOK, fmt.Sprintf("%s, %s", c.IndexPath(), term.Bytes(info.Size()))}
}

// writable tries whether a folder or a file can be written, without changing
// it. What does not exist yet must have a parent in which it can be made.
func writable(name, path string, isDir bool) Part {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := tryFolder(nearest(path)); err != nil {
			return Part{name, PartBroken, fmt.Sprintf("%s cannot be made: %s", path, durable.Cause(err))}
		}
		return Part{name, PartOK, path + " (will be made)"}
	case err != nil:
		return Part{name, PartBroken, fmt.Sprintf("%s cannot be used: %s", path, durable.Cause(err))}
	case info.IsDir() != isDir:
		return Part{name, PartBroken, fmt.Sprintf("%s is there and is %s", path, map[bool]string{true: "a folder, not a file", false: "no folder"}[info.IsDir()])}
	}
	if isDir {
		err = tryFolder(path)
	} else if f, failed := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); failed != nil {
		err = failed
	} else {
		err = f.Close()
	}
	if err != nil {
		return Part{name, PartBroken, fmt.Sprintf("%s cannot be written: %s", path, durable.Cause(err))}
	}
	return Part{name, PartOK, path}
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

func tryFolder(path string) error {
	f, err := os.CreateTemp(path, ".marchwarden-*.tmp")
	if err != nil {
		return err
	}
	return durable.Discard(f)
}

func ledgerLines(c *settings.Settings) Part {
	entries, skipped, err := ledger.Read(c.Text(settings.Ledger))
	if err != nil {
		return Part{"ledger lines", PartBroken, err.Error()}
	}
	detail := fmt.Sprintf("calls recorded: %s; prices as of %s", term.Count(len(entries)), ledger.PricesAsOf())
	if skipped > 0 {
		detail += "; left out: " + term.Plural(skipped, "torn or foreign line")
	}
	return Part{"ledger lines", PartOK, detail}
}

// sweep removes what crashes left in the evidence store, and says so if there
// was any. Nothing that old belongs to a living writer.
func (d Doctor) sweep(ctx context.Context) Part {
	if _, err := os.Stat(d.c.BlobPath()); err != nil {
		return Part{} // nothing is stored yet
	}
	store, err := blobdir.Open(d.c.BlobPath())
	if err != nil {
		return Part{"evidence sweep", PartBroken, err.Error()}
	}
	defer store.Close()
	n, err := store.Sweep(ctx, d.h.Now().Add(-time.Hour))
	switch {
	case err != nil:
		return Part{"evidence sweep", PartBroken, err.Error()}
	case n > 0:
		return Part{"evidence sweep", PartOK, "removed what interrupted writes left: " + term.Plural(n, "unfinished file")}
	}
	return Part{}
}

func embeddedPart() Part {
	names, err := fs.Glob(corpus.FS(), "*.md")
	if err != nil || len(names) == 0 {
		return Part{corpus.Name, PartBroken, "no documents in the program"}
	}
	return Part{corpus.Name, PartOK, fmt.Sprintf("%d documents, searched when there is no folder or with --embedded", len(names))}
}

// folderParts are the folders that every ask searches.
func (d Doctor) folderParts(ctx context.Context) []Part {
	var rows []Part
	for _, path := range d.c.List(settings.Library) {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			rows = append(rows, Part{"folder", PartBroken, path + " (from " + d.c.Origin(settings.Library) + ") is no folder that can be opened"})
			continue
		}
		rows = append(rows, Part{"folder", PartOK, path + " (from " + d.c.Origin(settings.Library) + ")"})
	}
	kept, err := FolderInfos(ctx, d.c)
	if err != nil {
		return append(rows, Part{"index", PartBroken, err.Error()})
	}
	for _, f := range kept {
		row := Part{"folder", PartOK, fmt.Sprintf("%s (added; %s in the index)", f.Path, term.Plural(f.Files, "document"))}
		if f.Missing {
			row.State, row.Detail = PartBroken, f.Path+" (added) is missing; 'marchwarden library remove "+f.Path+"' forgets it"
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = append(rows, Part{"folders", PartOff, "none; 'marchwarden library add DIR' adds one"})
	}
	return rows
}

// researcherParts are the members of the network as the settings make it. None is started or
// dialled: 'marchwarden researchers' does that.
func (d Doctor) researcherParts() []Part {
	var rows []Part
	for _, e := range Roster(d.c, Options{}) {
		switch m := d.c.MemberNamed(e.Name); {
		case e.Off != "":
			rows = append(rows, Part{"researcher " + e.Name, PartOff, e.Off})
		case m.External():
			rows = append(rows, d.memberPart(m))
		default:
			rows = append(rows, Part{"researcher " + e.Name, PartOK, e.Scope})
		}
	}
	return rows
}

// memberPart is an external researcher.
func (d Doctor) memberPart(m settings.Member) Part {
	row := Part{"researcher " + m.Name, PartOK, m.Transport() + "; 'marchwarden researchers' tries it"}
	_, wrong := d.h.Target(d.c, m)
	var missing error
	if len(m.Command) > 0 {
		_, missing = exec.LookPath(m.Command[0])
	}
	var e *marchwarden.Error
	switch {
	case errors.As(wrong, &e):
		row.State, row.Detail = PartBroken, e.Message+"; "+e.Hint
	case errors.Is(missing, exec.ErrNotFound):
		row.State, row.Detail = PartBroken, m.Command[0]+" is not in PATH ("+m.At+")"
	case missing != nil:
		row.State, row.Detail = PartBroken, m.Command[0]+" cannot be run: "+durable.Cause(errors.Unwrap(missing))+" ("+m.At+")"
	}
	return row
}

// keptVectors says how many vectors were made before.
func keptVectors(c *settings.Settings) Part {
	size, n, err := embed.DiskStoreSize(c.VectorsPath())
	switch {
	case err != nil:
		return Part{"kept vectors", PartOff, "cannot be read, and are made again: " + durable.Cause(err)}
	case n == 0:
		return Part{"kept vectors", PartOff, "none yet; the first question makes some"}
	}
	return Part{"kept vectors", PartOK, fmt.Sprintf("%s, %s in %s; may be deleted", term.Count(n), term.Bytes(size), c.VectorsPath())}
}
