package streams

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
)

// The documents of a cluster, in its own stream MW_BLOB, which keeps the last message of
// each subject:
//
//	mw.blob.<hex>            the head of a blob; <hex> is its digest
//	mw.chunk.<hex>.<set>.<n> part n of a blob that is too large for one message
//
// A head is the blob's form (package blob) if that fits into a message. Otherwise it is
// the form's header, and says how many chunks there are and which set. A set is named by
// the sum of its chunks, so that writers of different versions, whose compression may
// differ, never mix theirs. Chunks are acknowledged before the head is sent: a blob is
// there as a whole or not at all. What a writer that died leaves are chunks without a head, which
// are never read.
//
// The client's own object store (jetstream.ObjectStore) is not used: it sends manifest
// and chunks at once and takes the chunks back when an acknowledgement is late, though the manifest
// may stand and another process may rely on it.

// The headers of a head. The first is for people; the others are there if the content is
// in chunks.
const (
	headerSize   = "Mw-Size"
	headerChunks = "Mw-Chunks"
	headerSet    = "Mw-Set"
)

const (
	// chunkSize is the most a message carries, in bytes. It is part of a set's name.
	chunkSize = 128 << 10
	maxChunks = (blob.MaxForm + chunkSize - 1) / chunkSize
	abreast   = 8 // chunks of one blob under way at once
)

// PrepareBlobs makes the stream of documents, or brings it up to date. It may be repeated,
// and tries until ctx ends, as Prepare does.
func (c *Conn) PrepareBlobs(ctx context.Context, replicas int) error {
	return c.prepare(ctx, jetstream.StreamConfig{
		Name:              StreamBlob,
		Description:       "evidence, by the hash of its content",
		Subjects:          []string{"mw.blob.*", "mw.chunk.*.*.*"},
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		MaxBytes:          -1,
		MaxMsgsPerSubject: 1,
		Discard:           jetstream.DiscardNew, // a full store refuses; it does not forget
	})
}

// blobs is the store in the stream that PrepareBlobs makes.
func (c *Conn) blobs() (blob.Store, error) {
	codec, err := blob.NewCodec()
	if err != nil {
		return nil, fmt.Errorf("open the evidence store: %w", err)
	}
	return blob.Guard(&keeper{c, codec}), nil
}

// keeper is the blob.Keeper over the stream.
type keeper struct {
	c     *Conn
	codec *blob.Codec
}

func headSubject(ref blob.Ref) string { return "mw.blob." + ref.Hex() }

func chunkSubject(ref blob.Ref, set string, n int) string {
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
	head := Message{Subject: headSubject(ref), Header: nats.Header{}, Data: file}
	head.Header.Set(headerSize, strconv.Itoa(len(content)))
	if len(file) > chunkSize {
		set := setOf(file)
		chunks, err := k.sendChunks(ctx, ref, set, file)
		if err != nil {
			return err
		}
		head.Header.Set(headerChunks, strconv.Itoa(chunks))
		head.Header.Set(headerSet, set)
		head.Data = file[:blob.FormHeader]
	}
	_, _, err = k.c.Publish(ctx, head)
	return err
}

func (k *keeper) sendChunks(ctx context.Context, ref blob.Ref, set string, file []byte) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(abreast)
	n := 0
	for ; len(file) > 0 && ctx.Err() == nil; n++ {
		size := min(len(file), chunkSize)
		msg := Message{Subject: chunkSubject(ref, set, n), Data: file[:size]}
		file = file[size:]
		group.Go(func() error {
			_, _, err := k.c.Publish(ctx, msg)
			return err
		})
	}
	return n, group.Wait()
}

// head is the head of a blob.
func (k *keeper) head(ctx context.Context, ref blob.Ref) (Entry, error) {
	head, found, err := k.c.Last(ctx, headSubject(ref))
	if err == nil && !found {
		err = blob.ErrNotFound
	}
	return head, err
}

// Read implements blob.Keeper.
func (k *keeper) Read(ctx context.Context, ref blob.Ref) ([]byte, error) {
	head, err := k.head(ctx, ref)
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
			chunk, found, err := k.c.Last(gctx, chunkSubject(ref, set, i))
			if err == nil && !found {
				return fmt.Errorf("%w: chunk %d of %d is missing", blob.ErrCorrupt, i, n)
			}
			parts[i] = chunk.Data
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

// Size implements blob.Keeper.
func (k *keeper) Size(ctx context.Context, ref blob.Ref) (int64, error) {
	head, err := k.head(ctx, ref)
	if err != nil {
		return 0, err
	}
	size, err := blob.FormSize(ref, head.Data)
	return int64(size), err
}

// OwnBlobs is the address of the evidence store that a cluster has in itself; so is "".
const OwnBlobs = "jetstream"

// CheckBlobs says whether address is one of an evidence store, without opening anything.
// What is wrong is CodeInvalid, of a field; nothing secret is repeated.
func CheckBlobs(field, address string) error {
	_, err := parsePlace(field, address)
	return err
}

// OpenBlobs opens the evidence store at address: "jetstream" or "", or "dir:/path" of a directory
// that all hosts share. It stays open for as long as the process runs.
func (c *Conn) OpenBlobs(address string) (blob.Store, error) {
	path, err := parsePlace("blobs of the cluster", address)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return c.blobs()
	}
	// One that is missing is most likely not mounted: what was written below it would be on this
	// host alone.
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the evidence is in " + path + ", which is not there",
			Hint: "mount the folder that all hosts of the cluster share"}
	}
	files, err := dir.Open(path)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "blobs")
	}
	return files, nil
}

// parsePlace gives a path, or "" for the cluster's own store.
func parsePlace(field, address string) (path string, err error) {
	if address == "" || address == OwnBlobs {
		return "", nil
	}
	bad := &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: "not the address of an evidence store", // not repeated: it may be a key in the wrong place
		Hint: "write jetstream for the hubs' own store, or dir:/path of a folder that all hosts share"}
	path, folder := strings.CutPrefix(address, "dir:")
	switch {
	case folder && filepath.IsAbs(path):
		return path, nil
	case folder:
		bad.Message, bad.Hint = "the path behind dir: does not begin at the root", "write dir:/path; it must be the same directory on every host, such as a network file system"
	case strings.HasPrefix(address, "s3:"):
		bad.Message = "evidence is no longer kept in S3"
	}
	return "", bad
}
