package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func engineFlag(f *pflag.FlagSet, to *string) {
	f.StringVar(to, "engine", "", "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas; "+settings.NoEngine+" for no cluster, whatever the settings say")
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
	cfg := cluster.Config{URL: at, Name: a.engineName(), Now: a.Now, Log: log, AccessKey: c.Text(settings.S3Key), SecretKey: c.Text(settings.S3Secret)}
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
