package drift

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
//
// A line has its own format:
//
//	1  the report alone
//	2  the report, and at the end "sum": 16 hex digits over all before it
const (
	folder     = "drift"
	suffix     = ".jsonl"
	lineFormat = 2
	lineTag    = "marchwarden/drift-line/v2"
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
	r.Format = lineFormat
	if err := enc.Encode(r); err != nil {
		return err
	}
	unlock, err := durable.LockFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	sealed, _ := durable.SealLine(line.Bytes(), lineTag)
	return durable.AppendLine(path, sealed)
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
func Last(home string, id marchwarden.TraceID) (last Report, found bool, err error) {
	err = eachLine(pathOf(home, id), func(line durable.Line) {
		if r, err := decodeLine(line.Text); err == nil && r.TraceID == id {
			last, found = r, true
		}
	})
	if err != nil {
		return Report{}, false, err
	}
	return last, found, nil
}

// eachLine calls fn for every line of a file of checks. One that does not exist has none.
func eachLine(path string, fn func(durable.Line)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer f.Close()
		err = durable.ScanLines(f, maxLine, fn)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the checks in %s", path)
}

var errLater = errors.New("made by a later version")

// decodeLine reads a line without its newline.
func decodeLine(text []byte) (Report, error) {
	text = bytes.TrimSpace(text)
	_, sum, err := durable.CheckLine(text, lineTag)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, errors.New("it is torn, or no report")
	}
	switch {
	case r.Format > lineFormat:
		return Report{}, fmt.Errorf("%w: it has format %d; this program reads formats 1 to %d", errLater, r.Format, lineFormat)
	case r.Format < 1 || !r.TraceID.Valid():
		return Report{}, errors.New("it is no report")
	case r.Format >= 2 && sum == "":
		return Report{}, errors.New("its checksum is missing")
	}
	r.Format = Format
	return r, nil
}

// Damage names the lines of a file of checks that cannot be used. A flipped bit in a
// line of format 1 is found only if the line is no longer a report.
func Damage(path string) (bad []durable.BadLine, err error) {
	err = eachLine(path, func(line durable.Line) {
		r, problem := decodeLine(line.Text)
		if problem == nil && r.TraceID.String()+suffix != filepath.Base(path) {
			problem = errors.New("it is about another run, " + r.TraceID.String())
		}
		if problem != nil {
			bad = append(bad, durable.BadLine{Line: line, Problem: problem.Error(), Later: errors.Is(problem, errLater)})
		}
	})
	return bad, err
}
