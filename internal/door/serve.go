package door

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
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

// probeTime is how long one who asks for measurements may take.
const probeTime = 10 * time.Second

// Serve answers on l until ctx ends, and closes l. Then it is not ready any more, new
// MCP requests get 503, Stop is called, and the requests in flight have Grace and a
// second to end; what is left, such as streams that never end by themselves, is closed.
// It returns nil after such an end, also if something had to be closed, and
// CodeUnavailable if it could not go on. A door that has ended does not open again.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	// Requests outlive ctx, so that they can deliver what there is.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           d.Handler(),
		ReadHeaderTimeout: d.cfg.HeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(d.cfg.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	ended := make(chan error, 1)
	go func() {
		if d.cfg.CertFile != "" {
			ended <- srv.ServeTLS(l, d.cfg.CertFile, d.cfg.KeyFile)
			return
		}
		ended <- srv.Serve(l)
	}()
	select {
	case err := <-ended:
		_ = l.Close() // ServeTLS leaves it open if the certificate is bad
		_ = srv.Close()
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve on %s", l.Addr())
	case <-ctx.Done():
	}
	d.cfg.Log.Info("shutting down")
	d.drain(requests)
	cancel() // open streams may say goodbye
	closing, stop := context.WithTimeout(context.Background(), closeTime)
	defer stop()
	if err := srv.Shutdown(closing); err != nil {
		d.cfg.Log.Info("closed connections that did not end by themselves", "reason", err)
		_ = srv.Close() // what is still open is of no more use
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve on %s", l.Addr())
	}
	return nil
}

// drain lets no request in, stops the work and waits for both: that the requests are
// answered and that Stop has returned.
func (d *Door) drain(ctx context.Context) {
	empty, first := d.work.close()
	stopped := make(chan struct{})
	stopping, cancel := context.WithTimeout(ctx, d.cfg.Grace)
	defer cancel()
	go func() {
		defer close(stopped)
		if first && d.cfg.Stop != nil {
			d.cfg.Stop(stopping)
		}
	}()
	timeout := time.NewTimer(d.cfg.Grace + deliverTime)
	defer timeout.Stop()
	for empty != nil || stopped != nil {
		select {
		case <-empty:
			empty = nil
		case <-stopped:
			stopped = nil
		case <-timeout.C:
			d.cfg.Log.Warn("requests or work did not end in time")
			return
		}
	}
}

// Probe serves the health and the measurements of a process that has no other door, at
// /healthz, /readyz and /metrics, until ctx ends, and closes l. ready says what keeps the
// process from being so; nil never keeps it. It asks for no token: it shows numbers only.
// CodeUnavailable if it could not go on.
func (m *Metrics) Probe(ctx context.Context, l net.Listener, ready func() error) error {
	if ready == nil {
		ready = func() error { return nil }
	}
	mux := http.NewServeMux()
	for path, serve := range vitals(ready, m.handler().ServeHTTP) {
		mux.HandleFunc(path, serve)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: probeTime, ReadTimeout: probeTime, WriteTimeout: 3 * probeTime, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve on %s", l.Addr())
	case <-ctx.Done():
	}
	_ = srv.Close() // who asks for numbers asks again
	<-ended
	return nil
}

// Loopback reports whether an address to listen on, as host:port, can be reached from
// this machine alone. No host, 0.0.0.0 and :: can be reached from anywhere; a name other
// than localhost may mean anything, so it counts as that too. CodeInvalid if the address
// is none.
func Loopback(addr string) (bool, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false, invalid("address", "%q is not host:port, such as 127.0.0.1:8642", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false, invalid("address", "%q has no port from 0 to 65535, such as 127.0.0.1:8642", addr)
	}
	return access.IsLoopback(strings.TrimSuffix(strings.ToLower(host), ".")), nil
}
