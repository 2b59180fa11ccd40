package submit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Line is a line of a file of results. Fields are only ever added.
type Line struct {
	Line    int                 `json:"line"`
	ID      string              `json:"id"`
	Status  dispatch.Status     `json:"status"`
	TraceID marchwarden.TraceID `json:"trace_id"`
	Result  json.RawMessage     `json:"result,omitempty"`
	Error   *Failure            `json:"error,omitempty"`
}

// Failure is why a question has no result.
type Failure struct {
	Code    marchwarden.Code `json:"code"`
	Message string           `json:"message"`
	Hint    string           `json:"hint,omitempty"`
}

// Results is the file of results: one line for each question, ever. It is this
// process's alone while it is open, and used by one goroutine at a time.
type Results struct {
	path  string
	made  bool // by this process
	f     *os.File
	there map[marchwarden.TraceID]bool // whether it failed
}

// OpenResults opens a file of results, makes it if it is missing, and cuts off what a
// crash left of a line. One that another process writes, or that holds something else,
// is an error.
func OpenResults(path string) (*Results, error) {
	_, before := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, settings.Invalid("--out", "", fmt.Sprintf("%q cannot be written: %s", path, durable.Cause(err)))
	}
	if err := durable.Lock(f, false); errors.Is(err, durable.ErrLocked) {
		return nil, errors.Join(&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "another submit is writing " + path, Hint: "wait for it, or choose another --out"}, f.Close())
	}
	r := &Results{path: path, f: f, made: errors.Is(before, fs.ErrNotExist), there: map[marchwarden.TraceID]bool{}}
	if err := r.read(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := durable.SyncDir(os.Open(filepath.Dir(path))); err != nil {
		return nil, errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep %s", path), f.Close())
	}
	return r, nil
}

// read takes in the lines that are there.
func (r *Results) read() error {
	reader, size := bufio.NewReader(r.f), int64(0)
	for n := 1; ; n++ {
		text, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", r.path)
		}
		var line Line
		switch begun := text[:min(len(text), len(lineBegins))]; {
		case len(text) == 0:
			return nil
		case err != nil && strings.HasPrefix(lineBegins, string(begun)): // a crash left half a line; it is asked for again
			return marchwarden.Wrap(r.f.Truncate(size), marchwarden.CodeUnavailable, "cut off half a line of %s", r.path)
		case err == nil && len(bytes.TrimSpace(text)) == 0:
		case err != nil || json.Unmarshal(text, &line) != nil || !line.TraceID.Valid() || line.Status == "":
			return settings.Invalid("--out", "choose another file", fmt.Sprintf("%q holds something else than results: line %d", r.path, n))
		default:
			r.there[line.TraceID] = line.Status != dispatch.Done
		}
		size += int64(len(text))
	}
}

// lineBegins is how every line of results begins.
const lineBegins = `{"line":`

// Has reports whether a question has its line.
func (r *Results) Has(id marchwarden.TraceID) bool {
	_, there := r.there[id]
	return there
}

// FailedOf counts the questions that have failed.
func (r *Results) FailedOf(all []Question) (n int) {
	for _, q := range all {
		if r.there[q.Task] {
			n++
		}
	}
	return n
}

// add writes a line that has not been there before, and keeps it.
func (r *Results) add(l Line) error {
	if _, there := r.there[l.TraceID]; there {
		return nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "write down the result of line %d", l.Line)
	}
	r.there[l.TraceID] = l.Status != dispatch.Done
	if _, err := r.f.Write(out.Bytes()); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write %s", r.path)
	}
	return marchwarden.Wrap(r.f.Sync(), marchwarden.CodeUnavailable, "keep %s", r.path)
}

// Close gives the file up.
func (r *Results) Close() error { return durable.Release(r.f) }

// Discard removes the file of a submission that cannot begin, if it was made for it.
func (r *Results) Discard() error {
	if !r.made || len(r.there) > 0 {
		return nil
	}
	return marchwarden.Wrap(os.Remove(r.path), marchwarden.CodeUnavailable, "remove the empty %s", r.path)
}
