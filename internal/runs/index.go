package runs

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// maxRecords bounds the folder and the memory: of more records the oldest ended ones
	// of those who have the most are removed before their time.
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

// add takes in a record, in the place of an earlier version of it.
func (s *shelf) add(rec record) {
	if rec.over() || !rec.Kept { // nothing goes on by what the index has of it
		rec.Request, rec.Message, rec.Failure = marchwarden.Request{}, "", nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[rec.ID] = rec
}

// forget forgets a record.
func (s *shelf) forget(id marchwarden.TraceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, id)
	delete(s.stamps, id)
}

// owns reports whether a principal owns a run, or a run of a rihla.
func (s *shelf) owns(owner string, id marchwarden.TraceID) bool {
	return s.has(owner, func(rec record) bool { return rec.ID == id || slices.Contains(rec.Traces, id) })
}

// cites reports whether a result of a principal cites a document.
func (s *shelf) cites(owner, hash string) bool {
	return s.has(owner, func(rec record) bool { return slices.Contains(rec.Evidence, hash) })
}

// has reports whether a principal has a record of which something holds.
func (s *shelf) has(owner string, holds func(record) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.Owner == owner && holds(rec) {
			return true
		}
	}
	return false
}

// of are the records of a researcher.
func (s *shelf) of(researcher string) []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(s.records)), func(rec record) bool { return rec.Researcher != researcher })
}

// full reports whether there are more records than there should be of one researcher.
func (s *shelf) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records) > maxRecords
}

// unended are the records of kept runs of a researcher that have not ended, from the first
// that was begun to the last.
func (s *shelf) unended(researcher string) []record {
	recs := slices.DeleteFunc(s.of(researcher), func(rec record) bool { return !rec.Kept || rec.over() })
	slices.SortFunc(recs, byAge)
	return recs
}

func byAge(a, b record) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID.String(), b.ID.String()))
}

// expired are the records of a researcher that are to be removed: those that ended before a
// time, and calls that never ended, which began before it; and of too many the oldest of those
// who have the most.
func (s *shelf) expired(researcher string, before time.Time) []record {
	all := s.of(researcher)
	surplus := len(all) - maxRecords
	if surplus > 0 {
		surplus += maxRecords / 10 // so that it is not done for each
	}
	all = slices.DeleteFunc(all, func(rec record) bool { return rec.Kept && !rec.over() })
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(a.lastSign().Compare(b.lastSign()), strings.Compare(a.ID.String(), b.ID.String()))
	})
	n := 0
	for n < len(all) && all[n].lastSign().Before(before) {
		n++
	}
	return append(all[:n:n], oldestOfMost(all[n:], surplus-n)...)
}

// oldestOfMost picks n of records that are in the order of their age: each time the oldest of the
// owner with the most, so that no owner's are removed by what others ask.
func oldestOfMost(recs []record, n int) []record {
	if n <= 0 {
		return nil
	}
	of := map[string][]record{}
	for _, rec := range recs {
		of[rec.Owner] = append(of[rec.Owner], rec)
	}
	owners := slices.Sorted(maps.Keys(of))
	var picked []record
	for len(picked) < min(n, len(recs)) {
		most := slices.MaxFunc(owners, func(a, b string) int { return cmp.Compare(len(of[a]), len(of[b])) })
		picked, of[most] = append(picked, of[most][0]), of[most][1:]
	}
	return picked
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

// stamp tells one version of a record from another.
type stamp struct {
	modified time.Time
	size     int64
}

// refresh reads the records that are new or have changed, and forgets those that are gone. A
// folder is of use without one that cannot be read now, which is tried again next time.
func (s *shelf) refresh() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	stamps := map[marchwarden.TraceID]stamp{}
	for _, entry := range entries {
		text, ok := strings.CutSuffix(entry.Name(), recordSuffix)
		id, err := marchwarden.ParseTraceID(text)
		if !ok || err != nil || id.String() != text {
			continue
		}
		if info, err := entry.Info(); err == nil { // else it was removed a moment ago
			stamps[id] = stamp{info.ModTime(), info.Size()}
		}
	}
	var news []marchwarden.TraceID
	s.mu.Lock()
	for id, now := range stamps {
		if s.stamps[id] != now {
			news = append(news, id)
		}
	}
	for id := range s.stamps {
		if _, there := stamps[id]; !there {
			delete(s.records, id)
		}
	}
	s.stamps = stamps
	s.mu.Unlock()
	for _, id := range news {
		if _, err := s.read(id); err != nil && !isNone(err) {
			s.mu.Lock()
			delete(s.stamps, id)
			s.mu.Unlock()
			s.log.Error("the record of a run could not be read: for now it has no owner", "run", id.String(), "error", err)
		}
	}
	return nil
}
