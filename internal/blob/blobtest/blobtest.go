// Package blobtest says what a blob.Store is, as a suite of tests that any
// implementation can run. Damage to what is stored is tested beside each
// implementation, since only that knows how to inflict it.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// Run checks the promises of blob.Store. open returns a new, empty store each
// time it is called and cleans up through t.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	promises := []struct {
		name string
		test func(*testing.T, blob.Store)
	}{
		{"what was put can be got", roundTrip},
		{"any bytes come back as they went in", anyBytes},
		{"putting twice stores once", putIsIdempotent},
		{"a missing blob is ErrNotFound and named", missing},
		{"the zero Ref is ErrInvalidRef", zeroRef},
		{"Stat gives the size of the content", stat},
		{"a store shares no memory with its callers", noSharedMemory},
		{"a cancelled context ends every call", cancelled},
		{"many goroutines can use a store at once", concurrent},
	}
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) { p.test(t, open(t)) })
	}
}

func roundTrip(t *testing.T, s blob.Store) {
	for name, content := range map[string][]byte{
		"empty":          {},
		"one byte":       {0},
		"text":           []byte("Tomatoes set fruit above 6,000 feet if nights stay warm.\n"),
		"repetitive":     bytes.Repeat([]byte("zone 6b "), 100_000),
		"incompressible": Noise(1, 300_000),
	} {
		t.Run(name, func(t *testing.T) {
			ref := Put(t, s, content)
			if want := blob.Of(content); ref != want {
				t.Errorf("Put returned %s, want %s", ref, want)
			}
			if got := get(t, s, ref); !bytes.Equal(got, content) {
				t.Errorf("Get returned %d other bytes, want the %d that were put", len(got), len(content))
			}
		})
	}
}

func anyBytes(t *testing.T, s blob.Store) {
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(rt, "content")
		content = bytes.Repeat(content, rapid.IntRange(1, 20).Draw(rt, "times"))
		ref, err := s.Put(context.Background(), content)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := s.Get(context.Background(), ref)
		if err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(got, content) || blob.Of(got) != ref {
			rt.Fatalf("Get(%s) = %x, want %x", ref, got, content)
		}
	})
}

func putIsIdempotent(t *testing.T, s blob.Store) {
	content := []byte("the same bytes")
	first, second := Put(t, s, content), Put(t, s, content)
	if first != second {
		t.Errorf("second Put returned %s, want %s", second, first)
	}
}

func missing(t *testing.T, s blob.Store) {
	Put(t, s, []byte("something else"))
	ref := blob.Of([]byte("never stored"))
	_, getErr := s.Get(context.Background(), ref)
	_, statErr := s.Stat(context.Background(), ref)
	for call, err := range map[string]error{"Get": getErr, "Stat": statErr} {
		if !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: error %v, want ErrNotFound", call, err)
			continue
		}
		if !strings.Contains(err.Error(), ref.String()) {
			t.Errorf("%s: error %q does not name %s", call, err, ref)
		}
	}
}

func zeroRef(t *testing.T, s blob.Store) {
	if _, err := s.Get(context.Background(), blob.Ref{}); !errors.Is(err, blob.ErrInvalidRef) {
		t.Errorf("Get: error %v, want ErrInvalidRef", err)
	}
	if _, err := s.Stat(context.Background(), blob.Ref{}); !errors.Is(err, blob.ErrInvalidRef) {
		t.Errorf("Stat: error %v, want ErrInvalidRef", err)
	}
}

func stat(t *testing.T, s blob.Store) {
	for _, content := range [][]byte{{}, []byte("short"), bytes.Repeat([]byte("a"), 50_000), Noise(1, 50_000)} {
		ref := Put(t, s, content)
		got, err := s.Stat(context.Background(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if want := (blob.Info{Ref: ref, Size: int64(len(content))}); got != want {
			t.Errorf("Stat = %+v, want %+v", got, want)
		}
	}
}

func noSharedMemory(t *testing.T, s blob.Store) {
	// Long and without pattern, so that a store has no reason to re-encode it.
	content := Noise(1, 10_000)
	want := bytes.Clone(content)
	ref := Put(t, s, content)
	clear(content)
	got := get(t, s, ref)
	if !bytes.Equal(got, want) {
		t.Fatal("changing the slice after Put changed what is stored")
	}
	clear(got)
	if got := get(t, s, ref); !bytes.Equal(got, want) {
		t.Error("changing the slice from Get changed what is stored")
	}
}

func cancelled(t *testing.T, s blob.Store) {
	ref := Put(t, s, []byte("kept"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, putErr := s.Put(ctx, []byte("not kept"))
	_, getErr := s.Get(ctx, ref)
	_, statErr := s.Stat(ctx, ref)
	for call, err := range map[string]error{"Put": putErr, "Get": getErr, "Stat": statErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want context.Canceled", call, err)
		}
	}
	if _, err := s.Stat(context.Background(), blob.Of([]byte("not kept"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("what a cancelled Put was given: %v, want ErrNotFound", err)
	}
}

func concurrent(t *testing.T, s blob.Store) {
	var group errgroup.Group
	for worker := range 8 {
		group.Go(func() error {
			for i := range 20 {
				// Every other blob is the same for all workers.
				content := fmt.Appendf(nil, "blob %d of worker %d", i, worker*(i%2))
				ref, err := s.Put(context.Background(), content)
				if err != nil {
					return err
				}
				got, err := s.Get(context.Background(), ref)
				if err != nil {
					return err
				}
				if !bytes.Equal(got, content) {
					return fmt.Errorf("Get(%s) = %q, want %q", ref, got, content)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func Put(t *testing.T, s blob.Store, content []byte) blob.Ref {
	t.Helper()
	ref, err := s.Put(context.Background(), content)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func get(t *testing.T, s blob.Store, ref blob.Ref) []byte {
	t.Helper()
	content, err := s.Get(context.Background(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Want holds a store to the content of a reference.
func Want(t *testing.T, s blob.Store, ref blob.Ref, want []byte) {
	t.Helper()
	if got, err := s.Get(context.Background(), ref); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get = %d bytes, %v, want %d", len(got), err, len(want))
	}
}

// Noted is a store that notes what is put into it, for tests that look at all of it.
type Noted struct {
	blob.Store

	mu   sync.Mutex // guards refs
	refs []blob.Ref
}

// Put stores content and notes its reference.
func (n *Noted) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	ref, err := n.Store.Put(ctx, content)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && !slices.Contains(n.refs, ref) {
		n.refs = append(n.refs, ref)
	}
	return ref, err
}

// Refs is what was put, each once.
func (n *Noted) Refs() []blob.Ref {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.refs)
}

// Noise is n bytes that do not compress, the same ones for the same seed.
func Noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}
