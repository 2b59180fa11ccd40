package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/depot"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub/keys"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// engineConfig is how the program reaches a cluster.
func (a *app) engineConfig(c *settings.Settings, at string, log *slog.Logger) (cluster.Config, error) {
	cfg := cluster.Config{URL: at, Name: a.engineName(), Now: a.Now, Log: log, Blobs: a.sharedBlobs(c)}
	var err error
	if cfg.TLS, err = (keys.Files{Cert: c.Text(settings.EngineCert), Key: c.Text(settings.EngineCertKey), CA: c.Text(settings.EngineCA)}).Client(); err != nil {
		return cfg, err
	}
	if path := c.Text(settings.EngineKey); path != "" {
		if settings.PastedSeed(path) != "" {
			return cfg, invalid(c.Label(settings.EngineKey), "write the key to a file that only you can read, and give its path", "must be the path of a file, and holds a key itself")
		}
		cfg.Seed = func() ([]byte, error) { return keys.ReadSeed(path) }
		seed, err := cfg.Seed()
		if err != nil {
			return cfg, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: c.Label(settings.EngineKey), Message: "cannot be used", Err: err, Hint: marchwarden.HintOf(err)}
		}
		a.Hide.Learn(string(seed))
	}
	return cfg, nil
}

// sharedBlobs opens the evidence of a cluster, wherever its facts say that it is. It stays
// open for as long as the program runs.
func (a *app) sharedBlobs(c *settings.Settings) func(ctx context.Context, facts cluster.Facts) (blob.Store, error) {
	means := depot.Means{
		JetStream: func(context.Context) (blob.Store, error) { return nil, nil }, // the engine opens its own
		AccessKey: c.Text(settings.S3Key), SecretKey: c.Text(settings.S3Secret),
	}
	return func(ctx context.Context, facts cluster.Facts) (blob.Store, error) {
		if err := checkBlobs("blobs of the cluster", facts.Blobs); err != nil {
			return nil, err
		}
		store, _, err := depot.Open(ctx, facts.Blobs, means)
		return store, err
	}
}

// openCluster connects to a cluster. The caller closes it.
func (a *app) openCluster(ctx context.Context, c *settings.Settings, at string, log *slog.Logger) (*cluster.Engine, error) {
	cfg, err := a.engineConfig(c, at, log)
	if err != nil {
		return nil, err
	}
	within, done := context.WithTimeout(ctx, dialTime)
	defer done()
	e, err := cluster.Open(within, cfg)
	if err != nil {
		return nil, unreachable(ctx, at, err)
	}
	return e, nil
}

// dialTime is how long a hub may take to answer a waiting command.
const dialTime = 10 * time.Second

// unreachable says that a cluster does not answer.
func unreachable(ctx context.Context, at string, err error) error {
	if errors.Is(err, marchwarden.CodeDenied) && marchwarden.HintOf(err) == "" {
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: "the cluster at " + at + " refuses", Err: err,
			Hint: "name the file of a key that its hubs know by " + settings.EnvOf(settings.EngineKey) + "; 'marchwarden cluster key list' on a hub shows them"}
	}
	if ctx.Err() != nil || errors.Is(err, marchwarden.CodeInvalid) || errors.Is(err, marchwarden.CodeDenied) || errors.Is(err, marchwarden.CodeUnsupported) {
		return err
	}
	e := &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "reach the cluster at " + at, Err: err, Hint: "is the hub running? marchwarden hub starts one"}
	var untrusted *tls.CertificateVerificationError
	switch hint := marchwarden.HintOf(err); {
	case hint != "":
		e.Hint = hint
	case errors.As(err, &untrusted):
		e.Hint = "its certificate must name that host; " + settings.EnvOf(settings.EngineCA) + " names the file of the authority that signed it"
	}
	return e
}

// openQueue opens the engine of the home folder.
func (a *app) openQueue(c *settings.Settings, rec *network.Records, log *slog.Logger) (dispatch.Engine, error) {
	rules, err := limit.ParseRules(c.List(settings.Limits))
	if err != nil {
		return nil, invalid(c.Label(settings.Limits), "for example anthropic requests 50/s", err.Error())
	}
	set := limit.NewSet(limit.SetConfig{Rules: rules, Cell: limit.Folder(filepath.Join(c.QueuePath(), "limits"), a.Now), Now: a.Now})
	return pool.OpenEngine(pool.EngineConfig{Dir: c.QueuePath(), Blobs: rec.Blobs, Now: a.Now, Name: a.engineName(), Log: log, Limit: set.Limit})
}
