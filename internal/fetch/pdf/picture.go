package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Passage is a text to be marked on its page.
type Passage struct {
	Text string
	// Page is the one that it begins on, counted from one; 0 is not known, and all are looked through.
	Page int
	// Before is the text that stands before it, on its page if that is known. It tells the passage from another with the same words.
	Before string
}

// ErrNotThere says that the passage is on no page.
var ErrNotThere = errors.New("the passage is on no page")

// Bounds of a picture.
const (
	maxWide   = 1000 // pixels
	maxHigh   = 1500
	maxChars  = 200_000 // of a page
	maxBoxes  = 500     // marked, one or more a line
	sureChars = 40      // letters by which a passage is known
)

// Picture draws the page of a passage with the passage marked, as a PNG. It takes what reading takes at most, and is the same for the same bytes.
func (p *Reader) Picture(ctx context.Context, raw []byte, at Passage) (drawn []byte, err error) {
	err = p.with(ctx, func(ctx context.Context, in instance) error {
		doc, count, err := p.opened(ctx, in, raw)
		if err != nil {
			return err
		}
		s := sheet{in, doc}
		where, err := s.find(at, count)
		if err != nil {
			return p.fault(ctx, "find the passage", err)
		}
		canvas, err := s.draw(where)
		if err != nil {
			return p.fault(ctx, "draw the page", err)
		}
		var out bytes.Buffer
		if err := png.Encode(&out, canvas); err != nil {
			return fmt.Errorf("write the picture: %w", err)
		}
		drawn = out.Bytes()
		return nil
	})
	return drawn, err
}

// sheet is a document whose pages are drawn.
type sheet struct {
	instance
	doc references.FPDF_DOCUMENT
}

func (s sheet) page(n int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: s.doc, Index: n}}
}

// spot is a range of characters of a page, which is counted from zero. An empty one is the page alone.
type spot struct{ page, from, count int }

// find looks for a passage by its letters and digits: blanks and hyphens of the page are not those of the stored text. Of several places
// it takes the one with as many letters before it as there should be.
func (s sheet) find(at Passage, pages int) (spot, error) {
	first, last := 0, pages-1
	if at.Page > 0 {
		if first, last = at.Page-1, at.Page-1; last >= pages {
			return spot{}, ErrNotThere
		}
	}
	want, _ := letters([]rune(at.Text))
	before, _ := letters([]rune(at.Before))
	found, off, passed := spot{page: -1}, 0, 0
	for n := first; n <= last && (found.page < 0 || off > 0); n++ {
		chars, err := s.chars(n)
		if err != nil {
			return spot{}, err
		}
		text, index := letters(chars)
		for _, i := range places(text, want) {
			if d := max(passed+i-len(before), len(before)-passed-i); found.page < 0 || d < off {
				end := i
				for end < len(text) && end-i < len(want) && text[end] == want[end-i] {
					end++
				}
				found, off = spot{n, index[i], index[end-1] + 1 - index[i]}, d
			}
		}
		passed += len(text)
	}
	switch {
	case found.page >= 0:
		return found, nil
	case at.Page > 0:
		return spot{page: first}, nil
	}
	return spot{}, ErrNotThere
}

// chars are the characters of a page, each at the number by which PDFium knows it.
func (s sheet) chars(n int) ([]rune, error) {
	loaded, err := s.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: s.page(n)})
	if err != nil {
		return nil, err
	}
	count, err := s.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	if err != nil {
		return nil, err
	}
	out := make([]rune, min(max(count.Count, 0), maxChars))
	for i := range out {
		char, err := s.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: loaded.TextPage, Index: i})
		if err != nil {
			return nil, err
		}
		out[i] = rune(char.Unicode)
	}
	_, err = s.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage})
	return out, err
}

// letters are the letters and digits of a text, and where each stands.
func letters(text []rune) (out []rune, at []int) {
	for i, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out, at = append(out, r), append(at, i)
		}
	}
	return out, at
}

// places are where a text begins as the wanted one does.
func places(text, want []rune) (out []int) {
	head := want[:min(len(want), sureChars)]
	for i := 0; len(head) > 0 && i+len(head) <= len(text); i++ {
		if slices.Equal(text[i:i+len(head)], head) {
			out = append(out, i)
		}
	}
	return out
}

// marker is what marked text is drawn through: it darkens no letter.
var marker = [3]uint32{255, 226, 122}

// canvas is a page on white, within the bounds.
func (s sheet) canvas(page, wide, high int) (*image.RGBA, error) {
	got, err := s.RenderPageInPixels(&requests.RenderPageInPixels{Page: s.page(page), Width: wide, Height: high})
	if err != nil {
		return nil, err
	}
	defer got.Cleanup()
	img := got.Result.RenderedImage
	if img == nil || img.Bounds().Dx() > wide || img.Bounds().Dy() > high {
		return nil, fmt.Errorf("%w: a page of no size", extract.ErrDamaged)
	}
	canvas := image.NewRGBA(img.Bounds())
	draw.Draw(canvas, canvas.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(canvas, canvas.Rect, img, img.Bounds().Min, draw.Over)
	return canvas, nil
}

// draw draws the page of a spot, with the spot marked.
func (s sheet) draw(at spot) (*image.RGBA, error) {
	canvas, err := s.canvas(at.page, maxWide, maxHigh)
	if err != nil {
		return nil, err
	}
	boxes, err := s.boxes(at, canvas.Rect)
	if err != nil {
		return nil, err
	}
	marked := image.NewAlpha(canvas.Rect) // boxes that overlap mark once
	for _, box := range boxes {
		draw.Draw(marked, box, image.Opaque, image.Point{}, draw.Src)
	}
	for i, on := range marked.Pix {
		for c := range marker {
			if pix := &canvas.Pix[4*i+c]; on > 0 {
				*pix = uint8(uint32(*pix) * marker[c] / 255)
			}
		}
	}
	return canvas, nil
}

// boxes are where the characters of a spot stand in a picture.
func (s sheet) boxes(at spot, within image.Rectangle) ([]image.Rectangle, error) {
	if at.count == 0 {
		return nil, nil
	}
	loaded, err := s.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: s.page(at.page)})
	if err != nil {
		return nil, err
	}
	count, err := s.FPDFText_CountRects(&requests.FPDFText_CountRects{TextPage: loaded.TextPage, StartIndex: at.from, Count: at.count})
	if err != nil {
		return nil, err
	}
	point := func(x, y float64) (image.Point, error) {
		to, err := s.FPDF_PageToDevice(&requests.FPDF_PageToDevice{Page: s.page(at.page), SizeX: within.Dx(), SizeY: within.Dy(), PageX: x, PageY: y})
		if err != nil {
			return image.Point{}, err
		}
		return image.Pt(to.DeviceX, to.DeviceY), nil
	}
	var out []image.Rectangle
	for i := range min(max(count.Count, 0), maxBoxes) {
		r, err := s.FPDFText_GetRect(&requests.FPDFText_GetRect{TextPage: loaded.TextPage, Index: i})
		if err != nil {
			return nil, err
		}
		a, err := point(r.Left, r.Top)
		if err != nil {
			return nil, err
		}
		b, err := point(r.Right, r.Bottom)
		if err != nil {
			return nil, err
		}
		out = append(out, image.Rectangle{Min: a, Max: b}.Canon().Inset(-2))
	}
	return out, nil
}
