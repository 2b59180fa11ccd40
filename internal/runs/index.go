package runs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// hash is a content hash as bytes.
type hash [sha256.Size]byte

// parseHash reads "sha256:" and 64 hex digits.
func parseHash(s string) (h hash, ok bool) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(digits) != 2*len(h) || strings.ToLower(digits) != digits {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(digits))
	return h, err == nil
}

// index knows from the records, of all researchers in the folder, who may see what.
type index struct {
	mu      sync.Mutex
	entries map[marchwarden.TraceID]entry
	traces  map[ownedTrace]int // how many runs name it
	hashes  map[ownedHash]int
	stamps  map[marchwarden.TraceID]stamp // of the records that were read
	looked  time.Time                     // when the folder was last looked through
}

type entry struct {
	rec    record // without its lists, and what only a run needs that is to go on
	traces []marchwarden.TraceID
	hashes []hash
}

type ownedTrace struct {
	owner string
	id    marchwarden.TraceID
}

type ownedHash struct {
	owner string
	hash  hash
}

func newIndex() *index {
	return &index{
		entries: map[marchwarden.TraceID]entry{}, traces: map[ownedTrace]int{}, hashes: map[ownedHash]int{},
		stamps: map[marchwarden.TraceID]stamp{},
	}
}

// add takes in a record, in the place of an earlier version of it.
func (x *index) add(rec record) {
	e := entry{rec: rec, traces: slices.Clone(rec.Traces)}
	e.rec.Traces, e.rec.Evidence = nil, nil
	if rec.over() || !rec.Kept { // nothing goes on by what the index has of it
		e.rec.Request, e.rec.Message, e.rec.Failure = marchwarden.Request{}, "", nil
	}
	for _, text := range rec.Evidence {
		if h, ok := parseHash(text); ok {
			e.hashes = append(e.hashes, h)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(rec.ID)
	x.entries[rec.ID] = e
	for _, id := range e.traces {
		x.traces[ownedTrace{rec.Owner, id}]++
	}
	for _, h := range e.hashes {
		x.hashes[ownedHash{rec.Owner, h}]++
	}
}

// drop forgets a record; mu is held.
func (x *index) drop(id marchwarden.TraceID) {
	e, ok := x.entries[id]
	if !ok {
		return
	}
	delete(x.entries, id)
	for _, t := range e.traces {
		fewer(x.traces, ownedTrace{e.rec.Owner, t})
	}
	for _, h := range e.hashes {
		fewer(x.hashes, ownedHash{e.rec.Owner, h})
	}
}

func fewer[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] <= 0 {
		delete(counts, key)
	}
}

// remove forgets a record.
func (x *index) remove(id marchwarden.TraceID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(id)
	delete(x.stamps, id)
}

// owns reports whether a principal owns a run, or a run of a rihla.
func (x *index) owns(owner string, id marchwarden.TraceID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.entries[id]
	return (ok && e.rec.Owner == owner) || x.traces[ownedTrace{owner, id}] > 0
}

// cites reports whether a result of a principal cites a document.
func (x *index) cites(owner string, h hash) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.hashes[ownedHash{owner, h}] > 0
}

// unended are the records of kept runs of a researcher that have not ended, from the first
// that was begun to the last.
func (x *index) unended(researcher string) []record {
	x.mu.Lock()
	defer x.mu.Unlock()
	var recs []record
	for _, e := range x.entries {
		if e.rec.Researcher == researcher && e.rec.Kept && !e.rec.over() {
			recs = append(recs, e.rec)
		}
	}
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
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []record
	count := 0
	for _, e := range x.entries {
		if e.rec.Researcher != researcher {
			continue
		}
		count++
		if e.rec.over() || !e.rec.Kept {
			all = append(all, e.rec)
		}
	}
	slices.SortFunc(all, func(a, b record) int {
		return cmp.Or(a.lastSign().Compare(b.lastSign()), strings.Compare(a.ID.String(), b.ID.String()))
	})
	n := 0
	for n < len(all) && all[n].lastSign().Before(before) {
		n++
	}
	surplus := count - maxRecords
	if surplus > 0 {
		surplus += maxRecords / 10 // so that it is not done for each
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

// count is how many records of a researcher there are.
func (x *index) count(researcher string) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.entries {
		if e.rec.Researcher == researcher {
			n++
		}
	}
	return n
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
			x.drop(id)
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
