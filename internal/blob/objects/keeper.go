package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/form"
)

// The headers of a head. Walk reads the first and no content; the others are there if
// the content is in chunks.
const (
	headerSize   = "Mw-Size"
	headerChunks = "Mw-Chunks"
	headerSet    = "Mw-Set"
)

// getRequest is where a message is asked for.
const getRequest = "$JS.API.STREAM.MSG.GET." + Stream

const (
	maxChunks = (form.MaxLen + chunkSize - 1) / chunkSize
	abreast   = 8 // chunks of one blob under way at once
)

// keeper is the blob.Keeper over the stream.
type keeper struct {
	js       jetstream.JetStream
	stream   jetstream.Stream
	codec    *form.Codec
	patience time.Duration
}

func headOf(ref blob.Ref) string { return "mw.blob." + ref.Hex() }

func chunkOf(ref blob.Ref, set string, n int) string {
	return "mw.chunk." + ref.Hex() + "." + set + "." + strconv.Itoa(n)
}

// setOf names the chunks that file is cut into.
func setOf(file []byte) string {
	h := sha256.New()
	h.Write([]byte("marchwarden blob chunks 1\n"))
	h.Write(binary.BigEndian.AppendUint64(nil, chunkSize))
	h.Write(file)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Keep sends the blob unless an intact one is there.
func (k *keeper) Keep(ctx context.Context, ref blob.Ref, content []byte) error {
	old, err := k.Read(ctx, ref)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	// Damage and other content are mended below; a server that is away is not.
	if err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
		return err
	}
	file := k.codec.Encode(ref, content)
	head := nats.NewMsg(headOf(ref))
	head.Header.Set(headerSize, strconv.Itoa(len(content)))
	head.Data = file
	if len(file) > chunkSize {
		set := setOf(file)
		chunks, err := k.sendChunks(ctx, ref, set, file)
		if err != nil {
			return err
		}
		head.Header.Set(headerChunks, strconv.Itoa(chunks))
		head.Header.Set(headerSet, set)
		head.Data = file[:form.HeaderLen]
	}
	return k.send(ctx, head)
}

func (k *keeper) sendChunks(ctx context.Context, ref blob.Ref, set string, file []byte) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(abreast)
	n := 0
	for ; len(file) > 0 && ctx.Err() == nil; n++ {
		msg := nats.NewMsg(chunkOf(ref, set, n))
		size := min(len(file), chunkSize)
		msg.Data, file = file[:size], file[size:]
		group.Go(func() error { return k.send(ctx, msg) })
	}
	return n, group.Wait()
}

func (k *keeper) send(ctx context.Context, msg *nats.Msg) error {
	return persist(ctx, k.js, k.patience, msg.Subject, func(ctx context.Context) error {
		_, err := k.js.PublishMsg(ctx, msg, jetstream.WithExpectStream(Stream), jetstream.WithRetryAttempts(0))
		return err
	})
}

// load gets the last message of a subject.
func (k *keeper) load(ctx context.Context, subject string) (msg *jetstream.RawStreamMsg, err error) {
	err = persist(ctx, k.js, k.patience, getRequest, func(ctx context.Context) error {
		msg, err = k.stream.GetLastMsgForSubject(ctx, subject)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, blob.ErrNotFound
	}
	return msg, err
}

func (k *keeper) Read(ctx context.Context, ref blob.Ref) ([]byte, error) {
	head, err := k.load(ctx, headOf(ref))
	if err != nil {
		return nil, err
	}
	file := head.Data
	if count := head.Header.Get(headerChunks); count != "" {
		if file, err = k.join(ctx, ref, count, head.Header.Get(headerSet)); err != nil {
			return nil, err
		}
	}
	return k.codec.Decode(ref, file)
}

// join puts the chunks of a set together. The set is a token of a subject, so it is
// looked at before it becomes one.
func (k *keeper) join(ctx context.Context, ref blob.Ref, count, set string) ([]byte, error) {
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxChunks {
		return nil, fmt.Errorf("%w: the head says %q chunks, the limit is %d", blob.ErrCorrupt, count, maxChunks)
	}
	if sum, err := hex.DecodeString(set); err != nil || len(sum) != 16 {
		return nil, fmt.Errorf("%w: the head names a set %q", blob.ErrCorrupt, set)
	}
	parts := make([][]byte, n)
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(abreast)
	for i := range parts {
		group.Go(func() error {
			msg, err := k.load(gctx, chunkOf(ref, set, i))
			if errors.Is(err, blob.ErrNotFound) {
				return fmt.Errorf("%w: chunk %d of %d is missing", blob.ErrCorrupt, i, n)
			}
			if err == nil {
				parts[i] = msg.Data
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	file := bytes.Join(parts, nil)
	if got := setOf(file); got != set {
		return nil, fmt.Errorf("%w: the chunks sum to %s, the head says %s", blob.ErrCorrupt, got, set)
	}
	return file, nil
}

func (k *keeper) Size(ctx context.Context, ref blob.Ref) (int64, error) {
	head, err := k.load(ctx, headOf(ref))
	if err != nil {
		return 0, err
	}
	size, err := form.Size(ref, head.Data)
	return int64(size), err
}
