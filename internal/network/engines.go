package network

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
	open  func(h *Host, c *settings.Settings, client *http.Client) search.Engine
}

// engineKinds are all there are, in the order in which they are asked.
var engineKinds = []engineKind{
	{"tavily", settings.TavilyKey, func(h *Host, c *settings.Settings, client *http.Client) search.Engine {
		return engines.NewTavily(engines.Config{Key: c.Text(settings.TavilyKey), BaseURL: c.Text(settings.TavilyURL), HTTP: client, UserAgent: h.UserAgent()})
	}},
	{"brave", settings.BraveKey, func(h *Host, c *settings.Settings, client *http.Client) search.Engine {
		return engines.NewBrave(engines.Config{Now: h.Now, Key: c.Text(settings.BraveKey), BaseURL: c.Text(settings.BraveURL), HTTP: client, UserAgent: h.UserAgent()})
	}},
	{"searxng", settings.SearxngURL, func(h *Host, c *settings.Settings, client *http.Client) search.Engine {
		return engines.NewSearxng(engines.Config{BaseURL: c.Text(settings.SearxngURL), Now: h.Now, HTTP: client, UserAgent: h.UserAgent()})
	}},
	{"wikipedia", "", func(h *Host, c *settings.Settings, client *http.Client) search.Engine {
		return engines.NewWikipedia(engines.Config{BaseURL: c.Text(settings.WikipediaURL), HTTP: client, UserAgent: h.UserAgent()})
	}},
}

// configured reports whether the engine has what it needs.
func (k engineKind) configured(c *settings.Settings) bool {
	return k.Needs == "" || c.Text(k.Needs) != ""
}

func EngineNames() []string {
	var names []string
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
	return search.Chain(engines, h.Now), nil
}

// OpenEngine makes one engine. Its limit is shared with all who work for the same engine of
// tasks, if there is one.
func (h *Host) OpenEngine(c *settings.Settings, k engineKind) search.Engine {
	if h.Limits == nil {
		return k.open(h, c, h.ServiceClient())
	}
	return engines.NewRationed(h.Limits(limit.Key(k.Name, limit.Requests)), h.Now, h.ServiceClient(), func(client *http.Client) search.Engine { return k.open(h, c, client) })
}

// RendersPages reports whether pages that need JavaScript are run in a browser, by the
// flag or the setting. Chromium has no sandbox of its own when root runs it, so
// that root has to ask for it.
func RendersPages(c *settings.Settings, flag string) bool {
	if flag != "" {
		return flag == settings.RenderAuto
	}
	asked := c.Origin(settings.Render) != settings.FromDefault || c.Text(settings.Chromium) != ""
	return c.Text(settings.Render) == settings.RenderAuto && (asked || os.Geteuid() != 0)
}

// openWebFetcher makes the fetcher of the open web: guarded, polite, bounded.
func (h *Host) openWebFetcher(c *settings.Settings, rec *Records, x *extract.Extractor, rendering string) (*webfetch.Fetcher, error) {
	allow, err := FetchAllow(c)
	if err != nil {
		return nil, err
	}
	g := guard.New(allow)
	cfg := webfetch.Config{
		Clean: h.Hide.Bytes,
		Store: rec.Blobs, Extract: x, Guard: g, Now: h.Now, UserAgent: h.UserAgent(), CacheDir: filepath.Join(c.CachePath(), "pages"),
	}
	if h.Limits != nil {
		cfg.Share = func(host string) webfetch.Share { return h.Limits("host:" + host + "/requests") }
	}
	if chromium, ok := FindChromium(c); ok && RendersPages(c, rendering) {
		cfg.Renderer = Browser{render.New(render.Config{Chromium: chromium, Dial: g.DialContext, UserAgent: h.UserAgent()})}
	}
	return webfetch.New(cfg), nil
}

// Browser is the renderer as the fetcher wants it.
type Browser struct{ *render.Renderer }

// Render runs the scripts of a page.
func (b Browser) Render(ctx context.Context, url string) (html []byte, finalURL string, err error) {
	page, err := b.Renderer.Render(ctx, url)
	return page.HTML, page.URL, err
}

func FetchAllow(c *settings.Settings) ([]netip.Prefix, error) {
	allow, err := guard.ParseAllow(c.List(settings.FetchAllow))
	var wrong *marchwarden.Error
	if errors.As(err, &wrong) {
		named := *wrong
		named.Field = c.Label(settings.FetchAllow)
		return nil, &named
	}
	return allow, err
}

// FindChromium finds a browser for pages that need JavaScript.
func FindChromium(c *settings.Settings) (string, bool) {
	return render.Find(c.Text(settings.Chromium), exec.LookPath)
}

// chromiumProblem says that the browser which the settings name cannot be run; ""
// if it can, or if none is named.
func chromiumProblem(c *settings.Settings) string {
	if _, ok := FindChromium(c); ok || c.Text(settings.Chromium) == "" {
		return ""
	}
	return c.Label(settings.Chromium) + ": " + c.Text(settings.Chromium) + " cannot be run"
}
