package term

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"
)

// maxLine bounds a line that is read.
const maxLine = 64 << 10

// Typed reads lines, without the space around them, until io.EOF. Where in and
// out are a terminal, a person types them, who can edit them and bring earlier ones back with the
// arrow keys: Ctrl-C and Ctrl-D on an empty line are io.EOF then, and between lines the terminal is
// as it was, so that Ctrl-C is a signal. out gets the prompt.
func Typed(in io.Reader, out io.Writer, st Style) (next func() (string, error), person bool) {
	read := bufio.NewReaderSize(in, maxLine)
	line := func() (string, error) { return read.ReadString('\n') }
	if f, ok := in.(*os.File); ok && st.Width > 0 && xterm.IsTerminal(int(f.Fd())) {
		both := struct {
			io.Reader
			io.Writer
		}{in, out}
		prompt := xterm.NewTerminal(both, "› ")
		person, line = true, func() (string, error) {
			was, err := xterm.MakeRaw(int(f.Fd()))
			if err != nil {
				return "", err
			}
			defer func() { _ = xterm.Restore(int(f.Fd()), was) }()
			text, err := prompt.ReadLine()
			if errors.Is(err, io.EOF) { // the key that ended it would end the next line, too
				before := prompt.History
				prompt = xterm.NewTerminal(both, "› ")
				prompt.History = before
			}
			return text, err
		}
	}
	return func() (string, error) {
		text, err := line()
		if text = strings.TrimSpace(text); text != "" || errors.Is(err, xterm.ErrPasteIndicator) {
			err = nil // what ended it comes again
		}
		return text, err
	}, person
}
