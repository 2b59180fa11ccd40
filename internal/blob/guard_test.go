package blob

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A keeper that hands out other bytes than it was given must not get past the
// guard.
func TestGuardRefusesWhatItsKeeperMixesUp(t *testing.T) {
	keeper := &memory{content: make(map[Ref][]byte)}
	store := Guard(keeper)
	ref, err := store.Put(context.Background(), []byte("honest"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lie := range []string{"", "honesT", "honest\x00", "hones"} {
		keeper.content[ref] = []byte(lie)
		content, err := store.Get(context.Background(), ref)
		if content != nil || !errors.Is(err, ErrCorrupt) {
			t.Errorf("Get of %q = %q, %v, want nothing and ErrCorrupt", lie, content, err)
		} else if !strings.Contains(err.Error(), ref.String()) {
			t.Errorf("error %q does not name %s", err, ref)
		}
	}
}

func TestPutRefusesTooMuch(t *testing.T) {
	keeper := &memory{content: make(map[Ref][]byte)}
	store := guard{keeper: keeper, maxSize: 10}
	if _, err := store.Put(context.Background(), make([]byte, 10)); err != nil {
		t.Errorf("Put at the limit: %v", err)
	}
	_, err := store.Put(context.Background(), make([]byte, 11))
	if !errors.Is(err, ErrTooLarge) || len(keeper.content) != 1 {
		t.Errorf("Put over the limit: error %v, %d blobs kept, want ErrTooLarge and 1", err, len(keeper.content))
	}
	if g, ok := NewMem().(guard); !ok || g.maxSize != MaxSize {
		t.Error("a store is not limited to MaxSize")
	}
}
