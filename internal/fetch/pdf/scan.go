package pdf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Bounds of recognising text in pictures of pages.
const (
	maxScanned = 200              // pages of one PDF; the others stay without text
	maxFailed  = 3                // pages one after the other that fail: so would the rest
	scanWide   = 1700             // pixels, as of a letter at 200 dots an inch
	scanHigh   = 2400             //
	scanTime   = 30 * time.Second // of one page
	maxScan    = 1 << 20          // bytes of text of one page
	maxWaiting = 64 << 20         // bytes of text that wait for a page before them
)

// scan gives the pages of a PDF on in their order. From the first one that is a picture they wait until
// PDFium has read all: recognising takes longer than PDFium may.
type scan struct {
	*Reader
	raw     []byte
	give    func(n, of int, text string) error
	first   int // the page that waiting begins with
	waiting []string
	size    int
	failed  bool // a page could not be recognised, and may be another time
}

// page takes the text of the next page.
func (s *scan) page(n, of int, text string) error {
	if s.cfg.OCR == "" || len(s.waiting) == 0 && written(text) {
		return s.give(n, of, text)
	}
	if len(s.waiting) == 0 {
		s.first = n
	}
	s.waiting = append(s.waiting, text)
	if s.size += len(text); s.size > maxWaiting {
		return fmt.Errorf("%w: text over %d bytes at page %d of %d", extract.ErrTooLarge, maxWaiting, n, of)
	}
	return nil
}

// rest gives what has waited. A page that cannot be drawn or recognised stays without text.
func (s *scan) rest(ctx context.Context) error {
	of, scanned, failed := s.first+len(s.waiting)-1, 0, 0
	for i, text := range s.waiting {
		if !written(text) && scanned < maxScanned && failed < maxFailed {
			scanned++
			failed++
			var err error
			if text, err = s.recognise(ctx, s.first+i); err != nil {
				s.failed = true
			} else {
				failed = 0
			}
			if ctx.Err() != nil || errors.Is(err, extract.ErrClosed) {
				return fmt.Errorf("recognise page %d of %d: %w", s.first+i, of, cmp.Or(ctx.Err(), err))
			}
		}
		if err := s.give(s.first+i, of, text); err != nil {
			return err
		}
	}
	return nil
}

// written reports whether a page has a word on it.
func written(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// recognise is the text in the picture of a page. The program is given pixels that are drawn here, never a part of the document itself,
// and one thread, so that the same picture gives the same text.
func (s *scan) recognise(ctx context.Context, n int) (string, error) {
	var drawn bytes.Buffer
	err := s.with(ctx, func(ctx context.Context, in instance) error {
		doc, _, err := s.opened(ctx, in, s.raw)
		if err != nil {
			return err
		}
		canvas, err := sheet{in, doc}.canvas(n-1, scanWide, scanHigh)
		if err != nil {
			return s.fault(ctx, "draw", err)
		}
		return png.Encode(&drawn, canvas)
	})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.cfg.OCR, "stdin", "stdout")
	cmd.Env = []string{"OMP_THREAD_LIMIT=1"}
	cmd.Stdin, cmd.WaitDelay = &drawn, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(out, maxScan))
	if len(text) == maxScan {
		cancel() // no page has so much
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(text), "\ufffd"), nil
}
