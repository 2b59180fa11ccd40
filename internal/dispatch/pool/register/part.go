package register

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// WholeOf is the investigation that a task is part of, as a file says; the task's own id
// if there is no file.
func WholeOf(path string, id marchwarden.TraceID) (marchwarden.TraceID, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find task %s", id)
	}
	whole, err := marchwarden.ParseTraceID(strings.TrimSpace(string(text)))
	return whole, marchwarden.Wrap(err, marchwarden.CodeCorrupt, "find task %s", id)
}

// NotePart writes down of which investigation a task is part, once.
func NotePart(path string, whole marchwarden.TraceID) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	unlock, err := durable.LockFile(filepath.Join(filepath.Dir(path), "lock"))
	if err != nil {
		return err
	}
	return errors.Join(durable.ReplaceFile(path, []byte(whole.String()+"\n")), unlock())
}

// Pace is how often files are looked at for what other processes have written: soon
// after something was new, and ever later while nothing is.
type Pace struct {
	Most  time.Duration // between two looks
	wait  time.Duration
	timer *time.Timer
}

// Next is when to look next.
func (p *Pace) Next(news bool) <-chan time.Time {
	if p.wait = min(2*p.wait, p.Most); news || p.wait == 0 {
		p.wait = p.Most / 20
	}
	p.Stop()
	p.timer = time.NewTimer(p.wait)
	return p.timer.C
}

// Stop frees what it holds.
func (p *Pace) Stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}
