package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// How long an effort lasts that a change of leaders may be in the way of, and one try of
// it. What is asked of a cluster that is forming often has no answer: then the first try is
// shorter.
const (
	Patience = 20 * time.Second
	tryFor   = 3 * time.Second
	firstTry = 500 * time.Millisecond
)

// The error codes of JetStream that are told apart.
const (
	errNoPeers        = 10005
	errNoMessage      = 10037
	errStreamNotFound = 10059
	errWrongLast      = 10071
	errStoreFailed    = 10077
	errWrongLastConst = 10164
)

// errsFull are those of a stream, an account or a server that has no room left.
var errsFull = []jetstream.ErrorCode{10002, 10023, 10047, errStoreFailed}

// ErrFenced says that something else was written to the subject before.
var ErrFenced = errors.New("something else was written before")

// ErrFull says that the subject holds a message already.
var ErrFull = errors.New("the subject holds a message already")

// ErrUnprepared says that the engine's streams are not made yet.
var ErrUnprepared error = &marchwarden.Error{Code: marchwarden.CodeUnavailable,
	Message: "the cluster is not prepared", Hint: "start a hub with 'marchwarden hub'"}

// Message is something to publish to a stream.
type Message struct {
	Subject string
	Header  nats.Header
	Data    []byte
	// ID tells one publication from another: published twice it counts once.
	ID string
	// After is the sequence that the last message of the subject must have, 0 for none.
	// nil publishes whatever there is.
	After *uint64
}

// Publish publishes a message and returns its sequence when it is kept, at a quorum where
// there are replicas. It tries through changes of leaders, for Patience. old says that it
// was there already. ErrFenced and ErrFull say that it is not kept, unless by an earlier try whose
// acknowledgement was lost; after any other error that is unknown.
func (c *Conn) Publish(ctx context.Context, m Message) (seq uint64, old bool, err error) {
	msg := nats.NewMsg(m.Subject)
	maps.Copy(msg.Header, m.Header)
	msg.Data = m.Data
	if m.ID != "" {
		msg.Header.Set(nats.MsgIdHdr, m.ID)
	}
	if m.After != nil {
		msg.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(*m.After, 10))
	}
	err = c.retry(ctx, "publish to "+m.Subject, func(ctx context.Context) error {
		ack, err := c.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
		if err == nil {
			seq, old = ack.Sequence, old || ack.Duplicate
		}
		return err
	})
	return seq, old, err
}

// Insist does what a cluster that is forming or changing its leaders cannot do yet, in
// tries of a few seconds each, until ctx ends. What the hub refuses for good ends it.
func (c *Conn) Insist(ctx context.Context, what string, try func(context.Context) error) error {
	return c.insist(ctx, what, firstTry, try)
}

// retry is Insist for as long as there is patience, and with longer tries. It returns the
// error of ctx if that ends.
func (c *Conn) retry(ctx context.Context, what string, try func(context.Context) error) error {
	limit, stop := context.WithTimeout(ctx, c.patience)
	defer stop()
	err := c.insist(limit, what, tryFor, try)
	if ctx.Err() != nil && errors.Is(err, marchwarden.CodeUnavailable) {
		return ctx.Err()
	}
	return err
}

// insist tries, each time for twice as long.
func (c *Conn) insist(ctx context.Context, what string, first time.Duration, try func(context.Context) error) error {
	began, wait := c.now(), 15*time.Millisecond
	var said *jetstream.APIError // the last word of a hub, which says more than a try that the end of ctx cut short
	for patience := first; ; patience = min(2*patience, tryFor) {
		one, cancel := c.try(ctx, patience)
		err := try(one)
		cancel()
		if err == nil {
			return nil
		}
		if final := c.final(what, err, began); final != nil {
			return final
		}
		if api, ok := errors.AsType[*jetstream.APIError](err); ok {
			said = api
		}
		if httpapi.Sleep(ctx, wait/2+rand.N(wait)) != nil {
			late := &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: what, Err: err}
			if said != nil && slices.Contains(errsFull, said.ErrorCode) {
				late.Err, late.Hint = said, "the hubs are full: give them more storage, or keep documents elsewhere: dir:/path"
			}
			return late
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// final is what an error comes to that another try would not change, nil for others.
func (c *Conn) final(what string, err error, began time.Time) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		switch {
		case api.ErrorCode == errWrongLast || api.ErrorCode == errWrongLastConst:
			return ErrFenced
		case api.ErrorCode == errStoreFailed && api.Description == "maximum messages per subject exceeded":
			return ErrFull
		case api.ErrorCode == errNoMessage:
			return api
		case api.ErrorCode == errStreamNotFound:
			return ErrUnprepared
		case api.Code >= 500 || api.Code == 409 || api.ErrorCode == errNoPeers:
			return nil
		}
		return marchwarden.Wrap(api, marchwarden.CodeUnavailable, "%s", what)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrInvalidConnection):
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "the engine is closed")
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "%s", what)
	}
	if r := c.refused.Load(); r != nil && !r.at.Before(began) {
		return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: what + ": the key is not allowed to do that", Err: r.err,
			Hint: "use a key of the role that this needs; 'marchwarden cluster key list' on a hub shows them"}
	}
	return nil
}

// Entry is a message of a stream.
type Entry struct {
	Subject string
	Seq     uint64
	Header  nats.Header
	Data    []byte
}

// Last is the last message of a subject, as the leader of its stream knows it.
func (c *Conn) Last(ctx context.Context, subject string) (Entry, bool, error) {
	return c.get(ctx, streamOf(subject), map[string]any{"last_by_subj": subject})
}

// Next is the first message from a sequence on of a subject, which may have wildcards, as
// the leader of its stream knows it.
func (c *Conn) Next(ctx context.Context, subject string, from uint64) (Entry, bool, error) {
	return c.get(ctx, streamOf(subject), map[string]any{"seq": max(from, 1), "next_by_subj": subject})
}

// Key is the value of a key of a bucket, as the leader of its stream knows it: the reads of
// the buckets themselves may be answered by a replica that is behind.
func (c *Conn) Key(ctx context.Context, bucket, key string) ([]byte, bool, error) {
	entry, found, err := c.get(ctx, "KV_"+bucket, map[string]any{"last_by_subj": "$KV." + bucket + "." + key})
	if op := entry.Header.Get("KV-Operation"); err != nil || !found || op == "DEL" || op == "PURGE" {
		return nil, false, err
	}
	return entry.Data, true, nil
}

// PutKey sets a key of a bucket.
func (c *Conn) PutKey(ctx context.Context, bucket, key string, value []byte) error {
	kv, err := c.js.KeyValue(ctx, bucket)
	if err != nil {
		return fmt.Errorf("open the bucket %s: %w", bucket, err)
	}
	_, err = kv.Put(ctx, key, value)
	return err
}

func (c *Conn) get(ctx context.Context, stream string, ask map[string]any) (Entry, bool, error) {
	body, _ := json.Marshal(ask) // texts and numbers always marshal
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Header  []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := c.retry(ctx, "read from "+stream, func(ctx context.Context) error {
		answer.Error = nil
		reply, err := c.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, body)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(reply.Data, &answer); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if answer.Error != nil {
			return answer.Error
		}
		return nil
	})
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == errNoMessage {
		return Entry{}, false, nil
	}
	if err != nil {
		return Entry{}, false, err
	}
	m := answer.Message
	e := Entry{Subject: m.Subject, Seq: m.Seq, Data: m.Data, Header: nats.Header{}}
	if len(m.Header) > 0 {
		if e.Header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return Entry{}, false, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read message %d of %s", m.Seq, stream)
		}
	}
	return e, true, nil
}
