// Package streams is what a cluster keeps on its hubs, in NATS JetStream: the connection,
// the streams and their subjects, publishing that is acknowledged and may be repeated,
// reading by subject from a stream's leader, taking from the work queue band by band and
// lane by lane, the limits that all workers share, and the documents.
//
// It knows names, sequences and bytes. What the message of a task means is package
// cluster's, and what may be used when is package limit's.
package streams

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Config says how to reach a hub.
type Config struct {
	URL string // one or several, with commas between
	// InProcess is a hub of this process; URL is not used then.
	InProcess interface{ InProcessConn() (net.Conn, error) }
	Name      string // who this is, as others see it
	// Seed is the private nkey, read anew at each connect; nil is none.
	Seed func() ([]byte, error)
	TLS  *tls.Config
	// Now is the clock. Leases are measured by it, so it must have a monotonic reading
	// where it is to be relied on.
	Now func() time.Time
	Log *slog.Logger // nil: no log
}

// Conn is a connection to a hub that comes back by itself. It is safe for concurrent use.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	now func() time.Time
	log *slog.Logger
	// patience is how long an effort lasts that a change of leaders may be in the way of.
	patience time.Duration
	// refused is the last thing that the server did not allow, with its time: the client
	// is told apart from the request, which would only time out.
	refused atomic.Pointer[refusal]

	mu   sync.Mutex // guards what follows
	life context.Context
	end  context.CancelFunc // of the connection that there is; nothing asked over it is answered then
}

type refusal struct {
	at  time.Time
	err error
}

const (
	pingEvery = 2 * time.Second
	dialFor   = 5 * time.Second
)

// Connect reaches a hub. One that cannot be reached or refuses the login is an error.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	c := &Conn{now: cfg.Now, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), patience: Patience}
	c.life, c.end = context.WithCancel(context.Background())
	opts, err := c.options(ctx, cfg)
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(cfg.URL, opts...)
	if err != nil {
		code := marchwarden.CodeUnavailable
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
			code = marchwarden.CodeDenied
		}
		where := cfg.URL
		if cfg.InProcess != nil {
			where = "this process"
		}
		return nil, marchwarden.Wrap(err, code, "connect to the hub at %s", where)
	}
	c.nc = nc
	if c.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(dialFor)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("use JetStream: %w", err)
	}
	return c, nil
}

// options are the connection's; the deadline of ctx bounds the first dial alone.
func (c *Conn) options(ctx context.Context, cfg Config) ([]nats.Option, error) {
	timeout := dialFor
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(end.Sub(cfg.Now()), time.Millisecond))
	}
	key := ""
	if cfg.Seed != nil {
		var err error
		if key, err = withKey(cfg.Seed, nkeys.KeyPair.PublicKey); err != nil {
			return nil, err
		}
	}
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.Timeout(timeout),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		// What is published while there is no connection fails at once, and the caller that waits
		// for its acknowledgement tries again: nothing is sent unnoticed later.
		nats.ReconnectBufSize(-1),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.log.Info("connected to a hub again", "hub", nc.ConnectedServerName())
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.broken()
			if err != nil {
				c.log.Warn("lost the connection to the hub", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			level := slog.LevelWarn
			if errors.Is(err, nats.ErrPermissionViolation) && c.refused.Swap(&refusal{cfg.Now(), err}) != nil {
				level = slog.LevelDebug // one says enough: a key of the wrong role is refused with everything
			}
			c.log.Log(context.Background(), level, "the hub complains", "error", err)
		}),
	}
	if cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(cfg.InProcess))
	}
	if cfg.TLS != nil {
		opts = append(opts, nats.Secure(cfg.TLS))
	}
	if key != "" {
		inbox := nats.CustomInboxPrefix("_INBOX_" + key) // no other key may listen there
		opts = append(opts, inbox, nats.Nkey(key, func(nonce []byte) ([]byte, error) {
			return withKey(cfg.Seed, func(pair nkeys.KeyPair) ([]byte, error) { return pair.Sign(nonce) })
		}))
	}
	return opts, nil
}

// withKey uses the key, which is kept no longer than that.
func withKey[T any](seed func() ([]byte, error), use func(nkeys.KeyPair) (T, error)) (none T, err error) {
	text, err := seed()
	if err != nil {
		return none, fmt.Errorf("read the key: %w", err)
	}
	pair, err := nkeys.FromSeed(text)
	if err != nil {
		return none, marchwarden.Wrap(err, marchwarden.CodeInvalid, "read the key")
	}
	defer pair.Wipe()
	return use(pair)
}

// broken gives up what waits for an answer: it would come to a connection that is gone.
func (c *Conn) broken() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
	c.life, c.end = context.WithCancel(context.Background())
}

// try is the context of one request: so long, and not longer than the connection.
func (c *Conn) try(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	life := c.life
	c.mu.Unlock()
	one, cancel := context.WithTimeout(ctx, patience)
	detach := context.AfterFunc(life, cancel)
	return one, func() { detach(); cancel() }
}

// JetStream is for what is done with streams and buckets as a whole.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// NATS is the connection itself, for what is not kept.
func (c *Conn) NATS() *nats.Conn { return c.nc }

// Close ends the connection. It may be repeated.
func (c *Conn) Close() {
	c.nc.Close()
	c.broken()
}
