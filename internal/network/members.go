package network

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/conform"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/connector"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Seats are the members of the network that the options and the configuration
// mean. Nothing is started.
func (h *Host) Seats(c *settings.Settings, o Options) (out []pool.Seat, err error) {
	for _, name := range c.MemberNames() {
		off := WhyOff(c, o, name)
		if off != "" && slices.Contains(o.Researchers, name) {
			by := "--researchers"
			if o.Researcher != "" && o.Researcher != settings.PI {
				by = "--researcher"
			}
			return nil, settings.Invalid(by, "", name+": "+off)
		}
		if off != "" || !o.wants(name) {
			continue
		}
		seat := h.outerSeat
		if settings.IsBuiltin(name) {
			seat = h.ownSeat
		}
		s, err := seat(c, o, name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	out = append(out, o.Others...)
	for _, name := range o.Researchers {
		if !slices.ContainsFunc(out, func(s pool.Seat) bool { return s.Name == name }) {
			return nil, settings.Invalid("--researchers", "", fmt.Sprintf("must be a list of %s, not %q", settings.Either(c.MemberNames()), plaintext.Clip(name, 40)))
		}
	}
	return out, nil
}

// outerSeat is that of an external researcher.
func (h *Host) outerSeat(c *settings.Settings, o Options, name string) (seat pool.Seat, err error) {
	m := c.MemberNamed(name)
	target, err := h.Target(c, m)
	if err != nil {
		return seat, err
	}
	member := dispatch.Member{Name: m.Name, Scope: m.Scope, Transport: m.Transport(), Share: m.Share, Trust: m.Trust, Private: m.Private, OpenWorld: true}
	seat = pool.Seat{Member: member, Timeout: m.Timeout, Pinned: true, Open: Dial(h.dialer(c, o, m.Name, target))}
	if m.Connector {
		seat.Open = h.connect(c, o, m, target)
		if seat.Trust = dispatch.Own; o.shared != nil { // a worker keeps its record, and hands over what it cites
			seat.Trust = dispatch.Known
		}
	}
	return seat, nil
}

// ownSeat is that of a built-in researcher.
func (h *Host) ownSeat(c *settings.Settings, o Options, name string) (seat pool.Seat, err error) {
	conf := c.MemberNamed(name)
	seat.Timeout = conf.Timeout
	seat.Member = dispatch.Member{Name: name, Scope: builtins[name].scope, Share: conf.Share, Trust: dispatch.Own, OpenWorld: builtins[name].openWorld}
	switch name {
	case researcher.FilesName:
		seat.Private = hasFolders(c, o)
	case database.Name:
		if seat.Scope, err = h.databaseScope(c, o); err != nil {
			return seat, err
		}
		seat.Private = true
	}
	seat.Transport, seat.Open = "in process", h.inProcess(c, o, name)
	if o.Isolate {
		target, err := h.Child(c, o, name)
		if err != nil {
			return seat, err
		}
		seat.Transport, seat.Open = "marchwarden serve "+name, Dial(h.dialer(c, o, name, target))
	}
	return seat, nil
}

// offInFile is why a member is off that the configuration switches off.
const offInFile = "off in config.yaml"

// WhyOff says why a researcher is not in the network; "" if it is.
func WhyOff(c *settings.Settings, o Options, name string) string {
	switch b, builtin := builtins[name]; {
	case c.MemberNamed(name).Off:
		return offInFile
	case builtin:
		return b.off(c, o)
	}
	return ""
}

// OpenPool makes the network of the options.
func (h *Host) OpenPool(c *settings.Settings, o Options) (*pool.Pool, error) {
	seats, err := h.Seats(c, o)
	if err != nil {
		return nil, err
	}
	return pool.New(pool.Config{Seats: seats, Pins: pool.FilePins(c.PinsPath()), Now: h.Now, Log: h.sessionLog(c, o)})
}

// sessionLog is where sessions log: beside the other logs of a server, and else
// only for those who look for a fault, since a gap says what went wrong.
func (h *Host) sessionLog(c *settings.Settings, o Options) *slog.Logger {
	switch {
	case o.Log != nil:
		return o.Log
	case c.On(settings.Debug):
		return h.Log(c)
	}
	return slog.New(slog.DiscardHandler)
}

// dialer connects to a member of the configuration; what a child process logs is passed on.
func (h *Host) dialer(c *settings.Settings, o Options, name string, t client.Target) func(context.Context) (*client.Session, error) {
	d := client.Dialer{Version: h.Version, Now: h.Now, HTTP: h.ServiceClient(), Log: h.sessionLog(c, o)}
	return func(ctx context.Context) (*client.Session, error) {
		t := t
		if len(t.Command) > 0 {
			t.Stderr = h.newChildLog(c, name, o.Warn)
		}
		return d.Dial(ctx, t)
	}
}

// Dial makes the opener of a member that runs somewhere else.
func Dial(dial func(context.Context) (*client.Session, error)) func(context.Context) (pool.Session, pool.Card, error) {
	return func(ctx context.Context) (pool.Session, pool.Card, error) {
		s, err := dial(ctx)
		if err != nil {
			return nil, pool.Card{}, err
		}
		card := s.Card()
		return s, pool.Card{Contract: card.Contract, Description: card.Description, ToolHash: card.ToolHash, Private: card.Private}, nil
	}
}

// Target is where an external researcher is. It gets a small environment, and what the
// configuration names.
func (h *Host) Target(c *settings.Settings, m settings.Member) (t client.Target, err error) {
	t = client.Target{Command: m.Command, URL: m.URL, Dir: h.Dir, Patience: m.Timeout, OwnTools: m.Connector} // the start is part of a call
	t.Env = plainEnv(h.Env, m.Env...)
	if t.Token, err = h.secretOf(m, "token_env", m.TokenEnv); err == nil && m.URL != "" && m.TokenEnv == "" && c.MemberNamed(m.Name).URL == m.URL {
		t.Login, err = h.loginOf(c, m)
	}
	return t, err
}

// plainEnv is what the programs of others get of the environment, and what is named.
func plainEnv(look func(string) (string, bool), more ...string) (env []string) {
	for _, name := range append([]string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT"}, more...) {
		if v, ok := look(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Child is this program once more, as a server of one researcher. It gets the whole
// environment, and what flags said.
func (h *Host) Child(c *settings.Settings, o Options, name string) (client.Target, error) {
	self, err := h.Self()
	if err != nil {
		return client.Target{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find this program to start a researcher")
	}
	args := []string{self, "--log-format", "json", "serve", name, "--part-of-investigation"}
	// The token by which clients come in here opens this server, and no other may have it.
	env := slices.DeleteFunc(slices.Clone(h.Environ()), func(v string) bool { return strings.HasPrefix(v, settings.EnvOf(settings.HTTPToken)+"=") })
	env = append(env, settings.EnvOf(settings.Home)+"="+c.Home())
	part := o.PartFor(name)
	if part.DB != "" { // it may hold a password, which arguments show to every process
		env = append(env, settings.EnvOf(settings.DB)+"="+part.DB)
		part.DB = ""
	}
	args = append(args, flagsOfAll[0].arguments(part)...)
	if part.Timeout != "" {
		args = append(args, "--timeout", part.Timeout)
	}
	for _, f := range flagsOf {
		args = append(args, f.arguments(part)...)
	}
	return client.Target{Command: args, Dir: h.Dir, Env: env}, nil
}

// inProcess makes the opener of a built-in researcher that runs in this process.
func (h *Host) inProcess(c *settings.Settings, o Options, name string) func(context.Context) (pool.Session, pool.Card, error) {
	return func(context.Context) (pool.Session, pool.Card, error) {
		d, err := h.Open(c, o.PartFor(name))
		if err != nil {
			return nil, pool.Card{}, err
		}
		return pool.InProcess(d, d.Evidence, d.Close), pool.Card{Contract: marchwarden.ContractVersion, Description: d.Scope}, nil
	}
}

// connect makes the opener of a connector: a researcher of this process over the tools of a server.
func (h *Host) connect(c *settings.Settings, o Options, m settings.Member, t client.Target) func(context.Context) (pool.Session, pool.Card, error) {
	return func(ctx context.Context) (pool.Session, pool.Card, error) {
		o := o.PartFor(m.Name)
		var d *Runner
		lab, err := h.labFor(c, o, !m.Private)
		if err == nil {
			d, err = h.newRunner(c, o, &lab)
		}
		if err != nil {
			return nil, pool.Card{}, err
		}
		x := h.Extractor(c)
		r, err := h.openConnector(ctx, c, o, m, t, connector.Config{Lab: lab, Extractor: x})
		if err != nil {
			return nil, pool.Card{}, errors.Join(err, x.Close(), d.Records.Close())
		}
		d.Name, d.Scope, d.Private, d.Researcher, d.Closers = m.Name, m.Scope, m.Private, r, []func() error{r.Close, x.Close}
		card := r.Card()
		return pool.InProcess(d, d.Evidence, d.Close), pool.Card{Contract: card.Contract, Description: card.Description, ToolHash: card.ToolHash, Private: m.Private}, nil
	}
}

// openConnector connects to a server by its own tools.
func (h *Host) openConnector(ctx context.Context, c *settings.Settings, o Options, m settings.Member, t client.Target, cfg connector.Config) (*connector.Connector, error) {
	t.OwnTools = true
	cfg.Name, cfg.Search, cfg.Fetch, cfg.Dial = m.Name, m.Search, m.Fetch, h.dialer(c, o, m.Name, t)
	return connector.Open(ctx, cfg)
}

// CheckConnector tells whether a server can be a connector. What it hands over is not kept.
func (h *Host) CheckConnector(ctx context.Context, c *settings.Settings, m settings.Member, t client.Target, o conform.Options) conform.Report {
	o.Question = cmp.Or(o.Question, m.Scope, "welcome")
	x := h.Extractor(c)
	defer x.Close()
	return conform.CheckConnector(ctx, func(ctx context.Context) (*connector.Connector, error) {
		return h.openConnector(ctx, c, Options{Warn: func(string) {}}, m, t, connector.Config{Lab: researcher.Lab{Blobs: blob.NewMem(), Now: h.Now}, Extractor: x, Quote: true})
	}, o)
}

// childLog reads the log of a child process, a JSON object a line, and passes on
// what people should know. Other lines are for those who look for a fault.
type childLog struct {
	name  string
	warn  func(string)
	debug func(string) // nil unless debugging

	mu   sync.Mutex // guards part: a process may write from several threads
	part []byte
}

func (h *Host) newChildLog(c *settings.Settings, name string, warn func(string)) *childLog {
	g := &childLog{name: name, warn: warn}
	if c.On(settings.Debug) {
		g.debug = func(line string) {
			if json.Valid([]byte(line)) { // a log like our own
				fmt.Fprintln(h.Stderr, line)
				return
			}
			h.Note(name + ": " + line)
		}
	}
	return g
}

// Write takes what the child wrote. It never fails: a log must not end a child.
func (g *childLog) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part = append(g.part, p...)
	for {
		line, rest, whole := bytes.Cut(g.part, []byte("\n"))
		if !whole {
			break
		}
		g.line(line)
		g.part = rest
	}
	if len(g.part) > 4<<10 { // no line is that long
		g.part = nil
	}
	return len(p), nil
}

func (g *childLog) line(line []byte) {
	var said struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
	}
	if json.Unmarshal(line, &said) == nil && said.Msg != "" && (said.Level == "WARN" || said.Level == "ERROR") {
		g.warn(g.name + ": " + plaintext.Brief(said.Msg, 300))
	}
	if g.debug != nil {
		g.debug(term.CleanLine(string(line)))
	}
}

// loginOf is the user's login with a researcher at an address.
func (h *Host) loginOf(c *settings.Settings, m settings.Member) (*client.Login, error) {
	secret, err := h.secretOf(m, "client_secret_env", m.SecretEnv)
	allow, wrong := fetchAllow(c)
	home, unread := url.Parse(m.URL)
	if unread != nil {
		unread = settings.Invalid(m.At, "", "url of "+m.Name+" cannot be read")
	}
	if err := cmp.Or(err, unread, wrong); err != nil {
		return nil, err
	}
	return &client.Login{
		URL: m.URL, Name: m.Name, File: c.LoginsPath(), ClientID: m.ClientID, ClientSecret: secret, Now: h.Now, Hide: h.Hide.Learn,
		// Answers hold the secrets that are to be kept: they are not cleaned as others are.
		HTTP: client.LoginClient(home, serviceTransport(), guard.New(allow).Transport()),
	}, nil
}

// secretOf is what is in the variable that a key of a researcher names; "" if none does.
func (h *Host) secretOf(m settings.Member, key, variable string) (string, error) {
	if variable == "" {
		return "", nil
	}
	value, _ := h.Env(variable)
	if value = strings.TrimSpace(value); value == "" {
		return "", settings.Invalid(m.At, "set it in the environment", key+" of "+m.Name+" names "+variable+", which is not set")
	}
	return value, nil
}

// WorkerFor is who works on what a researcher is asked, and the only members it may send; none
// means all. An external researcher is asked by an investigator, which checks what it says.
func WorkerFor(name string, only []string) (queue string, send []string) {
	if name == settings.PI || settings.IsBuiltin(name) {
		return name, only
	}
	return settings.PI, []string{name}
}
