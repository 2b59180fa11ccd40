package fetch

import (
	"sort"
	"strconv"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Places tells for any byte offset of the text of a local document where in the
// file the first word at or after it stands, as a fragment that can be put behind
// the locator: "#page=3" in a PDF, "#L10" where the file has lines, and "" where
// that is not certain or the page is not of a file. Lines and pages are counted
// from one. The answer rests on stored bytes alone, so that any reader can repeat it.
//
// raw is asked for the bytes as fetched, at most once and only when they are
// needed; its error is returned as it is.
func (p Page) Places(text string, raw func() ([]byte, error)) (func(offset int) string, error) {
	place := func(int) string { return "" }
	switch {
	case p.Source != sourceFile || strings.Contains(p.Locator, "://"): // no path has that
	case len(p.Pages) > 0:
		place = func(offset int) string {
			n := sort.SearchInts(p.Pages, offset+1) // the last page that begins no later
			if n == 0 {
				return ""
			}
			return "#page=" + strconv.Itoa(n)
		}
	case p.Raw.Valid() && extract.HasLines(p.MediaType):
		stored := blob.Bytes(text)
		if p.Raw != p.Text { // else the bytes are those of the text
			var err error
			if stored, err = raw(); err != nil {
				return nil, err
			}
		}
		lines := extract.LinesOf(p.Locator, stored, text)
		place = func(offset int) string {
			n, ok := lines.At(offset)
			if !ok {
				return ""
			}
			return "#L" + strconv.Itoa(n)
		}
	}
	return func(offset int) string {
		if offset < 0 || offset >= len(text) {
			return ""
		}
		rest := strings.TrimLeftFunc(text[offset:], unicode.IsSpace)
		return place(len(text) - len(rest))
	}, nil
}

// Outdated reports a page that an earlier version read, with lines that cannot be
// found again.
func (p Page) Outdated() bool { return extract.Outdated(p.Extractor) }
