package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/telemetry"
)

// seats are the members of the network that the options and the configuration
// mean. Nothing is started.
func (a *app) seats(c *settings.Settings, o deskOptions) ([]pool.Seat, error) {
	var out []pool.Seat
	for _, name := range settings.Builtin {
		b := builtinNamed(name)
		conf := c.MemberNamed(name)
		off := a.whyOff(c, o, name)
		if off != "" && slices.Contains(o.only, name) {
			return nil, invalid("--researchers", "", name+": "+off)
		}
		if off != "" || !o.wants(name) {
			continue
		}
		seat := pool.Seat{Timeout: conf.Timeout}
		seat.Name, seat.Scope, seat.Share, seat.Trust = name, b.fixed, conf.Share, dispatch.Own
		if b.fixed == "" {
			var err error
			if seat.Scope, err = b.scope(a, c, o); err != nil {
				return nil, err
			}
		}
		seat.Private, seat.OpenWorld = b.private(a, c, o), b.openWorld
		seat.Transport, seat.Open = "in process", a.inProcess(c, o, name)
		if o.isolate {
			target, err := a.child(c, o, name)
			if err != nil {
				return nil, err
			}
			seat.Transport, seat.Open = "marchwarden serve "+name, a.dial(c, o, name, target)
		}
		out = append(out, seat)
	}
	for _, m := range c.Members {
		if !m.External() || !o.wants(m.Name) {
			continue
		}
		if m.Off {
			if slices.Contains(o.only, m.Name) {
				return nil, invalid(o.chosenBy(), "", m.Name+": "+offInFile)
			}
			continue
		}
		target, err := a.target(c, m)
		if err != nil {
			return nil, err
		}
		seat := pool.Seat{Timeout: m.Timeout, Pinned: true, Open: a.dial(c, o, m.Name, target)}
		seat.Name, seat.Scope, seat.Share, seat.Trust, seat.Private, seat.OpenWorld = m.Name, m.Scope, m.Share, m.Trust, m.Private, true
		seat.Transport = m.Transport()
		out = append(out, seat)
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(out, func(s pool.Seat) bool { return s.Name == name }) {
			return nil, invalid("--researchers", "", fmt.Sprintf("must be a list of %s, not %q", settings.Either(c.MemberNames()), plaintext.Clip(name, 40)))
		}
	}
	return out, nil
}

// offInFile is why a member is off that the configuration switches off.
const offInFile = "off in config.yaml"

// whyOff says why a built-in researcher is not in the network; "" if it is.
func (a *app) whyOff(c *settings.Settings, o deskOptions, name string) string {
	if c.MemberNamed(name).Off {
		return offInFile
	}
	return builtinNamed(name).off(a, c, o)
}

// chosenBy is the flag that named the members.
func (o deskOptions) chosenBy() string {
	if o.researcher != "" && o.researcher != settings.PI {
		return "--researcher"
	}
	return "--researchers"
}

// wants reports whether a member is among those that were named, if any were.
func (o deskOptions) wants(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}

// openPool makes the network of the options.
func (a *app) openPool(c *settings.Settings, o deskOptions) (*pool.Pool, error) {
	seats, err := a.seats(c, o)
	if err != nil {
		return nil, err
	}
	return pool.New(pool.Config{Seats: seats, Pins: pool.FilePins(c.PinsPath()), Now: a.now, Log: a.sessionLog(c, o)})
}

// sessionLog is where sessions log: beside the other logs of a server, and else
// only for those who look for a fault, since a gap says what went wrong.
func (a *app) sessionLog(c *settings.Settings, o deskOptions) *slog.Logger {
	switch {
	case o.log != nil:
		return o.log
	case c.On(settings.Debug):
		return a.logger(c)
	}
	return slog.New(slog.DiscardHandler)
}

// dial makes the opener of a member that runs somewhere else.
func (a *app) dial(c *settings.Settings, o deskOptions, name string, t client.Target) func(context.Context) (pool.Session, pool.Card, error) {
	transport := "tcp"
	if len(t.Command) > 0 {
		transport = "pipe"
	}
	d := client.Dialer{Version: programVersion(), Now: a.now, HTTP: a.serviceClient(), Log: a.sessionLog(c, o)}
	if a.tracer != nil {
		d.Trace = func(ctx context.Context, meta map[string]any) (context.Context, func(error)) {
			return a.tracer.Call(ctx, telemetry.Op{Method: "tools/call", Tool: "research", Transport: transport}, meta)
		}
	}
	return func(ctx context.Context) (pool.Session, pool.Card, error) {
		t := t
		if len(t.Command) > 0 {
			t.Stderr = a.newGrumble(c, name, o.warn)
		}
		s, err := d.Dial(ctx, t)
		if err != nil {
			return nil, pool.Card{}, err
		}
		card := s.Card()
		return s, pool.Card{Contract: card.Contract, Description: card.Description, ToolHash: card.ToolHash, Private: card.Private}, nil
	}
}

// target is where somebody else's researcher is. It gets a small environment, and
// what the configuration names.
func (a *app) target(c *settings.Settings, m settings.Member) (t client.Target, err error) {
	t = client.Target{Command: m.Command, URL: m.Url, Dir: a.dir, Patience: m.Timeout} // the start is part of a call
	if t.Token, err = a.secretOf(m, "token_env", m.TokenEnv); err != nil {
		return t, err
	}
	if m.Url != "" && m.TokenEnv == "" && c.MemberNamed(m.Name).Url == m.Url {
		if t.Login, err = a.loginOf(c, m); err != nil {
			return t, err
		}
	}
	for _, name := range append([]string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT"}, m.Env...) {
		if v, ok := a.env(name); ok {
			t.Env = append(t.Env, name+"="+v)
		}
	}
	return t, nil
}

// child is this program once more, as a server of one researcher. It gets the whole
// environment, and what flags said.
func (a *app) child(c *settings.Settings, o deskOptions, name string) (client.Target, error) {
	self, err := a.self()
	if err != nil {
		return client.Target{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find this program to start a researcher")
	}
	args := []string{self, "--log-format", "json", "serve", name, "--part-of-investigation"}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("--model", o.model)
	add("--timeout", o.timeout)
	env := append(withoutToken(a.environ()), settings.EnvOf(settings.Home)+"="+c.Home())
	switch name {
	case files.Name:
		for _, dir := range o.library {
			add("--library", dir)
		}
		if o.embedded {
			args = append(args, "--embedded")
		}
	case web.Name:
		add("--search", o.search)
		add("--render", o.render)
	case database.Name:
		if o.db != "" { // it may hold a password, which arguments show to everybody
			env = append(env, settings.EnvOf(settings.DB)+"="+o.db)
		}
		if o.allowSamples {
			args = append(args, "--allow-samples")
		}
	}
	return client.Target{Command: args, Dir: a.dir, Env: env}, nil
}

// withoutToken is an environment without the token by which clients come in here: it
// opens this server, and is nobody else's.
func withoutToken(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, settings.EnvOf(settings.HTTPToken)+"=") })
}

// selfPath is the program that is running, by the name that it was started by if
// that is the same file.
func selfPath() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return exe, nil
	}
	if called, err = filepath.Abs(called); err != nil {
		return exe, nil
	}
	a, errA := os.Stat(called)
	b, errB := os.Stat(exe)
	if errors.Join(errA, errB) == nil && os.SameFile(a, b) {
		return called, nil
	}
	return exe, nil
}

// inProcess makes the opener of a built-in researcher that runs in this process.
func (a *app) inProcess(c *settings.Settings, o deskOptions, name string) func(context.Context) (pool.Session, pool.Card, error) {
	return func(context.Context) (pool.Session, pool.Card, error) {
		d, err := a.openDesk(c, o.partFor(name))
		if err != nil {
			return nil, pool.Card{}, err
		}
		return &seated{pool.InProcess(d, d.evidence), d}, pool.Card{Contract: marchwarden.ContractVersion, Description: d.scope}, nil
	}
}

// partFor is what of an investigation's options is for one of its members.
func (o deskOptions) partFor(name string) deskOptions {
	part := deskOptions{researcher: name, partOf: true, model: o.model, timeout: o.timeout, log: o.log, warn: o.warn}
	switch name {
	case files.Name:
		part.library, part.embedded = o.library, o.embedded
	case web.Name:
		part.search, part.render = o.search, o.render
	case database.Name:
		part.db, part.allowSamples = o.db, o.allowSamples
	}
	return part
}

// seated is a researcher of this process, closed with what it works with.
type seated struct {
	pool.Session
	desk *desk
}

// Close closes both.
func (s *seated) Close() error { return errors.Join(s.Session.Close(), s.desk.Close()) }
