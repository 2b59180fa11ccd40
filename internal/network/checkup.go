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
	// try calls a service and may say what it saw; nil when there is nothing to try.
	try func(ctx context.Context) (said string, err error)
}

func partOK(name, detail string) Part     { return Part{name, PartOK, detail, nil} }
func partOff(name, detail string) Part    { return Part{name, PartOff, detail, nil} }
func partBroken(name, detail string) Part { return Part{name, PartBroken, detail, nil} }

// doctor looks at what a research needs or could use, as the settings have it.
type doctor struct {
	h *Host
	c *settings.Settings
}

// parts are all that doctor looks at, in the order in which it shows them.
func (d doctor) parts(ctx context.Context) []Part {
	names, _ := fs.Glob(corpus.FS(), "*.md") // the pattern is right
	return slices.Concat(
		[]Part{writable("home", d.c.Home()), writable("traces", d.c.Text(settings.TraceDir)), writable("evidence", d.c.BlobPath())},
		[]Part{partOK(corpus.Name, fmt.Sprintf("%d documents, searched when there is no folder or with --embedded", len(names)))},
		d.folders(ctx), d.researchers(),
		[]Part{d.model("model for the web", true, "no model is set; ANTHROPIC_API_KEY, OPENAI_API_KEY or MARCHWARDEN_MODEL would add one")},
		[]Part{d.model("model for files", false, "your documents go to a model only if --model or MARCHWARDEN_MODEL names one")},
		[]Part{d.vectors()}, d.engines(), d.papers(ctx), []Part{d.database(), d.browser(), scanned(), d.addresses()})
}

// Checkup looks at everything that a research needs or could use. A service is called only if online
// says so. Settings whose values a research reads itself are errors where they are wrong.
func Checkup(ctx context.Context, h *Host, c *settings.Settings, online bool) ([]Part, error) {
	if text := c.Text(settings.Model); text != "" && text != NoModel {
		if _, _, err := ParseModel(text, c.Label(settings.Model)); err != nil {
			return nil, err
		}
	}
	if _, _, err := namedEngines(c, ""); err != nil {
		return nil, err
	}
	if _, err := fetchAllow(c); err != nil {
		return nil, err
	}
	parts := doctor{h, c}.parts(ctx)
	if online {
		h.try(ctx, parts)
	}
	return parts, nil
}

// tryTime is how long one service may take to answer doctor.
const tryTime = 20 * time.Second

// try calls every service that is set, all together, and notes how it went.
func (h *Host) try(ctx context.Context, parts []Part) {
	var running sync.WaitGroup
	for i := range parts {
		p := &parts[i]
		if p.try == nil {
			continue
		}
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, tryTime)
			defer cancel()
			began := h.Now()
			said, err := p.try(ctx)
			switch {
			case err != nil && p.Detail == needsNoKey && errors.Is(err, marchwarden.CodeRateLimited): // all the world shares it
				p.State, said = PartOff, "no room at the moment: "+withHint(err)
			case err != nil:
				p.State, said = PartBroken, withHint(err)
			case said == "":
				said = fmt.Sprintf("answered in %.1f s", h.Now().Sub(began).Seconds())
			}
			p.Detail += "; " + said
		})
	}
	running.Wait()
	answered := slices.ContainsFunc(parts, func(p Part) bool { return p.State == PartOK && strings.HasPrefix(p.Name, "search by ") })
	for i, p := range parts {
		if answered && p.State == PartBroken && strings.HasPrefix(p.Detail, needsNoKey+fallback) {
			parts[i].State, parts[i].Detail = PartOff, p.Detail+"; not missed, as another engine answered"
		}
	}
}

func withHint(err error) string {
	if hint := marchwarden.HintOf(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
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
			return partBroken(name, path+" cannot be written: "+durable.Cause(err))
		}
		return partOK(name, detail)
	}
}

// folders are those that every ask searches.
func (d doctor) folders(ctx context.Context) (rows []Part) {
	for _, path := range d.c.List(settings.Library) {
		row := partOK("folder", path+" (from "+d.c.Origin(settings.Library)+")")
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			row = partBroken("folder", row.Detail+" is no folder that can be opened")
		}
		rows = append(rows, row)
	}
	kept, err := FolderInfos(ctx, d.c)
	if err != nil {
		return append(rows, partBroken("index", err.Error()))
	}
	for _, f := range kept {
		row := partOK("folder", fmt.Sprintf("%s (added; %s in the index)", f.Path, term.Plural(f.Files, "document")))
		if f.Missing {
			row = partBroken("folder", f.Path+" (added) is missing; 'marchwarden library remove "+f.Path+"' forgets it")
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		rows = append(rows, partOff("folders", "none; 'marchwarden library add DIR' adds one"))
	}
	return rows
}

// researchers are all there could be. None is started or dialled: 'marchwarden researchers' does that.
func (d doctor) researchers() (rows []Part) {
	for _, e := range Roster(d.c, Options{}) {
		name := "researcher " + e.Name
		switch m := d.c.MemberNamed(e.Name); {
		case e.Off != "":
			rows = append(rows, partOff(name, e.Off))
		case m.External():
			rows = append(rows, d.external(name, m))
		default:
			rows = append(rows, partOK(name, e.Scope))
		}
	}
	return rows
}

func (d doctor) external(name string, m settings.Member) Part {
	_, wrong := d.h.Target(d.c, m)
	var missing error
	if len(m.Command) > 0 {
		_, missing = exec.LookPath(m.Command[0])
	}
	e, is := errors.AsType[*marchwarden.Error](wrong)
	switch {
	case is:
		return partBroken(name, e.Message+"; "+e.Hint)
	case errors.Is(missing, exec.ErrNotFound):
		return partBroken(name, m.Command[0]+" is not in PATH ("+m.At+")")
	case missing != nil:
		return partBroken(name, m.Command[0]+" cannot be run: "+durable.Cause(errors.Unwrap(missing))+" ("+m.At+")")
	}
	return partOK(name, m.Transport()+"; 'marchwarden researchers' tries it")
}

func (d doctor) model(name string, public bool, none string) Part {
	chosen := ChooseModel(d.c, "", public)
	model, err := d.h.bareModel(d.c, chosen.Name, chosen.Origin)
	switch {
	case err != nil:
		return partBroken(name, err.Error())
	case model == nil:
		return partOK(name, extractive.New().ID()+": "+none)
	}
	part := partOK(name, model.ID()+" (by "+chosen.Origin+")")
	if !public && ChooseModel(d.c, "", true) == chosen {
		return part // it is tried once
	}
	part.try = func(ctx context.Context) (string, error) { // the smallest call there is
		_, err := model.Generate(ctx, llm.Call{Prompt: "doctor", System: "Answer with one word.", Input: "Say ok.", MaxTokens: 64})
		return "", err
	}
	return part
}

// vectors are what compares texts by their meaning.
func (d doctor) vectors() Part {
	const name = "sentence vectors"
	if d.c.Text(settings.Embed) == settings.EmbedOff {
		return partOff(name, d.c.Label(settings.Embed)+" is off; texts are compared by their words alone, and answers are picked without the reader")
	}
	return partOK(name, bert.MiniLMID+" on this machine, "+bert.BestKernel().Name+" arithmetic; answers are picked by "+reader.ID)
}

func (d doctor) engines() (rows []Part) {
	named := d.c.List(settings.Search)
	for _, k := range engineKinds {
		row, chosen := partOK("search by "+k.Name, needsNoKey), slices.Contains(named, k.Name)
		switch {
		case !k.configured(d.c) && chosen:
			row = partBroken(row.Name, d.c.Label(settings.Search)+" names it, and "+settings.EnvOf(k.Needs)+" is not set")
		case !k.configured(d.c):
			row = partOff(row.Name, settings.EnvOf(k.Needs)+" is not set")
		case len(named) > 0 && !chosen:
			row = partOff(row.Name, "not named by "+d.c.Label(settings.Search))
		case k.Needs != "":
			row.Detail = "set by " + d.c.Label(k.Needs)
		case !chosen:
			row.Detail += fallback
		}
		if row.State == PartOK {
			row.try = tryEngine(d.h.OpenEngine(d.c, k), "encyclopedia")
		}
		rows = append(rows, row)
	}
	return rows
}

// tryEngine has an engine search for one thing.
func tryEngine(e search.Engine, text string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		_, err := e.Search(ctx, search.Query{Text: text, Limit: 1})
		return "", err
	}
}

// needsNoKey is said of a service that is shared with all the world, and fallback of the engine of
// those that is asked although nothing names it.
const (
	needsNoKey = "needs no key"
	fallback   = "; asked last"
)

// knownPaper is a paper that every index of papers has.
const knownPaper = "10.1038/s41586-021-03819-2"

// papers are the services that know papers. One question goes to all indexes.
func (d doctor) papers(ctx context.Context) []Part {
	api, indexes := d.h.openIndexes(d.c)
	parts := []Part{{"papers by arXiv", PartOK, needsNoKey, tryEngine(api, "attention")}}
	look := sync.OnceValue(func() scholar.Work {
		ctx, done := context.WithTimeout(ctx, tryTime)
		defer done()
		id, _ := scholar.ParseID(knownPaper) // it is one
		work, _ := indexes.Look(ctx, id)     // what each of them said is in the work
		return work
	})
	for _, s := range []struct{ index, key string }{{scholar.Crossref, ""}, {scholar.OpenAlex, settings.OpenAlexKey}, {scholar.SemanticScholar, settings.ScholarKey}} {
		row := partOK("papers by "+s.index, needsNoKey)
		if d.c.Text(s.key) != "" {
			row.Detail = "with the key of " + d.c.Label(s.key)
		}
		row.try = func(context.Context) (string, error) { return answerOf(look(), s.index) }
		parts = append(parts, row)
	}
	if d.c.MemberNamed(researcher.ArxivName).Off {
		for i, p := range parts {
			parts[i] = partOff(p.Name, "the researcher arxiv is "+offInFile)
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

// database is the one of the settings, whose address is not shown: it may hold a password.
func (d doctor) database() Part {
	const name = "database"
	address := databaseURL(d.c, Options{})
	if address == "" {
		return partOff(name, settings.EnvOf(settings.DB)+" is not set")
	}
	scheme, _, _ := strings.Cut(address, ":")
	detail := "set by " + d.c.Label(settings.DB) + ", of kind " + strings.ToLower(plaintext.Clip(scheme, 20))
	if database.IsFile(address) {
		detail = "set by " + d.c.Label(settings.DB) + ", an SQLite file"
		if _, err := os.Stat(d.h.Source().Absolute(address, d.h.Dir)); err != nil {
			return partBroken(name, detail+" that cannot be opened: "+durable.Cause(err))
		}
	}
	return Part{name, PartOK, detail, func(ctx context.Context) (string, error) {
		ctx, done := context.WithTimeout(ctx, scopeTime)
		defer done()
		db, err := d.h.OpenDatabase(ctx, d.c, Options{})
		if err != nil {
			return "", err
		}
		return db.Name() + " can be read", db.Close()
	}}
}

func (d doctor) browser() Part {
	const name = "browser"
	if path, ok := findChromium(d.c); ok {
		return partOK(name, path+", for reports as PDF")
	}
	if named := d.c.Text(settings.Chromium); named != "" {
		return partBroken(name, d.c.Label(settings.Chromium)+": "+named+" cannot be run")
	}
	return partOff(name, "no Chromium or Chrome is installed; reports are not printed to PDF")
}

func scanned() Part {
	if path, err := exec.LookPath("tesseract"); err == nil {
		return partOK("scanned pages", path+", for PDFs whose pages are pictures")
	}
	return partOff("scanned pages", "tesseract is not installed; PDFs whose pages are pictures have no text")
}

// addresses are those of this machine and its network, from which pages may be fetched.
func (d doctor) addresses() Part {
	const name = "private addresses"
	list := d.c.List(settings.FetchAllow)
	if len(list) == 0 {
		return partOff(name, "never fetched; MARCHWARDEN_FETCH_ALLOW opens ranges on purpose")
	}
	allow, _ := fetchAllow(d.c) // Checkup has refused what is wrong
	detail := "pages may be fetched from " + strings.Join(list, ", ") + ", on every port"
	if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		detail += "; warning: that is every address, those of this machine, your network and cloud metadata included"
	}
	return partOK(name, detail)
}
