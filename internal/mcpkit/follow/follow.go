// Package follow watches records that grow, for those who subscribed to them: whenever
// one has grown, they are told. A record is looked at, not listened to, so that runs of
// other processes are followed as well. It knows neither what a record is nor how followers are
// told.
package follow

import (
	"context"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// every is how often a followed record is looked at.
	every = 500 * time.Millisecond
	// most bounds the records that are followed at once.
	most = 1000
)

// Tails are the records that clients follow; K names the client. Close them when done.
// They are safe for concurrent use.
type Tails[K comparable] struct {
	size func(context.Context, marchwarden.TraceID) (bytes int64, ended bool, err error)
	tell func(ctx context.Context, name string) error

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex // guards what follows
	tail map[string]*tail[K]
}

// tail is one followed record.
type tail[K comparable] struct {
	followers map[K]int // how often each does
	stop      context.CancelFunc
}

// New makes tails, of which there are none yet. size says how long a record is, and
// whether its run has ended; CodeNotFound says that there is none yet. tell is told the
// name under which a record that has grown is followed; its error ends that.
func New[K comparable](size func(context.Context, marchwarden.TraceID) (int64, bool, error), tell func(ctx context.Context, name string) error) *Tails[K] {
	t := &Tails[K]{size: size, tell: tell, tail: map[string]*tail[K]{}}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// Close ends all following and returns when no client will be told any more.
func (t *Tails[K]) Close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.work.Wait()
}

// Follow has who follow the record of a run under a name, from a size on and until the
// run has ended. CodeUnavailable says that as many are followed as can be.
func (t *Tails[K]) Follow(who K, name string, id marchwarden.TraceID, from int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.tail[name]; known != nil {
		known.followers[who]++
		return nil
	}
	if len(t.tail) >= most || t.life.Err() != nil {
		return marchwarden.Errorf(marchwarden.CodeUnavailable, "no more runs can be followed now; try again later")
	}
	ctx, stop := context.WithCancel(t.life)
	own := &tail[K]{followers: map[K]int{who: 1}, stop: stop}
	t.tail[name] = own
	t.work.Go(func() {
		defer stop()
		t.watch(ctx, name, id, from)
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.tail[name] == own {
			delete(t.tail, name)
		}
	})
	return nil
}

// Leave ends what who has begun. One who follows nothing has nothing to end, least of
// all for others.
func (t *Tails[K]) Leave(who K, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.tail[name]
	if known == nil || known.followers[who] == 0 {
		return
	}
	if known.followers[who]--; known.followers[who] == 0 {
		delete(known.followers, who)
	}
	if len(known.followers) == 0 {
		delete(t.tail, name)
		known.stop()
	}
}

// watch tells of every growth, until the run has ended.
func (t *Tails[K]) watch(ctx context.Context, name string, id marchwarden.TraceID, known int64) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		size, ended, err := t.size(ctx, id)
		if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			return // a record that cannot be read does not grow
		}
		if size != known || ended {
			known = size
			if t.tell(ctx, name) != nil {
				return // the connection notices its own faults
			}
		}
		if ended {
			return
		}
	}
}
