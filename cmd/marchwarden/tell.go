package main

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// listener is who reads stderr.
type listener int

const (
	people       listener = iota
	program               // as --json-events asks for: one JSON object a line
	investigator          // this program as a parent, which keeps the last line of a child that ended
)

// remark is what a program reads beside events. Fields are only ever added.
type remark struct {
	Warning string           `json:"warning,omitempty"`
	Note    string           `json:"note,omitempty"`
	Error   string           `json:"error,omitempty"`
	Code    marchwarden.Code `json:"code,omitempty"`
	Hint    string           `json:"hint,omitempty"`
}

// tell writes one line of JSON to stderr. It is lost if it cannot be written.
func (a *app) tell(v any) {
	w := a.Stderr
	if a.errStyle().Width > 0 {
		w = term.JSON(w)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

// complain says why a command failed.
func (a *app) complain(err error) {
	hint := marchwarden.HintOf(err)
	switch a.reader {
	case program:
		a.tell(remark{Error: term.CleanLine(err.Error()), Code: marchwarden.CodeOf(err), Hint: term.CleanLine(hint)})
	case investigator:
		line := term.CleanLine(err.Error())
		if whole := line + "; " + term.CleanLine(hint); hint != "" && utf8.RuneCountInString(whole) <= lastWords {
			line = whole
		}
		fmt.Fprintln(a.Stderr, plaintext.Brief(line, lastWords))
	default:
		a.errStyle().Error(a.Stderr, err)
	}
}

// lastWords is how many characters of the last line of a child its parent keeps.
const lastWords = 200

// warn tells about something that did not stop the work.
func (a *app) warn(message string) {
	if a.reader == program {
		a.tell(remark{Warning: term.CleanLine(message)})
		return
	}
	a.errStyle().Warn(a.Stderr, "%s", message)
}

// warnOf writes the warnings of a result to stderr, unless the same terminal shows them
// above the answer.
func (a *app) warnOf(res *marchwarden.Result, shown bool) {
	if shown && a.reader != program && a.outStyle().Width > 0 && a.errStyle().Width > 0 {
		return
	}
	for _, warning := range res.Warnings {
		a.warn(warning)
	}
}

// note writes a line for people to stderr.
func (a *app) note(format string, args ...any) {
	line := term.CleanLine(fmt.Sprintf(format, args...))
	if a.reader == program {
		a.tell(remark{Note: line})
		return
	}
	fmt.Fprintf(a.Stderr, "marchwarden: %s\n", line)
}
