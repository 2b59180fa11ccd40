// Package hub runs the server that a cluster stands on, a JetStream server inside this
// process, and is the only one that knows that server. It owns the folder in which the
// server keeps its streams, who may connect and what each may do (keys.go says),
// and how several hubs find and trust each other. What is in the streams is not its
// matter.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// Config says how a hub is to run. Only Store is needed.
type Config struct {
	// Name tells the hubs of a cluster apart. "" is a name that is made once for the
	// store and kept in it. It must not change.
	Name string
	// Store is the folder of the streams, for this hub alone. It is made when missing.
	Store string
	// MaxStore is how many bytes the streams may take; 0 is the server's default: three quarters
	// of what is free in the folder's file system, not counting what they take already (on Windows 1 TB).
	MaxStore int64
	// Listen is where clients connect, such as 127.0.0.1:4222; port 0 is any that is
	// free. "" opens no port: only this process can connect. Anything but loopback needs
	// keys, or TLS with certificates of clients.
	Listen string
	// TLS is the certificate of the server, and with CA those that clients must show.
	TLS TLSFiles
	// Keys is a file of keys. As long as there never was one, a client that can connect may do
	// everything; from then on no hub starts on Store without the file. It is
	// looked at every second.
	Keys string

	// ClusterListen is where other hubs connect; "" is a hub that runs alone. Anything
	// but loopback needs ClusterSecret or ClusterTLS.
	ClusterListen string
	ClusterName   string   // the same for all hubs of a cluster; "" is "marchwarden"
	Routes        []string // where the hubs of the cluster are, host:port; itself among them does not matter
	// ClusterSecret is a file with a line that all hubs of a cluster have in common.
	ClusterSecret string
	// ClusterTLS is the certificate that a hub shows to others, and the authority that
	// theirs must come from.
	ClusterTLS TLSFiles

	Log *slog.Logger // nil is none
}

// Hub is a server that runs. It is safe for concurrent use.
type Hub struct {
	cfg    Config
	trust  trust
	store  *store
	server *server.Server
	log    *logger
	stop   context.CancelFunc // ends the watch of the keys file
	ended  chan struct{}      // closed when the server has ended and the folder is free

	own    nkeys.KeyPair // the hub's own key, which is in no file
	public string        // its public half
	open   string        // the public key that stands for every client without one, while that is allowed

	mu     sync.Mutex // guards what follows, and is held while options change
	listed []Key      // as the server knows them
	closed bool       // the file has existed: no client connects without a key
}

// startLimit is how long a server may take to open its ports and read its streams.
const startLimit = 5 * time.Minute

// Start starts a hub: its ports are open and its streams are read when it returns; whether
// it has found the other hubs of its cluster, Ready says. CodeInvalid if the configuration
// is not sound or not safe, CodeUnavailable if another process has the folder or a port.
func Start(cfg Config) (*Hub, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.ClusterName = cmp.Or(cfg.ClusterName, "marchwarden")
	listed, closed, err := check(cfg)
	if err != nil {
		return nil, err
	}
	trusted, err := readTrust(cfg)
	if err != nil {
		return nil, err
	}
	st, err := openStore(cfg)
	if err != nil {
		return nil, err
	}
	h := &Hub{cfg: cfg, trust: trusted, store: st, ended: make(chan struct{}), listed: listed, closed: closed}
	if err := h.start(); err != nil {
		return nil, errors.Join(err, st.close())
	}
	warn(cfg)
	return h, nil
}

// newKey is a pair of keys, and its public half.
func newKey() (pair nkeys.KeyPair, public string, err error) {
	if pair, err = nkeys.CreateUser(); err == nil {
		public, err = pair.PublicKey()
	}
	return pair, public, err
}

func (h *Hub) start() error {
	if h.store.form.Closed && !h.closed {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "keys", Message: fmt.Sprintf("the file %q is not there, and this hub has had one: without it, any client that reaches the hub could do everything", h.cfg.Keys),
			Hint: "put the file back, or begin anew with other keys: marchwarden cluster key add NAME --role worker --keys FILE --out KEY"}
	}
	var err error
	if _, h.open, err = newKey(); err == nil {
		h.own, h.public, err = newKey()
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the hub's own key")
	}
	opts, err := h.options()
	if err != nil {
		return err
	}
	h.log = &logger{to: h.cfg.Log.With("part", "hub"), known: secret.New(h.trust.secret)}
	if h.server, err = server.NewServer(opts); err != nil {
		return marchwarden.Wrap(h.log.clean(err), marchwarden.CodeInvalid, "set up the hub")
	}
	h.server.SetLoggerV2(h.log, false, false, false)
	go h.server.Start()
	if err := h.awaitStart(); err != nil {
		h.server.Shutdown()
		h.server.WaitForShutdown()
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	if h.cfg.Keys != "" {
		go h.watchKeys(ctx)
	}
	// This goroutine also keeps the lock's file from being collected while a server runs that was
	// not closed.
	go func() {
		h.server.WaitForShutdown()
		cancel()
		if err := h.store.close(); err != nil {
			h.cfg.Log.Error("free the folder of the hub", "error", err)
		}
		close(h.ended)
	}()
	return nil
}

// awaitStart waits until the server takes connections, or has said why it never will.
func (h *Hub) awaitStart() error {
	const step = 50 * time.Millisecond
	for range startLimit / step {
		if h.server.ReadyForConnections(step) && h.server.JetStreamEnabled() {
			return nil
		}
		if fatal := h.log.fatal(); fatal != "" {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "the hub cannot start: %s", fatal)
		}
		if !h.server.Running() {
			time.Sleep(step)
		}
	}
	return marchwarden.Errorf(marchwarden.CodeTimeout, "the hub did not start within %v", startLimit)
}

// Ready waits until streams can be made and used: at once for a hub that runs alone, and
// in a cluster when its hubs have chosen one that leads. CodeUnavailable if ctx ends or
// the hub does before.
func (h *Hub) Ready(ctx context.Context) error {
	for !h.ready() {
		if httpapi.Sleep(ctx, 20*time.Millisecond) != nil {
			return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Err: context.Cause(ctx), Hint: "start the other hubs, and check their routes, secret and certificates",
				Message: fmt.Sprintf("the hubs of the cluster have not agreed on a leader; this one is connected to %d others", h.Hubs())}
		}
		select {
		case <-h.ended:
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "the hub has ended")
		default:
		}
	}
	return nil
}

func (h *Hub) ready() bool {
	if !h.server.JetStreamEnabled() {
		return false
	}
	if h.cfg.ClusterListen == "" {
		return true
	}
	info, err := h.server.Jsz(&server.JSzOptions{})
	return err == nil && info.Meta != nil && info.Meta.Leader != "" && h.server.JetStreamIsCurrent()
}

// Name is the hub's name, which is the same for every start on a folder.
func (h *Hub) Name() string { return h.server.Name() }

// Address is where clients connect, such as nats://127.0.0.1:4222, or "" if there is no
// port. With TLS it begins with tls.
func (h *Hub) Address() string {
	addr := h.server.Addr()
	if h.cfg.Listen == "" || addr == nil {
		return ""
	}
	if h.cfg.TLS.IsZero() {
		return "nats://" + addr.String()
	}
	return "tls://" + addr.String()
}

// ClusterAddress is where other hubs connect, host:port, or "".
func (h *Hub) ClusterAddress() string {
	if addr := h.server.ClusterAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// InProcessConn is a connection from within this process. It needs a key as others do; Seed has
// one. Its holder closes it before the hub.
func (h *Hub) InProcessConn() (net.Conn, error) { return h.server.InProcessConn() }

// Seed is the seed of the key by which this process uses the hub, with InProcessConn. The hub makes
// the key for this run, never gives it away, and it may do everything.
func (h *Hub) Seed() ([]byte, error) {
	seed, err := h.own.Seed()
	return slices.Clone(seed), marchwarden.Wrap(err, marchwarden.CodeInternal, "read the hub's own key")
}

// Close ends the hub. In a cluster it hands over what it leads first and asks its clients
// to go to other hubs, which takes a few seconds at most. The folder is free then. Close
// may be called again.
func (h *Hub) Close() error {
	h.stop()
	if h.cfg.ClusterListen != "" {
		h.server.LameDuckShutdown()
	}
	h.server.Shutdown()
	<-h.ended
	return nil
}

// Hubs is how many others of its cluster the hub is connected to.
func (h *Hub) Hubs() int {
	routes, err := h.server.Routez(nil)
	if err != nil {
		return 0
	}
	others := map[string]bool{} // there are several routes to each
	for _, r := range routes.Routes {
		others[r.RemoteID] = true
	}
	return len(others)
}

const checkEvery = time.Second

// watchKeys takes notice of changes of the keys file until ctx ends.
func (h *Hub) watchKeys(ctx context.Context) {
	var told string
	for httpapi.Sleep(ctx, checkEvery) == nil {
		err := h.Reload()
		switch {
		case err == nil:
			told = ""
		case err.Error() != told: // once
			told = err.Error()
			h.cfg.Log.Error("the keys of the hub stay as they were", "error", err)
		}
	}
}

// Reload looks at the keys file now. Keys that are new may connect when it returns, and
// connections of those that are gone are closed. If the file cannot be read, or is not
// there any more, everything stays as it was: what cannot be read removes no key, and admits none.
func (h *Hub) Reload() error {
	if h.cfg.Keys == "" {
		return nil
	}
	listed, exists, err := ReadKeys(h.cfg.Keys)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !exists && h.closed:
		return marchwarden.Errorf(marchwarden.CodeNotFound, "the keys file %s is not there any more", h.cfg.Keys)
	case exists == h.closed && slices.Equal(listed, h.listed):
		return nil
	}
	before, wasClosed := h.listed, h.closed
	h.listed, h.closed = listed, exists
	opts, err := h.options()
	if err == nil {
		err = h.server.ReloadOptions(opts)
	}
	if err != nil {
		h.listed, h.closed = before, wasClosed
		return marchwarden.Wrap(h.log.clean(err), marchwarden.CodeUnavailable, "take the keys of %s", h.cfg.Keys)
	}
	h.cfg.Log.Info("the keys of the hub have changed", "keys", len(listed))
	return nil
}

// logger gives what the server says to a slog.Logger, without secrets. It keeps the
// first reason for which the server gave up; the server's own logger would end the
// process there.
type logger struct {
	to    *slog.Logger
	known *secret.Redactor

	mu  sync.Mutex // guards why
	why string
}

// text is a message without secrets.
func (l *logger) text(format string, v ...any) string {
	return l.known.Text(fmt.Sprintf(format, v...))
}

// clean is an error without secrets.
func (l *logger) clean(err error) error {
	if s := l.text("%v", err); s != err.Error() {
		return errors.New(s)
	}
	return err
}

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// The server's notices are for those who look for a fault.
func (l *logger) Noticef(format string, v ...any) { l.to.Debug(l.text(format, v...)) }
func (l *logger) Warnf(format string, v ...any)   { l.to.Warn(l.text(format, v...)) }
func (l *logger) Errorf(format string, v ...any)  { l.to.Error(l.text(format, v...)) }

func (l *logger) Fatalf(format string, v ...any) {
	s := l.text(format, v...)
	l.to.Error(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.why = s
	}
}

// Debugf and Tracef are never called: both are switched off.
func (l *logger) Debugf(string, ...any) {}
func (l *logger) Tracef(string, ...any) {}
