package evidence

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
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

// A large text that one Set holds is not split again for another.
func TestLargeTextIsSharedWhileHeld(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The lamp was lit in 1887 by the keeper.\n\n", 30_000)
	page := fetch.Page{Locator: "lamps.txt", Text: blob.Of([]byte(text))}
	var researcher, investigator Set
	first, _ := researcher.Add(page, text)
	if readBefore(readKey{page.Text, false}) == nil || readBefore(readKey{page.Text, true}) != nil {
		t.Error("a large text is not offered as it was read")
	}
	investigator.Add(fetch.Page{Locator: "other.txt"}, "Another text.")
	second, _ := investigator.Add(page, text)
	if len(second.Passages) != len(first.Passages) || &second.Passages[0] == &first.Passages[0] {
		t.Fatal("the passages are not a copy")
	}
	if first.Passages[7].ID != "S1.8" || second.Passages[7].ID != "S2.8" || first.Passages[7].Text != second.Passages[7].Text {
		t.Errorf("ids %s and %s", first.Passages[7].ID, second.Passages[7].ID)
	}
	runtime.KeepAlive(&researcher)
}
