package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"
)

// proxy is the browser's way to the network for one page. It listens on the loopback interface, takes plain requests for http addresses and tunnels for all else, and
// connects through dial alone. Other programs of this machine could use it too, as long as the page lasts; it gives them no more than the page gets.
type proxy struct {
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	target   string // the address of the page itself
	listener net.Listener
	server   *http.Server
	forward  *httputil.ReverseProxy
	ctx      context.Context // ends with the proxy
	cancel   context.CancelFunc
	work     sync.WaitGroup // the requests in progress and the server itself

	mu       sync.Mutex
	shutting bool
	wire     int64                 // bytes left
	dials    int                   // connections left
	open     map[net.Conn]struct{} // every connection to the network, and those of tunnels to the browser
	refused  error                 // why the first connection that failed did so, one to the target before others
	atTarget bool                  // that was a connection to the target
}

var errShut = errors.New("the page's share of the network is used up")

var errOwnBusiness = errors.New("the browser's own business")

// abort ends a request without an answer, which a page cannot take for one: an answer of our own would become the document.
func abort() { panic(http.ErrAbortHandler) }

func startProxy(cfg Config, target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start proxy: %w", err)
	}
	p := &proxy{dial: cfg.Dial, target: target, listener: listener, wire: cfg.MaxWire, dials: cfg.MaxDials, open: make(map[net.Conn]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // what a page does wrong is not logged
	p.forward = &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the request names its server already
		Transport: &http.Transport{DialContext: p.connect, DisableCompression: true, MaxResponseHeaderBytes: 256 << 10, MaxIdleConnsPerHost: 6},
		// Scripts wait for the first bytes of a stream.
		FlushInterval: -1,
		ErrorLog:      quiet,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { abort() },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 256 << 10, ErrorLog: quiet,
		BaseContext: func(net.Listener) context.Context { return p.ctx }}
	p.work.Go(func() { _ = p.server.Serve(listener) }) // it ends with ErrServerClosed, when close is called
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// ServeHTTP answers the browser.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.shutting {
		p.mu.Unlock()
		abort()
	}
	p.work.Add(1) // while shutting is false, close has not begun to wait
	p.mu.Unlock()
	defer p.work.Done()
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "" || r.Header.Get("Upgrade") != "":
		abort()
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// ownBusiness are services that the browser calls by itself, whatever its flags say. They are not the page's, and not asked for.
var ownBusiness = []string{"accounts.google.com", "update.googleapis.com", "optimizationguide-pa.googleapis.com", "safebrowsing.googleapis.com", "content-autofill.googleapis.com",
	"clients2.google.com", "clients4.google.com", "android.clients.google.com", "edgedl.me.gvt1.com", "redirector.gvt1.com", "msedge.api.cdp.microsoft.com"}

// connect dials for the browser and notes what fails.
func (p *proxy) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if host, _, err := net.SplitHostPort(addr); err == nil && addr != p.target && (slices.Contains(ownBusiness, host) || strings.HasSuffix(host, ".invalid")) {
		return nil, errOwnBusiness
	}
	p.mu.Lock()
	p.dials--
	over := p.shutting || p.dials < 0
	p.mu.Unlock()
	if over {
		return nil, errShut
	}
	conn, err := p.dial(ctx, network, addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if at := strings.EqualFold(addr, p.target); p.refused == nil || at && !p.atTarget {
			p.refused, p.atTarget = err, at
		}
		return nil, err
	}
	if p.shutting {
		_ = conn.Close() // too late to be of use
		return nil, errShut
	}
	m := &meteredConn{Conn: conn, proxy: p}
	p.open[m] = struct{}{}
	return m, nil
}

// refusal is why a connection failed, or nil when none did.
func (p *proxy) refusal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// tunnel joins the browser to a server; what they say is their own.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	up, err := p.connect(r.Context(), "tcp", r.Host)
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	defer p.drop(up)
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	p.mu.Lock()
	shutting := p.shutting
	p.open[down] = struct{}{}
	p.mu.Unlock()
	defer p.drop(down)
	if shutting {
		return
	}
	if _, err := io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		// Either end closing ends both: a half-open tunnel is of no use to a page.
		_, _ = io.Copy(down, up)
		p.drop(down)
	})
	_, _ = io.Copy(up, buffered)
	p.drop(up)
	back.Wait()
}

// drop closes a connection and forgets it.
func (p *proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close() // closing twice, or after the other side did, is no fault
}

// shut cuts every connection to the network and makes no new one. The browser is left alone, so that a page can end with what it has.
func (p *proxy) shut() {
	p.mu.Lock()
	p.shutting = true
	conns := make([]net.Conn, 0, len(p.open))
	for c := range p.open {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		p.drop(c)
	}
}

// close ends the proxy and waits until nothing of it is left.
func (p *proxy) close() {
	p.shut()
	p.cancel()
	_ = p.server.Close() // the listener is all that could fail, and it goes either way
	p.work.Wait()
	p.shut() // a tunnel that opened in between
}

// spend takes n bytes from the page's share.
func (p *proxy) spend(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wire -= int64(n)
	return p.wire >= 0
}

// meteredConn counts what goes over a connection and ends it when the page's share is used up.
type meteredConn struct {
	net.Conn
	proxy *proxy
}

// Read counts what arrives.
func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.proxy.spend(n) {
		c.proxy.drop(c)
		return 0, errShut
	}
	return n, err
}

// Write counts what is sent.
func (c *meteredConn) Write(b []byte) (int, error) {
	if !c.proxy.spend(len(b)) {
		c.proxy.drop(c)
		return 0, errShut
	}
	return c.Conn.Write(b)
}

// Close ends the connection and forgets it.
func (c *meteredConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.open, c)
	c.proxy.mu.Unlock()
	return c.Conn.Close()
}
