package submit

import (
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

// maxHead is how much of a line is looked at: its status and id stand at its
// beginning.
const maxHead = 4 << 10

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

func (r *Results) read() error {
	info, err := r.f.Stat()
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", r.path)
	}
	whole, err := r.wholeLines(info.Size())
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", r.path)
	}
	wrong := 0
	err = durable.ScanLines(io.NewSectionReader(r.f, 0, whole), maxHead, func(l durable.Line) {
		if head, ok := headOf(l.Text); ok {
			r.there[head.TraceID] = head.Status != dispatch.Done
		} else if wrong == 0 {
			wrong = l.N
		}
	})
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", r.path)
	}
	stump := make([]byte, min(int64(len(lineBegins)), info.Size()-whole))
	if _, err := r.f.ReadAt(stump, whole); err != nil && len(stump) > 0 {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", r.path)
	}
	if wrong > 0 || !strings.HasPrefix(lineBegins, string(stump)) {
		return settings.Invalid("--out", "choose another file", fmt.Sprintf("%q holds something else than results: line %d", r.path, max(1, wrong)))
	}
	if len(stump) > 0 { // a crash left it; it is asked for again
		err = r.f.Truncate(whole)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "cut off half a line of %s", r.path)
}

// lineBegins is how every line of results begins.
const lineBegins = `{"line":`

// headOf reads what of a line stands before its result.
func headOf(line []byte) (head Line, ok bool) {
	for _, field := range []string{`,"result":`, `,"error":`} {
		if cut := bytes.Index(line, []byte(field)); cut > 0 {
			line = append(line[:cut:cut], '}')
		}
	}
	err := json.Unmarshal(line, &head)
	return head, err == nil && head.TraceID.Valid() && head.Status != ""
}

// wholeLines is how much of the file is whole lines.
func (r *Results) wholeLines(size int64) (int64, error) {
	const piece = 64 << 10
	for end := size; end > 0; {
		from := max(0, end-piece)
		buf := make([]byte, end-from)
		if _, err := r.f.ReadAt(buf, from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		end = from
	}
	return 0, nil
}

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
