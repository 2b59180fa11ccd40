package browsertest

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Request is one that a page made, or would have: also those of its frames and workers, of redirects and of windows that it tried to open, which are never opened.
type Request struct {
	URL, Method string
	Kind        string // Document, Script, Stylesheet, Image, Fetch, EventSource, WebSocket, Ping, Window and so on
	Status      int    // 0 as long as there is no answer
	Failed      string // why there is none, as net::ERR_NAME_NOT_RESOLVED
	Blocked     string // why it was not even sent, as csp
	Done        bool
	Bytes       int64 // that came over the wire, with headers
}

// String is the request on one line.
func (r Request) String() string {
	s := fmt.Sprintf("%s %s %s", r.Kind, r.Method, r.URL)
	switch {
	case r.Blocked != "":
		return s + ": blocked: " + r.Blocked
	case r.Failed != "":
		return s + ": " + r.Failed
	case r.Status != 0:
		return fmt.Sprintf("%s: %d", s, r.Status)
	}
	return s + ": no answer yet"
}

// traffic is what events of the Network domain say.
type traffic struct {
	RequestID string `json:"requestId"`
	Request   struct {
		URL    string `json:"url"`
		Method string `json:"method"`
	} `json:"request"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
	Redirect *struct {
		Status int     `json:"status"`
		Bytes  float64 `json:"encodedDataLength"`
	} `json:"redirectResponse"`
	ErrorText   string  `json:"errorText"`
	Blocked     string  `json:"blockedReason"`
	Encoded     float64 `json:"encodedDataLength"`
	TransportID string  `json:"transportId"`
}

// noteTraffic writes down what a page asked for, with p.mu held.
func (p *Page) noteTraffic(method string, h *happened) {
	add := func(id string, r Request) {
		p.requests = append(p.requests, &r)
		p.byID[id] = &r
	}
	r := p.byID[cmp.Or(h.RequestID, h.TransportID)]
	if r == nil {
		r = &Request{} // told about before we listened; it is not read
	}
	switch method {
	case "Network.requestWillBeSent":
		if h.Redirect != nil {
			r.Status, r.Done, r.Bytes = h.Redirect.Status, true, int64(h.Redirect.Bytes)
		}
		add(h.RequestID, Request{URL: h.Request.URL, Method: h.Request.Method, Kind: h.Type})
	case "Network.webSocketCreated":
		add(h.RequestID, Request{URL: h.URL, Method: "GET", Kind: "WebSocket"})
	case "Network.webTransportCreated":
		add(h.TransportID, Request{URL: h.URL, Method: "CONNECT", Kind: "WebTransport"})
	case "Page.windowOpen":
		add("window", Request{URL: h.URL, Method: "GET", Kind: "Window", Blocked: "no new windows", Failed: "not opened", Done: true})
	case "Network.responseReceived", "Network.webSocketHandshakeResponseReceived":
		r.Status = h.Response.Status
	case "Network.webTransportConnectionEstablished":
		r.Status = 200
	case "Network.loadingFinished":
		r.Done, r.Bytes = true, int64(h.Encoded)
	case "Network.loadingFailed":
		r.Done, r.Failed, r.Blocked = true, h.ErrorText, h.Blocked
	case "Network.webSocketFrameError":
		r.Failed = h.ErrorText
	case "Network.webSocketClosed", "Network.webTransportClosed":
		if r.Done = true; r.Status == 0 {
			r.Failed = cmp.Or(r.Failed, "closed before it was open")
		}
	}
}

// Requests are all so far, oldest first.
func (p *Page) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Request, len(p.requests))
	for i, r := range p.requests {
		all[i] = *r
	}
	return all
}

// Strangers are the requests to another origin than that of the given address, whether or not they were answered or blocked. What has no server, as data: and blob:
// addresses, is no request to a server.
func (p *Page) Strangers(origin string) []Request {
	p.t.Helper()
	own, err := url.Parse(origin)
	if err != nil {
		p.t.Fatalf("browsertest: %v", err)
	}
	return slices.DeleteFunc(p.Requests(), func(r Request) bool {
		u, err := url.Parse(r.URL)
		if err != nil {
			return false
		}
		scheme := strings.Replace(u.Scheme, "ws", "http", 1) // a socket of the same server
		return slices.Contains([]string{"data", "blob", "about"}, u.Scheme) || u.Host == own.Host && scheme == own.Scheme
	})
}

// SetOffline takes the network away from the page, or gives it back. What is open stays open: to end a
// stream, end the connections of the server.
func (p *Page) SetOffline(offline bool) {
	p.t.Helper()
	p.must("Network.emulateNetworkConditions", params{"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
}

// Block has requests fail whose addresses match one of the patterns, in which * stands for anything. It replaces what was blocked before; without patterns nothing is.
func (p *Page) Block(patterns ...string) {
	p.t.Helper()
	rules := []params{}
	for _, pattern := range patterns {
		rules = append(rules, params{"urlPattern": pattern, "block": true})
	}
	p.must("Network.setBlockedURLs", params{"urlPatterns": rules}, nil)
}

// Cookie is one that the browser keeps.
type Cookie struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Domain   string  `json:"domain"`
	Path     string  `json:"path"`
	Expires  float64 `json:"expires"` // seconds since 1970; -1 for the session
	HTTPOnly bool    `json:"httpOnly"`
	Secure   bool    `json:"secure"`
	SameSite string  `json:"sameSite"` // Strict, Lax, None or ""
}

// Cookies are those of the page and its tabs, of all sites.
func (p *Page) Cookies() []Cookie {
	p.t.Helper()
	var kept struct {
		Cookies []Cookie `json:"cookies"`
	}
	if err := p.b.call("", "Storage.getCookies", params{"browserContextId": p.context}, &kept, until(p.t, p.patience)); err != nil {
		p.fail("%v", err)
	}
	return kept.Cookies
}

// SetCookie gives the page and its tabs a session cookie for an address, as its server would.
func (p *Page) SetCookie(address, name, value string) {
	p.t.Helper()
	p.must("Network.setCookie", params{"url": address, "name": name, "value": value}, nil)
}

// ClearCookies takes all cookies away from the page and its tabs.
func (p *Page) ClearCookies() {
	p.t.Helper()
	if err := p.b.call("", "Storage.clearCookies", params{"browserContextId": p.context}, nil, until(p.t, p.patience)); err != nil {
		p.fail("%v", err)
	}
}

// File is a download.
type File struct {
	Name string // that the server or the page gave it
	URL  string
	Path string // where it is, until the test ends
	done bool
	bad  string // how it ended otherwise
}

// download is what events about downloads say.
type download struct {
	GUID      string `json:"guid"`
	Suggested string `json:"suggestedFilename"`
	State     string `json:"state"`
}

func (p *Page) begin(h *happened) {
	p.files[h.GUID] = &File{Name: h.Suggested, URL: h.URL, Path: filepath.Join(p.folder, h.GUID)}
	p.order = append(p.order, h.GUID)
}

func (p *Page) progress(h *happened) {
	f := p.files[h.GUID]
	if f == nil {
		return
	}
	switch h.State {
	case "completed":
		f.done = true
	case "canceled":
		f.bad = h.State
	}
}

// Download calls act, which should have the page give a file, waits for that and returns it.
func (p *Page) Download(act func()) File {
	p.t.Helper()
	p.mu.Lock()
	before := len(p.order)
	p.mu.Unlock()
	act()
	var got File
	if err := p.await(func() bool {
		if len(p.order) > before {
			got = *p.files[p.order[before]]
		}
		return got.done || got.bad != ""
	}); err != nil {
		p.fail("wait for a download: %v", err)
	}
	if got.bad != "" {
		p.fail("the download of %s was %s", got.URL, got.bad)
	}
	if _, err := os.Stat(got.Path); err != nil {
		p.fail("download: %v", err)
	}
	return got
}
