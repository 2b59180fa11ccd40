package mcpkit

import (
	"context"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// followEvery is how often a followed record is looked at.
	followEvery = 500 * time.Millisecond
	// maxFollowed bounds the records that are followed at once.
	maxFollowed = 1000
)

// tails are the records that clients follow: whenever one has grown, its followers are told. A record
// is polled, so that runs of other processes are followed, too. They are safe for concurrent use.
type tails struct {
	size func(context.Context, marchwarden.TraceID) (bytes int64, ended bool, err error)
	tell func(ctx context.Context, name string) error

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex // guards what follows
	tail map[string]*tail
}

type tail struct {
	followers map[any]bool
	stop      context.CancelFunc
}

// newTails makes empty tails. size says how long a record is and whether its run has ended; CodeNotFound
// says that there is none yet. tell gets the name under which a record is followed; its error ends that.
func newTails(size func(context.Context, marchwarden.TraceID) (int64, bool, error), tell func(ctx context.Context, name string) error) *tails {
	t := &tails{size: size, tell: tell, tail: map[string]*tail{}}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// close ends all following and returns when no client will be told any more.
func (t *tails) close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.work.Wait()
}

// follow has who follow the record of a run under a name, from a size on and until the
// run has ended. CodeUnavailable says that as many are followed as can be.
func (t *tails) follow(who any, name string, id marchwarden.TraceID, from int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tail[name]
	if own == nil {
		if len(t.tail) >= maxFollowed || t.life.Err() != nil {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "no more runs can be followed now; try again later")
		}
		ctx, stop := context.WithCancel(t.life)
		own = &tail{map[any]bool{}, stop}
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
	}
	own.followers[who] = true
	return nil
}

// leave ends what who has begun, and nothing of others.
func (t *tails) leave(who any, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.tail[name]
	if known == nil {
		return
	}
	if delete(known.followers, who); len(known.followers) == 0 {
		delete(t.tail, name)
		known.stop()
	}
}

func (t *tails) watch(ctx context.Context, name string, id marchwarden.TraceID, known int64) {
	tick := time.NewTicker(followEvery)
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
