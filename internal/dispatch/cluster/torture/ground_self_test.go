//go:build linux

package torture

import (
	"testing"
	"time"
)

// A cut host is cut off, in both directions and without a word, and is back when it is
// mended: without that, the other tests would show nothing.
func TestGround(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	provider := g.host("provider")
	provider.start("provider", provided{Address: provider.ip + ":80"})
	asker := g.host("asker")
	p := asker.start("asker", provider.ip+":80")
	reaches := func() bool {
		t.Helper()
		var yes bool
		p.must("reach", nil, &yes)
		return yes
	}
	if !reaches() {
		t.Fatal("two hosts of one switch do not reach each other")
	}
	for _, h := range []*host{provider, asker} {
		for _, how := range []cut{silent, unplugged} {
			if err := h.cut(how); err != nil {
				t.Fatal(err)
			}
			if reaches() {
				t.Errorf("%s is reached although it is cut off (%s)", h.name, how)
			}
			if err := h.mend(how); err != nil {
				t.Fatal(err)
			}
			limit := time.Now().Add(20 * time.Second)
			for !reaches() {
				if time.Now().After(limit) {
					t.Fatalf("%s is not reached although it is mended (%s)", h.name, how)
				}
			}
		}
	}
}
