package pdf

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

func newReader(t testing.TB, cfg Config) *Reader {
	t.Helper()
	cfg.CacheDir = datatest.PDFCache(t)
	r := New(cfg)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// marks are where a picture is marked, and how large it is.
func marks(t *testing.T, data []byte) (marked, whole image.Rectangle) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			c := color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)
			if c.A != 255 {
				t.Fatalf("it can be seen through at %d, %d", x, y)
			}
			if int(c.R)-int(c.B) > 100 {
				marked = marked.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return marked, img.Bounds()
}

func TestPicture(t *testing.T) {
	r := newReader(t, Config{})
	const same = "Beans fix nitrogen in the soil, which the crops that follow use."
	raw := []byte(makePDF("First page.\n"+same, "Second page.\n"+same+"\nPeas do, too.\n"+same+"\nThe end of it."))
	draw := func(at Passage) (marked, whole image.Rectangle) {
		t.Helper()
		data, err := r.Picture(t.Context(), raw, at)
		if err != nil {
			t.Fatal(err)
		}
		again, err := r.Picture(t.Context(), raw, at)
		if err != nil || !bytes.Equal(data, again) {
			t.Errorf("the picture is another the second time (%v)", err)
		}
		return marks(t, data)
	}
	// A line is 14 of 792 points, the first one at 52 from the top; letters of 12 points stand on it.
	line := func(n int, whole image.Rectangle) int { return (52 + 14*(n-1) - 4) * whole.Dy() / 792 }
	for name, c := range map[string]struct {
		at   Passage
		line int // that is marked; 0 is none
	}{
		"known page":                   {Passage{Text: same, Page: 1, Before: "First page.\n"}, 2},
		"known page, second of two":    {Passage{Text: same, Page: 2, Before: "Second page.\n" + same + "\nPeas do, too.\n"}, 4},
		"unknown page":                 {Passage{Text: same, Before: "First page.\n" + same + "\n\nSecond page.\n"}, 2},
		"unknown page, alone":          {Passage{Text: "Peas do, too."}, 3},
		"other blanks and hyphens":     {Passage{Text: "Peas  do,\n-too", Page: 2}, 3},
		"goes on where the page ends":  {Passage{Text: same + " The end of it. But this is on the next page.", Page: 2, Before: "Second page.\n" + same + "\nPeas do, too.\n"}, 4},
		"not on its page":              {Passage{Text: "Something else altogether", Page: 2}, 0},
		"a passage without any letter": {Passage{Text: "…", Page: 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			marked, whole := draw(c.at)
			if whole.Dx() > maxWide || whole.Dy() > maxHigh || whole.Dx() < 900 {
				t.Errorf("it is %v", whole)
			}
			if c.line == 0 {
				if !marked.Empty() {
					t.Errorf("marked at %v", marked)
				}
				return
			}
			if mid := line(c.line, whole); mid < marked.Min.Y || mid > marked.Max.Y || marked.Min.Y < line(c.line-1, whole) {
				t.Errorf("marked at %v of %v, line %d is at %d", marked, whole, c.line, mid)
			}
		})
	}
	for name, at := range map[string]Passage{"no page has it": {Text: "Something else altogether"}, "no such page": {Text: same, Page: 3}} {
		if _, err := r.Picture(t.Context(), raw, at); !errors.Is(err, ErrNotThere) {
			t.Errorf("%s: %v", name, err)
		}
	}
	turned := []byte(strings.Replace(string(raw), "/MediaBox [0 0 612 792]", "/Rotate 90 /MediaBox [0 0 612 792]", 1))
	data, err := r.Picture(t.Context(), turned, Passage{Text: same, Page: 1})
	if err != nil {
		t.Fatal(err)
	}
	if marked, whole := marks(t, data); whole.Dx() <= whole.Dy() || marked.Dy() <= marked.Dx() {
		t.Errorf("a page that lies on its side: %v marked in %v", marked, whole)
	}
}

// TestPictureOfHostileDocuments holds pictures to their bounds.
func TestPictureOfHostileDocuments(t *testing.T) {
	r := newReader(t, Config{})
	good := makePDF("Some words.")
	box := func(size string) []byte { return []byte(strings.Replace(good, "[0 0 612 792]", size, 1)) }
	for name, raw := range map[string][]byte{
		"cut": []byte(good[:200]), "no pdf": []byte("hello"), "empty": nil, "no size": box("[0 0 0 0]"), "endless": box("[0 0 1e30 1e30]"), "a line": box("[0 0 1000000 1]"),
		"huge": box("[0 0 14400 14400]"), "not a number": box("[0 0 nan -5]"),
	} {
		data, err := r.Picture(t.Context(), raw, Passage{Text: "Some words.", Page: 1})
		if err != nil {
			continue
		}
		if _, whole := marks(t, data); whole.Dx() > maxWide || whole.Dy() > maxHigh {
			t.Errorf("%s: %v", name, whole)
		}
	}
	// Six million characters on one page take seconds to find and to draw.
	slow := []byte(makePDF(strings.Repeat(strings.Repeat("x", 2000)+"\n", 3000)))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Picture(ctx, slow, Passage{Text: "Some words.", Page: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err %v", err)
	}
	small := newReader(t, Config{Memory: 24 << 20})
	if _, err := small.Picture(t.Context(), append(slow, make([]byte, 16<<20)...), Passage{Text: "x", Page: 1}); !errors.Is(err, extract.ErrDamaged) {
		t.Errorf("err %v", err)
	}
	if data, err := r.Picture(t.Context(), []byte(good), Passage{Text: "Some words.", Page: 1}); err != nil || len(data) == 0 {
		t.Errorf("after all of that: %v", err)
	}
}
