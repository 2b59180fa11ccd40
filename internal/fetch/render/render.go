// Package render loads a page in a local headless Chromium, lets its scripts run, and returns the document they made. It is for pages that have no text without scripts.
//
// It owns a browser with a throw-away profile for each page, and its only way to the network: a proxy on the loopback interface, one for each page, that makes every
// connection through the function it was given, so that the guard of addresses sees all of them. It drives the browser and says where the document
// came from in the end. It does not decide which addresses may be reached or cited, does not interpret the document and keeps nothing between pages: no cookies, no cache,
// no history. The browser gets no environment of ours, so no key is in its reach.
package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Config says which browser to run and within which limits. Chromium and Dial are required; the rest has defaults.
type Config struct {
	Chromium string // path of the browser, as Find gives it
	// Dial makes every connection of the browser; addr is "host:port" with the name the page used. It must refuse what must not be reached.
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	Timeout   time.Duration // longest time for a page, from the start of the browser; default 20 s
	Budget    time.Duration // time that the scripts of a page see pass before it counts as done; default 5 s
	MaxBytes  int64         // largest document; default 8 MiB
	MaxWire   int64         // most bytes that one page may move over the network, both ways together; default 32 MiB
	MaxDials  int           // most connections that one page may open; default 256
	TempDir   string        // where profiles are made; "" is the system's place for temporary files
	UserAgent string        // how the browser names itself; "" leaves its own name
}

func (c Config) withDefaults() Config {
	c.Timeout, c.Budget = cmp.Or(c.Timeout, 20*time.Second), cmp.Or(c.Budget, 5*time.Second)
	c.MaxBytes, c.MaxWire = cmp.Or(c.MaxBytes, 8<<20), cmp.Or(c.MaxWire, 32<<20)
	c.MaxDials = cmp.Or(c.MaxDials, 256)
	return c
}

// Page is a document as it stood when its scripts had run.
type Page struct {
	HTML []byte // in UTF-8
	URL  string // where the document is from in the end, after redirects and wherever scripts went: an http or https address, with its fragment
}

// Renderer renders pages, one at a time. It is safe for concurrent use and holds nothing open between pages, so it needs no closing.
type Renderer struct {
	cfg  Config
	free chan struct{} // holds a token while a page is in progress
}

// New returns a Renderer; it starts nothing.
func New(cfg Config) *Renderer {
	return &Renderer{cfg: cfg.withDefaults(), free: make(chan struct{}, 1)}
}

// browserNames are the programs that Find looks for, best first.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chromium-headless-shell", "headless_shell", "microsoft-edge",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}

// Find looks for a browser. An explicit name or path, when not "", is the only one that counts. The lookPath function is exec.LookPath or one like it.
func Find(explicit string, lookPath func(string) (string, error)) (path string, ok bool) {
	names := browserNames
	if explicit != "" {
		names = []string{explicit}
	}
	for _, name := range names {
		if path, err := lookPath(name); err == nil && path != "" {
			return path, true
		}
	}
	return "", false
}

// Render loads the http or https address and returns the document. When it returns, the browser, its children and its profile are gone, whatever happened.
//
// Errors carry a code: CodeInvalid for an address of another kind, CodeTimeout when the page took too long, CodeCanceled when ctx ended, CodeMalformed for a document over
// the limit, CodeDenied when scripts went to an address of another kind, CodeUnsupported on a system where browsers cannot be driven (Windows), CodeUnavailable when the
// browser or the page could not be had. When a connection failed before there was a document, the error of Dial is in the chain, and its code, where it has one, is the
// code.
func (r *Renderer) Render(ctx context.Context, address string) (Page, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return Page{}, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "url", Message: "only http and https addresses can be rendered"}
	}
	if !Supported {
		return Page{}, marchwarden.Errorf(marchwarden.CodeUnsupported, "pages with scripts cannot be rendered on this system: the browser can be told what to do only where it inherits pipes")
	}
	select {
	case r.free <- struct{}{}:
		defer func() { <-r.free }()
	case <-ctx.Done():
		return Page{}, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for a free browser")
	}
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	page, err := r.load(limited, u)
	if err != nil {
		return Page{}, ended(ctx, limited, err, "render "+u.Host, r.cfg.Timeout)
	}
	return page, nil
}

// ended is the error of a browser's work for ctx, which had so much time.
func ended(ctx, limited context.Context, err error, doing string, most time.Duration) error {
	var coded *marchwarden.Error
	switch {
	case ctx.Err() != nil:
		return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "%s", doing)
	case limited.Err() != nil:
		return marchwarden.Wrap(limited.Err(), marchwarden.CodeTimeout, "%s: not done after %v", doing, most)
	case errors.As(err, &coded):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "%s", doing)
}

func (r *Renderer) load(ctx context.Context, u *url.URL) (page Page, err error) {
	way, err := startProxy(r.cfg, targetOf(u))
	if err != nil {
		return Page{}, err
	}
	defer way.close()
	// A page whose server never finishes would be waited for until the end and then be lost. With the network gone it is done with what it has, and when it is not, it is
	// taken as it stands.
	patience := r.cfg.Timeout * 6 / 10
	closing := time.AfterFunc(patience, way.shut)
	defer closing.Stop()
	late := time.NewTimer(r.cfg.Timeout * 8 / 10)
	defer late.Stop()
	// A document is at most six times as long when every character of it is escaped; what else the browser says is short.
	program := Program{Path: r.cfg.Chromium, Args: r.arguments(way.address()), MaxMessage: 6*r.cfg.MaxBytes + 1<<20}
	err = browse(ctx, r.cfg.TempDir, program, func(s *session) error {
		if err := s.load(u.String(), r.cfg.Budget, late.C); err != nil {
			return err
		}
		page, err = s.read(r.cfg.MaxBytes)
		return err
	})
	if err != nil {
		page = Page{}
	}
	if !errors.Is(err, errNotLoaded) {
		return asAsked(page, u), err
	}
	switch refused := way.refusal(); {
	case refused != nil:
		return Page{}, fmt.Errorf("%w: connect: %w", err, refused)
	case !closing.Stop():
		return Page{}, marchwarden.Errorf(marchwarden.CodeTimeout, "the page did not come within %v", patience)
	}
	return Page{}, err
}

// asAsked keeps the spelling of an address without a path, to which the browser adds a slash.
func asAsked(page Page, u *url.URL) Page {
	if asked := u.String(); u.Path == "" && page.URL == asked+"/" {
		page.URL = asked
	}
	return page
}

// targetOf is the address that the browser connects to for u.
func targetOf(u *url.URL) string {
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), usual))
}

// browse opens the program with a profile of its own below parent, and lets use have its one page.
func browse(ctx context.Context, parent string, program Program, use func(*session) error) (err error) {
	profile, scratch, err := MakeProfile(parent, preferences)
	defer func() { err = errors.Join(err, RemoveProfile(profile), RemoveProfile(scratch)) }()
	if err != nil {
		return fmt.Errorf("make profile: %w", err)
	}
	program.Args, program.Env = append(Flags(profile), program.Args...), Environment(profile, scratch)
	return Run(ctx, program, func(w *Wire) error {
		s, err := openSession(w)
		if err != nil {
			return err
		}
		return use(s)
	})
}

func (r *Renderer) arguments(proxy string) []string {
	args := []string{
		// The only way out is the proxy, for loopback addresses too; no name is resolved here, and nothing goes out but TCP to the proxy.
		"--proxy-server=http://" + proxy, "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		"--blink-settings=imagesEnabled=false", "--renderer-process-limit=2",
		"--window-size=1280,4000", // tall, for pages that load what comes into view
	}
	if r.cfg.UserAgent != "" {
		args = append(args, "--user-agent="+r.cfg.UserAgent)
	}
	return args
}

// preferences refuse every download and the permissions that a page could ask for.
const preferences = `{"download_restrictions":3,"download":{"prompt_for_download":false,"open_pdf_in_system_reader":false},"plugins":{"always_open_pdf_externally":true},
"profile":{"default_content_setting_values":{"images":2,"popups":2,"notifications":2,"geolocation":2,"media_stream":2,"automatic_downloads":2,"sensors":2}},
"net":{"network_prediction_options":2},"alternate_error_pages":{"enabled":false},"search":{"suggest_enabled":false},"safebrowsing":{"enabled":false}}`
