package limit

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFolder(t *testing.T) {
	dir := t.TempDir() + "/limits"
	one, two := Folder(dir, time.Now)("host:example.org/requests"), Folder(dir, time.Now)("host:example.org/requests")
	if b, rev, err := one.Load(t.Context()); err != nil || rev != 0 || b != nil {
		t.Fatalf("%q %d %v", b, rev, err)
	}
	if err := one.Swap(t.Context(), []byte("a\nb"), 0); err != nil {
		t.Fatal(err)
	}
	if err := two.Swap(t.Context(), []byte("c"), 0); !errors.Is(err, ErrConflict) {
		t.Errorf("a second first: %v", err)
	}
	if b, rev, err := two.Load(t.Context()); err != nil || rev != 1 || string(b) != "a\nb" {
		t.Errorf("%q %d %v", b, rev, err)
	}
	if other, rev, err := Folder(dir, time.Now)("acme/money").Load(t.Context()); other != nil || rev != 0 || err != nil {
		t.Errorf("%q %d %v", other, rev, err)
	}
	var wg sync.WaitGroup
	l := New(Config{Name: "acme/money", Rate: Rate{N: 1000, Per: Day}, Store: Folder(dir, time.Now)("acme/money"), Now: time.Now})
	other := New(Config{Name: "acme/money", Rate: Rate{N: 1000, Per: Day}, Store: Folder(dir, time.Now)("acme/money"), Now: time.Now})
	for range 10 {
		wg.Go(func() { waits(t, l, 50) })
		wg.Go(func() { waits(t, other, 50) })
	}
	wg.Wait()
	for !l.rests() || !other.rests() { // what was used is told in the background
		time.Sleep(time.Millisecond)
	}
	b, _, err := Folder(dir, time.Now)("acme/money").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s, err := decode(b); err != nil || s.Spent+s.sum() != 1000 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestName(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{"", "a", "A", "a.b", "a=2eb", "a/b", "host:example.org/requests", "host:*", "über", strings.Repeat("x", 300), strings.Repeat("x", 301), "a b", "a\x00b", "../x"} {
		name := Name(key)
		if was, twice := seen[name]; twice || len(name) > longestName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_=") != "" || name == "" {
			t.Errorf("%q is named %q, as %q", key, name, was)
		}
		seen[name] = key
	}
}
