package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
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
	rows := []Part{writable("home", d.c.Home()), writable("traces", d.c.Text(settings.TraceDir)), writable("evidence", d.c.BlobPath()), embeddedPart()}
	rows = append(rows, d.folderParts(ctx)...)
	return append(rows, d.researcherParts()...)
}

// writable tries whether a folder can be written, without changing it. One that does not exist yet
// must have a folder above it in which it can be made.
func writable(name, path string) Part {
	detail := path
	for folder := path; ; folder = filepath.Dir(folder) {
		f, err := os.CreateTemp(folder, ".marchwarden-*.tmp")
		if errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder) {
			detail = path + " (will be made)"
			continue
		}
		if err == nil {
			err = durable.Discard(f)
		}
		if err != nil {
			return Part{name, PartBroken, path + " cannot be written: " + durable.Cause(err)}
		}
		return Part{name, PartOK, detail}
	}
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
