package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// CollectOptions say what may go.
type CollectOptions struct {
	Now time.Time
	// Older removes families that were last written longer ago than that; 0 keeps
	// all.
	Older time.Duration
	// Runs are removed with their families, however young they are and whether or not
	// their traces can be read.
	Runs []marchwarden.TraceID
}

// grace is how long what was used last is spared: longer than blobs count as fresh.
const grace = time.Hour

// Plan is what a collection is going to remove.
type Plan struct {
	// Families go with all their traces, the oldest first.
	Families []Family `json:"families"`
	// Blobs go because no trace that stays mentions them.
	Blobs     int   `json:"blobs"`
	BlobBytes int64 `json:"blob_bytes"`
	// Before and After are how much there is, in traces and blobs. What is younger
	// than the grace counts as gone in After only when it goes.
	Before int64 `json:"bytes_before"`
	After  int64 `json:"bytes_after"`
	// Spared counts blobs that nothing mentions and that were used too recently.
	Spared int `json:"spared_blobs"`
	// Running, Sealed and Watched count families that would have gone, had not a process
	// been at work on them, a trace of theirs been unreadable, or a watched question to be
	// compared with them.
	Running int `json:"kept_running"`
	Sealed  int `json:"kept_unreadable"`
	Watched int `json:"kept_watched"`

	home    Home
	options CollectOptions
	needs   needs
	garbage []blob.Ref
	before  time.Time             // blobs used since then are spared
	watched []marchwarden.TraceID // runs that watched questions are compared with
}

// Collected is what a collection removed.
type Collected struct {
	Families  int   `json:"families"`
	Traces    int   `json:"traces"`
	Blobs     int   `json:"blobs"`
	Bytes     int64 `json:"bytes"` // of traces and blobs
	Leftovers int   `json:"leftovers"`
}

// PlanCollection finds out what may go, and changes nothing. A run that is asked for
// by name is CodeNotFound if it is not there, CodeInvalid if it is a rihla of an
// investigation, and CodeUnavailable if a process is at work on it.
func (h Home) PlanCollection(ctx context.Context, o CollectOptions) (_ *Plan, err error) {
	p := &Plan{home: h, options: o, Families: []Family{}}
	if err := p.plan(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plan) plan(ctx context.Context) (err error) {
	if p.home.Folder != "" {
		if p.watched, err = watch.In(p.home.Folder).Needed(); err != nil {
			return fmt.Errorf("plan a collection: %w", err)
		}
	}
	all, began, err := p.home.families(ctx)
	if err != nil {
		return fmt.Errorf("plan a collection: %w", err)
	}
	p.before = p.options.Now.Add(-grace)
	if limit := began.Add(-grace); !began.IsZero() && limit.Before(p.before) {
		p.before = limit
	}
	if len(p.options.Runs) > 0 {
		err = p.chooseRuns(all)
	} else {
		p.choose(all, !began.IsZero())
	}
	if err != nil {
		return err
	}
	for _, f := range all {
		p.Before, p.After = p.Before+f.Bytes, p.After+f.Bytes
	}
	going := map[marchwarden.TraceID]bool{}
	for _, f := range p.Families {
		p.After -= f.Bytes
		for _, id := range f.IDs {
			going[id] = true
		}
	}
	p.needs = needs{home: p.home, seen: map[marchwarden.TraceID]trace.File{}, refs: map[blob.Ref]bool{}}
	kept, err := p.needs.without(ctx, going)
	if err != nil {
		return fmt.Errorf("plan a collection: %w", err)
	}
	err = p.home.Shelf.Files(ctx, func(file blob.File) error {
		switch {
		case file.Leftover:
			return nil
		case kept[file.Ref]:
			p.After += file.Size
		case file.Used.Before(p.before):
			p.garbage = append(p.garbage, file.Ref)
			p.Blobs, p.BlobBytes = p.Blobs+1, p.BlobBytes+file.Size
		default:
			p.Spared++
			p.After += file.Size
		}
		p.Before += file.Size
		return nil
	})
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "plan a collection")
}

// chooseRuns picks the families that were asked for by name.
func (p *Plan) chooseRuns(all []Family) error {
	for _, id := range p.options.Runs {
		i := slices.IndexFunc(all, func(f Family) bool { return slices.Contains(f.IDs, id) })
		switch {
		case i < 0:
			return &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: "there is no run " + id.String(), Hint: "run 'marchwarden traces' to list the runs there are"}
		case all[i].IDs[0] != id:
			return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("run %s is a part of an investigation", id),
				Hint: "remove the investigation with its rihlas: marchwarden gc --run " + all[i].IDs[0].String()}
		case all[i].busy:
			return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is going on", id), Hint: "wait for it to end, or stop it"}
		case slices.Contains(p.watched, id):
			return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is what a watched question is compared with", id),
				Hint: "stop watching first; 'marchwarden watch list' shows what is watched"}
		case slices.ContainsFunc(p.Families, func(f Family) bool { return f.IDs[0] == id }):
			continue // asked for twice
		}
		p.Families = append(p.Families, all[i])
	}
	return nil
}

// unreadable reports whether an error says that a trace is gone, damaged or of a
// later format: all of its bytes were read all the same.
func unreadable(err error) bool {
	return errors.Is(err, marchwarden.CodeCorrupt) || errors.Is(err, marchwarden.CodeUnsupported) || errors.Is(err, marchwarden.CodeNotFound)
}

// choose picks the families that go by their age.
func (p *Plan) choose(all []Family, running bool) {
	o := p.options
	for _, f := range all {
		if o.Older <= 0 || !f.Last.Before(o.Now.Add(-max(o.Older, grace))) {
			continue
		}
		switch {
		case f.sealed:
			p.Sealed++
		case f.busy, f.rihla && running: // it may be part of what goes on
			p.Running++
		case slices.Contains(p.watched, f.IDs[0]):
			p.Watched++
		default:
			p.Families = append(p.Families, f)
		}
	}
}

// Run removes what was planned: traces first and then blobs, so that at no moment a
// trace is there whose blobs are not. Whatever came to be needed since the plan was
// made is found out again and stays. It returns what is gone, also with an error.
func (p *Plan) Run(ctx context.Context) (Collected, error) {
	var c Collected
	for _, f := range p.Families {
		n, bytes, err := p.remove(ctx, f)
		c.Traces, c.Bytes = c.Traces+n, c.Bytes+bytes
		if err != nil {
			return c, fmt.Errorf("remove run %s: %w", f.IDs[0], err)
		}
		if n > 0 {
			c.Families++
		}
	}
	if len(p.garbage) > 0 {
		needed := func() (map[blob.Ref]bool, error) { return p.needs.without(ctx, nil) }
		// Now, so that little is left to be read while no other process can write.
		if _, err := needed(); err != nil {
			return c, err
		}
		gone, err := p.home.Shelf.Remove(ctx, p.garbage, p.before, needed)
		for _, file := range gone {
			c.Blobs, c.Bytes = c.Blobs+1, c.Bytes+file.Size
		}
		if err != nil {
			return c, err
		}
	}
	var err error
	c.Leftovers, err = p.home.Shelf.Sweep(ctx, p.options.Now.Add(-grace))
	return c, err
}

// remove removes the traces of a family with the checks of their sources, the
// investigation first: what a crash leaves of it are rihlas without one, which are whole in
// themselves. It takes the lock of every trace before it removes the first, so that no run
// is resumed meanwhile; a family that was written since the plan stays.
func (p *Plan) remove(ctx context.Context, f Family) (n int, bytes int64, err error) {
	for _, id := range f.IDs {
		release, err := p.home.Traces.Hold(id)
		switch {
		case errors.Is(err, marchwarden.CodeNotFound):
			continue
		case errors.Is(err, durable.ErrLocked):
			return 0, 0, nil
		case err != nil:
			return 0, 0, err
		}
		defer release() // nothing was written
		info, err := p.home.Traces.Stat(id)
		if err != nil || info.ModTime().After(f.Last) {
			return 0, 0, err
		}
	}
	for _, id := range f.IDs {
		if err := ctx.Err(); err != nil {
			return n, bytes, err
		}
		info, err := p.home.Traces.Stat(id)
		if err == nil {
			err = p.home.Traces.Remove(id)
		}
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			continue
		}
		if err != nil {
			return n, bytes, err
		}
		n, bytes = n+1, bytes+info.Size()
		if p.home.Folder != "" {
			err = drift.Forget(p.home.Folder, id)
		}
		if err != nil {
			return n, bytes, err
		}
	}
	return n, bytes, nil
}

// needs are what the traces mention; those that have changed are read again.
type needs struct {
	home Home
	seen map[marchwarden.TraceID]trace.File
	refs map[blob.Ref]bool
}

// without is what they mention at the moment, but for some of them. Before blobs are removed it is
// asked while none can be put, and a trace names a blob after it was put.
func (n *needs) without(ctx context.Context, going map[marchwarden.TraceID]bool) (map[blob.Ref]bool, error) {
	files, err := n.home.Traces.Files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if n.seen[file.ID] == file || going[file.ID] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, _, err = n.home.read(file.ID, func(ref blob.Ref) { n.refs[ref] = true })
		if err != nil && !unreadable(err) {
			return nil, err
		}
		n.seen[file.ID] = file
	}
	return n.refs, nil
}
