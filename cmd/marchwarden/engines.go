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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/brave"
	searchrationed "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/rationed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searxng"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/tavily"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/wikipedia"
)

// The ways to treat pages that need JavaScript.
const (
	renderAuto  = "auto"
	renderNever = "never"
)

// userAgent is how the program names itself to pages and public services.
func userAgent() string {
	return "marchwarden/" + programVersion() + " (+https://forgejo.labbity.unbiasedgeek.com/archeious/marchwarden)"
}

// engineKind is a search engine of the web and what it needs.
type engineKind struct {
	name  string
	needs string // the setting without which it cannot work; "" for none
	open  func(a *app, c *config, client *http.Client) search.Engine
}

// engineKinds are all there are, in the order in which they are asked.
var engineKinds = []engineKind{
	{"tavily", setTavilyKey, func(a *app, c *config, client *http.Client) search.Engine {
		return tavily.New(tavily.Config{Key: c.text(setTavilyKey), BaseURL: c.text(setTavilyURL), HTTP: client, UserAgent: userAgent()})
	}},
	{"brave", setBraveKey, func(a *app, c *config, client *http.Client) search.Engine {
		return brave.New(brave.Config{Now: a.now, Key: c.text(setBraveKey), BaseURL: c.text(setBraveURL), HTTP: client, UserAgent: userAgent()})
	}},
	{"searxng", setSearxngURL, func(a *app, c *config, client *http.Client) search.Engine {
		return searxng.New(searxng.Config{BaseURL: c.text(setSearxngURL), Now: a.now, HTTP: client, UserAgent: userAgent()})
	}},
	{"wikipedia", "", func(a *app, c *config, client *http.Client) search.Engine {
		return wikipedia.New(wikipedia.Config{BaseURL: c.text(setWikipediaURL), HTTP: client, UserAgent: userAgent()})
	}},
}

// configured reports whether the engine has what it needs.
func (k engineKind) configured(c *config) bool { return k.needs == "" || c.text(k.needs) != "" }

func engineNames() []string {
	var names []string
	for _, k := range engineKinds {
		names = append(names, k.name)
	}
	return names
}

// namedEngines are the engines that the flag or else the setting names, in that
// order; none if neither does. An unknown name is an error that says whose it is.
func (c *config) namedEngines(flag string) (named []engineKind, saidBy string, err error) {
	names, given, origin := c.list(setSearch), c.given(setSearch), c.label(setSearch)
	if flag != "" {
		names, given, origin = setting{kind: words}.split(flag), true, "--search"
	}
	for _, name := range names {
		i := slices.IndexFunc(engineKinds, func(k engineKind) bool { return k.name == name })
		if i < 0 {
			return nil, "", invalid(origin, "", fmt.Sprintf("must be a list of %s, not %q", either(engineNames()), clip(name, 40)))
		}
		named = append(named, engineKinds[i])
	}
	if given && len(named) == 0 {
		return nil, "", invalid(origin, "", fmt.Sprintf("must be a list of %s, and names none", either(engineNames())))
	}
	return named, origin, nil
}

// openEngines makes the chain of search engines: those that were named, or all
// that are configured, with Wikipedia, which needs no key, at the end.
func (a *app) openEngines(c *config, flag string) (search.Engine, error) {
	kinds, origin, err := c.namedEngines(flag)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if !k.configured(c) {
			return nil, invalid(origin, "set "+settingEnv(k.needs)+" in the environment or in .env", k.name+" is not configured")
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
func (a *app) openEngine(c *config, k engineKind) search.Engine {
	if a.limits == nil {
		return k.open(a, c, a.serviceClient())
	}
	return searchrationed.New(a.limits(limit.Key(k.name, limit.Requests)), a.now, a.serviceClient(), func(client *http.Client) search.Engine { return k.open(a, c, client) })
}

// renders reports whether pages that need JavaScript are run in a browser, by the
// flag or the setting. Chromium has no sandbox of its own when root runs it, so
// that root has to ask for it.
func (c *config) renders(flag string) bool {
	if flag != "" {
		return flag == renderAuto
	}
	asked := c.values[setRender].origin != fromDefault || c.text(setChromium) != ""
	return c.text(setRender) == renderAuto && (asked || os.Geteuid() != 0)
}

// openWebFetcher makes the fetcher of the open web: guarded, polite, bounded.
func (a *app) openWebFetcher(c *config, rec *records, x *extract.Extractor, rendering string) (*webfetch.Fetcher, error) {
	allow, err := c.fetchAllow()
	if err != nil {
		return nil, err
	}
	g := guard.New(allow)
	cfg := webfetch.Config{
		Clean: a.hide.Bytes,
		Store: rec.blobs, Extract: x, Guard: g, Now: a.now, UserAgent: userAgent(), CacheDir: filepath.Join(c.cachePath(), "pages"),
	}
	if a.limits != nil {
		cfg.Share = func(host string) webfetch.Share { return a.limits("host:" + host + "/requests") }
	}
	if chromium, ok := findChromium(c); ok && c.renders(rendering) {
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

func (c *config) fetchAllow() ([]netip.Prefix, error) {
	allow, err := guard.ParseAllow(c.list(setFetchAllow))
	var wrong *marchwarden.Error
	if errors.As(err, &wrong) {
		named := *wrong
		named.Field = c.label(setFetchAllow)
		return nil, &named
	}
	return allow, err
}

// findChromium finds a browser for pages that need JavaScript.
func findChromium(c *config) (string, bool) {
	return render.Find(c.text(setChromium), exec.LookPath)
}

// chromiumProblem says that the browser which the settings name cannot be run; ""
// if it can, or if none is named.
func (c *config) chromiumProblem() string {
	if _, ok := findChromium(c); ok || c.text(setChromium) == "" {
		return ""
	}
	return c.label(setChromium) + ": " + c.text(setChromium) + " cannot be run"
}
