package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
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

// index knows from the records, of all researchers in the folder, who may see what.
type index struct {
	mu      sync.Mutex
	records map[marchwarden.TraceID]record // without what only a run needs that is to go on
	stamps  map[marchwarden.TraceID]stamp  // of the records that were read
	looked  time.Time                      // when the folder was last looked through
}

func newIndex() *index {
	return &index{records: map[marchwarden.TraceID]record{}, stamps: map[marchwarden.TraceID]stamp{}}
}

// add takes in a record, in the place of an earlier version of it.
func (x *index) add(rec record) {
	if rec.over() || !rec.Kept { // nothing goes on by what the index has of it
		rec.Request, rec.Message, rec.Failure = marchwarden.Request{}, "", nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.records[rec.ID] = rec
}

// remove forgets a record.
func (x *index) remove(id marchwarden.TraceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.records, id)
	delete(x.stamps, id)
}

// owns reports whether a principal owns a run, or a run of a rihla.
func (x *index) owns(owner string, id marchwarden.TraceID) bool {
	return x.has(owner, func(rec record) bool { return rec.ID == id || slices.Contains(rec.Traces, id) })
}

// cites reports whether a result of a principal cites a document.
func (x *index) cites(owner, hash string) bool {
	return x.has(owner, func(rec record) bool { return slices.Contains(rec.Evidence, hash) })
}

// has reports whether a principal has a record of which something holds.
func (x *index) has(owner string, holds func(record) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, rec := range x.records {
		if rec.Owner == owner && holds(rec) {
			return true
		}
	}
	return false
}

// of are the records of a researcher.
func (x *index) of(researcher string) []record {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(x.records)), func(rec record) bool { return rec.Researcher != researcher })
}

// full reports whether there are more records than there should be of one researcher.
func (x *index) full() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.records) > maxRecords
}

// unended are the records of kept runs of a researcher that have not ended, from the first
// that was begun to the last.
func (x *index) unended(researcher string) []record {
	recs := slices.DeleteFunc(x.of(researcher), func(rec record) bool { return !rec.Kept || rec.over() })
	slices.SortFunc(recs, byAge)
	return recs
}

func byAge(a, b record) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID.String(), b.ID.String()))
}

// expired are the records of a researcher that are to be removed: those that ended before a
// time, and calls that never ended, which began before it; and of too many the oldest of those
// who have the most.
func (x *index) expired(researcher string, before time.Time) []record {
	all := x.of(researcher)
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

// changed picks those records that have not been read as they are now, in the order of their
// ids, and takes them as read. What is known of records that are gone is forgotten.
func (x *index) changed(stamps map[marchwarden.TraceID]stamp) (news []marchwarden.TraceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, s := range stamps {
		if x.stamps[id] != s {
			news = append(news, id)
		}
	}
	for id := range x.stamps {
		if _, there := stamps[id]; !there {
			delete(x.records, id)
		}
	}
	x.stamps = stamps
	slices.SortFunc(news, func(a, b marchwarden.TraceID) int { return strings.Compare(a.String(), b.String()) })
	return news
}

// unread has a record read again.
func (x *index) unread(id marchwarden.TraceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.stamps, id)
}

// mayLook reports whether the folder may be looked through again, and takes it as done.
func (x *index) mayLook(now time.Time, every time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if age := now.Sub(x.looked); age >= 0 && age < every {
		return false
	}
	x.looked = now
	return true
}
