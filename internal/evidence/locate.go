package evidence

import (
	"bytes"
	"iter"
	"slices"
	"sort"
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

// Fold brings a text into the form in which quotes are compared: Unicode NFC;
// soft hyphens, zero-width characters and marks of writing direction dropped;
// typographic quotes as ' and ", dashes and minus signs as -, … as three dots;
// each run of white space as one space, none at the ends. Case, letters and
// digits stay as they are. Bytes that are no UTF-8 become U+FFFD. Folding a
// folded text changes nothing.
func Fold(s string) string {
	f := folder{src: s, spaces: true}
	f.fold()
	return string(f.key)
}

// key returns s folded and without white space.
func key(s string) string {
	f := folder{src: s}
	f.fold()
	return string(f.key)
}

// run is a stretch of a key and where it comes from. In a plain run key and
// source are the same bytes; any other run is one unit that cannot be divided.
type run struct {
	key      int
	src, end int
	plain    bool
}

// folder folds a text cluster by cluster. A cluster is a character and those
// that normalisation may join to it; cutting a text between clusters and folding
// the parts gives the parts of the folded text, which is what makes offsets of
// the key meaningful in the source.
type folder struct {
	src    string
	key    []byte
	spaces bool   // keep single spaces
	marked bool   // record marks
	marks  []mark // in order
	mapped bool   // record runs
	runs   []run  // in order of key
	gap    bool   // white space since the last cluster

	cluster []byte // scratch
}

// mark is a place between two clusters. Folding the source from one mark to
// another gives the key between them: so that not every run of a long text has to
// be remembered, those around a place are found again when they are asked for.
type mark struct{ key, src int }

// markEvery is how far marks are apart, in bytes of the source.
const markEvery = 1 << 10

func (f *folder) fold() {
	f.key = slices.Grow(f.key, len(f.src))
	next := 0 // where a mark is due
	for i := 0; i < len(f.src); {
		if f.marked && i >= next {
			f.marks = append(f.marks, mark{len(f.key), i})
			next = i + markEvery
		}
		end := i
		for end < len(f.src) && solid[f.src[end]] {
			end++
		}
		if end < len(f.src) && f.src[end] >= utf8.RuneSelf && end > i {
			end-- // what follows may join to this character
		}
		switch {
		case end > i:
			f.space()
			f.plain(i, end)
			i = end
		case asciiSpace(f.src[i]) && (i+1 == len(f.src) || f.src[i+1] < utf8.RuneSelf):
			f.gap = true
			i++
		default:
			i = f.slow(i)
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

// slow folds the cluster at i and returns where it ends.
func (f *folder) slow(i int) int {
	r, n := utf8.DecodeRuneInString(f.src[i:])
	if dropped(r) {
		return i + n
	}
	f.cluster = appendFolded(f.cluster[:0], r)
	start, end, next := i, i+n, i+n
	for next < len(f.src) {
		if f.src[next] < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRuneInString(f.src[next:])
		if dropped(r) {
			next += n
			continue
		}
		if startsCluster(f.src[next : next+n]) {
			break
		}
		f.cluster = append(f.cluster, f.src[next:next+n]...)
		next += n
		end = next
	}
	f.emit(start, end)
	return next
}

func (f *folder) emit(start, end int) {
	out := f.cluster
	if norm.NFC.QuickSpan(out) != len(out) {
		out = norm.NFC.Bytes(out)
	}
	if r, n := utf8.DecodeRune(out); unicode.IsSpace(r) {
		f.gap = true
		if out = out[n:]; len(out) == 0 {
			return
		}
	}
	f.space()
	if string(out) == f.src[start:end] && utf8.RuneCount(out) == 1 {
		f.plain(start, end)
		return
	}
	if f.mapped {
		f.runs = append(f.runs, run{key: len(f.key), src: start, end: end})
	}
	f.key = append(f.key, out...)
}

func (f *folder) space() {
	if f.gap && f.spaces && len(f.key) > 0 {
		f.key = append(f.key, ' ')
	}
	f.gap = false
}

func (f *folder) plain(start, end int) {
	if f.mapped {
		if last := len(f.runs) - 1; last >= 0 && f.runs[last].plain && f.runs[last].end == start {
			f.runs[last].end = end
		} else {
			f.runs = append(f.runs, run{key: len(f.key), src: start, end: end, plain: true})
		}
	}
	f.key = append(f.key, f.src[start:end]...)
}

// start returns where in the source key[at] begins; it is false inside a unit.
func (f *folder) start(at int) (int, bool) {
	r, _ := f.runOf(at)
	if r.plain {
		return r.src + at - r.key, true
	}
	return r.src, at == r.key
}

// end returns where in the source the key up to at ends; it is false inside a unit.
func (f *folder) end(at int) (int, bool) {
	r, end := f.runOf(at - 1)
	if r.plain {
		return r.src + at - r.key, true
	}
	return r.end, at == end
}

// runOf folds the source between two marks again to find the run that holds key[at], and
// where it ends in the key.
func (f *folder) runOf(at int) (r run, end int) {
	i := sort.Search(len(f.marks), func(i int) bool { return f.marks[i].key > at }) - 1
	from, to := f.marks[i], len(f.src)
	if i+1 < len(f.marks) {
		to = f.marks[i+1].src
	}
	part := folder{src: f.src[from.src:to], mapped: true}
	part.fold()
	k := sort.Search(len(part.runs), func(k int) bool { return part.runs[k].key > at-from.key }) - 1
	r, end = part.runs[k], len(part.key)
	if k+1 < len(part.runs) {
		end = part.runs[k+1].key
	}
	return run{r.key + from.key, r.src + from.src, r.end + from.src, r.plain}, end + from.key
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
