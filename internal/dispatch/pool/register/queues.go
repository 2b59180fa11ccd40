package register

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool/logbook"
)

// Pointer says where a task is queued, or that it is not any more.
type Pointer struct {
	Task          marchwarden.TraceID `json:"task"`
	Investigation marchwarden.TraceID `json:"investigation,omitzero"`
	Record        marchwarden.TraceID `json:"record,omitzero"`
	Queue         string              `json:"queue,omitempty"`
	Priority      dispatch.Priority   `json:"priority,omitempty"`
	Owner         string              `json:"owner,omitempty"`
	Over          bool                `json:"over,omitempty"`
}

// Queues are the tasks that have not ended, as far as this process knows, by queue, band
// and owner. Those that are not taken wait in lanes. It is safe for concurrent use.
type Queues struct {
	book *logbook.Book

	mu      sync.Mutex // guards what follows
	known   map[marchwarden.TraceID]*Pointer
	order   []*Pointer // all of known, and some that are over
	over    int
	lanes   map[string]*[dispatch.Low + 1]band
	away    map[marchwarden.TraceID]bool // not in a lane: held here, or found held elsewhere
	retry   []*Pointer                   // found held elsewhere
	changed chan struct{}                // closed when something may be taken
}

// band is what waits in a band of a queue: owners take turns.
type band struct {
	owners []string
	wait   map[string][]*Pointer
}

// OpenQueues names the list in a file, which need not exist. Refresh reads it.
func OpenQueues(path string) *Queues {
	q := &Queues{changed: make(chan struct{})}
	q.anew()
	q.book = logbook.Open(path, "marchwarden queue/1", q.seen, q.anew)
	return q
}

// Refresh takes in what others have written.
func (q *Queues) Refresh() error { return q.book.Refresh() }

func (q *Queues) anew() {
	q.mu.Lock()
	defer q.mu.Unlock()
	away := q.away
	q.known, q.order, q.over = map[marchwarden.TraceID]*Pointer{}, nil, 0
	q.lanes, q.away, q.retry = map[string]*[dispatch.Low + 1]band{}, map[marchwarden.TraceID]bool{}, nil
	for id := range away { // what is held here is not to be taken; the rest is tried again
		q.away[id] = true
	}
}

func (q *Queues) seen(object []byte, _ int64) {
	p := new(Pointer)
	if json.Unmarshal(object, p) != nil || p.Priority < 0 || p.Priority > dispatch.Low {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.Over {
		if q.known[p.Task] != nil {
			q.over++
		}
		delete(q.known, p.Task)
		delete(q.away, p.Task)
		return
	}
	if q.known[p.Task] != nil {
		return
	}
	q.known[p.Task] = p
	q.order = append(q.order, p)
	if q.away[p.Task] {
		q.retry = append(q.retry, p)
		return
	}
	q.put(p, false)
}

// put lets a task wait, behind those of its owner or in front of them.
func (q *Queues) put(p *Pointer, front bool) {
	if q.lanes[p.Queue] == nil {
		q.lanes[p.Queue] = new([dispatch.Low + 1]band)
	}
	b := &q.lanes[p.Queue][p.Priority]
	if b.wait == nil {
		b.wait = map[string][]*Pointer{}
	}
	if len(b.wait[p.Owner]) == 0 {
		b.owners = append(b.owners, p.Owner)
	}
	at := len(b.wait[p.Owner])
	if front {
		at = 0
	}
	b.wait[p.Owner] = slices.Insert(b.wait[p.Owner], at, p)
	close(q.changed)
	q.changed = make(chan struct{})
}

// Next takes what is to be begun next out of its lane, if anything waits.
func (q *Queues) Next(queue string) *Pointer {
	q.mu.Lock()
	defer q.mu.Unlock()
	bands := q.lanes[queue]
	if bands == nil {
		return nil
	}
	for i := range bands {
		b := &bands[i]
		for len(b.owners) > 0 {
			owner := b.owners[0]
			b.owners = b.owners[1:]
			p := b.wait[owner][0]
			if b.wait[owner] = b.wait[owner][1:]; len(b.wait[owner]) > 0 {
				b.owners = append(b.owners, owner)
			} else {
				delete(b.wait, owner)
			}
			if q.known[p.Task] == p {
				q.away[p.Task] = true
				return p
			}
		}
	}
	return nil
}

// Back puts a task back that was taken out: at once, or when those held elsewhere are
// tried again.
func (q *Queues) Back(id marchwarden.TraceID, later bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.known[id]
	switch {
	case p == nil:
		delete(q.away, id)
	case later:
		q.retry = append(q.retry, p)
	default:
		delete(q.away, id)
		q.put(p, true)
	}
}

// Again tries once more what was found held elsewhere.
func (q *Queues) Again() {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.retry
	q.retry = nil
	for _, p := range old {
		if q.known[p.Task] == p && q.away[p.Task] {
			delete(q.away, p.Task)
			q.put(p, true)
		}
	}
}

// News is closed when something may be taken.
func (q *Queues) News() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

// Add queues a task, unless it is.
func (q *Queues) Add(p *Pointer) error {
	err := q.book.Append(false, func() (any, error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.known[p.Task] != nil {
			return nil, ErrKnown
		}
		return p, nil
	})
	if errors.Is(err, ErrKnown) {
		return nil
	}
	return err
}

// Done takes a task out for ever. It need not be kept: a worker that takes up a task that has ended
// sees that.
func (q *Queues) Done(id marchwarden.TraceID) error {
	return q.book.Append(true, func() (any, error) { return &Pointer{Task: id, Over: true}, nil })
}

// Compact drops what is over from the file, when that is most of it.
func (q *Queues) Compact() error {
	const worth = 2000
	q.mu.Lock()
	few := q.over < worth
	q.mu.Unlock()
	if few {
		return nil
	}
	return q.book.Replace(func() []any {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.over < worth || q.over < len(q.known) {
			return nil
		}
		keep := []any{}
		for _, p := range q.order {
			if q.known[p.Task] == p {
				keep = append(keep, p)
			}
		}
		return keep
	})
}
