package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/form"
)

// start runs a server without a port and returns a way to connect to it.
func start(t *testing.T) (*server.Server, func(opts ...nats.Option) jetstream.JetStream) {
	t.Helper()
	s := run(t, &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s, func(opts ...nats.Option) jetstream.JetStream {
		nc, err := nats.Connect("", append(opts, nats.InProcessServer(s), quiet)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
}

// quiet keeps what the client says beside its calls out of the tests' output.
var quiet = nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})

func run(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

// prepared is a keeper on a server of its own.
func prepared(t *testing.T) (*keeper, blob.Store) {
	t.Helper()
	_, connect := start(t)
	return opened(t, connect(), patience)
}

func opened(t *testing.T, js jetstream.JetStream, patience time.Duration) (*keeper, blob.Store) {
	t.Helper()
	if err := Prepare(t.Context(), js, Limits{}); err != nil {
		t.Fatal(err)
	}
	k, err := newKeeper(t.Context(), js, patience)
	if err != nil {
		t.Fatal(err)
	}
	return k, blob.Guard(k)
}

// A server for each test, so that none meets what another left.
func TestObjects(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		_, connect := start(t)
		js := connect()
		if err := errors.Join(Prepare(t.Context(), js, Limits{}), Prepare(t.Context(), js, Limits{Replicas: 1})); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), js)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// No message is larger than a chunk, and the same content is sent once.
func TestLargeContentIsCutUp(t *testing.T) {
	k, s := prepared(t)
	for _, size := range []int{chunkSize - form.HeaderLen, chunkSize - form.HeaderLen + 1, 5 * chunkSize, 3<<20 + 17} {
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
		msg, err := k.stream.GetMsg(t.Context(), seq)
		if err != nil || len(msg.Data) > chunkSize {
			t.Fatalf("message %d: %d bytes, %v", seq, len(msg.Data), err)
		}
	}
}

// messages is the number of the last message ever stored.
func messages(t *testing.T, k *keeper) uint64 {
	t.Helper()
	info, err := k.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq
}

// Whatever is wrong with what is stored is ErrCorrupt, and Put mends it.
func TestDamageIsFoundAndHealed(t *testing.T) {
	k, s := prepared(t)
	small, large := bytes.Repeat([]byte("a page that compresses "), 20), blobtest.Noise(2, 3*chunkSize)
	smallRef, largeRef := blobtest.Put(t, s, small), blobtest.Put(t, s, large)
	head := func(ref blob.Ref) *nats.Msg {
		old, err := k.load(t.Context(), headOf(ref))
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
		{"emptied", smallRef, small, nats.NewMsg(headOf(smallRef))},
		{"cut", smallRef, small, &nats.Msg{Subject: headOf(smallRef), Data: head(smallRef).Data[:40]}},
		{"another blob's", smallRef, small, &nats.Msg{Subject: headOf(smallRef), Header: largeHead.Header, Data: largeHead.Data}},
		{"bare content", smallRef, small, &nats.Msg{Subject: headOf(smallRef), Data: small}},
		{"a wrong chunk", largeRef, large, &nats.Msg{Subject: chunkOf(largeRef, set, 1), Data: blobtest.Noise(3, chunkSize)}},
		{"fewer chunks", largeRef, large, with(headerChunks, "2")},
		{"more chunks", largeRef, large, with(headerChunks, "5")},
		{"chunks beyond reason", largeRef, large, with(headerChunks, "1000000000")},
		{"no number of chunks", largeRef, large, with(headerChunks, "-")},
		{"a set that is a wildcard", largeRef, large, with(headerSet, ">")},
		{"a set that is not there", largeRef, large, with(headerSet, strings.Repeat("ab", 16))},
	} {
		if _, err := k.js.PublishMsg(t.Context(), c.msg); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), c.ref); got != nil || !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: Get = %d bytes, %v, want ErrCorrupt", c.what, len(got), err)
		}
		walked := 0
		if err := s.Walk(t.Context(), func(blob.Info) error { walked++; return nil }); err != nil || walked != 2 {
			t.Errorf("%s: Walk met %d, %v", c.what, walked, err)
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
	if err := s.Walk(t.Context(), func(i blob.Info) error { return fmt.Errorf("met %v", i) }); err != nil {
		t.Error(err)
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
	_, connect := start(t)
	var group errgroup.Group
	for range 4 {
		_, s := opened(t, connect(), patience)
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

// However small the page, Walk meets each blob once and in order.
func TestWalkByPages(t *testing.T) {
	k, s := prepared(t)
	var want []blob.Ref
	for i := range 23 {
		want = append(want, blobtest.Put(t, s, fmt.Appendf(nil, "page %d", i)))
	}
	slices.SortFunc(want, blob.Ref.Compare)
	if _, err := k.js.Publish(t.Context(), "mw.blob.stranger", nil); err != nil {
		t.Fatal(err)
	}
	for _, page := range []int{1, 4, 23, 24, 1000} {
		var got []blob.Ref
		if err := k.walk(t.Context(), page, func(i blob.Info) error { got = append(got, i.Ref); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %d blobs, want %d in order", page, len(got), len(want))
		}
	}
}

func TestServerGone(t *testing.T) {
	srv, connect := start(t)
	_, s := opened(t, connect(nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond)), 300*time.Millisecond)
	ref := blobtest.Put(t, s, []byte("a page"))
	srv.Shutdown()
	_, getErr := s.Get(t.Context(), ref)
	_, putErr := s.Put(t.Context(), []byte("another"))
	_, statErr := s.Stat(t.Context(), ref)
	begun := time.Now()
	walkErr := s.Walk(t.Context(), func(blob.Info) error { return nil })
	for call, err := range map[string]error{"Get": getErr, "Put": putErr, "Stat": statErr, "Walk": walkErr} {
		if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
			t.Errorf("%s: %v, want CodeUnavailable", call, err)
		}
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("Walk took %s to notice", took)
	}
}

// A server that comes back is waited for, and has what was put.
func TestServerReturns(t *testing.T) {
	opts := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	srv := run(t, opts)
	nc, err := nats.Connect(srv.ClientURL(), quiet, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, s := opened(t, js, patience)
	ref := blobtest.Put(t, s, []byte("a page"))
	opts.Port = srv.Addr().(*net.TCPAddr).Port
	srv.Shutdown()
	srv.WaitForShutdown()
	done := make(chan error, 1)
	go func() { _, err := s.Put(context.WithoutCancel(t.Context()), []byte("another")); done <- err }()
	time.Sleep(50 * time.Millisecond)
	again := run(t, opts)
	t.Cleanup(again.Shutdown)
	if err := <-done; err != nil {
		t.Errorf("Put while the server was away: %v", err)
	}
	blobtest.Want(t, s, ref, []byte("a page"))
}

func TestFullStore(t *testing.T) {
	_, connect := start(t)
	js := connect()
	_, s := opened(t, js, patience)
	kept := blobtest.Put(t, s, []byte("a page"))
	if err := Prepare(t.Context(), js, Limits{MaxBytes: 1000}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), blobtest.Noise(5, 2000))
	if marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || marchwarden.HintOf(err) == "" {
		t.Errorf("Put into a full store: %v, hint %q", err, marchwarden.HintOf(err))
	}
	blobtest.Want(t, s, kept, []byte("a page"))
}

func TestOpenWithoutAStream(t *testing.T) {
	_, connect := start(t)
	if _, err := Open(t.Context(), connect()); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || marchwarden.HintOf(err) == "" {
		t.Errorf("Open: %v", err)
	}
}

// A key that may not write is told so, and not that the server does not answer.
func TestNoRightToWrite(t *testing.T) {
	opts := &server.Options{DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Users: []*server.User{
		{Username: "hub", Password: "hub"},
		{Username: "reader", Password: "reader", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO." + Stream, getRequest}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}}
	srv := run(t, opts)
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	as := func(name string) jetstream.JetStream {
		nc, err := nats.Connect("", nats.InProcessServer(srv), nats.UserInfo(name, name), quiet)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	_, writer := opened(t, as("hub"), patience)
	ref := blobtest.Put(t, writer, []byte("a page"))
	reader, err := Open(t.Context(), as("reader"))
	if err != nil {
		t.Fatal(err)
	}
	blobtest.Want(t, reader, ref, []byte("a page"))
	blobtest.Put(t, reader, []byte("a page")) // there already: nothing to write
	begun := time.Now()
	if _, err := reader.Put(t.Context(), []byte("another")); marchwarden.CodeOf(err) != marchwarden.CodeDenied {
		t.Errorf("Put by a reader: %v, want CodeDenied", err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}
