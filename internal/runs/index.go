package runs

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxRecords bounds the folder and the memory: of more records of one owner the oldest
	// ended ones are removed before their time.
	maxRecords = 10_000
	// What one record tells of its result at most. Beyond that only the local user sees
	// traces and evidence.
	maxTraces   = 1024
	maxEvidence = 4096
)

// isHash reports whether a text is "sha256:" and 64 hex digits.
func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// known is a record as it is in memory, without what only its run needs. The stamp tells one
// version of its file from another.
type known struct {
	record
	modified time.Time
	size     int64
}

// add takes in a record, in the place of an earlier version of it.
func (s *shelf) add(rec record) {
	rec.Request, rec.Message, rec.Failure = marchwarden.Request{}, "", nil
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.records[rec.ID]
	now.record = rec
	s.records[rec.ID] = now
}

// forget forgets a record.
func (s *shelf) forget(id marchwarden.TraceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, id)
}

// has reports whether a principal has a record of which something holds.
func (s *shelf) has(owner string, holds func(record) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.Owner == owner && holds(rec.record) {
			return true
		}
	}
	return false
}

// of are the records of a researcher for which something holds, from the last to the first by a time.
func (s *shelf) of(researcher string, holds func(record) bool, by func(record) time.Time) []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var recs []record
	for _, rec := range s.records {
		if rec.Researcher == researcher && holds(rec.record) {
			recs = append(recs, rec.record)
		}
	}
	slices.SortFunc(recs, func(a, b record) int {
		return cmp.Or(by(b).Compare(by(a)), strings.Compare(b.ID.String(), a.ID.String()))
	})
	return recs
}

// unended are the kept runs of a researcher that have not ended, from the first that was begun to the last.
func (s *shelf) unended(researcher string) []record {
	recs := s.of(researcher, record.toGoOn, func(rec record) time.Time { return rec.Created })
	slices.Reverse(recs)
	return recs
}

// expired are the records of a researcher that are to be removed: those that ended before a
// time, calls that never ended, which began before it, and what an owner has beyond maxRecords.
func (s *shelf) expired(researcher string, before time.Time) []record {
	all := s.of(researcher, func(rec record) bool { return !rec.toGoOn() }, record.lastSign)
	has := map[string]int{}
	return slices.DeleteFunc(all, func(rec record) bool {
		has[rec.Owner]++
		return has[rec.Owner] <= maxRecords && !rec.lastSign().Before(before)
	})
}

// lookEvery is how often the folder is looked through for what other processes have
// written there.
const lookEvery = time.Second

// look takes in what other processes have written, and reports whether it looked.
func (s *shelf) look(now time.Time) bool {
	s.mu.Lock()
	age := now.Sub(s.looked)
	due := s.dir != "" && (age < 0 || age >= lookEvery)
	if due {
		s.looked = now
	}
	s.mu.Unlock()
	if !due {
		return false
	}
	if err := s.refresh(); err != nil {
		s.log.Error("the folder of the runs could not be read", "error", err)
		return false
	}
	return true
}

// refresh reads the records that are new or have changed, and forgets those that are gone. A
// folder is of use without one that cannot be read now, which is tried again next time.
func (s *shelf) refresh() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	there := map[marchwarden.TraceID]bool{}
	for _, entry := range entries {
		text, ok := strings.CutSuffix(entry.Name(), recordSuffix)
		id, err := marchwarden.ParseTraceID(text)
		if !ok || err != nil || id.String() != text {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // it was removed a moment ago
		}
		there[id] = true
		s.readChanged(id, info)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.records, func(id marchwarden.TraceID, old known) bool { return !there[id] && !old.modified.IsZero() })
	return nil
}

// readChanged reads a record whose file is not as it was when it was read last.
func (s *shelf) readChanged(id marchwarden.TraceID, info fs.FileInfo) {
	s.mu.Lock()
	old := s.records[id]
	s.mu.Unlock()
	if old.modified.Equal(info.ModTime()) && old.size == info.Size() {
		return
	}
	_, err := s.read(id)
	switch {
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.records[id] = known{s.records[id].record, info.ModTime(), info.Size()}
	case !errors.Is(err, errNone):
		s.log.Error("the record of a run could not be read: for now it has no owner", "run", id.String(), "error", err)
	}
}
