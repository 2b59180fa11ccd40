package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
)

// run starts a server without a port.
func run(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	opts.JetStream, opts.NoSigs, opts.NoLog = true, true, true
	if opts.StoreDir == "" {
		opts.DontListen, opts.StoreDir = true, t.TempDir()
	}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// connected is a connection to a server.
func connected(t *testing.T, cfg Config) *Conn {
	t.Helper()
	cfg.Name, cfg.Now = "test", time.Now
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// opened is the store in the cluster's own stream.
func opened(t *testing.T, c *Conn) (*keeper, blob.Store) {
	t.Helper()
	if err := c.PrepareBlobs(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	codec, err := blob.NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.OpenBlobs(OwnBlobs)
	if err != nil {
		t.Fatal(err)
	}
	return &keeper{c, codec}, s
}

// prepared is a store on a server of its own.
func prepared(t *testing.T) (*keeper, blob.Store) {
	t.Helper()
	return opened(t, connected(t, Config{InProcess: run(t, &server.Options{})}))
}

// A server for each test, so that none meets what another left.
func TestBlobs(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		_, s := prepared(t)
		return s
	})
}

// No message is larger than a chunk, and the same content is sent once.
func TestLargeContentIsCutUp(t *testing.T) {
	k, s := prepared(t)
	for _, size := range []int{chunkSize - blob.FormHeader, chunkSize - blob.FormHeader + 1, 5 * chunkSize, 3<<20 + 17} {
		content := blobtest.Noise(1, size)
		ref := blobtest.Put(t, s, content)
		blobtest.Want(t, s, ref, content)
		info, err := s.Stat(t.Context(), ref)
		if err != nil || info.Size != int64(size) {
			t.Errorf("Stat = %+v, %v, want %d bytes", info, err, size)
		}
		before := messages(t, k)
		blobtest.Put(t, s, content)
		if after := messages(t, k); after != before {
			t.Errorf("%d bytes put twice: %d messages, then %d", size, before, after)
		}
	}
	last := messages(t, k)
	for seq := uint64(1); seq <= last; seq++ {
		msg, err := stream(t, k).GetMsg(t.Context(), seq)
		if err != nil || len(msg.Data) > chunkSize {
			t.Fatalf("message %d: %d bytes, %v", seq, len(msg.Data), err)
		}
	}
}

// messages is the number of the last message ever stored.
func messages(t *testing.T, k *keeper) uint64 {
	t.Helper()
	return stream(t, k).CachedInfo().State.LastSeq
}

func stream(t *testing.T, k *keeper) jetstream.Stream {
	t.Helper()
	s, err := k.c.js.Stream(t.Context(), StreamBlob)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever is wrong with what is stored is ErrCorrupt, and Put mends it.
func TestDamageIsFoundAndHealed(t *testing.T) {
	k, s := prepared(t)
	small, large := bytes.Repeat([]byte("a page that compresses "), 20), blobtest.Noise(2, 3*chunkSize)
	smallRef, largeRef := blobtest.Put(t, s, small), blobtest.Put(t, s, large)
	head := func(ref blob.Ref) *nats.Msg {
		old, err := k.head(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return &nats.Msg{Subject: old.Subject, Header: old.Header, Data: old.Data}
	}
	largeHead := head(largeRef)
	set := largeHead.Header.Get(headerSet)
	with := func(key, value string) *nats.Msg {
		m := head(largeRef)
		m.Header.Set(key, value)
		return m
	}
	for _, c := range []struct {
		what    string
		ref     blob.Ref
		content []byte
		msg     *nats.Msg
	}{
		{"emptied", smallRef, small, nats.NewMsg(headSubject(smallRef))},
		{"cut", smallRef, small, &nats.Msg{Subject: headSubject(smallRef), Data: head(smallRef).Data[:40]}},
		{"another blob's", smallRef, small, &nats.Msg{Subject: headSubject(smallRef), Header: largeHead.Header, Data: largeHead.Data}},
		{"bare content", smallRef, small, &nats.Msg{Subject: headSubject(smallRef), Data: small}},
		{"a wrong chunk", largeRef, large, &nats.Msg{Subject: chunkSubject(largeRef, set, 1), Data: blobtest.Noise(3, chunkSize)}},
		{"fewer chunks", largeRef, large, with(headerChunks, "2")},
		{"more chunks", largeRef, large, with(headerChunks, "5")},
		{"chunks beyond reason", largeRef, large, with(headerChunks, "1000000000")},
		{"no number of chunks", largeRef, large, with(headerChunks, "-")},
		{"a set that is a wildcard", largeRef, large, with(headerSet, ">")},
		{"a set that is not there", largeRef, large, with(headerSet, strings.Repeat("ab", 16))},
	} {
		if _, err := k.c.js.PublishMsg(t.Context(), c.msg); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), c.ref); got != nil || !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: Get = %d bytes, %v, want ErrCorrupt", c.what, len(got), err)
		}
		blobtest.Put(t, s, c.content)
		blobtest.Want(t, s, c.ref, c.content)
	}
}

// A writer that is cut off leaves nothing that reads as a blob, and what it left is no
// hindrance.
func TestInterruptedUpload(t *testing.T) {
	k, s := prepared(t)
	content := blobtest.Noise(4, 10*chunkSize)
	ref := blob.Of(content)
	file := k.codec.Encode(ref, content)
	if _, err := k.sendChunks(t.Context(), ref, setOf(file), file[:7*chunkSize]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), ref); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get after chunks alone: %v, want ErrNotFound", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { time.Sleep(time.Millisecond); stop() }()
	if _, err := s.Put(ctx, content); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted Put: %v", err)
	}
	if got, err := s.Get(t.Context(), ref); err != nil && !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get after an interrupted Put: %d bytes, %v", len(got), err)
	}
	blobtest.Put(t, s, content)
	blobtest.Want(t, s, ref, content)
}

// Several connections write the same blobs, small and large; all of them read whole ones.
func TestWritersDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	srv := run(t, &server.Options{})
	var group errgroup.Group
	for range 4 {
		_, s := opened(t, connected(t, Config{InProcess: srv}))
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

func TestServerGone(t *testing.T) {
	t.Parallel()
	srv := run(t, &server.Options{})
	k, s := opened(t, connected(t, Config{InProcess: srv}))
	k.c.patience = 300 * time.Millisecond
	ref := blobtest.Put(t, s, []byte("a page"))
	srv.Shutdown()
	_, getErr := s.Get(t.Context(), ref)
	_, putErr := s.Put(t.Context(), []byte("another"))
	_, statErr := s.Stat(t.Context(), ref)
	for call, err := range map[string]error{"Get": getErr, "Put": putErr, "Stat": statErr} {
		if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("%s: %v, want CodeUnavailable", call, err)
		}
	}
}

// A server that comes back is waited for, and has what was put.
func TestServerReturns(t *testing.T) {
	t.Parallel()
	opts := &server.Options{Host: "127.0.0.1", Port: -1, StoreDir: t.TempDir()}
	srv := run(t, opts)
	_, s := opened(t, connected(t, Config{URL: srv.ClientURL()}))
	ref := blobtest.Put(t, s, []byte("a page"))
	opts.Port = srv.Addr().(*net.TCPAddr).Port
	srv.Shutdown()
	srv.WaitForShutdown()
	done := make(chan error, 1)
	go func() { _, err := s.Put(context.WithoutCancel(t.Context()), []byte("another")); done <- err }()
	time.Sleep(50 * time.Millisecond)
	run(t, opts)
	if err := <-done; err != nil {
		t.Errorf("Put while the server was away: %v", err)
	}
	blobtest.Want(t, s, ref, []byte("a page"))
}

// Hubs that are full refuse, say what to do, and keep what they have.
func TestFullStore(t *testing.T) {
	t.Parallel()
	k, s := opened(t, connected(t, Config{InProcess: run(t, &server.Options{JetStreamMaxStore: 1 << 20})}))
	k.c.patience = 6 * time.Second // a busy machine needs that
	kept := blobtest.Put(t, s, []byte("a page"))
	_, err := s.Put(t.Context(), blobtest.Noise(5, 2<<20))
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || marchwarden.HintOf(err) == "" {
		t.Errorf("Put into a full store: %v, hint %q", err, marchwarden.HintOf(err))
	}
	blobtest.Want(t, s, kept, []byte("a page"))
}

// What a hub said stands, where a later try is cut short by the end of patience.
func TestTheLastWordOfAHubStands(t *testing.T) {
	c := &Conn{now: time.Now, life: t.Context(), patience: time.Second}
	tries := 0
	err := c.retry(t.Context(), "put a blob", func(ctx context.Context) error {
		if tries++; tries == 1 {
			return &jetstream.APIError{Code: 503, ErrorCode: errStoreFailed, Description: "no room"}
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || marchwarden.HintOf(err) == "" || !strings.Contains(err.Error(), "no room") {
		t.Errorf("%v, hint %q", err, marchwarden.HintOf(err))
	}
}

func TestBlobsWithoutAStream(t *testing.T) {
	c := connected(t, Config{InProcess: run(t, &server.Options{})})
	s, err := c.OpenBlobs("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), blob.Of(nil)); !errors.Is(err, ErrUnprepared) {
		t.Errorf("Get: %v", err)
	}
}

// Every kind of store gives the same content the same name.
func TestOneRefEverywhere(t *testing.T) {
	c := connected(t, Config{InProcess: run(t, &server.Options{})})
	opened(t, c)
	for _, address := range []string{"dir:" + t.TempDir(), "jetstream", ""} {
		store, err := c.OpenBlobs(address)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		for _, content := range []string{"", "a page", strings.Repeat("a long page ", 40_000)} {
			ref, err := store.Put(t.Context(), []byte(content))
			if err != nil || ref != blob.Of([]byte(content)) {
				t.Errorf("%s: Put = %s, %v", address, ref, err)
			}
			blobtest.Want(t, store, ref, []byte(content))
		}
	}
}

// A folder that is not mounted is not made: no other host would see what is in it.
func TestFolderMustBeThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not-mounted")
	_, err := (&Conn{}).OpenBlobs("dir:" + path)
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(marchwarden.HintOf(err), "mount") {
		t.Errorf("OpenBlobs: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"dir:", "dir:relative", "nfs://host", "s3://evidence/x", "s3://k:hunter2@evidence", "AKIAhunter2"} {
		_, err := (&Conn{}).OpenBlobs(address)
		for _, err := range []error{CheckBlobs("--blobs", address), err} {
			if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", address, err)
			}
		}
	}
	if err := CheckBlobs("--blobs", OwnBlobs); err != nil {
		t.Error(err)
	}
}
