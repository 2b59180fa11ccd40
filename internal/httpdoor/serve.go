package httpdoor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// How long the parts of the end take beyond Grace.
const (
	deliverTime = time.Second            // for answers to get out after the work has stopped
	closeTime   = 250 * time.Millisecond // for connections to be closed in good order
)

// probeTime is how long one who asks for health may take.
const probeTime = 10 * time.Second

// NewServer is an HTTP server with the limits that all of ours have.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// Run lets a server answer on l, with TLS if there is a certificate, until ctx ends.
// What has not ended after grace is closed. CodeUnavailable if the server could not go on.
func Run(ctx context.Context, srv *http.Server, l net.Listener, certFile, keyFile string, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() {
		if certFile != "" {
			ended <- srv.ServeTLS(l, certFile, keyFile)
			return
		}
		ended <- srv.Serve(l)
	}()
	var err error
	select {
	case err = <-ended:
		_ = l.Close() // ServeTLS leaves it open if the certificate is bad
		_ = srv.Close()
	case <-ctx.Done():
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer stop()
		if srv.Shutdown(closing) != nil {
			_ = srv.Close() // what is still open is of no more use
		}
		if err = <-ended; errors.Is(err, http.ErrServerClosed) {
			return nil
		}
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve on %s", l.Addr())
}

// Serve answers on l until ctx ends, and closes l. Then new MCP requests get 503, Stop is called, and
// the requests in flight have Grace and a second to end; what is left is closed, and it returns nil.
// CodeUnavailable if it could not go on. A door that has ended does not open again.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	// Requests outlive ctx, so that they can deliver what there is.
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	drained := make(chan struct{})
	stay := context.AfterFunc(ctx, func() {
		defer close(drained)
		defer end() // open streams may say goodbye
		d.cfg.Log.Info("shutting down")
		d.drain(requests)
	})
	srv := NewServer(d.Handler(), d.cfg.Log)
	srv.ReadHeaderTimeout = d.cfg.HeaderTimeout
	srv.BaseContext = func(net.Listener) context.Context { return requests }
	err := Run(requests, srv, l, d.cfg.CertFile, d.cfg.KeyFile, closeTime)
	if !stay() { // it is shutting down
		<-drained
	}
	return err
}

// drain lets no request in, stops the work and waits for it and for the answers.
func (d *Door) drain(ctx context.Context) {
	first, done := d.work.close(), make(chan struct{})
	stopping, cancel := context.WithTimeout(ctx, d.cfg.Grace)
	defer cancel()
	go func() {
		defer close(done)
		if first && d.cfg.Stop != nil {
			d.cfg.Stop(stopping)
		}
		d.work.inside.Wait()
	}()
	select {
	case <-done:
	case <-time.After(d.cfg.Grace + deliverTime):
		d.cfg.Log.Warn("requests or work did not end in time")
	}
}

// Probe serves the health of a process that has no other door, without a token,
// until ctx ends, and closes l. ready says what keeps the process from being so.
func Probe(ctx context.Context, l net.Listener, ready func() error) error {
	mux := http.NewServeMux()
	for path, serve := range vitals(ready) {
		mux.HandleFunc(path, serve)
	}
	srv := NewServer(mux, slog.New(slog.DiscardHandler))
	srv.ReadTimeout, srv.WriteTimeout = probeTime, 3*probeTime
	return Run(ctx, srv, l, "", "", closeTime)
}

// ListenAddress completes an address to listen on: a port alone is one of this machine.
func ListenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil && !strings.Contains(text, ":") {
		host, port, err = "127.0.0.1", text, nil
	}
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "address", Message: fmt.Sprintf("%.60q is no address to listen on", text),
			Hint: "give a host and a port, such as 127.0.0.1:8642"}
	}
	return net.JoinHostPort(host, port), nil
}

// Loopback reports whether an address to listen on, as host:port, can be reached from this machine
// alone. A name other than localhost may mean anything.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && access.IsLoopback(strings.TrimSuffix(strings.ToLower(host), "."))
}

// pingTime is how long a server may take to say whether it is ready.
const pingTime = 3 * time.Second

// Ping asks a server whether it is ready, without a token and past any proxy; CodeUnavailable if not.
func Ping(ctx context.Context, at *url.URL) error {
	to := &url.URL{Scheme: at.Scheme, Host: at.Host, Path: readyPath}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaderBytes},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       pingTime,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInvalid, "ping")
	}
	resp, err := client.Do(req)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "ping")
	}
	_ = resp.Body.Close() // only the status is wanted
	if resp.StatusCode != http.StatusOK {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "%s is not ready: HTTP status %d", to.Host, resp.StatusCode)
	}
	return nil
}

// Address is where people open what listens there; localhost for what listens everywhere.
func Address(at net.Addr, secure bool) string {
	scheme, name := "http://", at.String()
	if secure {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(name)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		name = net.JoinHostPort("localhost", port)
	}
	return scheme + name
}
