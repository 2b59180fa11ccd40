package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Prompt reads lines from a person at a terminal, who can edit them and bring earlier ones
// back with the arrow keys.
type Prompt struct {
	fd   int
	line *xterm.Terminal
}

// NewPrompt makes a prompt that reads from in and writes to out; nil if either is no terminal.
func NewPrompt(in *os.File, out io.Writer, st Style) *Prompt {
	if in == nil || st.Width == 0 || !xterm.IsTerminal(int(in.Fd())) {
		return nil
	}
	both := struct {
		io.Reader
		io.Writer
	}{in, out}
	return &Prompt{int(in.Fd()), xterm.NewTerminal(both, "› ")}
}

// Line reads one line. Ctrl-C and Ctrl-D on an empty line are io.EOF. The terminal is as it was when Line returns, so that
// Ctrl-C is a signal again.
func (p *Prompt) Line() (string, error) {
	was, err := xterm.MakeRaw(p.fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = xterm.Restore(p.fd, was) }()
	return p.line.ReadLine()
}
