//go:build unix

package main

import (
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
)

// maxWeight is what a page may weigh with all that it loads, in bytes.
const maxWeight = 300_000

// TestPageWeight measures the page of an answer with 200 citations against one with a single one: what it weighs for a browser
// that has nothing of it, and when something is seen in one that was here before.
func TestPageWeight(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	r := newRack(t)
	home := r.home(t)
	h := writeByHand(t, home)
	one, _ := h.put(manyCited(1))
	many, _ := h.put(manyCited(200))
	s := r.ui(t, home)
	p := s.enter(t, b)
	best, times := map[string]time.Duration{}, 5
	for _, id := range []string{one.String(), many.String()} {
		fresh := s.like(t, b, p) // nothing is in its cache
		fresh.Go(s.url + "/runs/" + id)
		m := fresh.Timing()
		t.Logf("%s: %d bytes over the wire, %d unpacked, in %d files; first paint %v in a new browser", id, m.Transferred, m.Decoded, m.Resources+1, m.FirstContentfulPaint)
		if m.Transferred > maxWeight || m.Decoded > maxWeight {
			t.Errorf("the page weighs %d bytes, %d unpacked, more than %d", m.Transferred, m.Decoded, maxWeight)
		}
		for range times { // the best of them is the page's, the others are the machine's
			p.Go(s.url + "/history")
			p.Follow(`.entry a[href$="` + id + `"]`)
			paint := p.Timing().FirstContentfulPaint
			if was := best[id]; was == 0 || paint < was {
				best[id] = paint
			}
		}
		if n := p.Count("#answer .sentence"); n == 0 {
			t.Errorf("%s: there is no answer", id)
		}
	}
	few, lots := best[one.String()], best[many.String()]
	t.Logf("first paint of 200 citations: %v (within 200 ms: %v); of one: %v; %.1f times as long", lots, lots <= 200*time.Millisecond, few, float64(lots)/float64(few))
	if lots > 8*few+200*time.Millisecond {
		t.Errorf("200 citations take %v until something is seen, one takes %v", lots, few)
	}
}
