package hub_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// The sender of a request chooses where the answer goes. A client cannot have it go to a
// record, an end or a bucket: only to places among clients.
func TestAnswersStayAmongClients(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{})
	nc := connect(t, g.Address(), g.options(t, "client1")...)
	targets := []string{"mw.log." + id1 + "." + id1, "mw.done." + id1, "mw.blob.00", "$KV.MW_FACTS.facts", "$KV.MW_LIMIT.anthropic"}
	for i, target := range targets {
		msg := nats.NewMsg(fmt.Sprintf("mw.task.%s%d", id1, i))
		msg.Reply, msg.Data = target, []byte("a task")
		msg.Header.Set("Mw-Kind", "end")
		if err := nc.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
		for _, ask := range []string{"$JS.API.STREAM.MSG.GET.MW_TASK", "$JS.API.STREAM.INFO.MW_TASK", "$JS.API.DIRECT.GET.KV_MW_FACTS.$KV.MW_FACTS.facts"} {
			if err := nc.PublishRequest(ask, target, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 20*time.Second)
	ack, err := js.Publish(ctx, "mw.task."+id2, []byte("x")) // an answer that comes, so those before it went
	if err != nil || ack.Sequence != uint64(len(targets)+1) {
		t.Fatalf("%+v, %v", ack, err)
	}
	time.Sleep(50 * time.Millisecond)
	before := map[string]uint64{"KV_MW_FACTS": 1} // the hub's own
	for _, name := range []string{"MW_LOG", "MW_DONE", "MW_BLOB", "KV_MW_FACTS", "KV_MW_LIMIT"} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.LastSeq; n != before[name] {
			t.Errorf("%s had %d messages and has %d", name, before[name], n)
		}
	}
}

var raceEnabled = false // see race_test.go

// serverRaces leaves a test out under the race detector: nats-server 2.15.2 reads its
// options without its lock when it answers a direct get, which is noticed wherever they
// are changed after one.
func serverRaces(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("the server reads its options without a lock")
	}
}

// A client's request has one answer, also after the keys have changed: the server
// must not answer in place of the streams.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	serverRaces(t)
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{})
	ask := func(when string) {
		t.Helper()
		nc := connect(t, g.Address(), g.options(t, "client1")...)
		for _, subject := range []string{"mw.task." + id1, "$JS.API.STREAM.INFO.MW_TASK", "$JS.API.STREAM.MSG.GET.MW_TASK", "$JS.API.CONSUMER.LIST.MW_WORK", "$JS.API.DIRECT.GET.KV_MW_FACTS.$KV.MW_FACTS.facts"} {
			inbox := nc.NewInbox()
			answers, err := nc.SubscribeSync(inbox)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(nc.PublishRequest(subject, inbox, nil), nc.Flush()); err != nil {
				t.Fatal(err)
			}
			msg, err := answers.NextMsg(30 * time.Second)
			if err != nil || strings.Contains(string(msg.Data), "not enabled") {
				t.Fatalf("%s: %s: %v, %v", when, subject, msg, err)
			}
			if second, err := answers.NextMsg(50 * time.Millisecond); err == nil {
				t.Errorf("%s: %s has a second answer: %s", when, subject, second.Data)
			}
		}
	}
	ask("at first")
	g.add(t, "more", hub.RoleClient)
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	ask("with another key")
}

// What was submitted, wished or ended stays as it is, whatever else is sent, and however.
func TestNobodyOverwrites(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{})
	for role, subjects := range map[string][]string{"client2": {"mw.task." + id1, "mw.cancel." + id1, "mw.work.web.p1.3." + id1}, "worker2": {"mw.task." + id1, "mw.done." + id1}} {
		js, err := jetstream.New(connect(t, g.Address(), g.options(t, role)...))
		if err != nil {
			t.Fatal(err)
		}
		first, err := jetstream.New(connect(t, g.Address(), g.options(t, "worker1")...))
		if err != nil {
			t.Fatal(err)
		}
		ctx := within(t, 10*time.Second)
		for _, subject := range subjects {
			_, _ = first.Publish(ctx, subject, []byte("first")) // or it is there from the other role
			for name, values := range map[string][]string{"": nil, "Nats-Rollup": {"sub"}, "Nats-Rollup-All": nil, "Nats-Expected-Last-Subject-Sequence": {"1"}, "Nats-TTL": {"1s"}} {
				msg := nats.NewMsg(subject)
				msg.Data = []byte("second")
				switch {
				case name == "Nats-Rollup-All":
					msg.Header.Set("Nats-Rollup", "all")
				case name != "":
					msg.Header[name] = values
				}
				if ack, err := js.PublishMsg(ctx, msg); err == nil {
					t.Errorf("%s overwrites %s with %q: %+v", role, subject, name, ack)
				}
			}
		}
	}
	js, err := jetstream.New(connect(t, g.Address(), g.options(t, "client1")...))
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]uint64{"MW_TASK": 2, "MW_WORK": 1, "MW_DONE": 1} {
		s, err := js.Stream(within(t, 20*time.Second), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().State.Msgs; got != n {
			t.Errorf("%s has %d messages, want %d", name, got, n)
		}
	}
}

// A key counts when it is added and no longer when it is removed; what others have open
// stays open.
func TestReload(t *testing.T) {
	t.Parallel()
	serverRaces(t)
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{})
	refuse := func(name string) {
		t.Helper()
		if nc, err := nats.Connect(g.Address(), g.options(t, name)...); !errors.Is(err, nats.ErrAuthorization) {
			if err == nil {
				nc.Close()
			}
			t.Errorf("%s: %v", name, err)
		}
	}
	if nc, err := nats.Connect(g.Address()); !errors.Is(err, nats.ErrAuthorization) {
		if err == nil {
			nc.Close()
		}
		t.Errorf("without a key: %v", err)
	}
	stays := connect(t, g.Address(), g.options(t, "worker1")...)
	gone := make(chan struct{})
	goes := connect(t, g.Address(), append(g.options(t, "worker2"), nats.ClosedHandler(func(*nats.Conn) { close(gone) }))...)
	write(t, connect(t, g.Address(), g.options(t, "hub1")...), 1)

	g.add(t, "late", hub.RoleWorker)
	refuse("late")
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	late := connect(t, g.Address(), g.options(t, "late")...)
	js, err := jetstream.New(late)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(within(t, 20*time.Second), "mw.task."+id1, []byte("x")); err != nil {
		t.Errorf("with the new key: %v", err)
	}

	if err := g.file.Remove("worker2"); err != nil {
		t.Fatal(err)
	}
	select { // without being asked, within two seconds
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Errorf("the connection of a key that is removed is %v", goes.Status())
	}
	refuse("worker2")
	if err := stays.FlushTimeout(time.Second); err != nil || !stays.IsConnected() {
		t.Errorf("others: %v, %v", err, stays.Status())
	}
	if got := write(t, connect(t, g.Address(), g.options(t, "hub1")...), 1); got != 2 {
		t.Errorf("message %d after the changes", got)
	}
}

// The first key ends the time in which every client could connect, and no later state of the
// file brings it back, nor does a restart.
func TestFirstKeyClosesTheDoor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	cfg := hub.Config{Store: t.TempDir(), Listen: "127.0.0.1:0", Keys: path}
	h := start(t, cfg)
	g := &guarded{Hub: h, file: hub.KeysFile(path), seeds: map[string][]byte{}}
	gone := make(chan struct{})
	nc := connect(t, h.Address(), nats.ClosedHandler(func(*nats.Conn) { close(gone) }))
	write(t, nc, 1)
	g.add(t, "ops", hub.RoleHub)
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
		t.Error("who connected without a key stays")
	}
	if got := write(t, connect(t, h.Address(), g.options(t, "ops")...), 1); got != 2 {
		t.Errorf("message %d: the streams are others", got)
	}
	closed := func(when string) {
		t.Helper()
		if nc, err := nats.Connect(h.Address()); !errors.Is(err, nats.ErrAuthorization) {
			if err == nil {
				nc.Close()
			}
			t.Errorf("%s: %v", when, err)
		}
	}
	closed("one key")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(); err == nil {
		t.Error("a damaged file is taken")
	}
	connect(t, h.Address(), g.options(t, "ops")...)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(); err == nil {
		t.Error("a file that is gone is taken")
	}
	closed("no file")
	if err := os.WriteFile(path, []byte(`{"version":1,"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Reload(); err != nil {
		t.Fatal(err)
	}
	closed("no key")
	if nc, err := nats.Connect(h.Address(), g.options(t, "ops")...); err == nil {
		nc.Close()
		t.Error("a key that is removed connects")
	}
	g.restarts(t, cfg, path)
}

// restarts holds a hub that has had keys to them when it begins again.
func (g *guarded) restarts(t *testing.T, cfg hub.Config, path string) {
	t.Helper()
	if err := errors.Join(g.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{path, ""} {
		cfg.Keys = named
		h, err := hub.Start(cfg)
		if err == nil {
			_ = h.Close()
		}
		var e *marchwarden.Error
		if !errors.As(err, &e) || e.Code != marchwarden.CodeInvalid || e.Field != "keys" || !strings.Contains(e.Hint, "cluster key add") {
			t.Errorf("with the keys in %q it starts: %v", named, err)
		}
	}
	cfg.Keys = path
	g.add(t, "anew", hub.RoleHub)
	g.Hub = start(t, cfg)
	if got := write(t, connect(t, g.Address(), g.options(t, "anew")...), 1); got != 3 {
		t.Errorf("message %d: the streams are others", got)
	}
	if nc, err := nats.Connect(g.Address()); !errors.Is(err, nats.ErrAuthorization) {
		if err == nil {
			nc.Close()
		}
		t.Errorf("without a key, with others than before: %v", err)
	}
}
