package hub_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// authority makes certificates for loopback.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key, a.cert = a.make(t, "ca", nil)
	return a
}

func (a *authority) make(t *testing.T, name string, key *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.cert, key
	if key == nil {
		form.IsCA, form.BasicConstraintsValid, form.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = form, own
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &own.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	for ext, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+ext), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return own, cert
}

// files makes a certificate; with it goes the authority.
func (a *authority) files(t *testing.T, name string) hub.TLSFiles {
	t.Helper()
	a.make(t, name, a.key)
	return hub.TLSFiles{Cert: filepath.Join(a.dir, name+".pem"), Key: filepath.Join(a.dir, name+".key"), CA: filepath.Join(a.dir, "ca.pem")}
}

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Three hubs that have the secret and certificates of one authority are one; a hub that
// lacks either stays outside; and one of three may go and come back.
func TestCluster(t *testing.T) {
	t.Parallel()
	const secret = "between-hubs-9f2c"
	ca, stranger := newAuthority(t), newAuthority(t)
	routes := datatest.FreeAddresses(t, 3)
	log, text := logged()
	g, path := newKeys(t)
	member := func(i int, store string) hub.Config {
		return hub.Config{Store: store, Name: "hub" + string(rune('1'+i)), Listen: "127.0.0.1:0", ClusterListen: routes[i], Routes: routes, ClusterSecret: secretFile(t, secret), ClusterTLS: ca.files(t, "hub"), Keys: path, Log: log}
	}
	outside := func(name, secret string, files hub.TLSFiles) *hub.Hub {
		cfg := hub.Config{Name: name, ClusterListen: "127.0.0.1:0", Routes: routes, ClusterTLS: files, Listen: "127.0.0.1:0"}
		if secret != "" {
			cfg.ClusterSecret = secretFile(t, secret)
		}
		return start(t, cfg)
	}
	stores := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	hubs := make([]*hub.Hub, 3)
	for i := range hubs {
		hubs[i] = start(t, member(i, stores[i]))
	}
	intruders := []*hub.Hub{
		outside("wrong-secret", "guessed-but-not-right", ca.files(t, "in1")),
		outside("no-secret", "", ca.files(t, "in2")),
		outside("no-certificate", secret, hub.TLSFiles{}),
		outside("strange-certificate", secret, stranger.files(t, "in3")),
	}
	for _, h := range hubs {
		if err := h.Ready(within(t, 30*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if got := write(t, connect(t, hubs[0].Address(), g.options(t, "hub1")...), 3); got != 1 {
		t.Errorf("message %d", got)
	}
	for _, h := range intruders {
		if err := h.Ready(within(t, 50*time.Millisecond)); err == nil || h.Hubs() != 0 {
			t.Errorf("%s is in: %v, with %d hubs", h.Name(), err, h.Hubs())
		}
	}
	for _, h := range hubs {
		if n := h.Hubs(); n != 2 {
			t.Errorf("%s is connected to %d hubs, want 2", h.Name(), n)
		}
	}
	g.throughAll(t, hubs)

	began := time.Now()
	if err := hubs[2].Close(); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("closed with %v in %v", err, time.Since(began))
	}
	if err := hubs[0].Ready(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	nc := connect(t, hubs[1].Address(), g.options(t, "hub1")...)
	if got := write(t, nc, 3); got != 2 {
		t.Errorf("message %d while one hub is away", got)
	}
	hubs[2] = start(t, member(2, stores[2]))
	if err := hubs[2].Ready(within(t, 20*time.Second)); err != nil {
		t.Error(err)
	}
	if got := write(t, connect(t, hubs[2].Address(), g.options(t, "hub1")...), 3); got != 3 {
		t.Errorf("message %d when it is back", got)
	}
	closeAll(hubs...)
	closeAll(intruders...)
	if strings.Contains(text.String(), secret) || !strings.Contains(text.String(), "JetStream") {
		t.Errorf("the log has the secret, or nothing: %.2000s", text.String())
	}
}

// throughAll has a client submit and watch at every hub, wherever the streams are.
func (g *guarded) throughAll(t *testing.T, hubs []*hub.Hub) {
	t.Helper()
	g.Hub = hubs[0]
	cfg := cluster.Config{InProcess: g, Name: "hub", Seed: g.Seed, Now: time.Now}
	if err := cluster.Prepare(within(t, 30*time.Second), cfg, cluster.Facts{Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	worker := connect(t, hubs[0].Address(), g.options(t, "worker1")...)
	for i, h := range hubs {
		nc := connect(t, h.Address(), g.options(t, "client1")...)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if ack, err := js.Publish(within(t, 20*time.Second), "mw.task."+string(rune('a'+i)), nil); err != nil || ack.Sequence != uint64(i+1) {
			t.Errorf("at %s: %+v, %v", h.Name(), ack, err)
		}
		heard, err := nc.SubscribeSync("mw.live." + id1 + ".*")
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the other hubs learn of it
		if err := worker.Publish("mw.live."+id1+"."+id2, []byte("so far")); err != nil {
			t.Fatal(err)
		}
		if msg, err := heard.NextMsg(5 * time.Second); err != nil || string(msg.Data) != "so far" {
			t.Errorf("heard at %s: %v, %v", h.Name(), msg, err)
		}
	}
}

// closeAll closes hubs at once, since those that go one by one wait for each other.
func closeAll(hubs ...*hub.Hub) {
	var all sync.WaitGroup
	for _, h := range hubs {
		all.Go(func() { _ = h.Close() })
	}
	all.Wait()
}

// Clients see whom they talk to, and have to show who they are if that is wanted; the
// process itself need not.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	server, client := ca.files(t, "server"), ca.files(t, "client")
	h := start(t, hub.Config{Listen: "0.0.0.0:0", TLS: server}) // no keys: certificates are demanded
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.Address(), "tls://"))
	url := "tls://127.0.0.1:" + port
	conf, err := client.Load()
	if err != nil {
		t.Fatal(err)
	}
	write(t, connect(t, url, nats.Secure(conf)), 1)
	write(t, connect(t, "", nats.InProcessServer(h)), 1)
	bare, err := hub.TLSFiles{CA: client.CA}.Load()
	if err != nil {
		t.Fatal(err)
	}
	foreign := newAuthority(t).files(t, "client")
	strange, err := hub.TLSFiles{Cert: foreign.Cert, Key: foreign.Key, CA: client.CA}.Load()
	if err != nil {
		t.Fatal(err)
	}
	deceived, err := foreign.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]nats.Option{
		"no certificate":                {nats.Secure(bare)},
		"a strange certificate":         {nats.Secure(strange)},
		"a server of another authority": {nats.Secure(deceived)},
	} {
		if nc, err := nats.Connect(url, opts...); err == nil {
			nc.Close()
			t.Errorf("%s is let in", name)
		}
	}
	if said := plainly(t, "127.0.0.1:"+port); strings.Contains(said, "PONG") {
		t.Errorf("no TLS is let in: %s", said)
	}
	open := start(t, hub.Config{Listen: "127.0.0.1:0"})
	if said := plainly(t, strings.TrimPrefix(open.Address(), "nats://")); !strings.HasSuffix(said, "PONG\r\n") {
		t.Errorf("a hub that has no TLS says %s", said)
	}
}

// plainly connects without TLS, which the client of the library would not do to a server
// that demands it, and returns what the server says until it is done.
func plainly(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(conn)
	said, err := from.ReadString('\n')
	if err != nil || !strings.HasPrefix(said, "INFO ") {
		t.Fatalf("%q, %v", said, err)
	}
	if _, err := conn.Write([]byte("CONNECT {}\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	for !strings.HasSuffix(said, "PONG\r\n") {
		line, err := from.ReadString('\n')
		if said += line; errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the server neither answers nor closes: %q", said)
		}
		if err != nil {
			break
		}
	}
	return said
}

// A key goes while the files that the hub has begun with cannot be read any more.
func TestKeysGoWithoutTheFiles(t *testing.T) {
	t.Parallel()
	g, path := newKeys(t)
	ca := newAuthority(t)
	cfg := hub.Config{Listen: "127.0.0.1:0", TLS: ca.files(t, "server"), Keys: path,
		ClusterListen: "127.0.0.1:0", Routes: []string{"127.0.0.1:1"}, ClusterTLS: ca.files(t, "hub"), ClusterSecret: secretFile(t, "between-hubs-9f2c")}
	g.Hub = start(t, cfg)
	conf, err := ca.files(t, "client").Load()
	if err != nil {
		t.Fatal(err)
	}
	as := func(name string) []nats.Option { return append(g.options(t, name), nats.Secure(conf)) }
	connect(t, g.Address(), as("worker1")...)
	ca.make(t, "other", ca.key)
	for _, to := range []string{cfg.TLS.Cert, cfg.ClusterTLS.Cert} { // and their keys not yet
		if err := os.Rename(filepath.Join(ca.dir, "other.pem"), to); err != nil {
			t.Fatal(err)
		}
		ca.make(t, "other", ca.key)
	}
	if err := errors.Join(os.Remove(cfg.ClusterSecret), g.file.Remove("worker1"), g.Reload()); err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(g.Address(), as("worker1")...); !errors.Is(err, nats.ErrAuthorization) {
		if err == nil {
			nc.Close()
		}
		t.Errorf("a key that is removed: %v", err)
	}
	connect(t, g.Address(), as("worker2")...)
}
