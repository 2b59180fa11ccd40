package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
)

const secret = "the-secret-key-of-the-test"

// service starts something that speaks S3 and returns the way there. Each call of what
// it returns is a new, empty bucket.
type service func(t *testing.T) func(t *testing.T) Config

// memory is a service in this process.
func memory(t *testing.T) func(t *testing.T) Config {
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithIntegrityCheck(true)).Server())
	t.Cleanup(server.Close)
	return buckets(Config{Endpoint: strings.TrimPrefix(server.URL, "http://"), Plain: true, AccessKey: "test", SecretKey: secret, Region: "us-east-1"})
}

func buckets(config Config) func(t *testing.T) Config {
	made := 0
	return func(t *testing.T) Config {
		t.Helper()
		made++
		config := config
		config.Bucket, config.Prefix = fmt.Sprintf("evidence-%d", made), "team/a"
		k, err := newKeeper(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.client.MakeBucket(t.Context(), config.Bucket, minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		return config
	}
}

func TestInMemory(t *testing.T) { suite(t, memory) }

// suite is all that any service has to pass.
func suite(t *testing.T, start service) {
	bucket := start(t)
	t.Run("promises", func(t *testing.T) {
		blobtest.Run(t, func(t *testing.T) blob.Store { _, s := opened(t, bucket(t)); return s })
	})
	t.Run("damage", func(t *testing.T) { damageIsFoundAndHealed(t, bucket(t)) })
	t.Run("parts", func(t *testing.T) { largeInParts(t, bucket(t)) })
	t.Run("writers", func(t *testing.T) { writersDoNotDisturbEachOther(t, bucket(t)) })
	t.Run("interrupted", func(t *testing.T) { interruptedUpload(t, bucket(t)) })
	t.Run("conditions", func(t *testing.T) { conditionalWrite(t, bucket(t)) })
}

func opened(t *testing.T, config Config) (*keeper, blob.Store) {
	t.Helper()
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKeeper(config)
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

// plant writes an object as it is.
func plant(t *testing.T, k *keeper, name string, data []byte) {
	t.Helper()
	if err := k.write(t.Context(), name, data, false); err != nil {
		t.Fatal(err)
	}
}

func damageIsFoundAndHealed(t *testing.T, config Config) {
	k, s := opened(t, config)
	content := bytes.Repeat([]byte("a page that compresses "), 20)
	ref := blobtest.Put(t, s, content)
	file, err := k.fetch(t.Context(), k.nameOf(ref), blob.MaxForm)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(file)
	flipped[len(flipped)-3] ^= 1
	for what, data := range map[string][]byte{
		"emptied": {}, "cut in the header": file[:10], "cut in the body": file[:len(file)-1], "a flipped bit": flipped,
		"extended": append(bytes.Clone(file), 0), "bare content": content, "another blob's": k.codec.Encode(blob.Of([]byte("x")), []byte("x")),
	} {
		plant(t, k, k.nameOf(ref), data)
		if got, err := s.Get(t.Context(), ref); got != nil || !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: Get = %q, %v, want ErrCorrupt", what, got, err)
		}
		blobtest.Put(t, s, content)
		blobtest.Want(t, s, ref, content)
	}
}

// Large content goes in parts, and comes back whole.
func largeInParts(t *testing.T, config Config) {
	k, _ := opened(t, config)
	k.partSize = 5 << 20 // the least that services take
	s := blob.Guard(k)
	content := blobtest.Noise(1, 11<<20)
	ref := blobtest.Put(t, s, content)
	blobtest.Put(t, s, content)
	blobtest.Want(t, s, ref, content)
	if info, err := s.Stat(t.Context(), ref); err != nil || info.Size != int64(len(content)) {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}

func writersDoNotDisturbEachOther(t *testing.T, config Config) {
	var group errgroup.Group
	for range 4 {
		_, s := opened(t, config)
		group.Go(func() error {
			for i := range uint64(6) {
				content := blobtest.Noise(i, int(i)*60_000)
				ref, err := s.Put(t.Context(), content)
				if err != nil {
					return err
				}
				if got, err := s.Get(t.Context(), ref); err != nil || !bytes.Equal(got, content) {
					return fmt.Errorf("blob %d: %d bytes, %w", i, len(got), err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// cutOff breaks the connection after so many bytes of a body.
type cutOff struct {
	r    io.Reader
	left int
}

func (c *cutOff) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("cut off")
	}
	n, err := c.r.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// A writer that is cut off leaves nothing that reads as a blob.
func interruptedUpload(t *testing.T, config Config) {
	k, s := opened(t, config)
	content := blobtest.Noise(2, 3<<20)
	ref := blob.Of(content)
	file := k.codec.Encode(ref, content)
	_, err := k.send(t.Context(), k.nameOf(ref), &cutOff{bytes.NewReader(file), 1 << 20}, file, minio.PutObjectOptions{DisableContentSha256: true})
	if err == nil {
		t.Fatal("half an upload was accepted")
	}
	if got, err := s.Get(t.Context(), ref); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get after half an upload: %d bytes, %v, want ErrNotFound", len(got), err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := s.Put(ctx, content); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Put that ran out of time: %v", err)
	}
	blobtest.Put(t, s, content)
	blobtest.Want(t, s, ref, content)
}

// Where a service knows conditions, a writer that comes second writes nothing.
func conditionalWrite(t *testing.T, config Config) {
	k, _ := opened(t, config)
	name := k.nameOf(blob.Of([]byte("a page")))
	if err := k.write(t.Context(), name, []byte("first"), true); err != nil {
		t.Fatal(err)
	}
	if err := k.write(t.Context(), name, []byte("second"), true); !errors.Is(err, errExists) {
		t.Errorf("the second of two writers: %v, want errExists", err)
	}
	if got, err := k.fetch(t.Context(), name, blob.MaxForm); string(got) != "first" {
		t.Errorf("the object holds %q, %v", got, err)
	}
}

// A service that knows no conditions is one where the last writer wins, with equal bytes.
func TestWithoutConditions(t *testing.T) {
	inner := gofakes3.New(s3mem.New()).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := buckets(Config{Endpoint: strings.TrimPrefix(server.URL, "http://"), Plain: true, AccessKey: "test", SecretKey: secret, Region: "us-east-1"})(t)
	writersDoNotDisturbEachOther(t, config)
}
