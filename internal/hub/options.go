package hub

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	maxPayload   = 1 << 20
	maxMemory    = 256 << 20 // of streams that are in memory, which are few and small
	pingInterval = 2 * time.Second
	maxPingsOut  = 3
	drainLimit   = 3 * time.Second
	drainGrace   = 100 * time.Millisecond
	authTimeout  = 5.0 // seconds; machines that are busy take their time
	routeUser    = "hub"
	minSecret    = 16 // characters; shorter ones are not taken out of what is logged
)

// trust is what the files say by which a hub and those who connect know each other. They are read
// once: a key must go also while a certificate is being replaced, and whatever secret the server
// has, the logger must know.
type trust struct {
	clients, hubs *tls.Config // nil is no TLS
	secret        string      // of the cluster, or ""
}

func readTrust(cfg Config) (t trust, err error) {
	if cfg.Listen != "" {
		if t.clients, err = cfg.TLS.server(); err != nil {
			return t, err
		}
	}
	if cfg.ClusterListen == "" {
		return t, nil
	}
	if !cfg.ClusterTLS.IsZero() && cfg.ClusterTLS.CA == "" { // by which hubs know each other
		return t, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "cluster_ca", Message: "must be given for TLS between hubs"}
	}
	if t.hubs, err = cfg.ClusterTLS.server(); err != nil || cfg.ClusterSecret == "" {
		return t, err
	}
	line, err := ReadSecret(cfg.ClusterSecret, "file of the cluster's secret")
	if err != nil {
		return t, err
	}
	if utf8.RuneCount(line) < minSecret {
		return t, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "cluster_secret", Message: fmt.Sprintf("must have at least %d characters", minSecret), Hint: "make one: openssl rand -hex 32"}
	}
	t.secret = string(line)
	return t, nil
}

// options are the server's, from the configuration and from h.listed. They are made anew
// for every change of the keys, because that is how the server takes it. h.mu is held, or h is not
// shared yet.
func (h *Hub) options() (*server.Options, error) {
	opts := &server.Options{}
	if err := h.setAccounts(opts); err != nil {
		return nil, err
	}
	opts.ServerName = h.store.form.Name
	opts.NoSigs = true
	opts.JetStream = true
	opts.DisableJetStreamBanner = true
	opts.StoreDir = h.cfg.Store
	opts.SyncAlways = true
	opts.JetStreamMaxStore = h.cfg.MaxStore
	opts.JetStreamMaxMemory = maxMemory
	opts.MaxPayload = maxPayload
	opts.AuthTimeout = authTimeout
	opts.PingInterval, opts.MaxPingsOut = pingInterval, maxPingsOut
	opts.LameDuckDuration, opts.LameDuckGracePeriod = drainLimit, drainGrace
	if opts.DontListen = h.cfg.Listen == ""; !opts.DontListen {
		opts.Host, opts.Port, _ = splitListen("listen", h.cfg.Listen) // which check has read
	}
	if opts.TLSConfig = h.trust.clients; opts.TLSConfig != nil {
		opts.TLS, opts.TLSVerify, opts.TLSTimeout = true, h.cfg.TLS.CA != "", authTimeout
	}
	if h.cfg.ClusterListen == "" {
		return opts, nil
	}
	return opts, h.setCluster(opts)
}

func (h *Hub) setCluster(opts *server.Options) error {
	c := &opts.Cluster
	c.Name = h.cfg.ClusterName
	c.Host, c.Port, _ = splitListen("cluster_listen", h.cfg.ClusterListen) // which check has read
	c.PingInterval, c.MaxPingsOut = pingInterval, maxPingsOut
	if c.TLSConfig = h.trust.hubs; c.TLSConfig != nil {
		c.TLSTimeout = authTimeout
	}
	var user *url.Userinfo
	if h.trust.secret != "" {
		c.Username, c.Password, c.AuthTimeout = routeUser, h.trust.secret, authTimeout
		user = url.UserPassword(routeUser, h.trust.secret)
	}
	for _, r := range h.cfg.Routes {
		if _, _, err := splitListen("routes", r); err != nil {
			return err
		}
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: r, User: user})
	}
	return nil
}

// setAccounts makes the accounts and who may connect to them. The server enables
// JetStream for accounts, and lets one use another's subjects, only if they come from the
// text of a configuration.
func (h *Hub) setAccounts(opts *server.Options) error {
	if err := h.store.remember(h.closed); err != nil {
		return err
	}
	if err := opts.ProcessConfigString(describe()); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "describe the accounts of the hub")
	}
	byName := map[string]*server.Account{}
	for _, a := range opts.Accounts {
		byName[a.Name] = a
	}
	opts.Nkeys = []*server.NkeyUser{{Nkey: h.public, Account: byName[mainAccount]}}
	for _, k := range h.listed {
		account := byName[mainAccount]
		if k.Role == RoleClient {
			account = byName[clientAccount]
		}
		opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: k.Public, Account: account, Permissions: k.rights()})
	}
	if !h.closed {
		opts.Nkeys = append(opts.Nkeys, &server.NkeyUser{Nkey: h.open, Account: byName[mainAccount]})
		opts.NoAuthUser = h.open
	}
	return nil
}

// describe is the text of a configuration with accounts. Clients have an account of their own
// that uses some subjects of the other: the sender of a request chooses where its answer goes,
// and within one account that could be a record.
func describe() string {
	// Clients may publish to services, each with one answer at most, and subscribe to streams;
	// nothing else of an account's traffic is for them. The first is not needed. But the server itself
	// also answers all requests for JetStream in an account, unless that account imports this one.
	services, streams := slices.Concat([]string{"$JS.API.INFO"}, read, ask), watch
	var exports, imports strings.Builder
	share := func(kind string, subjects []string) {
		for _, s := range subjects {
			fmt.Fprintf(&exports, "      { %s: %q }\n", kind, s)
			fmt.Fprintf(&imports, "      { %s: { account: %q, subject: %q } }\n", kind, mainAccount, s)
		}
	}
	share("service", services)
	share("stream", streams)
	return fmt.Sprintf("system_account: %q\naccounts {\n  %[1]q {}\n  %q {\n    jetstream: enabled\n    exports: [\n%s    ]\n  }\n  %q {\n    imports: [\n%s    ]\n  }\n}\n",
		systemAccount, mainAccount, &exports, clientAccount, &imports)
}

// check looks at whether a configuration is sound and safe, and reads its keys.
func check(cfg Config) (listed []Key, closed bool, err error) {
	if cfg.Keys != "" {
		if listed, closed, err = ReadKeys(cfg.Keys); err != nil {
			return nil, false, err
		}
	}
	host, other := "localhost", "localhost" // what does not listen is as safe
	if cfg.Listen != "" {
		host, _, err = splitListen("listen", cfg.Listen)
	}
	hubs := cfg.ClusterListen != ""
	if err == nil && hubs {
		other, _, err = splitListen("cluster_listen", cfg.ClusterListen)
	}
	if err != nil {
		return nil, false, err
	}
	odd := strings.ContainsFunc(cfg.Name, func(r rune) bool { return !unicode.IsGraphic(r) || strings.ContainsRune(" .*>/\\", r) })
	for _, rule := range []struct {
		broken               bool
		field, message, hint string
	}{
		{cfg.Store == "", "store", "must be a folder", ""},
		{odd || len(cfg.Name) > 64, "name", "must be 1 to 64 bytes without blanks, dots, slashes or wildcards", ""},
		{!loopback(host) && len(listed) == 0 && cfg.TLS.CA == "", "listen",
			fmt.Sprintf("without keys a hub listens on loopback only, not on %.80q: any client that reaches it could do everything", cfg.Listen),
			"make keys first: marchwarden cluster key add NAME --role worker"},
		{!hubs && len(cfg.Routes) > 0, "routes", "must not be given without an address for other hubs", "say where this hub listens for other hubs"},
		{hubs && len(cfg.Routes) == 0, "routes", "must name the other hubs of the cluster", ""},
		{!loopback(other) && cfg.ClusterSecret == "" && cfg.ClusterTLS.CA == "", "cluster_listen",
			fmt.Sprintf("without a secret or certificates a hub takes other hubs on loopback only, not on %.80q", cfg.ClusterListen),
			"give all hubs a file with the same secret, or certificates of one authority"},
	} {
		if rule.broken {
			return nil, false, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: rule.field, Message: rule.message, Hint: rule.hint}
		}
	}
	return listed, closed, nil
}

// warn says what others could read on the way.
func warn(cfg Config) {
	for address, files := range map[string]TLSFiles{cfg.Listen: cfg.TLS, cfg.ClusterListen: cfg.ClusterTLS} {
		if host, _, err := net.SplitHostPort(address); err == nil && !loopback(host) && files.IsZero() {
			cfg.Log.Warn("without TLS, what passes can be read on the way", "address", address)
		}
	}
}

// splitListen reads host:port; port 0 is any that is free.
func splitListen(field, s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	n, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || strings.ContainsAny(host, " /@") {
		return "", 0, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf("must be host:port, such as 127.0.0.1:4222, not %.80q", s)}
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

// loopback reports whether only this machine can reach a host. A name counts only if it
// is localhost: others may come to mean something else.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// TLSFiles are the files, in PEM, of one end of TLS connections. None is no TLS.
type TLSFiles struct {
	Cert, Key string // the certificate and its key, both or neither
	CA        string // the authorities that the other end's certificate must come from
}

// IsZero reports whether no file is named.
func (f TLSFiles) IsZero() bool { return f == TLSFiles{} }

// Load is the configuration of either end: it shows its certificate if it has one, and
// believes the authorities of CA. Without CA a client believes those of the system, and a server
// asks for no certificate. It is nil, without an error, if no file is named.
func (f TLSFiles) Load() (*tls.Config, error) {
	if f.IsZero() {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if (f.Cert == "") != (f.Key == "") {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "a certificate and its key must be given together"}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the certificate %s and its key", f.Cert)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.CA == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the certificates of authorities")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "the file %s has no certificate", f.CA)
	}
	c.RootCAs, c.ClientCAs, c.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	return c, nil
}

// server is Load for a server, which needs a certificate.
func (f TLSFiles) server() (*tls.Config, error) {
	if !f.IsZero() && f.Cert == "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "tls_cert", Message: "must be given for a server with TLS"}
	}
	return f.Load()
}
