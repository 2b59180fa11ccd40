package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// DialTime is how long a hub may take to answer a waiting command.
const DialTime = 10 * time.Second

// Dial is Open for a command that waits: it gives up after DialTime, and says how to do better.
func Dial(ctx context.Context, cfg Config) (*Engine, error) {
	within, done := context.WithTimeout(ctx, DialTime)
	defer done()
	e, err := Open(within, cfg)
	if err != nil {
		return nil, Unreachable(ctx, cfg.URL, err)
	}
	return e, nil
}

// Await joins a cluster as a worker, and waits for it if it is not there yet.
func Await(ctx context.Context, cfg Config, note func(format string, args ...any)) (*Engine, error) {
	const pause = time.Second
	for told := false; ; told = true {
		within, done := context.WithTimeout(ctx, DialTime)
		e, err := Open(within, cfg)
		done()
		switch {
		case err == nil:
			note("connected to %s", cfg.URL)
			return e, nil
		case ctx.Err() != nil:
			return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the hub")
		case errors.Is(err, marchwarden.CodeInvalid), errors.Is(err, marchwarden.CodeDenied), errors.Is(err, marchwarden.CodeUnsupported):
			return nil, Unreachable(ctx, cfg.URL, err)
		}
		if !told {
			note("waiting for the hub at %s: %v", cfg.URL, err)
		}
		cfg.Log.Debug("the hub does not answer", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// Unreachable says that the cluster at an address does not answer, with what to do about it.
func Unreachable(ctx context.Context, at string, err error) error {
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
