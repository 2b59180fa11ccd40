package hub_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// guarded is a hub with keys, and their seeds by name.
type guarded struct {
	*hub.Hub
	file  hub.KeysFile
	seeds map[string][]byte
}

// newKeys makes keys named role and number, such as worker1.
func newKeys(t *testing.T) (g *guarded, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.json")
	g = &guarded{file: hub.KeysFile(path), seeds: map[string][]byte{}}
	for _, role := range hub.Roles() {
		g.add(t, string(role)+"1", role)
		g.add(t, string(role)+"2", role)
	}
	return g, path
}

// newGuarded starts a hub with these keys.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g, path := newKeys(t)
	g.Hub = start(t, hub.Config{Listen: "127.0.0.1:0", Keys: path})
	return g
}

func (g *guarded) add(t *testing.T, name string, role hub.Role) {
	t.Helper()
	seed, err := g.file.Add(time.Now(), name, role)
	if err != nil {
		t.Fatal(err)
	}
	g.seeds[name] = seed
}

// options are those of who has a key.
func (g *guarded) options(t *testing.T, name string) []nats.Option {
	t.Helper()
	pair, err := nkeys.FromSeed(g.seeds[name])
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return []nats.Option{nats.Nkey(public, pair.Sign), nats.CustomInboxPrefix(g.inbox(t, name)), nats.Name(name)}
}

func (g *guarded) inbox(t *testing.T, name string) string {
	t.Helper()
	inbox, err := hub.Inbox(g.seeds[name])
	if err != nil {
		t.Fatal(err)
	}
	return inbox
}

// prepare makes the streams, as a hub does.
func (g *guarded) prepare(t *testing.T, facts cluster.Facts) {
	t.Helper()
	cfg := cluster.Config{InProcess: g, Name: "hub", Seed: g.Seed, Now: time.Now}
	if err := cluster.Prepare(within(t, 30*time.Second), cfg, facts); err != nil {
		t.Fatal(err)
	}
}

// prober tries things.
type prober struct{ nc *nats.Conn }

func (g *guarded) prober(t *testing.T, name string) prober {
	t.Helper()
	return prober{connect(t, g.Address(), append(g.options(t, name), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)}
}

// allowed tries an action, "publish SUBJECT" or "subscribe SUBJECT".
func (p prober) allowed(t *testing.T, action string) bool {
	t.Helper()
	verb, subject, _ := strings.Cut(action, " ")
	refusal := "publish to "
	if verb == "publish" {
		if err := p.nc.PublishRequest(subject, p.nc.NewInbox(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	} else {
		refusal = "subscription to "
		sub, err := p.nc.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	if err := p.nc.FlushTimeout(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	err := p.nc.LastError() // a refusal comes before the answer to the flush
	return !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(refusal+`"`+subject+`"`))
}

const (
	id1 = "01890a5d-ac96-774b-bcce-b302099a8057"
	id2 = "01890a5d-ac96-774b-bcce-b302099a8058"
)

// rights says for every action who may: c a client, w a worker, h a hub.
var rights = []struct{ who, action string }{
	// Submitting and canceling.
	{"cwh", "publish mw.task." + id1},
	{"cwh", "publish mw.cancel." + id1},
	{"cwh", "publish mw.stop." + id1},
	{"cwh", "publish mw.work.web.p1.3." + id1},
	// Reading and watching.
	{"cwh", "publish $JS.API.STREAM.MSG.GET.MW_LOG"},
	{"cwh", "publish $JS.API.STREAM.MSG.GET.MW_BLOB"},
	{"cwh", "publish $JS.API.STREAM.INFO.MW_TASK"},
	{"cwh", "publish $JS.API.DIRECT.GET.KV_MW_FACTS.$KV.MW_FACTS.facts"},
	{"cwh", "publish $JS.API.STREAM.MSG.GET.KV_MW_FACTS"},
	{"cwh", "publish $JS.API.DIRECT.GET.KV_MW_WORKER.$KV.MW_WORKER.worker.w1"},
	{"cwh", "publish $JS.API.CONSUMER.LIST.MW_WORK"},
	{"cwh", "subscribe mw.seen." + id1 + ".*"},
	{"cwh", "subscribe mw.live." + id1 + ".*"},
	// Working.
	{"wh", "publish $JS.API.CONSUMER.CREATE.MW_WORK.web_p1_3.mw.work.web.p1.3.*"},
	{"wh", "publish $JS.API.CONSUMER.MSG.NEXT.MW_WORK.web_p1_3"},
	{"wh", "publish $JS.ACK.MW_WORK.web_p1_3.1.1.1.1.1"},
	{"wh", "publish mw.log." + id1 + "." + id2},
	{"wh", "publish mw.live." + id1 + "." + id2},
	{"wh", "publish mw.done." + id1},
	{"wh", "publish mw.blob.00"},
	{"wh", "publish mw.chunk.00.00.0"},
	{"wh", "publish $KV.MW_WORKER.worker.w1"},
	{"wh", "publish $KV.MW_LIMIT.anthropic"},
	{"wh", "subscribe mw.stop.*"},
	{"wh", "publish mw.wake.web.p1.3.again"},
	{"wh", "subscribe mw.wake.web.*.*.*"},
	{"wh", "publish mw.tick.web"},
	{"wh", "subscribe mw.tick.web"},
	{"wh", "publish $JS.API.CONSUMER.INFO.MW_WORK.web_p1_3"},
	// What is the hubs' alone.
	{"h", "publish $KV.MW_FACTS.facts"},
	{"h", "publish $KV.MW_WORKER.steward"},
	{"h", "publish $JS.API.STREAM.CREATE.MINE"},
	{"h", "publish $JS.API.STREAM.UPDATE.MW_LOG"},
	{"h", "publish $JS.API.STREAM.PURGE.NONE"},
	{"h", "publish $JS.API.STREAM.DELETE.NONE"},
	{"h", "publish $JS.API.STREAM.MSG.DELETE.NONE"},
	{"h", "publish $JS.API.STREAM.SNAPSHOT.NONE"},
	{"h", "publish $JS.API.STREAM.RESTORE.NONE"},
	{"h", "publish $JS.API.STREAM.LIST"},
	{"h", "publish $JS.API.STREAM.LEADER.STEPDOWN.NONE"},
	{"h", "publish $JS.API.STREAM.PEER.REMOVE.NONE"},
	{"h", "publish $JS.API.CONSUMER.CREATE.MW_WORK"},
	{"h", "publish $JS.API.CONSUMER.CREATE.MW_WORK.x"},
	{"h", "publish $JS.API.CONSUMER.CREATE.MW_LOG.x.mw.log.*.*"},
	{"h", "publish $JS.API.CONSUMER.CREATE.MW_BLOB.x.mw.blob.*"},
	{"h", "publish $JS.API.CONSUMER.DURABLE.CREATE.MW_WORK.x"},
	{"h", "publish $JS.API.CONSUMER.DELETE.MW_WORK.web_p1_3"},
	{"h", "publish $JS.API.CONSUMER.PAUSE.MW_WORK.web_p1_3"},
	{"h", "publish $JS.API.CONSUMER.MSG.NEXT.MW_LOG.x"},
	{"h", "publish $JS.API.DIRECT.GET.MW_LOG"},
	{"h", "publish $JS.API.DIRECT.GET.KV_MW_FACTS"}, // several at once
	{"h", "publish $JS.API.STREAM.NAMES"},
	{"h", "publish $JS.API.INFO"},
	{"h", "publish $SYS.REQ.USER.INFO"},
	{"h", "publish mw.seen." + id1 + "." + id2},
	{"h", "publish anything"},
	{"h", "subscribe >"},
	{"h", "subscribe *.>"},
	{"h", "subscribe mw.>"},
	{"h", "subscribe mw.task.*"},
	{"h", "subscribe mw.log.*.*"},
	{"h", "subscribe mw.blob.*"},
	{"h", "subscribe $KV.>"},
	{"h", "subscribe $JS.>"},
	{"h", "subscribe $JS.ACK.>"},
	{"h", "subscribe $JS.EVENT.>"},
	{"h", "subscribe _INBOX.>"},
	{"h", "subscribe $SYS.>"}, // which is that of its account, where nothing is
}

// Every key may do what its role needs, and nothing else.
func TestRights(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.prepare(t, cluster.Facts{})
	for _, role := range hub.Roles() {
		p := g.prober(t, string(role)+"1")
		for _, r := range rights {
			want := strings.Contains(r.who, string(role[0]))
			if got := p.allowed(t, r.action); got != want {
				t.Errorf("%s: %s: allowed is %t, want %t: %v", role, r.action, got, want, p.nc.LastError())
			}
		}
		// Its own replies, and no others.
		for _, other := range []string{"hub1", "hub2", "worker1", "worker2", "client1", "client2"} {
			want := other == string(role)+"1" || role == hub.RoleHub
			if got := p.allowed(t, "subscribe "+g.inbox(t, other)+".>"); got != want {
				t.Errorf("%s hears the replies of %s: %t", role, other, got)
			}
			if got := p.allowed(t, "publish "+g.inbox(t, other)+".x"); got != (role == hub.RoleHub) {
				t.Errorf("%s forges a reply to %s: %t", role, other, got)
			}
		}
	}
}
