// Package investigate is the principal investigator for Go programs: a question
// goes in, and researchers are asked in parallel, followed up, held to their
// evidence, and one cited answer comes out.
//
// It owns the assembly of an investigator from a Config and nothing else: the
// network of its researchers, the folder of its records, the clock. What an
// investigation is stands in the contract, which is the package at the module's
// root. Without Model the investigator plans and writes without a language model.
//
//	inv, err := investigate.Open(investigate.Config{Home: home, Embedded: true})
//	if err != nil { … }
//	defer inv.Close()
//	res, err := inv.Research(ctx, marchwarden.Request{Question: "What grows in Utah?"}, nil)
package investigate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// Config is what an investigator is made of. Only Home is required, and a source to ask: a library,
// or a researcher.
type Config struct {
	// Home is the folder of the records: traces, evidence, the index of the library.
	// It is made if it is missing (mode 0700). Several investigators may share one,
	// and it may be the home of the marchwarden command, which can then verify and
	// replay what is in it.
	Home string
	// Library are folders of documents. They are searched by a researcher called
	// "files", inside this process, and are private: what is found there is told to
	// no other researcher.
	Library []string
	// Online has the web and arXiv asked, too: what is asked leaves this machine. Search
	// names the engines, such as "searxng,wikipedia"; "" takes all that Env has keys for.
	Online bool
	Search string
	// DB is a database to ask, read-only: an SQLite file, postgres://… or mysql://….
	DB string
	// Model plans and writes, such as "anthropic" or "ollama/qwen3"; "" writes without.
	// What is private is shown to it.
	Model string
	// Env has the keys and addresses of models and engines under the names that
	// docs/configuration.md lists: os.LookupEnv, or a function of your own. Nil is none.
	Env func(name string) (string, bool)
	// Embedded adds the documents that come with this module to the library.
	Embedded bool
	// Researchers are the others to ask.
	Researchers []Researcher

	// Parallel is how many researchers are under way at once; 0 is 4.
	Parallel int
	// MaxRihlas is how many journeys there may be in all; 0 goes by the depth of the
	// request.
	MaxRihlas int
	// Deadline is how long an investigation may take, whatever the context says;
	// 0 is no limit. Some of it is kept for the writing.
	Deadline time.Duration
	// AllowEgress names the private researchers whose findings others may be told.
	AllowEgress []string
	// WordsAlone leaves out the sentence encoder that comes with this module: texts are
	// then compared by their words, which takes less time and finds less.
	WordsAlone bool

	// HTTP reaches the researchers that have a URL; nil means a client that knows no
	// proxy.
	HTTP *http.Client
	// Log gets what is worth a look, such as a file that could not be read or a
	// session that ended; nil discards it.
	Log *slog.Logger
	// Version is the version of your program, for the record; "" means "dev".
	Version string
	// Now is the clock; nil is that of the system.
	Now func() time.Time
	// NewID makes the ids of traces, each another one; nil is serve.NewTraceID.
	NewID func() marchwarden.TraceID

	dir string // the working directory
}

// Investigator is a principal investigator: a researcher that asks researchers. It
// is safe for concurrent use until it is closed.
type Investigator struct{ runner *network.Runner }

var _ marchwarden.Researcher = (*Investigator)(nil)

// Open makes an investigator. What is wrong with the Config is an error with
// CodeInvalid that names the field, a home or folder that cannot be used one with
// CodeUnavailable or CodeInvalid. No researcher is started before it is asked. The
// caller closes the investigator; when Open fails nothing is left open.
func Open(cfg Config) (*Investigator, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	noUser := func() (string, error) { return "", errors.New("a program has no home folder of a user") }
	say := func(message string) { cfg.Log.Warn(message) }
	c, err := settings.Load(settings.Source{Env: cfg.lookup, Home: cfg.Home, UserHome: noUser, Warn: say})
	if err != nil {
		return nil, err
	}
	h := &network.Host{
		Env: cfg.lookup, Dir: cfg.dir, UserHome: noUser, Now: cfg.Now, NewID: cfg.NewID, Stderr: io.Discard, Version: cfg.Version,
		Say: say, Note: func(line string) { cfg.Log.Debug(line) }, Log: func(*settings.Settings) *slog.Logger { return cfg.Log }, Hide: secret.New(c.Hidden(cfg.lookup)...),
	}
	o := network.Options{Choice: marchwarden.Choice{Researchers: cfg.names(), Online: cfg.Online, Library: cfg.Library, Embedded: cfg.Embedded, DB: cfg.DB, Model: cfg.Model, Search: cfg.Search, Parallel: cfg.Parallel, MaxRihlas: cfg.MaxRihlas, AllowEgress: cfg.AllowEgress}, Others: cfg.seats(), Warn: say, Log: cfg.Log}
	if cfg.Deadline > 0 {
		o.Timeout = cfg.Deadline.String()
	}
	r, err := h.Open(c, o)
	if err != nil {
		return nil, settings.Renamed(err, fields)
	}
	return &Investigator{r}, nil
}

// fields are those of the Config that say what a flag of the command says.
var fields = map[string]string{"--library": "Library", "--db": "DB", "--model": "Model", "--search": "Search", "--timeout": "Deadline", "--researchers": "Researchers"}

// lookup is Env, and what other fields say instead.
func (c *Config) lookup(name string) (string, bool) {
	if c.WordsAlone && name == settings.EnvOf(settings.Embed) {
		return settings.EmbedOff, true
	}
	if c.Env == nil {
		return "", false
	}
	return c.Env(name)
}

// complete checks the Config and fills in what was left to this package.
func (c *Config) complete() error {
	switch {
	case c.Home == "":
		return invalid("Home", "give the folder for traces and evidence", "must not be empty")
	case len(c.names()) == 0:
		return invalid("Researchers", "set Embedded, Library, Online, DB or Researchers", "there is no researcher to ask")
	case c.Parallel < 0:
		return invalid("Parallel", "", "must not be negative, is %d", c.Parallel)
	case c.MaxRihlas < 0:
		return invalid("MaxRihlas", "", "must not be negative, is %d", c.MaxRihlas)
	case c.Deadline < 0 || c.Deadline > 0 && c.Deadline < settings.MinTimeout || c.Deadline > settings.MaxTimeout:
		return invalid("Deadline", "", "must be 0 or between %s and %s, is %s", settings.MinTimeout, settings.MaxTimeout, c.Deadline)
	case c.Search != "" && !c.Online:
		return invalid("Search", "set Online", "is for the web, which is not asked")
	}
	for _, r := range c.Researchers {
		if err := r.check(); err != nil {
			return err
		}
	}
	for _, name := range c.AllowEgress {
		if !slices.Contains(c.names(), name) {
			return invalid("AllowEgress", "", "no researcher is called %q", name)
		}
	}
	var err error
	if c.Home, err = filepath.Abs(c.Home); err == nil {
		c.dir, err = os.Getwd()
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInvalid, "find the home folder")
	}
	c.Version, c.Log = cmp.Or(c.Version, "dev"), cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = serve.NewTraceID
	}
	return nil
}

// Research investigates a question, as marchwarden.Researcher promises. The result
// has rihlas, one for each time that a researcher was asked, and decisions: what
// was done about their gaps and discoveries. A researcher that fails, hangs or lies
// is a gap and takes nothing from what the others found.
func (i *Investigator) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return i.runner.Research(ctx, req, sink)
}

// Evidence is the stored document that a citation's ContentHash names, byte for
// byte; CodeNotFound says that there is none, CodeInvalid that it is no hash.
func (i *Investigator) Evidence(ctx context.Context, hash string) ([]byte, error) {
	return i.runner.Evidence(ctx, hash)
}

// Approve accepts the description that the tool of a Command or URL has now, after
// it changed, and gives the hashes of the old one ("" for none) and the new one.
// Until then such a researcher is not asked any more: what a tool says of itself can steer its
// reader.
func (i *Investigator) Approve(ctx context.Context, name string) (before, after string, err error) {
	return i.runner.Pool.Approve(ctx, name)
}

// Close ends the researchers that were started and frees the records. Calls of
// Research must have returned.
func (i *Investigator) Close() error { return i.runner.Close() }

// Researcher is one member of the network. Exactly one of Value, Command and URL
// is given.
type Researcher struct {
	// Name is 1 to 40 of a-z, 0-9, _ and -, and begins with a letter. Required, and
	// not that of a built-in researcher, nor "pi".
	Name string
	// Scope is one sentence on what it covers. The investigator chooses by it.
	// Required.
	Scope string
	// Private says that what it reports comes from sources of the user's own: it is
	// told to no other researcher unless Config.AllowEgress names this one.
	Private bool
	// Trust is how far its stored documents count; "" is Known.
	Trust Trust
	// Share is its weight when the budget is split; 0 is 1.
	Share float64
	// Timeout bounds one call; 0 is no bound but the investigation's own.
	Timeout time.Duration

	// Value is a researcher inside this process. A panic of its own goroutine ends
	// one call; what else it breaks, it breaks here.
	Value marchwarden.Researcher
	// Evidence hands over what Value stored, by a citation's ContentHash;
	// CodeNotFound says that there is none. Without it the citations of Value are
	// marked as unchecked.
	Evidence func(ctx context.Context, hash string) ([]byte, error)
	// OpenWorld says that what Value is asked leaves this machine. Of a Command and a
	// URL that is taken for granted.
	OpenWorld bool

	// Command is a program and its arguments, run without a shell, that serves MCP on
	// its standard input and output. It is started when it is first asked, and again
	// after a crash.
	Command []string
	// Env is its whole environment, such as os.Environ(): nothing of this process is
	// handed on that does not stand here.
	Env []string
	// Dir is its working directory; "" is that of this process.
	Dir string
	// Stderr gets what it writes to standard error; nil discards it. It must be safe
	// for use by several goroutines.
	Stderr io.Writer

	// URL is the address of a server that speaks MCP over HTTP, Token its bearer
	// token or "".
	URL   string
	Token string
}

// Trust is how far a researcher's own word on its sources goes.
type Trust string

// The degrees of trust.
const (
	// Known takes the documents that a researcher hands over by their hash for what
	// it says they are. The excerpts are checked against them all the same.
	Known Trust = "known"
	// Unknown takes its word for nothing: its citations are marked as unchecked and
	// count for less.
	Unknown Trust = "unknown"
)

// check says what is wrong with a researcher.
func (r Researcher) check() error {
	ways := 0
	for _, given := range []bool{r.Value != nil, len(r.Command) > 0, r.URL != ""} {
		if given {
			ways++
		}
	}
	switch {
	case settings.IsBuiltin(r.Name):
		return invalid("Researchers", "choose another name", "%q is a researcher of the library or of this module", r.Name)
	case r.Name == "pi":
		return invalid("Researchers", "choose another name", "%q is the investigator itself", r.Name)
	case strings.TrimSpace(r.Scope) == "":
		return invalid("Researchers", "say in a sentence what it covers: the investigator chooses by it", "%q has no Scope", r.Name)
	case ways != 1:
		return invalid("Researchers", "", "%q must have exactly one of Value, Command and URL, has %d", r.Name, ways)
	case r.Evidence != nil && r.Value == nil:
		return invalid("Researchers", "", "%q has Evidence, which is for a Value: a server hands over its own", r.Name)
	case r.Timeout < 0:
		return invalid("timeout", "", "%s of %s is less than 0", r.Timeout, r.Name)
	case r.Trust != "" && r.Trust != Known && r.Trust != Unknown:
		return invalid("Researchers", "", "Trust of %q must be %s or %s, not %q", r.Name, Known, Unknown, r.Trust)
	}
	return nil
}

// names are those of all researchers that the Config means.
func (c *Config) names() (names []string) {
	for name, meant := range map[string]bool{researcher.FilesName: c.Embedded || len(c.Library) > 0, database.Name: c.DB != "", researcher.WebName: c.Online, researcher.ArxivName: c.Online} {
		if meant {
			names = append(names, name)
		}
	}
	for _, r := range c.Researchers {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// invalid is the error of a field of the Config.
func invalid(field, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// seats are the researchers that the program brings along. The network itself refuses
// names that are wrong or taken.
func (c *Config) seats() (out []pool.Seat) {
	for _, r := range c.Researchers {
		m := dispatch.Member{Name: r.Name, Scope: r.Scope, Share: r.Share, Trust: dispatch.Trust(r.Trust), Private: r.Private, OpenWorld: true}
		s := pool.Seat{Member: m, Timeout: r.Timeout}
		if r.Value != nil {
			s.Transport, s.OpenWorld = "in process", r.OpenWorld
			s.Open = func(context.Context) (pool.Session, pool.Card, error) {
				return pool.InProcess(r.Value, r.Evidence, nil), pool.Card{Contract: marchwarden.ContractVersion, Description: r.Scope}, nil
			}
		} else {
			d := client.Dialer{Version: c.Version, Now: c.Now, HTTP: c.HTTP, Log: c.Log}
			t := client.Target{Command: r.Command, Env: r.Env, Dir: r.Dir, Stderr: r.Stderr, URL: r.URL, Token: r.Token}
			s.Transport, s.Pinned, s.Open = strings.Join(append(slices.Clone(r.Command), r.URL), " "), true, network.Dial(func(ctx context.Context) (*client.Session, error) { return d.Dial(ctx, t) })
		}
		out = append(out, s)
	}
	return out
}
