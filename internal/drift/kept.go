package drift

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// The checks of a result are kept below the home folder, a Report as JSON a line, the
// newest last:
//
//	drift/<trace_id>.jsonl
//
// A line is written under a lock, by one write, and synced. A torn line is what a
// crash leaves: the next writer begins on a line of its own, and readers go past it.
const (
	folder = "drift"
	suffix = ".jsonl"
)

// maxLine bounds a line that is read; a result has far less to say.
const maxLine = 64 << 20

func pathOf(home string, id marchwarden.TraceID) string {
	return filepath.Join(home, folder, id.String()+suffix)
}

// Keep adds a report to those of its result. Files are made with mode 0600, folders
// with 0700. It is safe for concurrent use, by several processes too. An error means
// that the report may not be kept; those before it are.
func Keep(home string, r Report) (err error) {
	path := pathOf(home, r.TraceID)
	defer func() { err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep the check in %s", path) }()
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	unlock, err := durable.LockFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return durable.AppendLine(path, line.Bytes())
}

// Forget removes the checks of a result; one without any is left as it is.
func Forget(home string, id marchwarden.TraceID) error {
	path := pathOf(home, id)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remove the checks in %s", path)
	}
	return nil
}

// Last is the newest check of a result that is kept and can be read; false if there
// is none. It is safe while others Keep.
func Last(home string, id marchwarden.TraceID) (Report, bool, error) {
	path := pathOf(home, id)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, false, nil
	}
	if err != nil {
		return Report{}, false, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the checks in %s", path)
	}
	defer f.Close()
	var last Report
	found := false
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r Report
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Format >= 1 && r.Format <= Format && r.TraceID == id {
			last, found = r, true
		}
	}
	if err := lines.Err(); err != nil {
		return Report{}, false, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the checks in %s", path)
	}
	return last, found, nil
}
