// Package cluster is the engine of many hosts, on NATS JetStream: hubs keep tasks, their
// records and their ends at a quorum, workers take them under leases, and any process may die at
// any time. What a task's record says is the truth; the queue only says that a worker should look
// at it.
//
// The package owns what the messages mean and in which order they are written, and the
// steward, which puts right what went wrong. How messages are carried and kept is package
// streams', and the server is package hub's.
package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/streams"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

var _ dispatch.Engine = (*Engine)(nil)

// Config says how to reach a cluster, and as whom.
type Config = streams.Config

// Facts are what all who use a cluster must agree on. Hubs write them, all read them.
type Facts struct {
	Format   int `json:"format"`   // of what is stored; Format here
	Replicas int `json:"replicas"` // of every stream: 1 or 3; 0 is 1
	// Lease is how long a worker may be silent before others take its tasks; 0 is
	// DefaultLease.
	Lease time.Duration `json:"lease_ns"`
	// Blobs is the address of the evidence; "" and "jetstream" are the cluster's own stream.
	Blobs string `json:"blobs,omitempty"`
	// Keep is how long hubs keep what is over. Ends must outlive records.
	Keep streams.Keep `json:"keep,omitzero"`
	// Limits are what providers allow all workers together, as package limit reads them.
	Limits []string `json:"limits,omitempty"`
}

// Format is the version of what is stored that this package reads and writes.
const Format = 1

// DefaultLease is the lease of a cluster that names none.
const DefaultLease = 15 * time.Second

const factsKey = "facts"

// Engine is a cluster as one process sees it. It is safe for concurrent use.
type Engine struct {
	conn  *streams.Conn
	cfg   Config
	log   *slog.Logger
	facts Facts
	blobs blob.Store

	limits *streams.Limits

	mu     sync.Mutex // guards what follows
	closed bool
	holds  map[marchwarden.TraceID]*hold // the tasks that this process works on
}

// Prepare makes a cluster of hubs ready, or brings it up to date: its streams, and its
// facts. It may be repeated, also by several hubs at once, and tries until ctx ends while
// the hubs find each other.
func Prepare(ctx context.Context, cfg Config, facts Facts) error {
	facts.Format = Format
	facts.Replicas = max(facts.Replicas, 1)
	facts.Lease = cmp.Or(facts.Lease, DefaultLease)
	if _, err := limit.ParseRules(facts.Limits); err != nil {
		return err
	}
	conn, err := streams.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Prepare(ctx, facts.Replicas, facts.Lease, facts.Keep); err != nil {
		return err
	}
	if facts.Blobs == "" || facts.Blobs == streams.OwnBlobs {
		if err := conn.PrepareBlobs(ctx, facts.Replicas); err != nil {
			return err
		}
	}
	data, _ := json.Marshal(facts) // texts and numbers always marshal
	return conn.Insist(ctx, "write the facts of the cluster", func(ctx context.Context) error {
		old, found, err := conn.Key(ctx, streams.BucketFacts, factsKey)
		if err != nil || found && string(old) == string(data) {
			return err
		}
		return conn.PutKey(ctx, streams.BucketFacts, factsKey, data)
	})
}

// Open joins a cluster that is prepared. The caller closes it.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	conn, err := streams.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &Engine{conn: conn, cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), holds: map[marchwarden.TraceID]*hold{}}
	if err := e.join(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

// join reads what all agree on, and opens what it names.
func (e *Engine) join(ctx context.Context) error {
	trying, stop := context.WithTimeout(ctx, streams.Patience)
	defer stop()
	data, found, err := e.conn.Key(trying, streams.BucketFacts, factsKey)
	if err != nil {
		return fmt.Errorf("read the facts of the cluster: %w", err)
	}
	if !found {
		return streams.ErrUnprepared
	}
	if err := json.Unmarshal(data, &e.facts); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read the facts of the cluster")
	}
	if e.facts.Format != Format || e.facts.Lease <= 0 {
		return &marchwarden.Error{Code: marchwarden.CodeUnsupported,
			Message: fmt.Sprintf("the cluster stores in format %d, this program in format %d", e.facts.Format, Format), Hint: "use the same version everywhere"}
	}
	rules, err := limit.ParseRules(e.facts.Limits)
	if err != nil {
		return err
	}
	e.limits = e.conn.Limits(rules)
	e.blobs, err = e.conn.OpenBlobs(e.facts.Blobs)
	return err
}

// Blobs is the evidence.
func (e *Engine) Blobs() blob.Store { return e.blobs }

// Limit is what all share of a provider, by a key such as "anthropic/requests".
func (e *Engine) Limit(key string) dispatch.Limiter { return e.limits.Limit(key) }

// Close leaves the cluster. What is worked on here is given up as if the process had
// died. It may be repeated.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	holds := slices.Collect(maps.Values(e.holds))
	e.mu.Unlock()
	for _, h := range holds {
		h.die(released(h.task.ID, errors.New("the engine is closed")))
	}
	e.conn.Close()
	return nil
}

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
	for told := false; ; told = true {
		e, err := Dial(ctx, cfg)
		switch {
		case err == nil:
			note("connected to %s", cfg.URL)
			return e, nil
		case ctx.Err() != nil:
			return nil, marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the hub")
		case marchwarden.CodeOf(err) != marchwarden.CodeUnavailable:
			return nil, err
		}
		if !told {
			note("waiting for the hub at %s: %v", cfg.URL, err)
		}
		cfg.Log.Debug("the hub does not answer", "error", err)
		_ = httpapi.Sleep(ctx, time.Second) // its end is told after the next try
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
