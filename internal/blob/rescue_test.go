package blob_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// picky is a store on a disk that has no room for long contents until it is cleared.
type picky struct {
	blob.Store
	cleared atomic.Bool
}

func (p *picky) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	if len(content) > 100 && !p.cleared.Load() {
		return blob.Ref{}, syscall.ENOSPC
	}
	return p.Store.Put(ctx, content)
}

// What is in memory alone is the trouble of those that need it, and of no other user of the same
// store.
func TestWhatCannotBeStoredIsSettledByThoseWhoNeedIt(t *testing.T) {
	t.Parallel()
	disk := &picky{Store: blob.NewMem()}
	s := blob.Rescue(disk)
	large, err := s.Put(t.Context(), make([]byte, 1000))
	if err != nil {
		t.Fatal(err)
	}
	small, err := s.Put(t.Context(), []byte("small"))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := s.Get(t.Context(), large); err != nil || len(content) != 1000 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if err := blob.Settle(t.Context(), s, small); err != nil {
		t.Errorf("what is stored cannot be settled: %v", err)
	}
	if err := blob.Settle(t.Context(), s, small, large); err == nil {
		t.Error("what is in memory alone counts as stored")
	}
	disk.cleared.Store(true)
	if err := blob.Settle(t.Context(), s, large); err != nil {
		t.Fatal(err)
	}
	if content, err := disk.Get(t.Context(), large); err != nil || len(content) != 1000 {
		t.Errorf("it was not stored: %d bytes, %v", len(content), err)
	}
}
