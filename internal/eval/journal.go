package eval

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// keptRow is one line of a journal.
type keptRow struct {
	Row Row     `json:"row"`
	Sec float64 `json:"sec"`
}

// journal keeps the rows of a run as they come: a line that names the run, then a line
// a row, each with a checksum that holds for this run alone. A line that a crash tore
// is cut off, a damaged one is passed over, and its case run again. Lines are not synced
// one by one, since a row that a power cut takes costs no more than its case.
type journal struct {
	key  string
	rows map[string]keptRow // as they were found

	mu sync.Mutex // guards f
	f  *os.File   // nil: nothing is kept
}

// The kinds of lines, for their checksums.
const (
	headLine = "eval run"
	rowLine  = "eval row"
)

// openJournal opens the journal at path for the run of that key and reads what it
// holds of it; what is another run's is thrown away. Another process that writes it is
// an error.
func openJournal(path, key string, fresh bool) (*journal, error) {
	j := &journal{key: key, rows: map[string]keptRow{}}
	if path == "" {
		return j, nil
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the folder of the rows")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the rows")
	}
	j.f = f
	if err := durable.Lock(f, false); errors.Is(err, durable.ErrLocked) {
		return nil, errors.Join(&marchwarden.Error{
			Code: marchwarden.CodeUnavailable, Message: "another run writes " + path, Hint: "wait for it, or give another --out",
		}, f.Close())
	}
	end, err := int64(0), error(nil)
	if !fresh {
		end, err = j.read()
	}
	if err == nil {
		err = j.begin(end)
	}
	if err != nil {
		return nil, errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the rows of %s", path), f.Close())
	}
	return j, nil
}

// maxRow bounds a line.
const maxRow = 4 << 20

// read takes over the rows and says where the last whole line ends; 0 is to begin anew.
func (j *journal) read() (end int64, err error) {
	data, err := io.ReadAll(io.LimitReader(j.f, 1<<30))
	if err != nil {
		return 0, err
	}
	known := false
	for at := 0; at < len(data); {
		n := 0
		for n < len(data)-at && data[at+n] != '\n' {
			n++
		}
		if at+n == len(data) { // torn
			break
		}
		line := data[at : at+n]
		at += n + 1
		if !known {
			_, sum, err := durable.CheckLine(line, headLine, j.key)
			if err != nil || sum == "" {
				return 0, nil
			}
			known = true
		} else if body, sum, err := durable.CheckLine(line, rowLine, j.key); err == nil && sum != "" {
			var k keptRow
			if json.Unmarshal(append(body[:len(body):len(body)], '}'), &k) == nil {
				j.rows[k.Row.ID] = k
			}
		}
		end = int64(at)
	}
	return end, nil
}

// begin cuts off what is after end and puts a head where there is none.
func (j *journal) begin(end int64) error {
	if err := j.f.Truncate(end); err != nil {
		return err
	}
	if _, err := j.f.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	line, _ := durable.SealLine([]byte(`{"run":"`+j.key+`"}`), headLine, j.key)
	_, err := j.f.Write(line)
	return err
}

// add keeps a row.
func (j *journal) add(row Row, sec float64) error {
	if j.f == nil {
		return nil
	}
	object, err := json.Marshal(keptRow{row, sec})
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode a row")
	}
	if len(object) > maxRow {
		return marchwarden.Errorf(marchwarden.CodeInternal, "the row of case %s has %d bytes, over the limit of %d", row.ID, len(object), maxRow)
	}
	line, _ := durable.SealLine(object, rowLine, j.key)
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.f.Write(line)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep a row")
}

// close syncs and closes the file.
func (j *journal) close() error {
	if j.f == nil {
		return nil
	}
	err := errors.Join(j.f.Sync(), j.f.Close())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "keep the rows")
}

// Forget removes the journal of a run whose report is written. One that is not there
// is no error.
func Forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remove the rows of a finished run")
	}
	return nil
}
