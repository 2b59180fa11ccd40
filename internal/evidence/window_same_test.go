package evidence

import (
	"reflect"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// A passage that is seen as it stands is the same window as one that is written anew.
func TestAWindowAsItStands(t *testing.T) {
	const text = "# Notes\n\nThe lamp was lit in 1887. It was\nmended twice.  The keeper left. \n\n- one thing\n- another. And more.\n\nHe wrote:\n> The roof leaks.\n> Come soon.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
	set := &Set{}
	src, _ := set.Add(fetch.Page{Locator: "notes.md"}, text)
	seen := 0
	for i := range src.Passages {
		p := &src.Passages[i]
		w, ok := src.asItStands(p)
		if !ok {
			continue
		}
		seen++
		var anew Window
		for k, sp := range p.Sentences {
			if k > 0 {
				anew.Text += " "
			}
			anew.add(text, sp)
		}
		if !reflect.DeepEqual(w, anew) {
			t.Errorf("%q: %+v, written anew %+v", p.Text, w, anew)
		}
	}
	if seen == 0 || seen == len(src.Passages) {
		t.Errorf("%d of %d passages are seen as they stand", seen, len(src.Passages))
	}
}
