//go:build unix

package main

import (
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/browsertest"
)

// TestPagePDF shows the page of a PDF beside the stored text, without moving it; where the document is damaged, the text alone.
func TestPagePDF(t *testing.T) {
	wholeForm(t)
	b := browsertest.Open(t)
	r := newRack(t)
	home := r.home(t)
	good := lampSources[0]
	damaged := good
	damaged.title, damaged.locator, damaged.pdf = "A damaged one", "papers:damaged.pdf#page=1", []byte("%PDF-1.7 and nothing more")
	damaged.after += " It is another text."
	res := &marchwarden.Result{Answer: "It was in 1858. [1] [2]", Claims: []marchwarden.Claim{{Text: "It was in 1858.", Citations: []int{1, 2}, Support: marchwarden.Supported}}, CostMetadata: marchwarden.CostMetadata{ModelID: "m"}}
	id, _ := writeByHand(t, home).put(handRun{question: "When was it?", took: time.Second, sources: []handSource{good, damaged}, result: res})
	s := r.ui(t, home)
	p := s.enter(t, b)
	p.Go(s.url + "/runs/" + id.String() + "?source=1")
	p.Wait("#source.open .leaf img")
	var wide int
	p.Eval(`document.querySelector('.leaf img').decode().then(() => document.querySelector('.leaf img').naturalWidth)`, &wide)
	var off float64 // from the room that it has before it is there
	p.Eval(`(() => { const box = document.querySelector('.leaf img').getBoundingClientRect(); return Math.abs(box.height - Math.min(box.width * 1.294, innerHeight * 0.6)); })()`, &off)
	if wide != 1000 || off > 2 {
		t.Errorf("the picture is %d pixels wide, and takes %v pixels more or less than its room", wide, off)
	}
	if got := p.Text("#excerpt"); got != good.excerpt {
		t.Errorf("marked is %q", got)
	}
	s.calm(t, "a page of a PDF", p)
	p.Go(s.url + "/runs/" + id.String() + "?source=2")
	eventually(t, "the picture is left out", func() (hidden bool) {
		p.Eval(`document.querySelector('#source.open .leaf').hidden`, &hidden)
		return hidden
	})
	if got := p.Text("#excerpt"); got != good.excerpt {
		t.Errorf("beside what cannot be drawn, marked is %q", got)
	}
}
