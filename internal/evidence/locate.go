package evidence

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"golang.org/x/text/unicode/norm"
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
	within := key(text)
	span, ok := locate(text, within, want)
	if cut := unmarked(want); !ok && cut != "" && cut != want {
		span, ok = locate(text, within, cut)
	}
	return span, ok
}

// locate finds a folded quote in a folded text.
func locate(text, folded, want string) (marchwarden.Span, bool) {
	var first marchwarden.Span
	for _, span := range sources(text, places(folded, want), len(want)) {
		if WholeWords(text, span) {
			return span, true
		}
		if first == (marchwarden.Span{}) {
			first = span
		}
	}
	return first, first != (marchwarden.Span{})
}

// maxPlaces bounds the places of a quote that are looked at: one that stands in more of
// them says nothing about any.
const maxPlaces = 1000

// places are the first places of want in s, overlapping ones too.
func places(s, want string) (at []int) {
	for from := 0; len(at) < maxPlaces; from++ {
		next := strings.Index(s[from:], want)
		if next < 0 {
			break
		}
		from += next
		at = append(at, from)
	}
	return at
}

// sources are the stretches of a text behind places of so many bytes in its key, in
// order. A place that begins or ends inside of what cannot be divided has none.
func sources(text string, places []int, size int) []marchwarden.Span {
	spans := make([]marchwarden.Span, len(places))
	begun, ended, at := 0, 0, 0 // at: in the key
	for p := range parts(text) {
		if ended == len(places) {
			break
		}
		after := at + len(p.key)
		for ; begun < len(places) && places[begun] < after; begun++ {
			if spans[begun].Start = -1; p.plain || places[begun] == at {
				spans[begun].Start = p.start + places[begun] - at
			}
		}
		for ; ended < begun && places[ended]+size <= after; ended++ {
			if end := places[ended] + size; p.plain {
				spans[ended].End = p.start + end - at
			} else if end == after {
				spans[ended].End = p.end
			}
		}
		at = after
	}
	return slices.DeleteFunc(spans, func(s marchwarden.Span) bool { return s.Start < 0 || s.End == 0 })
}

// WholeWords reports whether no word goes on beyond either end of the span.
func WholeWords(s string, span marchwarden.Span) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:span.Start])
	first, _ := utf8.DecodeRuneInString(s[span.Start:])
	last, _ := utf8.DecodeLastRuneInString(s[:span.End])
	after, _ := utf8.DecodeRuneInString(s[span.End:])
	return !(wordRune(before) && wordRune(first)) && !(wordRune(last) && wordRune(after))
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// Fold brings a text into the form in which quotes are compared: Unicode NFC;
// soft hyphens, zero-width characters and marks of writing direction dropped;
// typographic quotes as ' and ", dashes and minus signs as -, … as three dots;
// each run of white space as one space, none at the ends. Case, letters and
// digits stay as they are. Bytes that are no UTF-8 become U+FFFD. Folding a
// folded text changes nothing.
func Fold(s string) string { return folded(s, " ") }

// key returns s folded and without white space.
func key(s string) string { return folded(s, "") }

func folded(s, gap string) string {
	var b strings.Builder
	b.Grow(len(s))
	for p := range parts(s) {
		if p.gap && b.Len() > 0 {
			b.WriteString(gap)
		}
		b.WriteString(p.key)
	}
	return b.String()
}

// part is a stretch of a text and what it is when folded. Of a plain one both are the
// same bytes; any other is one unit that cannot be divided.
type part struct {
	key        string
	start, end int
	plain      bool
	gap        bool // white space stands before it
}

// parts folds a text cluster by cluster. A cluster is a character and those that
// normalisation may join to it; cutting a text between clusters and folding the parts
// gives the parts of the folded text, which is what makes offsets of the key meaningful
// in the text.
func parts(s string) iter.Seq[part] {
	return func(yield func(part) bool) {
		gap := false
		for i := 0; i < len(s); {
			end := i
			for end < len(s) && solid[s[end]] {
				end++
			}
			if end < len(s) && s[end] >= utf8.RuneSelf && end > i {
				end-- // what follows may join to this character
			}
			p, next := part{key: s[i:end], start: i, end: end, plain: true}, end
			switch {
			case end > i:
			case asciiSpace(s[i]) && (i+1 == len(s) || s[i+1] < utf8.RuneSelf):
				p.gap, next = true, i+1
			default:
				p, next = cluster(s, i)
			}
			if gap, i = gap || p.gap, next; p.key == "" {
				continue
			}
			if p.gap, gap = gap, false; !yield(p) {
				return
			}
		}
	}
}

// solid are the bytes that stand for themselves: ASCII without white space.
var solid = func() (t [256]bool) {
	for c := range t {
		t[c] = c < utf8.RuneSelf && !asciiSpace(byte(c))
	}
	return t
}()

// cluster folds the cluster at i and says where the next one begins. Its key is empty
// where it is invisible, or white space.
func cluster(s string, i int) (p part, next int) {
	r, n := utf8.DecodeRuneInString(s[i:])
	p.start, p.end, next = i, i+n, i+n
	if dropped(r) {
		return p, next
	}
	folded := appendFolded(nil, r)
	for next < len(s) && s[next] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[next:])
		if !dropped(r) {
			if startsCluster(s[next : next+n]) {
				break
			}
			folded = append(folded, s[next:next+n]...)
			p.end = next + n
		}
		next += n
	}
	p.key = string(norm.NFC.Bytes(folded))
	if r, n := utf8.DecodeRuneInString(p.key); unicode.IsSpace(r) {
		p.key, p.gap = p.key[n:], true
	}
	p.plain = p.key == s[p.start:p.end] && utf8.RuneCountInString(p.key) == 1
	return p, next
}

func appendFolded(b []byte, r rune) []byte {
	switch r {
	case '‘', '’', '‚', '‛', '′', '´', 'ʼ', '\u1FFD':
		return append(b, '\'')
	case '“', '”', '„', '‟', '″':
		return append(b, '"')
	case '‐', '‑', '‒', '–', '—', '―', '−', '﹘', '﹣', '－':
		return append(b, '-')
	case '…':
		return append(b, "..."...)
	}
	return utf8.AppendRune(b, r)
}

// dropped reports whether r is invisible: soft hyphen, zero-width characters,
// marks of direction, variation selectors.
func dropped(r rune) bool {
	switch {
	case r < 0xAD:
		return false
	case r == 0xAD, r == 0x34F, r == 0x61C, r == 0x180E, r == 0xFEFF:
		return true
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E:
		return true
	case r >= 0x2060 && r <= 0x2064, r >= 0x2066 && r <= 0x206F:
		return true
	}
	return r == 0xFE0E || r == 0xFE0F
}

// startsCluster reports whether the rune in s cannot join to what is before it.
func startsCluster(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError {
		return true
	}
	return norm.NFC.PropertiesString(s).BoundaryBefore()
}

func asciiSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// unmarked returns a folded key without the ellipses at its ends that say a
// quote was cut: "...", "[...]".
func unmarked(key string) string {
	for {
		k := key
		for _, mark := range []string{"[...]", "(...)", "..."} {
			k = strings.TrimSuffix(strings.TrimPrefix(k, mark), mark)
		}
		if k == key {
			return k
		}
		key = k
	}
}
