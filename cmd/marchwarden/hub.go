package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type hubOptions struct {
	limits []string
	probe  string
	http   string // "off", which units of earlier versions say
}

// hubFlags are the flags of a hub that say settings.
var hubFlags = []struct{ flag, setting, usage string }{
	{"listen", settings.HubListen, "let workers and clients connect at this `ADDRESS` (default 127.0.0.1:4222)"},
	{"store", settings.HubStore, "keep everything in this `DIR` (default hub in the home folder)"},
	{"max-store", settings.HubMaxStore, "let that grow to `SIZE`, such as 200GB (default three quarters of what is free, and 1TB on Windows)"},
	{"keys", settings.HubKeys, "`FILE` of the keys that may connect (default cluster-keys.json in the home folder)"},
	{"name", settings.HubName, "the `NAME` of the hub in its cluster (default one that is made once)"},
	{"tls-cert", settings.HubTLSCert, "serve TLS with the certificate in this `FILE`"},
	{"tls-key", settings.HubTLSKey, "and the key in this `FILE`"},
	{"tls-ca", settings.HubTLSCA, "demand certificates of clients that the authority in this `FILE` has signed"},
	{"cluster", settings.HubClusterName, "the `NAME` of the cluster, the same for all its hubs"},
	{"cluster-listen", settings.HubClusterListen, "let other hubs connect at this `ADDRESS`, such as 0.0.0.0:6222"},
	{"cluster-secret-file", settings.HubClusterSecret, "`FILE` with one line that all hubs have in common"},
	{"cluster-cert", settings.HubClusterCert, "show other hubs the certificate in this `FILE`"},
	{"cluster-key", settings.HubClusterKey, "and its key in this `FILE`"},
	{"cluster-ca", settings.HubClusterCA, "and demand theirs of the authority in this `FILE`"},
	{"routes", settings.HubRoutes, "`LIST` of the addresses of all hubs, host:port; its own may be among them"},
	{"replicas", settings.HubReplicas, "keep everything `N` times: 1, or 3 with three hubs (default 1)"},
	{"lease", settings.HubLease, "give a worker that is silent for this `TIME` up (default 15s)"},
	{"keep-log", settings.HubKeepLog, "keep the records of tasks for this `TIME`, such as 7d; ended ones are with the documents, too (default 7d)"},
	{"keep-task", settings.HubKeepTask, "keep what was asked for this `TIME` (default 14d)"},
	{"keep-done", settings.HubKeepDone, "keep how tasks ended for this `TIME` (default 30d)"},
	{"blobs", settings.Blobs, "keep documents in `PLACE`: jetstream, or dir:/path that all hosts share"},
}

func newHub(a *app) *cobra.Command {
	var o hubOptions
	cmd := a.verb("hub", "run a hub, the server of a cluster", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		p, err := o.plan(a, c)
		if err != nil {
			return err
		}
		if o.probe, err = probeAt(o.probe); err != nil {
			return err
		}
		p.hub.Log = a.logger(c)
		h, err := hub.Start(p.hub)
		if err != nil {
			return settings.Renamed(err, p.said)
		}
		err = serveHub(ctx, a, h, p, o.probe, a.serverLog(c))
		if errors.Is(err, context.Canceled) && ctx.Err() != nil || errors.Is(err, errInterrupted) {
			err = nil // told to end, which is how a server ends
		}
		err = errors.Join(err, h.Close())
		a.note("hub has ended; everything is kept")
		return err
	})
	f := cmd.Flags()
	for _, h := range hubFlags {
		settingFlag(f, h.flag, h.setting, h.usage)
	}
	f.StringArrayVar(&o.limits, "limit", nil, "what all workers together may ask of a provider, as a `RULE` such as 'anthropic requests 50/s'; may be given several times")
	f.StringVar(&o.probe, "probe", "", "serve /healthz and /readyz at this `ADDRESS`, without a token")
	f.StringVar(&o.http, "http", "off", "")
	_ = f.MarkHidden("http") // the flag is there
	complete(cmd, "replicas", "1", "3")
	return cmd
}

type hubPlan struct {
	hub   hub.Config
	facts cluster.Facts
	said  map[string]string // the flag or the setting that says it, by the fields of hub
}

func (o *hubOptions) plan(a *app, c *settings.Settings) (p hubPlan, err error) {
	if o.http != "off" {
		return p, invalid("--http", "marchwarden serve pi --engine HUB --http ADDRESS serves a cluster over MCP", "a hub serves no MCP")
	}
	get := c.Text
	p.said = map[string]string{}
	for _, h := range hubFlags {
		field := "--" + h.flag
		if c.Given(h.setting) {
			field = c.Label(h.setting)
		}
		p.said[strings.TrimPrefix(h.setting, "hub_")] = field
	}
	p.hub = hub.Config{
		Name: get(settings.HubName), Store: cmp.Or(get(settings.HubStore), filepath.Join(c.Home(), "hub")), Listen: cmp.Or(get(settings.HubListen), "127.0.0.1:4222"),
		TLS:  hub.TLSFiles{Cert: get(settings.HubTLSCert), Key: get(settings.HubTLSKey), CA: get(settings.HubTLSCA)},
		Keys: cmp.Or(get(settings.HubKeys), c.ClusterKeysPath()), ClusterName: get(settings.HubClusterName), ClusterListen: get(settings.HubClusterListen), Routes: c.List(settings.HubRoutes),
		ClusterSecret: get(settings.HubClusterSecret), ClusterTLS: hub.TLSFiles{Cert: get(settings.HubClusterCert), Key: get(settings.HubClusterKey), CA: get(settings.HubClusterCA)},
	}
	if keys := get(settings.HubKeys); keys != "" { // a hub without keys accepts every process on its machine
		if _, err := os.Stat(keys); errors.Is(err, fs.ErrNotExist) {
			return p, invalid(p.said["keys"], "make it: marchwarden cluster key add NAME --role worker --keys "+keys+" --out FILE", fmt.Sprintf("%q is not there", plaintext.Clip(keys, 60)))
		}
	}
	if most := get(settings.HubMaxStore); most != "" {
		var problem string
		if p.hub.MaxStore, problem = settings.ParseSize(most); problem != "" || p.hub.MaxStore < 1<<20 {
			return p, invalid(p.said["max_store"], "", fmt.Sprintf("must be a size such as 200GB, not %q", plaintext.Clip(most, 40)))
		}
	}
	if err = p.readFacts(c, o.limits); err != nil {
		return p, err
	}
	if p.facts.Replicas > 1 && p.hub.ClusterListen == "" {
		return p, invalid(p.said["replicas"], "add --cluster-listen and --routes, and start three hubs", "3 needs a cluster of hubs")
	}
	if p.hub.ClusterListen == "" && len(p.hub.Routes) > 0 {
		return p, invalid(p.said["routes"], "add --cluster-listen 0.0.0.0:6222", "is for a hub of a cluster")
	}
	return p, nil
}

// readFacts reads what the hubs of a cluster tell each client.
func (p *hubPlan) readFacts(c *settings.Settings, limits []string) (err error) {
	facts := &p.facts
	facts.Limits = append(slices.Clone(c.List(settings.Limits)), limits...)
	if _, err := limit.ParseRules(c.List(settings.Limits)); err != nil {
		return invalid(c.Label(settings.Limits), "for example anthropic requests 50/s", err.Error())
	}
	if _, err := limit.ParseRules(facts.Limits); err != nil {
		return invalid("--limit", "for example --limit 'anthropic requests 50/s'", err.Error())
	}
	blobs, replicas, lease := c.Text(settings.Blobs), c.Text(settings.HubReplicas), c.Text(settings.HubLease)
	if err := streams.CheckBlobs(p.said["blobs"], blobs); err != nil {
		return err
	}
	if blobs != streams.OwnBlobs {
		facts.Blobs = blobs
	}
	if facts.Replicas, err = strconv.Atoi(cmp.Or(replicas, "1")); err != nil || facts.Replicas != 1 && facts.Replicas != 3 {
		return invalid(p.said["replicas"], "", fmt.Sprintf("must be 1 or 3, not %q", plaintext.Clip(replicas, 40)))
	}
	if facts.Lease, err = flagTime(p.said["lease"], lease, false); err == nil && facts.Lease > 10*time.Minute {
		err = invalid(p.said["lease"], "", "must be at most 10m")
	}
	if err != nil {
		return err
	}
	return p.readKeep(c)
}

// readKeep reads how long what is over is kept.
func (p *hubPlan) readKeep(c *settings.Settings) error {
	keep := &p.facts.Keep
	for _, k := range []struct {
		field string
		to    *time.Duration
	}{{"keep_log", &keep.Log}, {"keep_task", &keep.Task}, {"keep_done", &keep.Done}} {
		text := c.Text("hub_" + k.field)
		if text == "" {
			continue
		}
		term, problem := settings.ParseTerm(text)
		if problem != "" || term < time.Minute {
			return invalid(p.said[k.field], "", fmt.Sprintf("must be a time such as 7d or 36h, at least 1m, not %q", plaintext.Clip(text, 40)))
		}
		*k.to = term
	}
	if all := keep.Complete(); all.Done < all.Log || all.Done < all.Task {
		return invalid(p.said["keep_done"], "keep ends for at least as long as records and questions", fmt.Sprintf("%s is less than --keep-log or --keep-task", all.Done))
	}
	return nil
}

func firstScreen(a *app, h *hub.Hub, p hubPlan) {
	at := h.Address()
	who := "no key is needed"
	if _, closed, err := hub.ReadKeys(p.hub.Keys); err == nil && closed {
		who = "a key is needed"
	}
	a.note("hub %s at %s; %s; everything is kept in %s", h.Name(), at, who, p.hub.Store)
	if p.hub.ClusterListen != "" {
		a.note("other hubs connect at %s; everything is kept %d times", h.ClusterAddress(), p.facts.Replicas)
	}
	if len(p.facts.Limits) > 0 {
		a.note("all workers together: %s", strings.Join(p.facts.Limits, ", "))
	}
	a.note("next, in another terminal: marchwarden worker --engine %s", at)
	a.note("then: marchwarden ask --engine %s \"What are ideal crops for a garden in Utah?\"", at)
}

// serveHub keeps a cluster in order at a hub until ctx ends.
func serveHub(ctx context.Context, a *app, h *hub.Hub, p hubPlan, probe string, log *slog.Logger) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if p.hub.ClusterListen != "" {
		a.note("hub %s waits for the other hubs", h.Name())
	}
	if err := h.Ready(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	cfg := cluster.Config{InProcess: h, Seed: h.Seed, Name: h.Name(), Now: a.Now, Log: log}
	if err := cluster.Prepare(ctx, cfg, p.facts); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	engine, err := cluster.Open(ctx, cfg)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer engine.Close()
	var tending sync.WaitGroup
	tending.Go(func() { cluster.NewSteward(engine, h.Name()).Run(ctx) })
	defer tending.Wait()
	defer stop(nil)
	err = serveProbe(ctx, a, probe, func() error {
		ctx, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		return h.Ready(ctx)
	})
	if err != nil {
		return err
	}
	firstScreen(a, h, p)
	<-ctx.Done()
	return context.Cause(ctx)
}
