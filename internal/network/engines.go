package network

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os/exec"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/chromium"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/engines"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// UserAgent is how the program names itself to pages and public services.
func (h *Host) UserAgent() string {
	return "marchwarden/" + h.Version + " (+https://forgejo.labbity.unbiasedgeek.com/archeious/marchwarden)"
}

// engineKind is a search engine of the web and what it needs.
type engineKind struct {
	Name  string
	Needs string // the setting without which it cannot work; "" for none
	url   string // the setting of its address
	open  func(engines.Config) search.Engine
}

// engineKinds are all there are, in the order in which they are asked.
var engineKinds = []engineKind{
	{"tavily", settings.TavilyKey, settings.TavilyURL, engines.NewTavily},
	{"brave", settings.BraveKey, settings.BraveURL, engines.NewBrave},
	{"searxng", settings.SearxngURL, settings.SearxngURL, engines.NewSearxng},
	{"wikipedia", "", settings.WikipediaURL, engines.NewWikipedia},
}

// configured reports whether the engine has what it needs.
func (k engineKind) configured(c *settings.Settings) bool {
	return k.Needs == "" || c.Text(k.Needs) != ""
}

func EngineNames() (names []string) {
	for _, k := range engineKinds {
		names = append(names, k.Name)
	}
	return names
}

// namedEngines are the engines that the flag or else the setting names, in that
// order; none if neither does. An unknown name is an error that says whose it is.
func namedEngines(c *settings.Settings, flag string) (named []engineKind, saidBy string, err error) {
	names, given, origin := c.List(settings.Search), c.Given(settings.Search), c.Label(settings.Search)
	if flag != "" {
		names, given, origin = settings.SplitWords(flag), true, "--search"
	}
	for _, name := range names {
		i := slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.Name == name })
		if i < 0 {
			return nil, "", settings.Invalid(origin, "", fmt.Sprintf("must be a list of %s, not %q", settings.Either(EngineNames()), plaintext.Clip(name, 40)))
		}
		named = append(named, engineKinds[i])
	}
	if given && len(named) == 0 {
		return nil, "", settings.Invalid(origin, "", fmt.Sprintf("must be a list of %s, and names none", settings.Either(EngineNames())))
	}
	return named, origin, nil
}

// openEngines makes the chain of search engines: those that were named, or all
// that are configured, with Wikipedia, which needs no key, at the end.
func (h *Host) openEngines(c *settings.Settings, flag string) (search.Engine, error) {
	kinds, origin, err := namedEngines(c, flag)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if !k.configured(c) {
			return nil, settings.Invalid(origin, "set "+settings.EnvOf(k.Needs)+" in the environment or in .env", k.Name+" is not configured")
		}
	}
	if len(kinds) == 0 {
		kinds = slices.DeleteFunc(slices.Clone(engineKinds), func(k engineKind) bool { return !k.configured(c) })
	}
	var engines []search.Engine
	for _, k := range kinds {
		engines = append(engines, h.OpenEngine(c, k))
	}
	return search.Chain(engines...), nil
}

// OpenEngine makes one engine. Its limit is shared with all who work for the same engine of
// tasks, if there is one.
func (h *Host) OpenEngine(c *settings.Settings, k engineKind) search.Engine {
	open := func(client *http.Client) search.Engine {
		cfg := engines.Config{BaseURL: c.Text(k.url), HTTP: client, UserAgent: h.UserAgent(), Now: h.Now}
		if k.Needs != k.url {
			cfg.Key = c.Text(k.Needs)
		}
		return k.open(cfg)
	}
	if h.Limits == nil {
		return open(h.ServiceClient())
	}
	return engines.NewRationed(h.Limits(limit.Key(k.Name, limit.Requests)), h.Now, h.ServiceClient(), open)
}

// openWebFetcher makes the fetcher of a research.
func (h *Host) openWebFetcher(allow []netip.Prefix, rec *Records, x *extract.Extractor) *webfetch.Fetcher {
	cfg := webfetch.Config{Store: rec.Blobs, Extract: x}
	if h.Limits != nil {
		cfg.Through = func(base http.RoundTripper) http.RoundTripper {
			return engines.Transport(func(host string) dispatch.Limiter { return h.Limits("host:" + host + "/requests") }, h.Now, base)
		}
	}
	return h.openPages(allow, cfg)
}

// openPages completes and makes a fetcher of the open web: guarded, polite, bounded.
func (h *Host) openPages(allow []netip.Prefix, cfg webfetch.Config) *webfetch.Fetcher {
	cfg.Guard, cfg.Clean, cfg.Now, cfg.UserAgent = guard.New(allow), h.Hide.Bytes, h.Now, h.UserAgent()
	return webfetch.New(cfg)
}

// openDrift opens what a check of the sources of a run needs: fetchers that keep
// nothing. patience is the longest time for one page. The caller calls end.
func (h *Host) openDrift(c *settings.Settings, store run.Store, folders []string, patience time.Duration) (cfg drift.Config, end func() error, err error) {
	allow, err := fetchAllow(c)
	if err != nil {
		return cfg, nil, err
	}
	library, err := h.OpenLibrary(c, folders, true)
	if err != nil {
		return cfg, nil, err
	}
	x, fetched := h.Extractor(c), blob.NewMem()
	pages := h.openPages(allow, webfetch.Config{Store: fetched, Extract: x, Timeout: patience})
	api, indexes, papers := h.openPapers(c, fetched, pages)
	return drift.Config{
		Store: store, Fetched: fetched, Extract: x, Now: h.Now, Retracted: drift.Papers{ArXiv: api, Indexes: indexes}.Retracted,
		Fetchers: map[string]fetch.Fetcher{"web": pages, "arxiv": papers, "file": drift.Files{From: fetch.NewFiles(fetched, x, h.Now, library...), Folders: library}},
	}, func() error { return errors.Join(pages.Close(), x.Close(), CloseFolders(library)) }, nil
}

// CheckSources fetches the cited sources of a run again and keeps what came of it. What cannot be kept
// is a warning.
func (r *Records) CheckSources(ctx context.Context, h *Host, c *settings.Settings, id marchwarden.TraceID, o SourceOptions) (rep drift.Report, err error) {
	store := r.Store()
	past, err := store.Load(id)
	if err != nil {
		return rep, err
	}
	cfg, end, err := h.openDrift(c, store, o.Library, o.Timeout)
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, end()) }()
	cfg.Told = o.Told
	if rep, err = drift.Check(ctx, cfg, past); err != nil {
		return rep, err
	}
	if err := drift.Keep(c.Home(), rep); err != nil {
		h.Say("this check is not kept: " + err.Error())
	}
	return rep, nil
}

// SourceOptions say how sources are fetched again.
type SourceOptions struct {
	Library []string           // folders with cited files, beside those of the library
	Timeout time.Duration      // for one page
	Told    func(drift.Source) // hears of each; nil: unused
}

// SourcePatience is the longest time for one page, unless the user says otherwise.
const SourcePatience = 30 * time.Second

func fetchAllow(c *settings.Settings) ([]netip.Prefix, error) {
	allow, err := guard.ParseAllow(c.List(settings.FetchAllow))
	return allow, settings.Renamed(err, map[string]string{"fetch_allow": c.Label(settings.FetchAllow)})
}

// findChromium finds a browser that prints reports.
func findChromium(c *settings.Settings) (string, bool) {
	return chromium.Find(c.Text(settings.Chromium), exec.LookPath)
}

// Printer prints a page of our own to PDF in the local browser; nil where there is none.
func Printer(c *settings.Settings) func(ctx context.Context, html string) ([]byte, error) {
	browser, ok := findChromium(c)
	if !ok {
		return nil
	}
	return func(ctx context.Context, html string) ([]byte, error) { return chromium.Print(ctx, browser, html) }
}
