package main

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// grumble reads the log of a child process, a JSON object a line, and passes on
// what people should know. Other lines are for those who look for a fault.
type grumble struct {
	name  string
	warn  func(string)
	debug io.Writer // nil unless debugging

	mu   sync.Mutex // guards part: a process may write from several threads
	part []byte
}

// maxGrumble bounds one line.
const maxGrumble = 4 << 10

func newGrumble(name string, warn func(string), debugging bool, to io.Writer) *grumble {
	g := &grumble{name: name, warn: warn}
	if debugging {
		g.debug = to
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
		g.warn(g.name + ": " + clip(said.Msg, 300))
	}
	if g.debug != nil {
		_, _ = g.debug.Write(append(bytes.Clone(line), '\n')) // there is nobody to tell that stderr fails
	}
}
