package network

import (
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	dbase "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Options are a choice, and how one command carries it out.
type Options struct {
	marchwarden.Choice
	Others   []pool.Seat // further members, which a program brings along
	Timeout  string
	PlanOnly bool
	// PartOf says that the researcher works for an investigation.
	PartOf bool
	// shared is where a worker's researchers record and keep, beside the home folder; nil
	// elsewhere.
	shared *WorkerRecords
	// Begun is the recorded choice of a run that resumes; nil for a new run. BegunBy is the
	// model of such a run, and More is added to its time.
	Begun   *marchwarden.Choice
	BegunBy string
	More    time.Duration
	// Told hears of each finished call, Warn of what people should know.
	Told func(Finished)
	Warn func(string)
	// Log is where a server logs; nil elsewhere.
	Log *slog.Logger
}

// Check refuses options that do not go together.
func (o Options) Check(c *settings.Settings, name string) error {
	if !slices.Contains(c.ResearcherNames(), name) {
		return settings.Invalid("--researcher", "", fmt.Sprintf("must be %s, not %q", settings.Either(c.ResearcherNames()), plaintext.Clip(name, 40)))
	}
	if err := o.flagsFor(c, name); err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(o.AllowEgress), func(name string) bool {
		return slices.ContainsFunc(o.Others, func(s pool.Seat) bool { return s.Name == name })
	})
	if err := c.AreMembers("--allow-egress", own); err != nil {
		return err
	}
	return c.AreMembers(c.Label(settings.AllowEgress), c.List(settings.AllowEgress))
}

// wants reports whether a member is among those that were named, if any were.
func (o Options) wants(name string) bool {
	return len(o.Researchers) == 0 || slices.Contains(o.Researchers, name)
}

// Following finds the run that a question follows, by its id, the beginning of one, or last. Where the options choose
// nothing, those who were asked there are asked again; what the settings keep on this machine now stays here.
func (o Options) Following(h *Host, c *settings.Settings, name string) (Options, string, error) {
	rec, err := h.OpenKept(c)
	if err != nil {
		return o, "", err
	}
	defer rec.Close()
	id, err := run.FindID(rec.Traces, name)
	if err != nil {
		return o, "", run.AboutFollow(err)
	}
	start, err := startOf(rec.Traces.Load(id))
	if err != nil {
		return o, "", run.AboutFollow(err)
	}
	if start.Choice != nil && reflect.ValueOf(o.Choice).IsZero() {
		if o.Choice = *start.Choice; c.Given(settings.Online) && !c.On(settings.Online) {
			o.Online, o.Search = false, ""
		}
	}
	return o, id.String(), nil
}

// startOf is how a run began, of a trace that was loaded, or not.
func startOf(log *trace.Log, err error) (*trace.Start, error) {
	if err != nil {
		return nil, err
	}
	return log.Start()
}

// Recorded is the choice as a run records it, wherever it was set. A database's address
// with a password stays out.
func (o Options) Recorded(h *Host, c *settings.Settings) *marchwarden.Choice {
	ch := o.Choice
	library := o.Library
	if len(library) == 0 {
		library = c.List(settings.Library)
	}
	ch.Library = nil
	for _, dir := range library {
		ch.Library = append(ch.Library, h.Source().Absolute(dir, h.Dir))
	}
	ch.DB = h.openAddress(databaseURL(c, o))
	return &ch
}

// openAddress is the address of a database without its secrets: a file by its whole
// path, and "" for one that may hold a password.
func (h *Host) openAddress(db string) string {
	if dbase.IsFile(db) {
		return h.Source().Absolute(db, h.Dir)
	}
	u, err := url.Parse(db)
	if err != nil || u.User != nil && strings.Contains(u.User.String(), ":") || strings.Contains(strings.ToLower(u.RawQuery), "pass") {
		return ""
	}
	return db
}

// aside are the settings that change no answer: where records lie, what is shown, and
// who else is served. Those of an engine and of a hub are, too.
var aside = []string{settings.Home, settings.TraceDir, settings.Ledger, settings.LogFormat, settings.Debug, settings.HTTPToken, settings.Worker, settings.Limits, settings.Prices, settings.Blobs}

// Means are everything that can change the answer to a question: the settings, or the
// flags in their place, the folders of the library and the researchers of config.yaml. Of
// a secret they tell that it is there.
func (o Options) Means(a *Host, c *settings.Settings) ([]string, error) {
	flags := map[string][]string{settings.Model: {o.Model}, settings.Search: {o.Search}, settings.Timeout: {o.Timeout}, settings.DB: {o.DB}, settings.Library: {}}
	for _, dir := range o.Library {
		flags[settings.Library] = append(flags[settings.Library], a.Source().Absolute(dir, a.Dir))
	}
	all := []string{fmt.Sprintf("online=%t embedded=%t", o.Online, o.Embedded)}
	for _, s := range settings.All {
		if slices.Contains(aside, s.Name) || strings.HasPrefix(s.Name, "engine") || strings.HasPrefix(s.Name, "hub_") {
			continue
		}
		texts := slices.DeleteFunc(flags[s.Name], func(t string) bool { return t == "" })
		if len(texts) == 0 {
			texts = c.List(s.Name)
		}
		if s.Name == settings.DB && len(texts) == 1 && dbase.IsFile(texts[0]) {
			texts = []string{a.Source().Absolute(texts[0], a.Dir)}
		}
		all = append(all, a.Hide.Text(fmt.Sprintf("%s=%q", s.Name, texts)))
	}
	for _, m := range c.Members {
		m.At = ""
		all = append(all, a.Hide.Text(fmt.Sprintf("%+v", m)))
	}
	kept, err := KeptFolders(c.FoldersPath())
	if err != nil {
		return nil, err
	}
	return append(all, fmt.Sprintf("%q", kept)), nil
}

// Hint tells how to search more than what was searched, or what else would help most; nil for nothing.
func Hint(start *trace.Start, searched []string) []string {
	if start.Mind != "" && start.Model == "" && start.Reader == "" {
		return []string{"the reader is off, and words alone were compared; why: marchwarden doctor --verbose"}
	}
	names := []string{start.Researcher}
	if start.Investigation != nil {
		names = nil
		for _, m := range start.Investigation.Members {
			names = append(names, m.Name)
		}
	}
	own := func(name string) bool {
		return strings.Contains(name, " document") && !strings.HasPrefix(name, corpus.Name)
	}
	switch {
	case slices.Contains(names, researcher.WebName), slices.Contains(names, researcher.ArxivName):
		if slices.ContainsFunc(searched, func(where string) bool { return strings.HasSuffix(where, "by wikipedia") }) {
			return []string{"only Wikipedia was searched; more of the web: TAVILY_API_KEY or SEARXNG_URL"}
		}
		if start.Model == "" {
			return []string{"to have a model write: ANTHROPIC_API_KEY, or --model ollama/MODEL"}
		}
	case !slices.Contains(names, researcher.FilesName): // one researcher was asked alone
	case slices.ContainsFunc(searched, own):
		return []string{"to ask the web and arXiv, too: marchwarden ask --online"}
	default:
		return []string{"to search your own documents: marchwarden library add DIR"}
	}
	return nil
}

// flag is one of those that say who is asked with what.
type flag struct {
	name  string
	names []string             // the researchers that it is for; none for the investigator
	of    func(o *Options) any // where its value is
}

// flagsOf are the flags for some researchers, and flagsOfAll those for each of them.
var (
	flagsOf = []flag{
		{"--library", []string{researcher.FilesName}, func(o *Options) any { return &o.Library }},
		{"--embedded", []string{researcher.FilesName}, func(o *Options) any { return &o.Embedded }},
		{"--online", []string{researcher.WebName, researcher.ArxivName}, func(o *Options) any { return &o.Online }},
		{"--db", []string{database.Name}, func(o *Options) any { return &o.DB }},
		{"--allow-samples", []string{database.Name}, func(o *Options) any { return &o.AllowSamples }},
		{"--search", []string{researcher.WebName}, func(o *Options) any { return &o.Search }},
		{"--researchers", nil, func(o *Options) any { return &o.Researchers }},
		{"--plan", nil, func(o *Options) any { return &o.PlanOnly }},
		{"--parallel", nil, func(o *Options) any { return &o.Parallel }},
		{"--max-rihlas", nil, func(o *Options) any { return &o.MaxRihlas }},
		{"--allow-egress", nil, func(o *Options) any { return &o.AllowEgress }},
	}
	flagsOfAll = []flag{
		{"--model", nil, func(o *Options) any { return &o.Model }},
		{"--isolate", nil, func(o *Options) any { return &o.Isolate }},
	}
)

func (f flag) given(o Options) bool { return !reflect.ValueOf(f.of(&o)).Elem().IsZero() }

// isFor reports whether the flag is for one of the researchers.
func (f flag) isFor(names ...string) bool {
	return slices.ContainsFunc(f.names, func(name string) bool { return slices.Contains(names, name) })
}

// arguments are the flag as a command line has it.
func (f flag) arguments(o Options) (args []string) {
	switch v := f.of(&o).(type) {
	case *string:
		if *v != "" {
			args = []string{f.name, *v}
		}
	case *bool:
		if *v {
			args = []string{f.name}
		}
	case *[]string:
		for _, one := range *v {
			args = append(args, f.name, one)
		}
	}
	return args
}

// flagsFor refuses flags that are for a researcher who is not asked.
func (o Options) flagsFor(c *settings.Settings, name string) error {
	for _, f := range flagsOf {
		asked := f.isFor(name)
		if name == settings.PI {
			asked = len(f.names) == 0 || len(o.Researchers) == 0 || slices.ContainsFunc(f.names, o.wants)
		}
		switch {
		case !f.given(o) || asked:
		case name == settings.PI:
			return settings.Invalid(f.name, "add it to --researchers", "is for the researcher "+f.names[0]+", who is not asked")
		case len(f.names) == 0:
			return settings.Invalid(f.name, "leave out --researcher to let all of them work together", "is not for the researcher "+name)
		default:
			return settings.Invalid(f.name, "use --researcher "+f.names[0]+", or leave it out", "is not for the researcher "+name)
		}
	}
	return nil
}

// WorkFlag is a flag that was given and says with what researchers work; "" if there is none.
func (o Options) WorkFlag() string {
	ofSome := slices.DeleteFunc(slices.Clone(flagsOf), func(f flag) bool { return len(f.names) == 0 })
	for _, f := range append(ofSome, flagsOfAll...) {
		if f.given(o) {
			return f.name
		}
	}
	return ""
}

// Narrowed leaves out what is for researchers that are not among those named: settings and
// flags of a program may bring in a library that one question is not asked of.
func (o Options) Narrowed(names []string) Options {
	for _, f := range flagsOf {
		if len(f.names) > 0 && !f.isFor(names...) {
			reflect.ValueOf(f.of(&o)).Elem().SetZero()
		}
	}
	return o
}

// PartFor is what of an investigation's options is for one of its members.
func (o Options) PartFor(name string) Options {
	of := o.Narrowed([]string{name})
	return Options{
		Choice: marchwarden.Choice{Researcher: name, Model: o.Model, Library: of.Library, Embedded: of.Embedded, Search: of.Search, DB: of.DB, AllowSamples: of.AllowSamples},
		PartOf: true, Timeout: o.Timeout, Log: o.Log, Warn: o.Warn,
	}
}
