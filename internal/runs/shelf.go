package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const recordFormat = 1

// record is the form of <id>.json. Fields are added and never change their meaning;
// those that are not known are ignored. A file of a later format is left alone.
type record struct {
	Format     int                   `json:"format"`
	ID         marchwarden.TraceID   `json:"id"`
	Owner      string                `json:"owner"`
	Scopes     []string              `json:"scopes,omitempty"`
	MaxCostDay float64               `json:"max_cost_day_usd,omitempty"` // of the owner
	Researcher string                `json:"researcher"`
	Request    marchwarden.Request   `json:"request"`          // as it was first asked
	Choice     *marchwarden.Choice   `json:"choice,omitempty"` // who may be asked, with what
	Kept       bool                  `json:"kept,omitempty"`
	Created    time.Time             `json:"created"`
	Updated    time.Time             `json:"updated"`
	Status     Status                `json:"status"`
	Message    string                `json:"message,omitempty"`
	Ended      time.Time             `json:"ended,omitzero"`
	Failure    *failed               `json:"failure,omitempty"`
	Traces     []marchwarden.TraceID `json:"traces,omitempty"` // of the rihlas, and of the result if its id is another
	Evidence   []string              `json:"evidence,omitempty"`
}

// failed is the error of a run.
type failed struct {
	Code    marchwarden.Code `json:"code"`
	Field   string           `json:"field,omitempty"`
	Message string           `json:"message"`
	Hint    string           `json:"hint,omitempty"`
}

func (rec record) over() bool { return !rec.Ended.IsZero() }

// toGoOn reports whether the run is kept and has not ended.
func (rec record) toGoOn() bool { return rec.Kept && !rec.over() }

// lastSign is when the run ended or, as far as the record tells, was last alive.
func (rec record) lastSign() time.Time {
	if rec.over() {
		return rec.Ended
	}
	return rec.Updated
}

// failure is the error that the record tells of, or nil.
func (rec record) failure() error {
	if f := rec.Failure; f != nil {
		return &marchwarden.Error{Code: f.Code, Field: f.Field, Message: f.Message, Hint: f.Hint}
	}
	return nil
}

const (
	recordSuffix = ".json"
	lockSuffix   = ".lock"
	stopSuffix   = ".stop"
	asideSuffix  = ".damaged"
	// These end the names of unfinished files; the second is that of earlier versions.
	scrapSuffix    = ".new"
	oldScrapSuffix = ".tmp"

	// maxRecordBytes is far above the largest record that is written.
	maxRecordBytes = 2 << 20

	// oldScrap is how old a file must be that a crash left behind before it is removed: no process
	// uses it any more.
	oldScrap = time.Hour
)

var (
	errNone    = errors.New("there is no such record")
	errForeign = fmt.Errorf("%w: it is of a later version", errNone)
)

// shelf is the records, of all researchers in the folder. Without a folder it keeps nothing
// beyond the process.
type shelf struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	records map[marchwarden.TraceID]known
	looked  time.Time // when the folder was last looked through
}

func openShelf(dir string, log *slog.Logger) (*shelf, error) {
	s := &shelf{dir: dir, log: log, records: map[marchwarden.TraceID]known{}}
	if dir == "" {
		return s, nil
	}
	if err := durable.MakeDir(dir); err != nil {
		return nil, err
	}
	return s, s.refresh()
}

// path is a file of a run.
func (s *shelf) path(id marchwarden.TraceID, suffix string) string {
	return filepath.Join(s.dir, id.String()+suffix)
}

// read gives a record: errNone if there is none that this program can use. One that is damaged is
// set aside.
func (s *shelf) read(id marchwarden.TraceID) (record, error) {
	if s.dir == "" || !id.Valid() {
		return record{}, errNone
	}
	path := s.path(id, recordSuffix)
	info, err := os.Lstat(path)
	var data []byte
	if err == nil && info.Mode().IsRegular() && info.Size() <= maxRecordBytes { // else there is nothing to parse
		data, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record{}, errNone
	case err != nil:
		return record{}, err
	}
	rec, err := parseRecord(data, id)
	switch {
	case errors.Is(err, errForeign):
		return rec, err
	case err != nil:
		moved := os.Rename(path, path+asideSuffix)
		s.log.Error("the record of a run is damaged and was set aside: it has no owner", "file", filepath.Base(path)+asideSuffix, "error", errors.Join(err, moved))
		return rec, errNone
	}
	s.add(known{rec, info.ModTime(), info.Size()})
	return rec, nil
}

func parseRecord(data []byte, id marchwarden.TraceID) (rec record, err error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return rec, err
	}
	if version.Format > recordFormat {
		return rec, errForeign
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, err
	}
	if rec.Format != recordFormat || rec.ID != id || rec.Owner == "" || !slices.Contains([]Status{Working, Completed, Failed, Cancelled}, rec.Status) {
		return rec, errors.New("its format, id, owner or status is wrong")
	}
	return rec, nil
}

// write takes in a record and makes it durable. No crash leaves half of it.
func (s *shelf) write(rec record) error {
	if s.dir != "" {
		data, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		if err := durable.ReplaceFile(s.path(rec.ID, recordSuffix), append(data, '\n')); err != nil {
			return err
		}
	}
	s.add(known{record: rec})
	return nil
}

// lock takes the lock of a run, or says durable.ErrLocked at once. On a file system without locks
// no process is kept out.
func (s *shelf) lock(id marchwarden.TraceID) (*os.File, error) {
	if s.dir == "" {
		return nil, nil
	}
	if _, err := os.Stat(s.dir); err != nil { // it is not made again: it may be a disk that is away
		return nil, err
	}
	return durable.Own(s.path(id, lockSuffix), func(f *os.File) error { return durable.Hold(f, 0) })
}

// unlock gives a lock back and removes its file.
func (s *shelf) unlock(id marchwarden.TraceID, f *os.File) {
	if f == nil {
		return
	}
	// Where an open file cannot be removed, prune does it with the record.
	_ = os.Remove(s.path(id, lockSuffix))
	_ = durable.Release(f) // nothing was written
}

// askToStop asks the process that has a run to stop it for good.
func (s *shelf) askToStop(id marchwarden.TraceID) error {
	f, err := os.OpenFile(s.path(id, stopSuffix), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(os.Open(s.dir))
}

// toStop reports whether there is that wish.
func (s *shelf) toStop(id marchwarden.TraceID) bool {
	_, err := os.Lstat(s.path(id, stopSuffix))
	return s.dir != "" && err == nil
}

// heeded removes the wish.
func (s *shelf) heeded(id marchwarden.TraceID) {
	if s.dir != "" {
		_ = os.Remove(s.path(id, stopSuffix)) // most have none; one that stays is tidied away
	}
}

// remove removes a record and what belongs to it, unless another process has the run, or
// had it meanwhile: durable.ErrLocked.
func (s *shelf) remove(known record) error {
	if s.dir != "" {
		f, err := s.lock(known.ID)
		if err != nil {
			return err
		}
		defer s.unlock(known.ID, f)
		switch now, err := s.read(known.ID); {
		case err == errNone:
		case err != nil:
			return err
		case !now.lastSign().Equal(known.lastSign()):
			return durable.ErrLocked
		}
		if err := os.Remove(s.path(known.ID, recordSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.heeded(known.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, known.ID)
	return nil
}

// tidy removes what crashes have left behind: unfinished files, and locks and wishes
// without a record.
func (s *shelf) tidy(now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.log.Error("the folder of the runs could not be tidied", "error", err)
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		info, err := entry.Info()
		if err != nil || now.Sub(info.ModTime()) < oldScrap {
			continue
		}
		switch suffix := filepath.Ext(name); suffix {
		case scrapSuffix, oldScrapSuffix:
			_ = os.Remove(filepath.Join(s.dir, name)) // again next time
		case lockSuffix, stopSuffix:
			id, err := marchwarden.ParseTraceID(strings.TrimSuffix(name, suffix))
			if err != nil {
				continue
			}
			if _, err := os.Lstat(s.path(id, recordSuffix)); errors.Is(err, fs.ErrNotExist) {
				_ = s.remove(record{ID: id}) // one that is locked stays
			}
		}
	}
}
