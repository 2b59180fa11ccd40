package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// grumble reads the log of a child process, a JSON object a line, and passes on
// what people should know. Other lines are for those who look for a fault.
type grumble struct {
	name  string
	warn  func(string)
	debug func(string) // nil unless debugging

	mu   sync.Mutex // guards part: a process may write from several threads
	part []byte
}

// maxGrumble bounds one line.
const maxGrumble = 4 << 10

func (a *app) newGrumble(c *settings.Settings, name string, warn func(string)) *grumble {
	g := &grumble{name: name, warn: warn}
	if c.On(settings.Debug) {
		g.debug = func(line string) {
			if json.Valid([]byte(line)) { // a log like our own
				fmt.Fprintln(a.stderr, line)
				return
			}
			a.note("%s: %s", name, line)
		}
	}
	return g
}

// Write takes what the child wrote. It never fails: a log must not end a child.
func (g *grumble) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part = append(g.part, p...)
	for {
		line, rest, whole := bytes.Cut(g.part, []byte("\n"))
		if !whole {
			break
		}
		g.line(line)
		g.part = rest
	}
	if len(g.part) > maxGrumble {
		g.part = nil
	}
	return len(p), nil
}

func (g *grumble) line(line []byte) {
	var said struct {
		Level string `json:"level"`
		Msg   string `json:"msg"`
	}
	if json.Unmarshal(line, &said) == nil && said.Msg != "" && (said.Level == "WARN" || said.Level == "ERROR") {
		g.warn(g.name + ": " + brief(said.Msg, 300))
	}
	if g.debug != nil {
		g.debug(term.CleanLine(string(line)))
	}
}
