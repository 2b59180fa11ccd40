package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func engineFlag(f *pflag.FlagSet) {
	settingFlag(f, "engine", settings.Engine, "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas; "+settings.NoEngine+" for no cluster, whatever the settings say")
}

// engineName is who the program is to a hub, for people who look at its connections.
func (a *app) engineName() string {
	return plainName(fmt.Sprintf("%s-%d-%s", hostName(), os.Getpid(), a.NewID().String()[24:]))
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// plainName is a name with nothing but letters, digits, dashes and underscores.
func plainName(s string) string {
	return strings.Trim(notPlain.ReplaceAllString(s, "-"), "-")
}

// owner is for whom the program asks.
func (a *app) owner() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if v, ok := a.Env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

func (a *app) engineConfig(c *settings.Settings, at string, log *slog.Logger) (cluster.Config, error) {
	cfg := cluster.Config{URL: at, Name: a.engineName(), Now: a.Now, Log: log}
	var err error
	if cfg.TLS, err = (hub.TLSFiles{Cert: c.Text(settings.EngineCert), Key: c.Text(settings.EngineCertKey), CA: c.Text(settings.EngineCA)}).Load(); err != nil {
		return cfg, err
	}
	if path := c.Text(settings.EngineKey); path != "" {
		if settings.PastedSeed(path) != "" {
			return cfg, invalid(c.Label(settings.EngineKey), "write the key to a file that only you can read, and give its path", "must be the path of a file, and holds a key itself")
		}
		cfg.Seed = func() ([]byte, error) { return hub.ReadSeed(path) }
		seed, err := cfg.Seed()
		if err != nil {
			return cfg, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: c.Label(settings.EngineKey), Message: "cannot be used", Err: err, Hint: marchwarden.HintOf(err)}
		}
		a.Hide.Learn(string(seed))
	}
	return cfg, nil
}

// openCluster connects to a cluster. The caller closes it.
func (a *app) openCluster(ctx context.Context, c *settings.Settings, at string, log *slog.Logger) (*cluster.Engine, error) {
	cfg, err := a.engineConfig(c, at, log)
	if err != nil {
		return nil, err
	}
	return cluster.Dial(ctx, cfg)
}
