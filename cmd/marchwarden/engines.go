package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/render"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/brave"
	searchrationed "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/rationed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searxng"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/tavily"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/wikipedia"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// userAgent is how the program names itself to pages and public services.
func userAgent() string {
	return "marchwarden/" + programVersion() + " (+https://forgejo.labbity.unbiasedgeek.com/archeious/marchwarden)"
}

// engineKind is a search engine of the web and what it needs.
type engineKind struct {
	name  string
	needs string // the setting without which it cannot work; "" for none
	open  func(a *app, c *settings.Settings, client *http.Client) search.Engine
}

// engineKinds are all there are, in the order in which they are asked.
var engineKinds = []engineKind{
	{"tavily", settings.TavilyKey, func(a *app, c *settings.Settings, client *http.Client) search.Engine {
		return tavily.New(tavily.Config{Key: c.Text(settings.TavilyKey), BaseURL: c.Text(settings.TavilyURL), HTTP: client, UserAgent: userAgent()})
	}},
	{"brave", settings.BraveKey, func(a *app, c *settings.Settings, client *http.Client) search.Engine {
		return brave.New(brave.Config{Now: a.now, Key: c.Text(settings.BraveKey), BaseURL: c.Text(settings.BraveURL), HTTP: client, UserAgent: userAgent()})
	}},
	{"searxng", settings.SearxngURL, func(a *app, c *settings.Settings, client *http.Client) search.Engine {
		return searxng.New(searxng.Config{BaseURL: c.Text(settings.SearxngURL), Now: a.now, HTTP: client, UserAgent: userAgent()})
	}},
	{"wikipedia", "", func(a *app, c *settings.Settings, client *http.Client) search.Engine {
		return wikipedia.New(wikipedia.Config{BaseURL: c.Text(settings.WikipediaURL), HTTP: client, UserAgent: userAgent()})
	}},
}

// configured reports whether the engine has what it needs.
func (k engineKind) configured(c *settings.Settings) bool {
	return k.needs == "" || c.Text(k.needs) != ""
}

func engineNames() []string {
	var names []string
	for _, k := range engineKinds {
		names = append(names, k.name)
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
		i := slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.name == name })
		if i < 0 {
			return nil, "", invalid(origin, "", fmt.Sprintf("must be a list of %s, not %q", settings.Either(engineNames()), plaintext.Clip(name, 40)))
		}
		named = append(named, engineKinds[i])
	}
	if given && len(named) == 0 {
		return nil, "", invalid(origin, "", fmt.Sprintf("must be a list of %s, and names none", settings.Either(engineNames())))
	}
	return named, origin, nil
}

// openEngines makes the chain of search engines: those that were named, or all
// that are configured, with Wikipedia, which needs no key, at the end.
func (a *app) openEngines(c *settings.Settings, flag string) (search.Engine, error) {
	kinds, origin, err := namedEngines(c, flag)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if !k.configured(c) {
			return nil, invalid(origin, "set "+settings.EnvOf(k.needs)+" in the environment or in .env", k.name+" is not configured")
		}
	}
	if len(kinds) == 0 {
		kinds = slices.DeleteFunc(slices.Clone(engineKinds), func(k engineKind) bool { return !k.configured(c) })
	}
	var engines []search.Engine
	for _, k := range kinds {
		engines = append(engines, a.openEngine(c, k))
	}
	return search.Chain(engines, a.now), nil
}

// openEngine makes one engine. Its limit is shared with all who work for the same engine of
// tasks, if there is one.
func (a *app) openEngine(c *settings.Settings, k engineKind) search.Engine {
	if a.limits == nil {
		return k.open(a, c, a.serviceClient())
	}
	return searchrationed.New(a.limits(limit.Key(k.name, limit.Requests)), a.now, a.serviceClient(), func(client *http.Client) search.Engine { return k.open(a, c, client) })
}

// rendersPages reports whether pages that need JavaScript are run in a browser, by the
// flag or the setting. Chromium has no sandbox of its own when root runs it, so
// that root has to ask for it.
func rendersPages(c *settings.Settings, flag string) bool {
	if flag != "" {
		return flag == settings.RenderAuto
	}
	asked := c.Origin(settings.Render) != settings.FromDefault || c.Text(settings.Chromium) != ""
	return c.Text(settings.Render) == settings.RenderAuto && (asked || os.Geteuid() != 0)
}

// openWebFetcher makes the fetcher of the open web: guarded, polite, bounded.
func (a *app) openWebFetcher(c *settings.Settings, rec *records, x *extract.Extractor, rendering string) (*webfetch.Fetcher, error) {
	allow, err := fetchAllow(c)
	if err != nil {
		return nil, err
	}
	g := guard.New(allow)
	cfg := webfetch.Config{
		Clean: a.hide.Bytes,
		Store: rec.blobs, Extract: x, Guard: g, Now: a.now, UserAgent: userAgent(), CacheDir: filepath.Join(c.CachePath(), "pages"),
	}
	if a.limits != nil {
		cfg.Share = func(host string) webfetch.Share { return a.limits("host:" + host + "/requests") }
	}
	if chromium, ok := findChromium(c); ok && rendersPages(c, rendering) {
		cfg.Renderer = browser{render.New(render.Config{Chromium: chromium, Dial: g.DialContext, UserAgent: userAgent()})}
	}
	return webfetch.New(cfg), nil
}

// browser is the renderer as the fetcher wants it.
type browser struct{ *render.Renderer }

// Render runs the scripts of a page.
func (b browser) Render(ctx context.Context, url string) (html []byte, finalURL string, err error) {
	page, err := b.Renderer.Render(ctx, url)
	return page.HTML, page.URL, err
}

func fetchAllow(c *settings.Settings) ([]netip.Prefix, error) {
	allow, err := guard.ParseAllow(c.List(settings.FetchAllow))
	var wrong *marchwarden.Error
	if errors.As(err, &wrong) {
		named := *wrong
		named.Field = c.Label(settings.FetchAllow)
		return nil, &named
	}
	return allow, err
}

// findChromium finds a browser for pages that need JavaScript.
func findChromium(c *settings.Settings) (string, bool) {
	return render.Find(c.Text(settings.Chromium), exec.LookPath)
}

// chromiumProblem says that the browser which the settings name cannot be run; ""
// if it can, or if none is named.
func chromiumProblem(c *settings.Settings) string {
	if _, ok := findChromium(c); ok || c.Text(settings.Chromium) == "" {
		return ""
	}
	return c.Label(settings.Chromium) + ": " + c.Text(settings.Chromium) + " cannot be run"
}
