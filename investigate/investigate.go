// Package investigate is the principal investigator for Go programs: a question
// goes in, and researchers are asked in parallel, followed up, held to their
// evidence, and one cited answer comes out.
//
// It owns the assembly of an investigator from a Config and nothing else: the
// network of its researchers, the folder of its records, the clock. What an
// investigation is stands in the contract, which is the package at the module's
// root. The investigator plans and writes without a language model; a researcher of
// your own may use any.
//
//	inv, err := investigate.Open(investigate.Config{Home: home, Embedded: true})
//	if err != nil { … }
//	defer inv.Close()
//	res, err := inv.Research(ctx, marchwarden.Request{Question: "What grows in Utah?"}, nil)
package investigate

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// Config is what an investigator is made of. Only Home is required, and somebody
// to ask: a library, or a researcher.
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
}

// Investigator is a principal investigator: a researcher that asks researchers. It
// is safe for concurrent use until it is closed.
type Investigator struct {
	pi      *pi.PI
	network *pool.Pool
	blobs   blob.Store
	close   []func() error // in order
}

var _ marchwarden.Researcher = (*Investigator)(nil)

// Open makes an investigator. What is wrong with the Config is an error with
// CodeInvalid that names the field, a home or folder that cannot be used one with
// CodeUnavailable or CodeInvalid. No researcher is started before it is asked. The
// caller closes the investigator; when Open fails nothing is left open.
func Open(cfg Config) (*Investigator, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	i := &Investigator{}
	if err := i.assemble(cfg); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// complete checks the Config and fills in what was left to this package.
func (c *Config) complete() error {
	switch {
	case c.Home == "":
		return invalid("Home", "give the folder for traces and evidence", "must not be empty")
	case len(c.Library) == 0 && !c.Embedded && len(c.Researchers) == 0:
		return invalid("Researchers", "set Embedded, Library or Researchers", "there is nobody to ask")
	case c.Parallel < 0:
		return invalid("Parallel", "", "must not be negative, is %d", c.Parallel)
	case c.MaxRihlas < 0:
		return invalid("MaxRihlas", "", "must not be negative, is %d", c.MaxRihlas)
	case c.Deadline < 0:
		return invalid("Deadline", "", "must not be negative, is %s", c.Deadline)
	}
	for _, r := range c.Researchers {
		if err := r.check(); err != nil {
			return err
		}
	}
	for _, name := range c.AllowEgress {
		if !c.has(name) {
			return invalid("AllowEgress", "", "nobody is called %q", name)
		}
	}
	home, err := filepath.Abs(c.Home)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInvalid, "find the home folder")
	}
	c.Home = home
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = serve.NewTraceID
	}
	return nil
}

// assemble opens the records, then the network, then the investigator over both.
func (i *Investigator) assemble(cfg Config) error {
	traces, err := trace.OpenDir(filepath.Join(cfg.Home, "traces"), cfg.Now)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the traces")
	}
	i.close = append(i.close, traces.Close)
	blobs, err := dir.Open(filepath.Join(cfg.Home, "blobs"))
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the evidence store")
	}
	i.blobs, i.close = blobs, append([]func() error{blobs.Close}, i.close...)
	judged, err := i.judge(cfg)
	if err != nil {
		return err
	}
	seats, err := i.seats(cfg, traces, judged)
	if err != nil {
		return err
	}
	i.network, err = pool.New(pool.Config{Seats: seats, Pins: pool.FilePins(filepath.Join(cfg.Home, "pins.json")), Now: cfg.Now, Log: cfg.Log})
	if err != nil {
		return err
	}
	i.close = append([]func() error{i.network.Close}, i.close...)
	i.pi = pi.New(pi.Config{
		Traces: traces, Blobs: blobs, Version: cfg.Version, Now: cfg.Now, NewID: cfg.NewID, Dispatcher: i.network,
		Minds: pi.Minds{
			Planner: func(string) pi.Planner { return derive.New() },
			Writer:  func(string) reason.Reasoner { return extractive.New() },
			Vectors: judged.vectorsOf,
		},
		Vectors: judged.vectors, Calibration: judged.calibration,
		Options: pi.Options{Parallel: cfg.Parallel, MaxRihlas: cfg.MaxRihlas, Deadline: cfg.Deadline, AllowEgress: cfg.AllowEgress},
	})
	return nil
}

// Research investigates a question, as marchwarden.Researcher promises. The result
// has rihlas, one for each time that a researcher was asked, and decisions: what
// was done about their gaps and discoveries. A researcher that fails, hangs or lies
// is a gap and takes nothing from what the others found.
func (i *Investigator) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return i.pi.Research(ctx, req, sink)
}

// Evidence is the stored document that a citation's ContentHash names, byte for
// byte; CodeNotFound says that there is none, CodeInvalid that it is no hash.
func (i *Investigator) Evidence(ctx context.Context, hash string) ([]byte, error) {
	return blob.Evidence(ctx, i.blobs, hash)
}

// Approve accepts the description that the tool of a Command or URL has now, after
// it changed, and gives the hashes of the old one ("" for none) and the new one.
// Until then such a researcher is not asked any more: what a tool says of itself
// can steer whoever reads it.
func (i *Investigator) Approve(ctx context.Context, name string) (before, after string, err error) {
	return i.network.Approve(ctx, name)
}

// Close ends the researchers that were started and frees the records. Calls of
// Research must have returned.
func (i *Investigator) Close() error {
	var errs []error
	for _, c := range i.close {
		errs = append(errs, c())
	}
	i.close = nil
	return errors.Join(errs...)
}
