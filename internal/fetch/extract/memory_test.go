package extract

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// A page of legal size must not grow into gigabytes: whatever its tags are, heap
// in use stays within 64 MiB of where it was. In the everyday form the largest page has
// one kind of tag.
func TestMarkupIsNoBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: measures the heap")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // garbage is not what is measured
	for name, unit := range map[string]string{"paragraphs": "<p>a", "links": "<a href=/x>y</a>", "cells": "<td>1", "attributes": `<i a=1 b=2 c=3 d=4>x</i>`} {
		for _, size := range []int{300 << 10, 15 << 20} {
			if size > 1<<20 && name != "cells" && !datatest.Full() {
				continue
			}
			if size > 1<<20 && !datatest.Full() {
				size = 4 << 20 // as little a tree as more of it
			}
			raw := []byte("<html><body>" + strings.Repeat(unit, size/len(unit)))
			x := New(Config{})
			runtime.GC()
			var before runtime.MemStats
			runtime.ReadMemStats(&before)
			var peak atomic.Uint64
			stop := make(chan struct{})
			go func() {
				for {
					var now runtime.MemStats
					runtime.ReadMemStats(&now)
					peak.Store(max(peak.Load(), now.HeapAlloc))
					select {
					case <-stop:
						return
					case <-time.After(5 * time.Millisecond):
					}
				}
			}()
			doc, err := x.Extract(t.Context(), "http://x.example/", raw)
			close(stop)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			grown := (int64(peak.Load()) - int64(before.HeapAlloc)) >> 20
			t.Logf("%s, %d KiB: %d MiB at the peak, %d KiB of text", name, size>>10, grown, len(doc.Text)>>10)
			if grown > 64 {
				t.Errorf("%s of %d KiB: the heap grew by %d MiB", name, size>>10, grown)
			}
		}
	}
}
