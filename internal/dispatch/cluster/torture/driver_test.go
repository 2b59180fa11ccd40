//go:build linux

package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// The cluster's own names, written out: what is kept must be found by a later version.
const (
	logStream    = "MW_LOG"
	doneStream   = "MW_DONE"
	kindHeader   = "Mw-Kind"
	workerHeader = "Mw-Worker"
)

// joining are the settings of a cluster's clients and workers.
type joining struct {
	URL      string        `json:"url"` // of the hubs
	Name     string        `json:"name"`
	Provider string        `json:"provider,omitempty"` // worker: where it pays; "" for one that does nothing
	Slots    int           `json:"slots,omitempty"`
	Seed     []byte        `json:"seed"`
	Admin    []byte        `json:"admin,omitempty"` // driver: the key of a hub, to see what is kept
	Drain    time.Duration `json:"drain,omitempty"`
	Dull     bool          `json:"dull,omitempty"` // worker: its clock stands still
}

// admin is a connection that may see everything.
func (s joining) admin() (*nats.Conn, error) {
	pair, err := nkeys.FromSeed(s.Admin)
	if err != nil {
		return nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, err
	}
	inbox, err := hub.Inbox(s.Admin)
	if err != nil {
		return nil, err
	}
	return nats.Connect(s.URL, nats.Nkey(public, pair.Sign), nats.CustomInboxPrefix(inbox), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond))
}

// driver submits tasks and looks at what became of them.
type driver struct {
	auditor
	ctx context.Context
	nc  *nats.Conn
}

// playDriver is the role that asks questions.
func playDriver(ctx context.Context, settings json.RawMessage) (part, error) {
	var s joining
	if err := json.Unmarshal(settings, &s); err != nil {
		return nil, err
	}
	engine, err := join(ctx, s)
	if err != nil {
		return nil, err
	}
	nc, err := s.admin()
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	d := &driver{auditor{engine, js}, ctx, nc}
	return d.do, nil
}

func (d *driver) do(do string, arg json.RawMessage) (any, error) {
	var errands []errand
	if do != "leader" && do != "held" && do != "streams" {
		if err := json.Unmarshal(arg, &errands); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(d.ctx, 4*time.Minute)
	defer cancel()
	switch do {
	case "submit":
		return nil, d.submit(ctx, errands)
	case "done":
		return d.held(ctx, doneStream)
	case "leader":
		return d.leader(ctx)
	case "held":
		var stream string
		if err := json.Unmarshal(arg, &stream); err != nil {
			return nil, err
		}
		return d.held(ctx, stream)
	case "streams":
		return d.streams(ctx), nil
	case "look":
		return d.engine.Look(ctx, errands[0].ID)
	case "audit":
		return d.audit(ctx, errands)
	case "missing":
		return d.missing(ctx, errands)
	case "time":
		return d.time(ctx, len(errands))
	}
	return nil, fmt.Errorf("a driver cannot %s", do)
}

// submit submits tasks, several at once.
func (d *driver) submit(ctx context.Context, errands []errand) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, e := range errands {
		g.Go(func() error {
			return d.engine.Submit(ctx, dispatch.Task{ID: e.ID, Record: e.ID, Investigation: e.ID, Queue: queue, Priority: dispatch.Normal,
				Owner: fmt.Sprint("owner", e.Plot%5), Request: marchwarden.Request{Question: question(e.Plot)}})
		})
	}
	return g.Wait()
}

// missing are the tasks whose end is not kept.
func (d *driver) missing(ctx context.Context, errands []errand) ([]string, error) {
	s, err := d.js.Stream(ctx, doneStream)
	if err != nil {
		return nil, err
	}
	missing := make([]string, len(errands))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, e := range errands {
		g.Go(func() error {
			_, err := s.GetLastMsgForSubject(ctx, "mw.done."+e.ID.String())
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				missing[i], err = e.ID.String(), nil
			}
			return err
		})
	}
	err = g.Wait()
	return slices.DeleteFunc(missing, func(id string) bool { return id == "" }), err
}

// kept is what a stream holds.
type kept struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

func (d *driver) held(ctx context.Context, stream string) (kept, error) {
	// Not longer than a hub takes to be missed: the caller comes again.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	s, err := d.js.Stream(ctx, stream)
	if err != nil {
		return kept{}, err
	}
	info := s.CachedInfo()
	return kept{info.State.Msgs, info.State.Bytes}, nil
}

// streams says how each stream is.
func (d *driver) streams(ctx context.Context) (said []string) {
	for _, name := range []string{"MW_TASK", "MW_WORK", logStream, doneStream, "MW_BLOB", "KV_MW_FACTS", "KV_MW_WORKER", "KV_MW_LIMIT"} {
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		s, err := d.js.Stream(one, name)
		cancel()
		if err != nil {
			said = append(said, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		info := s.CachedInfo()
		text := fmt.Sprintf("%s: %d messages, %d to %d", name, info.State.Msgs, info.State.FirstSeq, info.State.LastSeq)
		if c := info.Cluster; c != nil {
			text += ", led by " + c.Leader
			for _, r := range c.Replicas {
				text += fmt.Sprintf(", %s current %v offline %v lag %d", r.Name, r.Current, r.Offline, r.Lag)
			}
		}
		said = append(said, text)
	}
	return said
}

// leader is the hub that leads the journal.
func (d *driver) leader(ctx context.Context) (string, error) {
	s, err := d.js.Stream(ctx, logStream)
	if err != nil {
		return "", err
	}
	if c := s.CachedInfo().Cluster; c != nil && c.Leader != "" {
		return c.Leader, nil
	}
	return "", fmt.Errorf("nobody leads %s", logStream)
}

// timing is how long things took, each in turn.
type timing struct {
	Task  []time.Duration `json:"task"`  // from submission to the result
	Plain []time.Duration `json:"plain"` // one append that is on the disk when it is acknowledged
}

// time measures what a task costs that takes no work, beside a plain append.
func (d *driver) time(ctx context.Context, n int) (timing, error) {
	var out timing
	const scratch = "SCRATCH"
	if _, err := d.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: scratch, Subjects: []string{"scratch.>"}, Storage: jetstream.FileStorage}); err != nil {
		return out, err
	}
	for i := range n {
		id := newID()
		began := time.Now()
		t := dispatch.Task{ID: id, Record: id, Investigation: id, Queue: queue, Priority: dispatch.Normal, Request: marchwarden.Request{Question: question(i)}}
		if err := d.engine.Submit(ctx, t); err != nil {
			return out, err
		}
		ended := false
		for e, err := range d.engine.Watch(ctx, dispatch.Watching{Task: id}) {
			if err != nil {
				return out, err
			}
			if e.Kind == dispatch.Ended {
				ended = e.End.Status == dispatch.Done
				break
			}
		}
		if !ended {
			return out, fmt.Errorf("task %d did not end well", i)
		}
		out.Task = append(out.Task, time.Since(began))
		began = time.Now()
		if _, err := d.js.Publish(ctx, "scratch."+id.String(), make([]byte, 400)); err != nil {
			return out, err
		}
		out.Plain = append(out.Plain, time.Since(began))
	}
	return out, nil
}
