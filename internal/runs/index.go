package runs

import (
	"cmp"
	"errors"
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
// version of its file from another; one that was written here has that of the version before.
type known struct {
	record
	modified time.Time
	size     int64
}

// add takes in a record, in the place of an earlier version of it.
func (s *shelf) add(rec known) {
	rec.Request, rec.Message, rec.Failure = marchwarden.Request{}, "", nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.records[rec.ID]; rec.modified.IsZero() {
		rec.modified, rec.size = old.modified, old.size
	}
	s.records[rec.ID] = rec
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

// of are the records of a researcher that are to go on, or are not, from the first to the last by a time.
func (s *shelf) of(researcher string, toGoOn bool, by func(record) time.Time) []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var recs []record
	for _, rec := range s.records {
		if rec.Researcher == researcher && rec.toGoOn() == toGoOn {
			recs = append(recs, rec.record)
		}
	}
	slices.SortFunc(recs, func(a, b record) int {
		return cmp.Or(by(a).Compare(by(b)), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return recs
}

// expired are the records of a researcher that are to be removed: those that ended before a
// time, calls that never ended, which began before it, and what an owner has beyond maxRecords.
func (s *shelf) expired(researcher string, before time.Time) []record {
	all := s.of(researcher, false, record.lastSign)
	slices.Reverse(all)
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
		info, gone := entry.Info()
		if !ok || err != nil || id.String() != text || gone != nil {
			continue
		}
		there[id] = true
		s.mu.Lock()
		old := s.records[id]
		s.mu.Unlock()
		if old.modified.Equal(info.ModTime()) && old.size == info.Size() {
			continue
		}
		if _, err := s.read(id); err != nil && !errors.Is(err, errNone) {
			s.log.Error("the record of a run could not be read: for now it has no owner", "run", id.String(), "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.records, func(id marchwarden.TraceID, old known) bool { return !there[id] && !old.modified.IsZero() })
	return nil
}
