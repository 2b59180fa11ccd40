package evidence

import (
	"iter"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Window is a stretch of a document as a reader sees it: the passages that stand
// together under one heading, as far as they fit. A row of a table names its
// columns, and marks of items and of quoted mail are left out, so its text is not always the
// document's; Span tells what stands behind a part of it.
type Window struct {
	Path     string // the headings above it, the document's title first
	Text     string
	Passages []int // places of its passages in the source, in order
	pieces   []piece
}

// piece says that a part of a window is so many bytes of the document.
type piece struct{ at, doc, size int }

// windowChars is how long a window may be, in characters: what a reader takes in
// at a glance.
const windowChars = MaxPassageChars

// Windows cuts a source into windows, in order. Headings and rows that name
// columns are in none: they stand above what they head.
func (s *Source) Windows() iter.Seq[Window] {
	return func(yield func(Window) bool) {
		var open Window
		var last *Passage
		var named string
		chars := 0 // of open
		for i := range s.Passages {
			p := &s.Passages[i]
			if p.IsHeading {
				continue
			}
			one := s.view(p)
			grown := utf8.RuneCountInString(one.Text)
			apart := last == nil || last.Path != p.Path || !slices.Equal(last.Columns, p.Columns)
			if apart || chars+grown > windowChars {
				if len(open.Passages) > 0 && !yield(open) {
					return
				}
				open, chars = Window{}, 0
			}
			if open.Text != "" {
				grown++ // the line end before it
			}
			chars += grown
			open.append(one, i)
			if apart {
				named = s.path(p)
			}
			open.Path, last = named, p
		}
		if len(open.Passages) > 0 {
			yield(open)
		}
	}
}

// path is the title of the document, or else the name of its file in words, and the
// headings above a passage.
func (s *Source) path(p *Passage) string {
	title := strings.Join(strings.Fields(s.Page.Title), " ")
	if name := path.Base(s.Page.Locator); (title == "" || title == name && !s.earlier) && !strings.Contains(s.Page.Locator, "://") {
		title = strings.Join(strings.FieldsFunc(strings.TrimSuffix(name, path.Ext(name)), func(r rune) bool { return strings.ContainsRune("-_. ", r) }), " ")
	}
	parts := strings.Split(p.Path, " › ")
	if title != "" && parts[0] != title {
		parts = append([]string{title}, parts...)
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if n := len(parts); n > 1 && len(strings.Join(parts, " › ")) > pathChars {
		parts = []string{plaintext.Clip(parts[0], pathChars/3), plaintext.Clip(parts[n-1], 2*pathChars/3)}
	}
	return strings.Join(parts, " › ")
}

// pathChars is how long a path may be before its middle is left out: a reader sees the
// beginning of it.
const pathChars = 96

// bullet is how long the sign is that an item without a number begins with.
func bullet(item string) int {
	sign, n := utf8.DecodeRuneInString(item)
	rest := strings.TrimLeft(item[n:], " ")
	if !strings.ContainsRune("-*+•–", sign) || rest == item[n:] {
		return 0
	}
	return len(item) - len(rest)
}

func (s *Source) view(p *Passage) Window {
	var w Window
	for i, sp := range p.Sentences {
		sign := bullet(s.Text[sp.Start:sp.End])
		switch {
		case i == 0:
		case sign > 0:
			w.Text += "\n"
		default:
			w.Text += " "
		}
		sp.Start += sign
		if p.Columns != nil {
			w.addRow(s.Text, sp, p.Columns)
		} else {
			w.addLines(s.Text, sp)
		}
	}
	return w
}

func (w *Window) add(text string, sp marchwarden.Span) {
	w.pieces = append(w.pieces, piece{len(w.Text), sp.Start, sp.End - sp.Start})
	w.Text += text[sp.Start:sp.End]
}

// addLines writes a sentence without the marks of quoted mail in it.
func (w *Window) addLines(text string, sp marchwarden.Span) {
	for {
		end := strings.Index(text[sp.Start:sp.End], "\n>")
		if end < 0 {
			w.add(text, sp)
			return
		}
		w.add(text, marchwarden.Span{Start: sp.Start, End: sp.Start + end})
		w.Text += " "
		sp.Start += end
		sp.Start += len(text[sp.Start:sp.End]) - len(strings.TrimLeft(text[sp.Start:sp.End], "\n> "))
	}
}

// addRow writes each cell of a row after the name of its column.
func (w *Window) addRow(text string, sp marchwarden.Span, columns []string) {
	written := false
	for at, i := sp.Start, 0; at < sp.End; i++ {
		end := at + strings.IndexByte(text[at:sp.End]+"|", '|')
		cell := marchwarden.Span{Start: at + len(text[at:end]) - len(strings.TrimLeft(text[at:end], " \t")), End: at + len(strings.TrimRight(text[at:end], " \t"))}
		if at == sp.Start && cell.Start >= cell.End { // a bar before the first cell
			i--
		} else if cell.Start < cell.End {
			if written {
				w.Text += "; "
			}
			if i < len(columns) && columns[i] != "" {
				w.Text += columns[i] + ": "
			}
			w.add(text, cell)
			written = true
		}
		at = end + 1
	}
	if written {
		w.Text += "."
	}
}

func (w *Window) append(o Window, passage int) {
	if len(w.Passages) == 0 {
		*w = Window{Text: o.Text, Passages: []int{passage}, pieces: o.pieces}
		return
	}
	if w.Text != "" {
		w.Text += "\n"
	}
	for _, m := range o.pieces {
		w.pieces = append(w.pieces, piece{len(w.Text) + m.at, m.doc, m.size})
	}
	w.Text += o.Text
	w.Passages = append(w.Passages, passage)
}

// Span is the stretch of the document behind the bytes from start to end of the
// window, or false where none of them is the document's.
func (w *Window) Span(start, end int) (marchwarden.Span, bool) {
	from, to, ok := w.across(start, end, func(m piece) (int, int) { return m.at, m.doc })
	return marchwarden.Span{Start: from, End: to}, ok
}

// At is the stretch of the window that shows a stretch of the document, or false
// where it shows none of it.
func (w *Window) At(sp marchwarden.Span) (start, end int, ok bool) {
	return w.across(sp.Start, sp.End, func(m piece) (int, int) { return m.doc, m.at })
}

// across is where the bytes from start to end of one side stand on the other, of which
// sides says where a piece begins.
func (w *Window) across(start, end int, sides func(piece) (here, there int)) (from, to int, ok bool) {
	for _, m := range w.pieces {
		here, there := sides(m)
		first, last := max(start, here), min(end, here+m.size)
		if first >= last {
			continue
		}
		if !ok {
			from, ok = there+first-here, true
		}
		to = there + last - here
	}
	return from, to, ok
}
