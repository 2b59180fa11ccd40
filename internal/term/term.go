// Package term is what people see in a terminal: pages of text, errors, warnings, tables,
// and a run that goes on. What a page says of a result is package report's.
//
// The rules of the user interface:
//
//   - The result, and nothing else, goes to stdout. Everything else goes to
//     stderr, each line prefixed "marchwarden: ".
//   - Messages are lower case without a full stop. They name the thing that is
//     wrong and its limit, and an error that can be helped carries a hint on a
//     line of its own.
//   - Text from outside (answers, titles, excerpts, paths, error texts) passes
//     [Clean] before it is written. The only escape codes that reach a terminal
//     are our own: colours, links, and the drawing over of progress lines.
//   - Colour is used on a terminal only, never with NO_COLOR, and never carries
//     meaning alone: take the codes away and the same words remain.
//   - Text is wrapped by display cells to the terminal, at least 40 and at most
//     120 wide; text that goes to a file or a pipe is wrapped at 80.
//   - An excerpt is shown in full. Its line breaks are not kept: the exact bytes
//     are in the JSON form and in the store.
//   - What is there to be copied is never broken: a command stands alone on its
//     line, and so does the locator of a source that does not fit beside its title.
//     On a first screen, where a source has one line, it may be cut; the link is whole.
//   - Live lines are drawn only on a terminal; elsewhere progress is plain lines,
//     few of them.
//   - The same input gives the same bytes.
//
// The package reads no environment, no clock and no flags: cmd passes them in.
// It decides how things look, not what is said.
package term

import (
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	xterm "golang.org/x/term"
)

// The widths of text, in cells.
const (
	minText     = 40
	defaultText = 80
	maxText     = 120
)

// defaultHeight is the lines of a terminal that does not tell.
const defaultHeight = 24

// Style is how to write to one stream. The zero Style is right for a file or a
// pipe. A Style is a value and safe for concurrent use.
type Style struct {
	// Color allows our colour codes.
	Color bool
	// Width is the terminal's width in cells; 0 means that the stream is no
	// terminal: text is then wrapped at 80 and tables are not cut.
	Width int
	// Height is the terminal's lines; 0 is not known.
	Height int
	// Links allows text that leads to an address (OSC 8).
	Links bool
}

// Detect looks at the stream f. It gives the zero Style for anything but a
// terminal, and 80 cells for a terminal that does not tell. There is no
// colour when noColor is set (the NO_COLOR convention) or when termName, the
// value of TERM, is empty or "dumb".
func Detect(f *os.File, noColor bool, termName string) Style {
	if f == nil || !xterm.IsTerminal(int(f.Fd())) {
		return Style{}
	}
	width, height, err := xterm.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width, height = defaultText, 0
	}
	codes := !noColor && termName != "" && termName != "dumb"
	return Style{Color: codes, Width: width, Height: height, Links: codes && !slices.Contains(simple, termName)}
}

// simple are terminals that know no links.
var simple = []string{"linux", "vt52", "vt100", "vt102", "vt220", "ansi", "cons25", "sun"}

func (st Style) textWidth() int {
	if st.Width <= 0 {
		return defaultText
	}
	return min(max(st.Width, minText), maxText)
}

// Look is how text looks: the parameters of one colour code; "" is plain text.
type Look string

// The looks there are.
const (
	Plain  Look = ""
	Bold   Look = "1"
	Dim    Look = "2"
	Italic Look = "3"
	Red    Look = "31"
	Green  Look = "32"
	Yellow Look = "33"
	Tint   Look = "36" // markers, code and what they point to
)

// And adds a code to another.
func (a Look) And(b Look) Look {
	if a == "" || b == "" {
		return a + b
	}
	return a + ";" + b
}

// Paint colours s, which must be clean, if colour is on.
func (st Style) Paint(code Look, s string) string {
	if !st.Color || code == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(code) + "m" + s + "\x1b[0m"
}

// Prefix opens every line on stderr.
const Prefix = "marchwarden: "

// Error writes err as one line, and its hint, if it has one, as a second. A nil
// err writes nothing. A failure to write is ignored: there is nowhere left to
// report it.
func (st Style) Error(w io.Writer, err error) {
	if err == nil {
		return
	}
	st.Note(w, Run{"error: ", Red}, Run{err.Error(), Plain})
	if hint := CleanLine(marchwarden.HintOf(err)); hint != "" {
		st.Note(w, Run{"hint: ", Green}, Run{hint, Plain})
	}
}

// Warn writes one line about something that did not stop the work. A failure to
// write is ignored.
func (st Style) Warn(w io.Writer, message string) {
	st.Note(w, Run{"warning: ", Yellow}, Run{message, Plain})
}

// Note writes a line for people on stderr, on a terminal wrapped between words. A failure to
// write is ignored.
func (st Style) Note(w io.Writer, runs ...Run) {
	for i := range runs {
		runs[i].Text = breaks.ReplaceAllString(Clean(runs[i].Text), " ")
	}
	if st.Width <= 0 {
		st.Width = math.MaxInt32
	}
	p := st.NewPage()
	lines := wrap(cells(append([]Run{{Prefix, Plain}}, runs...), 0), st.Width, st.Width-2)
	for i, l := range lines {
		p.line(strings.Repeat("  ", min(i, 1)), st.render(l))
	}
	_, _ = p.WriteTo(w)
}
