package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// inZone shows a time in the zone of the user's clock.
func (a *app) inZone(t time.Time) string {
	return t.In(a.Now().Location()).Format("2006-01-02 15:04")
}

// readStdin is readLimited for stdin, which may be a person who never ends it:
// it gives up when ctx ends.
func (a *app) readStdin(ctx context.Context, most int64, what string) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := network.ReadLimited(a.stdin, most, what)
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, o.err
	case <-ctx.Done():
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "read %s", what)
	}
}

// costWords is the estimated price of a call for people.
func costWords(usd *float64) string {
	switch {
	case usd == nil:
		return "cost unknown"
	case *usd == 0:
		return "no cost"
	}
	return fmt.Sprintf("about $%.4f", *usd)
}

// logger writes structured logs to stderr. It is silent below warnings unless
// MARCHWARDEN_DEBUG is on. No setting is ever given to it.
func (a *app) logger(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelWarn) }

// serverLog is logger for programs that run long, where people want to see that something
// happens: connections come and go, and tasks are taken up again.
func (a *app) serverLog(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelInfo) }

func (a *app) logFrom(c *settings.Settings, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if c.On(settings.Debug) {
		opts.Level = slog.LevelDebug
	}
	if c.Text(settings.LogFormat) == "json" || a.reader == program {
		return slog.New(slog.NewJSONHandler(a.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, opts))
}
