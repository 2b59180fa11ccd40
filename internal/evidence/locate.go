package evidence

import (
	"bytes"
	"iter"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Locate finds a quote in a text and returns where it stands there, in the bytes
// as stored. Quote and text are compared after Fold and without white space, and
// then exactly: a quote with another word, digit or letter case is not found. If
// the quote is not there as it is, ellipses at its ends ("…", "...", "[...]") are
// taken for cut marks and left out. Of several places, the first that begins and
// ends with whole words is returned, or else the first.
//
// Folding the text at the span gives the folded quote, but for white space and
// cut marks. Locate takes time linear in the text, and looks at a thousand places at most.
// It knows no shortest quote: whether a match of one letter says anything is the caller's
// decision.
func Locate(text, quote string) (marchwarden.Span, bool) {
	want := key(quote)
	if want == "" {
		return marchwarden.Span{}, false
	}
	f := folder{src: text, marked: true}
	f.fold()
	if span, ok := f.locate(want); ok {
		return span, true
	}
	if cut := unmarked(want); cut != "" && cut != want {
		return f.locate(cut)
	}
	return marchwarden.Span{}, false
}

// locate finds a folded quote in the folded text.
func (f *folder) locate(want string) (marchwarden.Span, bool) {
	var first marchwarden.Span
	found := false
	for at := range occurrences(f.key, want) {
		start, okStart := f.start(at)
		end, okEnd := f.end(at + len(want))
		if !okStart || !okEnd {
			continue
		}
		span := marchwarden.Span{Start: start, End: end}
		if wholeWords(f.src, span) {
			return span, true
		}
		if !found {
			first, found = span, true
		}
	}
	return first, found
}

// wholeWords reports whether no word goes on beyond either end of the span.
func wholeWords(s string, span marchwarden.Span) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:span.Start])
	first, _ := utf8.DecodeRuneInString(s[span.Start:])
	last, _ := utf8.DecodeLastRuneInString(s[:span.End])
	after, _ := utf8.DecodeRuneInString(s[span.End:])
	return !(wordRune(before) && wordRune(first)) && !(wordRune(last) && wordRune(after))
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// maxPlaces bounds the places of a quote that are looked at: one that stands in more of
// them says nothing about any.
const maxPlaces = 1000

// occurrences yields the first places of want in s, overlapping ones too.
func occurrences(s []byte, want string) iter.Seq[int] {
	return func(yield func(int) bool) {
		from := 0
		for range maxPlaces {
			at := bytes.Index(s[from:], []byte(want))
			if at < 0 || !yield(from+at) {
				return
			}
			from += at + 1
		}
	}
}
