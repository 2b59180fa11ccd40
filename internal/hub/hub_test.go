package hub_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

func start(t *testing.T, cfg hub.Config) *hub.Hub {
	t.Helper()
	if cfg.Store == "" {
		cfg.Store = t.TempDir()
	}
	h, err := hub.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// connect connects as a test does, and closes at its end.
func connect(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.Timeout(5 * time.Second), nats.NoReconnect()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// write appends one message to a stream, which it makes if need be, and returns how many
// there are. It tries again when no hub answers, as every client of a cluster must.
func write(t *testing.T, nc *nats.Conn, replicas int) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	id := nats.NewInbox() // what is sent twice counts once
	for range 10 {
		ctx := within(t, 3*time.Second)
		var ack *jetstream.PubAck
		if _, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: replicas}); err == nil {
			ack, err = js.Publish(ctx, "s", []byte("x"), jetstream.WithMsgID(id))
		}
		if err == nil {
			return ack.Sequence
		}
		<-ctx.Done()
	}
	t.Fatal(err)
	return 0
}

// A first hub needs no more than a folder, and loses nothing when it ends.
func TestAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "hub")
	var name string
	for i := range 2 {
		h := start(t, hub.Config{Store: dir, Listen: "127.0.0.1:0"})
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if name == "" {
			name = h.Name()
		}
		if h.Name() != name {
			t.Errorf("its name was %s and is %s", name, h.Name())
		}
		write(t, connect(t, h.Address()), 1)
		if got, want := write(t, connect(t, "", nats.InProcessServer(h)), 1), uint64(2*i+2); got != want {
			t.Errorf("message %d, want %d", got, want)
		}
		for range 2 {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.Ready(t.Context()); !errors.Is(err, marchwarden.CodeUnavailable) {
			t.Errorf("a hub that has ended: %v", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}

// Without an address there is no port at all.
func TestNoPort(t *testing.T) {
	h := start(t, hub.Config{})
	if h.Address() != "" || h.ClusterAddress() != "" {
		t.Errorf("it listens on %q, %q", h.Address(), h.ClusterAddress())
	}
	write(t, connect(t, "", nats.InProcessServer(h)), 1)
}

// Two hubs never write to one folder, in one process or two; one that was killed does
// not keep the next out.
func TestOneHubForAFolder(t *testing.T) {
	dir := t.TempDir()
	refused := func() {
		t.Helper()
		began := time.Now()
		_, err := hub.Start(hub.Config{Store: dir})
		if !errors.Is(err, durable.ErrLocked) || !errors.Is(err, marchwarden.CodeUnavailable) || !strings.Contains(err.Error(), dir) || time.Since(began) > 20*time.Second {
			t.Errorf("a second hub: %v after %v", err, time.Since(began))
		}
	}
	first, said := startProcess(t, dir)
	if !strings.HasPrefix(said, "hub nats://") {
		t.Fatal(said)
	}
	write(t, connect(t, strings.TrimPrefix(said, "hub ")), 1)
	refused()
	if _, said := startProcess(t, dir); !strings.HasPrefix(said, "error another hub uses the folder "+dir) {
		t.Errorf("a second process: %s", said)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	h := start(t, hub.Config{Store: dir})
	for range 3 {
		runtime.GC() // must not find the lock's file
	}
	refused()
	if got := write(t, connect(t, "", nats.InProcessServer(h)), 1); got != 2 {
		t.Errorf("message %d after the kill, want 2", got)
	}
}

// Whatever would be open to every client is refused, with a word on what to do.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	empty, secret, open, few := filepath.Join(dir, "empty.json"), filepath.Join(dir, "secret"), filepath.Join(dir, "open"), secretFile(t, strings.Repeat("ß", 15))
	for path, mode := range map[string]os.FileMode{secret: 0o600, open: 0o644} {
		if err := os.WriteFile(path, []byte("between hubs\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(empty, []byte(`{"version":1,"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	alone := filepath.Join(dir, "alone")
	if err := start(t, hub.Config{Store: alone, Name: "one"}).Close(); err != nil {
		t.Fatal(err)
	}
	routes := []string{"127.0.0.1:1"}
	for name, c := range map[string]struct {
		cfg  hub.Config
		want string
	}{
		"no folder":                 {hub.Config{Store: ""}, "store: must be a folder"},
		"everybody":                 {hub.Config{Listen: "0.0.0.0:0"}, "listen: without keys"},
		"everybody by name":         {hub.Config{Listen: "example.org:4222"}, "listen: without keys"},
		"every address":             {hub.Config{Listen: ":4222"}, "listen: without keys"},
		"everybody, no key in file": {hub.Config{Listen: "[::]:0", Keys: empty}, "listen: without keys"},
		"no port":                   {hub.Config{Listen: "127.0.0.1"}, "listen: must be host:port"},
		"a port that is taken":      {hub.Config{Listen: taken.Addr().String()}, "the hub cannot start"},
		"every hub":                 {hub.Config{ClusterListen: "0.0.0.0:0", Routes: routes}, "cluster_listen: without a secret"},
		"no routes":                 {hub.Config{ClusterListen: "127.0.0.1:0"}, "routes: must name"},
		"routes alone":              {hub.Config{Routes: routes}, "routes: must not"},
		"a route with a password":   {hub.Config{ClusterListen: "127.0.0.1:0", Routes: []string{"a:b@127.0.0.1:1"}}, "routes: must be host:port"},
		"a secret for all":          {hub.Config{ClusterListen: "127.0.0.1:0", Routes: routes, ClusterSecret: open}, "others than its owner"},
		"no secret":                 {hub.Config{ClusterListen: "127.0.0.1:0", Routes: routes, ClusterSecret: filepath.Join(dir, "none")}, "there is no file of the cluster's secret"},
		"a secret that is short":    {hub.Config{ClusterListen: "127.0.0.1:0", Routes: routes, ClusterSecret: secret}, "cluster_secret: must have at least"},
		"a secret of long letters":  {hub.Config{ClusterListen: "127.0.0.1:0", Routes: routes, ClusterSecret: few}, "cluster_secret: must have at least"},
		"no key of the certificate": {hub.Config{Listen: "127.0.0.1:0", TLS: hub.TLSFiles{Cert: "c"}}, "must be given together"},
		"a name with blanks":        {hub.Config{Name: "a b"}, "name: must be"},
		"a name that colours":       {hub.Config{Name: "a\x1b[31m"}, "name: must be"},
		"alone, then a cluster":     {hub.Config{Store: alone, ClusterListen: "127.0.0.1:0", Routes: routes}, "is that of a hub that runs alone"},
		"alone, then another":       {hub.Config{Store: alone, Name: "two"}, `is that of the hub "one"`},
		"keys for all":              {hub.Config{Keys: open}, "has mode 0644"},
		"keys that are none":        {hub.Config{Keys: secret}, "is no keys file"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(c.want, "mode") {
				t.Skip("no modes")
			}
			if c.cfg.Store == "" && name != "no folder" {
				c.cfg.Store = filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			}
			h, err := hub.Start(c.cfg)
			if err == nil {
				_ = h.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "between hubs") {
				t.Errorf("the secret is in %v", err)
			}
			if name == "everybody" {
				var e *marchwarden.Error
				if !errors.As(err, &e) || !strings.Contains(e.Hint, "cluster key add") {
					t.Errorf("the hint is %q", e.Hint)
				}
			}
		})
	}
}

// logged collects what is logged.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), &b
}
