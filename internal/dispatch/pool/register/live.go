package register

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
)

// Live is a file through which the progress of an investigation gets to other processes.
// It is a courtesy: nothing in it is kept, and what cannot be written is lost.
type Live struct{ path string }

// OpenLive names the file, which is made when something is told.
func OpenLive(path string) Live { return Live{path} }

// Tell passes an event on.
func (l Live) Tell(ev dispatch.Event) {
	line, err := json.Marshal(ev)
	if err != nil {
		return
	}
	f, err := l.open()
	if err != nil {
		return
	}
	_, _ = f.Write(append(line, '\n')) // in one, so that events do not mix
	_ = f.Close()
}

// open opens the file to add to it, and makes it when it is missing.
func (l Live) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if os.IsNotExist(err) && os.MkdirAll(filepath.Dir(l.path), 0o700) == nil {
		f, err = os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	return f, err
}

// Hush removes the file. Listeners hear what was told before.
func (l Live) Hush() { _ = os.Remove(l.path) }

// Ear hears what is told from when it was made. It is for one goroutine.
type Ear struct {
	path string
	file *os.File // nil while there is none
	info os.FileInfo
	at   int64
}

// Listen begins to hear. The caller closes the ear. A file that is there is heard to its
// end though it is removed, so there is one then.
func (l Live) Listen() *Ear {
	e := &Ear{path: l.path}
	if f, err := l.open(); err == nil {
		_ = f.Close()
	}
	if e.open(); e.info != nil {
		e.at = e.info.Size()
	}
	return e
}

// Close ends the hearing.
func (e *Ear) Close() {
	if e.file != nil {
		_ = e.file.Close()
	}
}

// open opens the file that there is now, if it is another than the one that is open.
func (e *Ear) open() (other bool) {
	info, err := os.Stat(e.path)
	if err != nil || e.info != nil && os.SameFile(info, e.info) {
		return false
	}
	f, err := os.Open(e.path)
	if err != nil {
		return false
	}
	e.Close()
	e.file, e.at = f, 0
	e.info, err = f.Stat()
	return err == nil
}

// Hear is what was told since it was asked for last; without an ear, nothing.
func (e *Ear) Hear() []dispatch.Event {
	if e == nil {
		return nil
	}
	heard := e.read()
	if e.open() {
		heard = append(heard, e.read()...)
	}
	return heard
}

// read is what is new in the file that is open.
func (e *Ear) read() (heard []dispatch.Event) {
	if e.file == nil {
		return nil
	}
	data, err := io.ReadAll(io.NewSectionReader(e.file, e.at, 1<<20))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) {
		e.at += int64(len(line))
		var ev dispatch.Event
		if json.Unmarshal(line, &ev) == nil && ev.Kind == dispatch.Progress {
			heard = append(heard, ev)
		}
	}
	return heard
}
