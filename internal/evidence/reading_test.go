package evidence

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// What was read before it was added is ranked as what is read when it is ranked, whichever
// comes first.
func TestReadBeforehand(t *testing.T) {
	texts := []string{"", "# Lamps\n\nThe lamp was lit in 1887. It was mended twice.\n\nA lamp is no lantern.", "Lanterns of the harbour.\n\nThe lamps are out. A stone fell in 1903.", "The"}
	later, before := &Set{}, &Set{}
	for i, text := range texts {
		page := fetch.Page{Locator: fmt.Sprint(i), Title: fmt.Sprintf("Lamp number %d", i)}
		later.Add(page, text)
		read, err := new(Set).Read(t.Context(), text)
		if err != nil || read.Text() != text {
			t.Fatal(err)
		}
		if before.AddRead(page, read); i%2 == 0 {
			before.Rank([]string{"lamp"}, 0)
		}
	}
	for _, query := range [][]string{{"lamp"}, {"1887"}, {"stone", "number"}, {"harbour", "lantern", "lamp"}} {
		if a, b := later.Rank(query, 0), before.Rank(query, 0); len(a) == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%q: %+v and %+v", query, a, b)
		}
	}
}

// Reading ends with its context, in the middle of a text.
func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := new(Set).Read(ctx, strings.Repeat("The lamp was lit again. It was mended twice.\n\n", 200_000)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A file without a title is called by its name, and not by its ending.
func TestTheNameOfAFileIsItsTitle(t *testing.T) {
	for earlier, want := range map[bool]string{false: "old bridge", true: "old-bridge.txt"} {
		set := &Set{Earlier: earlier}
		src, _ := set.Add(fetch.Page{Locator: "notes/old-bridge.txt", Title: "old-bridge.txt"}, "The bridge was completed in 1911.")
		if got := slices.Collect(src.Windows())[0].Path; got != want {
			t.Errorf("by earlier rules %v: %q, want %q", earlier, got, want)
		}
	}
}
