// Package objects is the evidence store in a JetStream stream: objects under the hash of
// their content, on the servers that carry the tasks, so that a cluster needs no other.
//
// Layout of the stream MW_BLOB, which keeps the last message of each subject:
//
//	mw.blob.<hex>            the head of a blob; <hex> is its digest
//	mw.chunk.<hex>.<set>.<n> part n of a blob that is too large for one message
//
// A head is the blob's form (package form) if that fits into a message. Otherwise it is
// the form's header, and says how many chunks there are and which set. A set is named by
// the sum of its chunks, so that writers of different versions, whose compression may
// differ, never mix theirs. Chunks are acknowledged before the head is sent: a blob is
// there as a whole or not at all. What a writer that died leaves are chunks without a head, which
// are never read.
//
// Every message is awaited until a quorum has it, and may be sent again: the same bytes
// go to the same subject. Reads go to the leader, since a replica that lags would deny
// what another worker has just stored. Writers need no right to remove anything, and no
// consumer is made except by Walk.
//
// The client's own object store (jetstream.ObjectStore) is not used: it sends manifest
// and chunks at once and takes the chunks back when an acknowledgement is late, though the manifest
// may stand and another process may rely on it.
package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/form"
)

// Stream is the name of the stream.
const Stream = "MW_BLOB"

const (
	headSubjects  = "mw.blob.*"
	chunkSubjects = "mw.chunk.*.*.*"
)

// chunkSize is the most a message carries, in bytes. It is part of a set's name.
const chunkSize = 128 << 10

// patience is how long a call waits for servers that do not answer, which they do not
// while they elect a leader.
const patience = 20 * time.Second

// forming is how long a cluster may take to find its servers and elect a leader.
const forming = 2 * time.Minute

// Limits are chosen when the stream is set up.
type Limits struct {
	Replicas int   // 1, or 3 in a cluster; 0 is 1
	MaxBytes int64 // what the stream may take of a disk; 0 is no limit but the server's
}

// Prepare makes the stream, or gives the one that is there these limits. It may be
// repeated, by several at once, and waits for a cluster that is still forming.
func Prepare(ctx context.Context, js jetstream.JetStream, limits Limits) error {
	config := jetstream.StreamConfig{
		Name:              Stream,
		Description:       "evidence, by the hash of its content",
		Subjects:          []string{headSubjects, chunkSubjects},
		Storage:           jetstream.FileStorage,
		Replicas:          max(limits.Replicas, 1),
		MaxBytes:          -1,
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew, // a full store refuses; it does not forget
	}
	if limits.MaxBytes > 0 {
		config.MaxBytes = limits.MaxBytes
	}
	err := persist(ctx, js, forming, "$JS.API.STREAM.CREATE."+Stream, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("set up the evidence store (stream %s): %w", Stream, err)
	}
	return nil
}

// Open returns the store in a stream that Prepare made. The connection is the caller's,
// and stays the caller's to close. A call that finds no server waits for one, up to 20 seconds,
// and then gives CodeUnavailable.
func Open(ctx context.Context, js jetstream.JetStream) (blob.Store, error) {
	keeper, err := newKeeper(ctx, js, patience)
	if err != nil {
		return nil, err
	}
	return blob.Guard(keeper), nil
}

func newKeeper(ctx context.Context, js jetstream.JetStream, patience time.Duration) (*keeper, error) {
	codec, err := form.New()
	if err != nil {
		return nil, fmt.Errorf("open evidence store: %w", err)
	}
	k := &keeper{js: js, codec: codec, patience: patience}
	err = persist(ctx, js, patience, "$JS.API.STREAM.INFO."+Stream, func(ctx context.Context) (err error) {
		k.stream, err = js.Stream(ctx, Stream)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open evidence store: the cluster has no stream " + Stream,
			Hint: "start a hub of this version, which makes it", Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("open evidence store: %w", err)
	}
	return k, nil
}
