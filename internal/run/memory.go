package run

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const (
	// parallel is how many traces or results are read at the same time.
	parallel = 8
	// patience is how long a result or trace that could not be read is left alone: it
	// may be repaired, or its store be back.
	patience = time.Minute
)

// History remembers what it read, by the size and time of the files: a trace is read
// again only when it was written. It is safe for concurrent use. What it holds of a run
// is bounded and does not include its answer, of which it knows the words.
type History struct {
	cfg     HistoryConfig
	seed    maphash.Seed
	reading chan struct{} // holds one who reads traces; the others wait for what it reads

	mu    sync.Mutex // guards known
	known map[marchwarden.TraceID]*digest
}

// OpenHistory makes a History. Nothing is read before the first call.
func OpenHistory(cfg HistoryConfig) *History {
	return &History{cfg: cfg, seed: maphash.MakeSeed(), reading: make(chan struct{}, 1), known: map[marchwarden.TraceID]*digest{}}
}

// picture is what is known of traces at one moment. Digests are never changed: they are
// replaced.
type picture struct {
	runs []*digest // newest file first
	byID map[marchwarden.TraceID]*digest
}

// recall gives all traces, having read those that changed. It waits while another caller
// reads, or gives up with ctx.
func (h *History) recall(ctx context.Context) (*picture, error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
	files, err := h.cfg.Store.Traces.Files()
	if err != nil {
		return nil, err
	}
	p, err := h.refresh(ctx, files)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.known {
		if p.byID[id] == nil { // it was removed
			delete(h.known, id)
		}
	}
	return p, nil
}

func (h *History) file(id marchwarden.TraceID) (trace.File, error) {
	info, err := h.cfg.Store.Traces.Stat(id)
	if err != nil {
		return trace.File{}, err
	}
	foreign, err := h.cfg.Store.Traces.Foreign(id)
	return trace.File{ID: id, Size: info.Size(), Modified: info.ModTime(), Foreign: foreign}, err
}

// refresh reads those of the files that are not known as they are now.
func (h *History) refresh(ctx context.Context, files []trace.File) (*picture, error) {
	now := h.cfg.Now()
	var stale []trace.File
	h.mu.Lock()
	for _, f := range files {
		if d := h.known[f.ID]; d == nil || !d.stands(f, now) {
			stale = append(stale, f)
		}
	}
	h.mu.Unlock()
	if err := h.readAll(ctx, stale); err != nil {
		return nil, err
	}
	p := &picture{byID: make(map[marchwarden.TraceID]*digest, len(files))}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range files {
		if d := h.known[f.ID]; d != nil && p.byID[f.ID] == nil {
			p.runs, p.byID[f.ID] = append(p.runs, d), d
		}
	}
	return p, canceled(ctx)
}

func (h *History) readAll(ctx context.Context, files []trace.File) error {
	read := make([]*digest, len(files))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, f := range files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			read[i] = h.read(ctx, f)
			return nil
		})
	}
	_ = g.Wait() // each says in its digest what went wrong
	if err := canceled(ctx); err != nil {
		return err // what was read meanwhile may be half
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, f := range files {
		delete(h.known, f.ID)
		if read[i] != nil {
			h.known[f.ID] = read[i]
		}
	}
	return nil
}

// latest looks once more at a run that may have gone on or ended since it was read: nil
// if it is gone.
func (h *History) latest(ctx context.Context, d *digest) *digest {
	if !d.open() {
		return d
	}
	now := *d
	if now.busy = busy(h.cfg.Store.Traces, d.file.ID); now.busy {
		return &now
	}
	// Its writer has ended. It may have ended the run after the lines were read:
	// that is not to be called cut off.
	file, err := h.file(d.file.ID)
	switch {
	case marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
		return nil
	case err == nil && !d.same(file):
		return h.read(ctx, file)
	}
	return &now
}

var errElsewhere = errors.New("kept elsewhere")

func (p *picture) entry(d *digest) Entry {
	e := d.entry
	e.Standing = d.standing(d.file.Foreign, d.busy)
	if e.Problem == "" {
		e.Problem = d.unheard
	}
	spent, _ := Together(&marchwarden.Result{TraceID: d.file.ID, Rihlas: d.rihlas}, func(id marchwarden.TraceID) (Trail, error) {
		part := p.byID[id]
		if id == d.file.ID {
			part = d
		}
		if part == nil || part.unread {
			return Trail{}, errElsewhere
		}
		return part.trail, nil
	})
	cost := d.cost
	if !d.ended { // its rihlas have used what they have not reported yet
		used := 0
		for _, t := range spent.Tokens {
			used += t.In + t.Out
		}
		cost.TokensUsed = max(cost.TokensUsed, used)
	}
	e.Tokens, e.CostUSD = cost.TokensUsed, spent.Cost(cost)
	if !d.begun {
		e.CostUSD = nil
	}
	return e
}
