package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
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
func NewDoctor(h *Host, c *settings.Settings) (d Doctor, err error) {
	if text := c.Text(settings.Model); text != "" && text != NoModel {
		if _, _, err := ParseModel(text, c.Label(settings.Model)); err != nil {
			return d, err
		}
	}
	if _, _, err := namedEngines(c, ""); err != nil {
		return d, err
	}
	_, err = fetchAllow(c)
	return Doctor{h, c}, err
}

// Parts looks at everything on this machine that a research needs or could use.
func (d Doctor) Parts(ctx context.Context) []Part {
	rows := []Part{writable("home", d.c.Home()), writable("traces", d.c.Text(settings.TraceDir)), writable("evidence", d.c.BlobPath())}
	names, _ := fs.Glob(corpus.FS(), "*.md") // the pattern is right
	rows = append(rows, Part{corpus.Name, PartOK, fmt.Sprintf("%d documents, searched when there is no folder or with --embedded", len(names))})
	rows = append(rows, d.folderParts(ctx)...)
	for _, e := range Roster(d.c, Options{}) { // none is started or dialled: 'marchwarden researchers' does that
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

// folderParts are the folders that every ask searches.
func (d Doctor) folderParts(ctx context.Context) (rows []Part) {
	for _, path := range d.c.List(settings.Library) {
		row := Part{"folder", PartOK, path + " (from " + d.c.Origin(settings.Library) + ")"}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			row.State, row.Detail = PartBroken, row.Detail+" is no folder that can be opened"
		}
		rows = append(rows, row)
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

// memberPart is an external researcher.
func (d Doctor) memberPart(m settings.Member) Part {
	row := Part{"researcher " + m.Name, PartOK, m.Transport() + "; 'marchwarden researchers' tries it"}
	_, wrong := d.h.Target(d.c, m)
	var missing error
	if len(m.Command) > 0 {
		_, missing = exec.LookPath(m.Command[0])
	}
	e, is := errors.AsType[*marchwarden.Error](wrong)
	switch {
	case is:
		row.State, row.Detail = PartBroken, e.Message+"; "+e.Hint
	case errors.Is(missing, exec.ErrNotFound):
		row.State, row.Detail = PartBroken, m.Command[0]+" is not in PATH ("+m.At+")"
	case missing != nil:
		row.State, row.Detail = PartBroken, m.Command[0]+" cannot be run: "+durable.Cause(errors.Unwrap(missing))+" ("+m.At+")"
	}
	return row
}

// service is a service that a research may use, and how to try it.
type service struct {
	Part
	// try calls it and may say what it saw; nil when there is nothing to try.
	try func(ctx context.Context) (said string, err error)
	// crowded marks a service that is shared with all the world, and may have no
	// room at the moment without being broken.
	crowded  bool
	fallback bool // an engine that the user did not choose, not missed where another one answers
}

// Services looks at models, search engines, indexes of papers, the database and the browser as
// they are configured. Nothing is called unless online says so.
func (d Doctor) Services(ctx context.Context, online bool) []Part {
	parts := []service{d.modelPart("model for the web", true), d.modelPart("model for files", false), {Part: d.vectorPart()}}
	for _, k := range engineKinds {
		parts = append(parts, d.enginePart(k))
	}
	parts = append(append(parts, d.paperParts(ctx)...), d.databasePart())
	parts = append(parts, service{Part: browserPart(d.c)}, service{Part: scannedPart()}, service{Part: allowPart(d.c)})
	return d.try(ctx, parts, online)
}

func (d Doctor) modelPart(name string, public bool) service {
	chosen := ChooseModel(d.c, "", public)
	model, err := d.h.bareModel(d.c, chosen.Name, chosen.Origin)
	switch {
	case err != nil:
		return service{Part: Part{name, PartBroken, err.Error()}}
	case model == nil && public:
		return service{Part: Part{name, PartOK, extractive.New().ID() + ": no model is set; ANTHROPIC_API_KEY, OPENAI_API_KEY or MARCHWARDEN_MODEL would add one"}}
	case model == nil:
		return service{Part: Part{name, PartOK, extractive.New().ID() + ": your documents go to a model only if --model or MARCHWARDEN_MODEL names one"}}
	}
	part := service{Part: Part{name, PartOK, model.ID() + " (by " + chosen.Origin + ")"}}
	if public || ChooseModel(d.c, "", true) != chosen {
		part.try = func(ctx context.Context) (string, error) { // the smallest call there is
			_, err := model.Generate(ctx, llm.Call{Prompt: "doctor", System: "Answer with one word.", Input: "Say ok.", MaxTokens: 64})
			return "", err
		}
	}
	return part
}

func (d Doctor) enginePart(k engineKind) service {
	row := Part{"search by " + k.Name, PartOK, "needs no key; asked last"}
	all := len(d.c.List(settings.Search)) == 0
	named := slices.Contains(d.c.List(settings.Search), k.Name)
	switch {
	case !k.configured(d.c) && named:
		return service{Part: Part{row.Name, PartBroken, d.c.Label(settings.Search) + " names it, and " + settings.EnvOf(k.Needs) + " is not set"}}
	case !k.configured(d.c):
		return service{Part: Part{row.Name, PartOff, settings.EnvOf(k.Needs) + " is not set"}}
	case !all && !named:
		return service{Part: Part{row.Name, PartOff, "not named by " + d.c.Label(settings.Search)}}
	case k.Needs != "":
		row.Detail = "set by " + d.c.Label(k.Needs)
	}
	engine := d.h.OpenEngine(d.c, k)
	return service{Part: row, fallback: k.Needs == "" && !named, try: func(ctx context.Context) (string, error) {
		_, err := engine.Search(ctx, search.Query{Text: "encyclopedia", Limit: 1})
		return "", err
	}}
}

func scannedPart() Part {
	if path, err := exec.LookPath("tesseract"); err == nil {
		return Part{"scanned pages", PartOK, path + ", for PDFs whose pages are pictures"}
	}
	return Part{"scanned pages", PartOff, "tesseract is not installed; PDFs whose pages are pictures have no text"}
}

func browserPart(c *settings.Settings) Part {
	const name = "browser"
	path, ok := findChromium(c)
	switch {
	case ok:
		return Part{name, PartOK, path + ", for reports as PDF"}
	case c.Text(settings.Chromium) != "":
		return Part{name, PartBroken, c.Label(settings.Chromium) + ": " + c.Text(settings.Chromium) + " cannot be run"}
	}
	return Part{name, PartOff, "no Chromium or Chrome is installed; reports are not printed to PDF"}
}

func allowPart(c *settings.Settings) Part {
	const name = "private addresses"
	allow, _ := fetchAllow(c) // NewDoctor has refused what is wrong
	if list := c.List(settings.FetchAllow); len(list) > 0 {
		detail := "pages may be fetched from " + strings.Join(list, ", ") + ", on every port"
		if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
			detail += "; warning: that is every address, those of this machine, your network and cloud metadata included"
		}
		return Part{name, PartOK, detail}
	}
	return Part{name, PartOff, "never fetched; MARCHWARDEN_FETCH_ALLOW opens ranges on purpose"}
}

// tryTime is how long one service may take to answer doctor.
const tryTime = 20 * time.Second

// try gives the parts; online, it calls every service that is set, all together, and says how it went.
func (d Doctor) try(ctx context.Context, parts []service, online bool) []Part {
	rows := make([]Part, len(parts))
	var running sync.WaitGroup
	for i, p := range parts {
		rows[i] = p.Part
		if p.try == nil || !online {
			continue
		}
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, tryTime)
			defer cancel()
			began := d.h.Now()
			said, err := p.try(ctx)
			switch {
			case err != nil && p.crowded && errors.Is(err, marchwarden.CodeRateLimited):
				rows[i].State, said = PartOff, "no room at the moment: "+onlineFault(err)
			case err != nil:
				rows[i].State, said = PartBroken, onlineFault(err)
			case said == "":
				said = fmt.Sprintf("answered in %.1f s", d.h.Now().Sub(began).Seconds())
			}
			rows[i].Detail += "; " + said
		})
	}
	running.Wait()
	answered := slices.ContainsFunc(rows, func(r Part) bool { return r.State == PartOK && strings.HasPrefix(r.Name, "search by ") })
	for i, p := range parts {
		if p.fallback && rows[i].State == PartBroken && answered {
			rows[i].State, rows[i].Detail = PartOff, rows[i].Detail+"; not missed, as another engine answered"
		}
	}
	return rows
}

func onlineFault(err error) string {
	s := err.Error()
	if hint := marchwarden.HintOf(err); hint != "" {
		s += " (" + hint + ")"
	}
	return s
}

// vectorPart is what compares texts by their meaning.
func (d Doctor) vectorPart() Part {
	row := Part{"sentence vectors", PartOff, ""}
	if d.c.Text(settings.Embed) == settings.EmbedOff {
		row.Detail = d.c.Label(settings.Embed) + " is off; texts are compared by their words alone, and answers are picked without the reader"
	} else {
		row.State, row.Detail = PartOK, bert.MiniLMID+" on this machine, "+bert.BestKernel().Name+" arithmetic; answers are picked by "+reader.ID
	}
	return row
}

// databasePart is the database of the settings, whose address is not shown: it may
// hold a password.
func (d Doctor) databasePart() service {
	const name = "database"
	address := databaseURL(d.c, Options{})
	if address == "" {
		return service{Part: Part{name, PartOff, settings.EnvOf(settings.DB) + " is not set"}}
	}
	scheme, _, _ := strings.Cut(address, ":")
	row := Part{name, PartOK, "set by " + d.c.Label(settings.DB) + ", of kind " + strings.ToLower(plaintext.Clip(scheme, 20))}
	if database.IsFile(address) {
		row.Detail = "set by " + d.c.Label(settings.DB) + ", an SQLite file"
		if _, err := os.Stat(d.h.Source().Absolute(address, d.h.Dir)); err != nil {
			return service{Part: Part{name, PartBroken, row.Detail + " that cannot be opened: " + durable.Cause(err)}}
		}
	}
	return service{Part: row, try: func(ctx context.Context) (string, error) {
		ctx, done := context.WithTimeout(ctx, scopeTime)
		defer done()
		db, err := d.h.OpenDatabase(ctx, d.c, Options{})
		if err != nil {
			return "", err
		}
		return db.Name() + " can be read", db.Close()
	}}
}

// knownPaper is a paper that every index of papers has.
const knownPaper = "10.1038/s41586-021-03819-2"

// paperParts are the services that know papers.
func (d Doctor) paperParts(ctx context.Context) []service {
	api, indexes := d.h.openIndexes(d.c)
	parts := []service{
		{Part: Part{"papers by arXiv", PartOK, "needs no key"}, try: func(ctx context.Context) (string, error) {
			_, err := api.Search(ctx, search.Query{Text: "attention", Limit: 1})
			return "", err
		}},
	}
	look := sync.OnceValue(func() scholar.Work { // one question goes to all indexes
		ctx, done := context.WithTimeout(ctx, tryTime)
		defer done()
		id, _ := scholar.ParseID(knownPaper) // it is one
		work, _ := indexes.Look(ctx, id)     // what each of them said is in the work
		return work
	})
	for _, s := range []struct{ index, key string }{{scholar.Crossref, ""}, {scholar.OpenAlex, settings.OpenAlexKey}, {scholar.SemanticScholar, settings.ScholarKey}} {
		row := Part{"papers by " + s.index, PartOK, "needs no key"}
		if s.key != "" && d.c.Text(s.key) != "" {
			row.Detail = "with the key of " + d.c.Label(s.key)
		}
		parts = append(parts, service{Part: row, crowded: row.Detail == "needs no key", try: func(context.Context) (string, error) { return answerOf(look(), s.index) }})
	}
	if d.c.MemberNamed(researcher.ArxivName).Off {
		for i := range parts {
			parts[i].State, parts[i].Detail, parts[i].try = PartOff, "the researcher arxiv is "+offInFile, nil
		}
	}
	return parts
}

// answerOf is what an index said about the paper, or why it did not answer.
func answerOf(w scholar.Work, index string) (said string, err error) {
	i := slices.IndexFunc(w.Asked, func(s scholar.Answer) bool { return s.Index == index })
	switch {
	case i < 0:
		return "", marchwarden.Errorf(marchwarden.CodeTimeout, "did not answer in time")
	case w.Asked[i].Code != "":
		return "", marchwarden.Errorf(w.Asked[i].Code, "%s", w.Asked[i].Fault)
	case !w.Asked[i].Known:
		return "answered, and does not have the paper " + knownPaper, nil
	}
	return "answered", nil
}
