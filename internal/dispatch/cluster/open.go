// Package cluster is the engine of many hosts, on NATS JetStream: hubs keep tasks, their
// records and their ends at a quorum, workers take them under leases, and any process may die at
// any time. What a task's record says is the truth; the queue only says that a worker should look
// at it.
//
// The package owns what the messages mean and in which order they are written. How they
// are carried is package jet's, the server is package hub's, and maintenance is package steward's.
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/depot"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/objects"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/cell"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster/jet"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
)

var _ dispatch.Engine = (*Engine)(nil)

// Config says how to reach a cluster, and as whom.
type Config struct {
	URL string // of one hub or several, with commas between
	// InProcess is a hub of this process; URL is not used then.
	InProcess interface{ InProcessConn() (net.Conn, error) }
	Name      string // who this is, as others see it
	Inbox     string // the prefix of reply subjects; "" is made of the key, or the name
	// Seed is the private nkey, read anew at each connect; nil is none.
	Seed func() ([]byte, error)
	TLS  *tls.Config
	// Now is the clock. Leases are measured by it, so it must have a monotonic reading
	// where it is to be relied on.
	Now func() time.Time
	Log *slog.Logger // nil: no log
	// Blobs opens the evidence that the facts name. No function, or no store and no
	// error, is the one in the cluster's own stream.
	Blobs func(ctx context.Context, facts Facts) (blob.Store, error)
}

// Facts are what all who use a cluster must agree on. Hubs write them, all read them.
type Facts struct {
	Format   int `json:"format"`   // of what is stored; Format here
	Replicas int `json:"replicas"` // of every stream: 1 or 3; 0 is 1
	// Lease is how long a worker may be silent before others take its tasks; 0 is
	// DefaultLease.
	Lease time.Duration `json:"lease_ns"`
	// Blobs is the address of the evidence; "" and "jetstream" are the cluster's own stream.
	Blobs string `json:"blobs,omitempty"`
	// BlobBytes bounds the cluster's own evidence; 0 leaves that to the hubs' disks.
	BlobBytes int64 `json:"blob_bytes,omitempty"`
	// Keep is how long hubs keep what is over. Ends must outlive records.
	Keep jet.Keep `json:"keep,omitzero"`
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
	conn  *jet.Conn
	cfg   Config
	log   *slog.Logger
	facts Facts
	blobs blob.Store
	roll  roll

	limits *cell.Limits

	mu     sync.Mutex // guards what follows
	closed bool
	holds  map[marchwarden.TraceID]*hold // the tasks that this process works on
}

func (cfg Config) jet() jet.Config {
	return jet.Config{URL: cfg.URL, InProcess: cfg.InProcess, Name: cfg.Name, Inbox: cfg.Inbox, Seed: cfg.Seed, TLS: cfg.TLS, Now: cfg.Now, Log: cfg.Log}
}

// Prepare makes a cluster of hubs ready, or brings it up to date: its streams, and its
// facts. It may be repeated, also by several hubs at once, and tries until ctx ends while
// the hubs find each other.
func Prepare(ctx context.Context, cfg Config, facts Facts) error {
	facts.Format = Format
	facts.Replicas = max(facts.Replicas, 1)
	if facts.Lease <= 0 {
		facts.Lease = DefaultLease
	}
	if _, err := limit.ParseRules(facts.Limits); err != nil {
		return err
	}
	conn, err := jet.Connect(ctx, cfg.jet())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Prepare(ctx, facts.Replicas, facts.Lease, facts.Keep); err != nil {
		return err
	}
	if facts.Blobs == "" || facts.Blobs == depot.JetStream {
		if err := conn.Insist(ctx, "prepare the evidence", func(ctx context.Context) error {
			return objects.Prepare(ctx, conn.JetStream(), objects.Limits{Replicas: facts.Replicas, MaxBytes: facts.BlobBytes})
		}); err != nil {
			return err
		}
	}
	return conn.Insist(ctx, "write the facts of the cluster", func(ctx context.Context) error {
		return writeFacts(ctx, conn, facts)
	})
}

func writeFacts(ctx context.Context, conn *jet.Conn, facts Facts) error {
	data, err := json.Marshal(facts)
	if err != nil {
		return fmt.Errorf("encode the facts: %w", err)
	}
	old, found, err := conn.Key(ctx, jet.BucketFacts, factsKey)
	if err != nil || found && string(old) == string(data) {
		return err
	}
	kv, err := conn.JetStream().KeyValue(ctx, jet.BucketFacts)
	if err != nil {
		return fmt.Errorf("open the bucket: %w", err)
	}
	_, err = kv.Put(ctx, factsKey, data)
	return err
}

// Open joins a cluster that is prepared. The caller closes it.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	conn, err := jet.Connect(ctx, cfg.jet())
	if err != nil {
		return nil, err
	}
	e := &Engine{conn: conn, cfg: cfg, log: cfg.Log, holds: map[marchwarden.TraceID]*hold{}}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.join(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

// join reads what all agree on, and opens what it names.
func (e *Engine) join(ctx context.Context) error {
	trying, stop := context.WithTimeout(ctx, jet.Patience)
	defer stop()
	data, found, err := e.conn.Key(trying, jet.BucketFacts, factsKey)
	if err != nil {
		return fmt.Errorf("read the facts of the cluster: %w", err)
	}
	if !found {
		return jet.ErrUnprepared
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
	e.limits = cell.New(e.conn.NATS(), e.conn.JetStream(), jet.BucketLimit, rules, e.cfg.Now)
	e.blobs, err = e.openBlobs(ctx)
	return err
}

func (e *Engine) openBlobs(ctx context.Context) (blob.Store, error) {
	if e.cfg.Blobs != nil {
		if store, err := e.cfg.Blobs(ctx, e.facts); store != nil || err != nil {
			return store, err
		}
	}
	ctx, stop := context.WithTimeout(ctx, jet.Patience)
	defer stop()
	var store blob.Store
	err := e.conn.Insist(ctx, "open the evidence", func(ctx context.Context) (err error) {
		store, err = objects.Open(ctx, e.conn.JetStream())
		return err
	})
	return store, err
}

// Facts are those of the cluster when it was opened.
func (e *Engine) Facts() Facts { return e.facts }

// Conn is the connection, for those who look after the cluster.
func (e *Engine) Conn() *jet.Conn { return e.conn }

// JetStream is the connection's, for those who look after the cluster.
func (e *Engine) JetStream() jetstream.JetStream { return e.conn.JetStream() }

// Blobs is the evidence.
func (e *Engine) Blobs() blob.Store { return e.blobs }

// Limit is what all share of a provider, by a key such as "anthropic/requests".
func (e *Engine) Limit(key string) dispatch.Limiter { return e.limits.Limit(key) }

// Limits are all limits of the cluster, for those who look after it.
func (e *Engine) Limits() *cell.Limits { return e.limits }

// Close leaves the cluster. What is worked on here is given up as if the process had
// died. It may be repeated.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	holds := make([]*hold, 0, len(e.holds))
	for _, h := range e.holds {
		holds = append(holds, h)
	}
	e.mu.Unlock()
	for _, h := range holds {
		h.lose(errors.New("the engine is closed"))
	}
	err := e.limits.Close()
	e.conn.Close()
	return err
}

// nonce is what tells the writes of one claim from those of every other.
func nonce() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
