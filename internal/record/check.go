package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Kind is what is wrong with an object.
type Kind string

// The kinds, the worst first.
const (
	DamagedTrace Kind = "damaged_trace"
	MissingTrace Kind = "missing_trace" // of a rihla
	MissingBlob  Kind = "missing_blob"
	DamagedBlob  Kind = "damaged_blob"
	LaterFormat  Kind = "later_format"
	DamagedFile  Kind = "damaged_file" // neither a trace nor a blob
)

var kinds = []Kind{DamagedTrace, MissingTrace, MissingBlob, DamagedBlob, LaterFormat, DamagedFile}

// Finding is something that is wrong.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Object  string `json:"object"` // "trace <id>", "blob <ref>" or a path
	Problem string `json:"problem"`
	// NeededBy are the first that depend on a blob; More counts the others.
	NeededBy []Need `json:"needed_by,omitempty"`
	More     int    `json:"more_need_it,omitempty"`
	Remedy   string `json:"remedy,omitempty"` // what the user can do about it

	id marchwarden.TraceID // of a damaged trace
}

// Need is a step that needs a blob.
type Need struct {
	Run     marchwarden.TraceID `json:"trace_id"`
	Step    int                 `json:"step"`
	Action  trace.Action        `json:"action"`
	What    string              `json:"what,omitempty"`    // an address, a query or a researcher
	RihlaOf marchwarden.TraceID `json:"rihla_of,omitzero"` // the investigation that the run is part of
}

// String says it for people: run … step 12 (fetch_url_complete https://…), which is
// a rihla of ….
func (n Need) String() string {
	s := fmt.Sprintf("run %s step %d (%s)", n.Run, n.Step, strings.TrimSpace(string(n.Action)+" "+n.What))
	if n.RihlaOf.Valid() {
		s += ", which is a rihla of " + n.RihlaOf.String()
	}
	return s
}

// maxNeeds is how many needs a finding names.
const maxNeeds = 5

// Report is what a check found.
type Report struct {
	Findings []Finding `json:"findings"` // the worst first
	Traces   int       `json:"traces"`
	Running  int       `json:"running"` // of the traces
	Blobs    int       `json:"blobs"`
	Bytes    int64     `json:"bytes"` // of the blobs' files
	// Orphans are blobs that no trace mentions. They are no damage; gc removes them.
	Orphans     int   `json:"orphans"`
	OrphanBytes int64 `json:"orphan_bytes"`
	// Leftovers are files of writes that were broken off more than an hour ago. They are
	// no damage; gc removes them.
	Leftovers int `json:"leftovers"`
	// Torn counts traces whose last line a crash tore, and Empty those in which it tore the
	// first: no run is in them. Nothing that was acknowledged is lost by either.
	Torn  int `json:"torn"`
	Empty int `json:"empty"`
	// Unsummed counts traces of a format without checksums, in which not every
	// flipped bit can be found.
	Unsummed int `json:"unsummed"`
	// Incomplete says that the check was broken off.
	Incomplete bool `json:"incomplete,omitempty"`
}

func (r *Report) found(f Finding) {
	if f.Kind == LaterFormat {
		f.Remedy = "use the version of the program that wrote it"
	}
	r.Findings = append(r.Findings, f)
}

// Sort puts the worst first.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(len(b.NeededBy)+b.More, len(a.NeededBy)+a.More),
			cmp.Compare(a.Object, b.Object))
	})
}

// CheckOptions say how to check.
type CheckOptions struct {
	Now time.Time
	// Progress is told how many blobs were read, from one goroutine; nil: unused.
	Progress func(blobs int)
}

// Check reads every trace and every blob and says what is wrong, and who depends
// on it. It changes nothing. It keeps a few dozen bytes for each blob in memory, and no content but the
// one it is at. It may run beside runs; what they are about to write is not
// missing. An error means that it could not be told; the report then has what was
// found until then.
func (h Home) Check(ctx context.Context, o CheckOptions) (*Report, error) {
	c := &checker{Home: h, o: o, report: &Report{}, stored: map[blob.Ref]*stored{}, lost: map[blob.Ref]int{}, rihlaOf: map[marchwarden.TraceID]marchwarden.TraceID{}}
	var err error
	for _, step := range []func(context.Context) error{c.blobs, c.traces, c.places} {
		if err = step(ctx); err != nil {
			c.report.Incomplete = true
			err = fmt.Errorf("check: %w", err)
			break
		}
	}
	c.remedies()
	c.report.Sort()
	return c.report, err
}

type checker struct {
	Home
	o       CheckOptions
	report  *Report
	stored  map[blob.Ref]*stored
	lost    map[blob.Ref]int // the findings about blobs
	rihlaOf map[marchwarden.TraceID]marchwarden.TraceID
	whole   []marchwarden.TraceID // runs that are no rihlas, whatever others say
}

// stored is a blob's file, and whether a trace mentions it.
type stored struct {
	size      int64
	mentioned bool
}

// remedies says what the user can do about what runs have lost, and of what they are part.
func (c *checker) remedies() {
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		for j, n := range f.NeededBy {
			f.NeededBy[j].RihlaOf = c.rihlaOf[n.Run]
		}
		switch f.Kind {
		case MissingTrace, MissingBlob, DamagedBlob:
			f.Remedy = "asking for the same document again repairs it; 'marchwarden gc' removes it if no run needs it"
			if len(f.NeededBy) > 0 {
				id := c.family(f.NeededBy[0].Run)
				f.Remedy = fmt.Sprintf("run %s has lost it; to remove the run: marchwarden gc --run %s", id, id)
			}
		case DamagedTrace:
			f.Remedy = cmp.Or(f.Remedy, "what can still be read in it is left alone; to remove the run: marchwarden gc --run "+c.family(f.id).String())
		}
	}
}

// family is the run that gc takes for one: itself, or the investigation that it is part of.
func (c *checker) family(id marchwarden.TraceID) marchwarden.TraceID {
	if whole, ok := c.rihlaOf[id]; ok {
		return whole
	}
	return id
}

// traces reads every trace, in the order of their ids.
func (c *checker) traces(ctx context.Context) error {
	ids, err := c.Traces.List()
	if err != nil {
		return err
	}
	slices.SortFunc(ids, func(a, b marchwarden.TraceID) int { return strings.Compare(a.String(), b.String()) })
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.trace(ctx, id)
	}
	for _, id := range c.whole {
		delete(c.rihlaOf, id)
	}
	for _, file := range c.stored {
		if !file.mentioned {
			c.report.Orphans++
			c.report.OrphanBytes += file.size
		}
	}
	return nil
}

func (c *checker) trace(ctx context.Context, id marchwarden.TraceID) {
	log, text, err := c.read(id, func(ref blob.Ref) {
		if file := c.stored[ref]; file != nil {
			file.mentioned = true
		}
	})
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		return // removed since
	}
	c.report.Traces++
	busy, busyErr := c.Traces.Busy(id)
	if busy {
		c.report.Running++
	}
	if err = errors.Join(err, busyErr); err == nil {
		err = c.sound(id, log, text, busy)
	}
	if err != nil {
		kind := DamagedTrace
		if errors.Is(err, marchwarden.CodeUnsupported) {
			kind = LaterFormat
		}
		c.report.found(Finding{Kind: kind, Object: "trace " + id.String(), Problem: err.Error(), id: id})
		return
	}
	facts := run.FactsOf(log.Steps)
	for _, part := range facts.Parts {
		c.rihlaOf[part] = id
	}
	for _, r := range facts.Own(ctx, c.Blobs) {
		if _, err := c.Traces.Stat(r.TraceID); marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			c.report.found(Finding{Kind: MissingTrace, Object: "trace " + r.TraceID.String(), Problem: "it is not there", NeededBy: []Need{needOf(id, r)}})
		}
	}
	for _, s := range log.Steps {
		for _, ref := range trace.Refs(s) {
			c.need(ctx, ref, needOf(id, s))
		}
	}
}

// blobs reads every blob.
func (c *checker) blobs(ctx context.Context) error {
	var mu sync.Mutex // guards damage
	damage := map[blob.Ref]error{}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	err := c.Shelf.Files(reading, func(file blob.File) error {
		if file.Leftover {
			if file.Used.Before(c.o.Now.Add(-grace)) {
				c.report.Leftovers++
			}
			return nil
		}
		c.report.Blobs++
		c.report.Bytes += file.Size
		c.stored[file.Ref] = &stored{size: file.Size}
		if c.o.Progress != nil {
			c.o.Progress(c.report.Blobs)
		}
		group.Go(func() error {
			_, err := c.Shelf.Inspect(reading, file.Ref)
			if err == nil || errors.Is(err, blob.ErrNotFound) || reading.Err() != nil {
				return reading.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			damage[file.Ref] = err
			return nil
		})
		return nil
	})
	err = errors.Join(err, group.Wait())
	for ref, err := range damage {
		c.lose(DamagedBlob, ref, err.Error())
	}
	return err
}

func (c *checker) lose(kind Kind, ref blob.Ref, problem string) {
	c.lost[ref] = len(c.report.Findings)
	c.report.found(Finding{Kind: kind, Object: "blob " + ref.String(), Problem: problem})
}

// need notes who needs a blob that is damaged or missing.
func (c *checker) need(ctx context.Context, ref blob.Ref, n Need) {
	if _, lost := c.lost[ref]; !lost {
		if c.stored[ref] != nil {
			return
		}
		if _, err := c.Shelf.Inspect(ctx, ref); err == nil {
			return // put since
		}
		c.lose(MissingBlob, ref, "it is not stored")
	}
	f := &c.report.Findings[c.lost[ref]]
	last := len(f.NeededBy) - 1
	switch {
	case last >= 0 && f.NeededBy[last].Run == n.Run && f.NeededBy[last].Step == n.Step: // twice in one step
	case len(f.NeededBy) == maxNeeds:
		f.More++
	default:
		f.NeededBy = append(f.NeededBy, n)
	}
}

// needOf is what a step of a run needs something for: what it was about, in a word.
func needOf(id marchwarden.TraceID, s trace.Step) Need {
	n := Need{Run: id, Step: s.Header().Step, Action: s.Header().Action}
	switch s := s.(type) {
	case *trace.FetchComplete:
		n.What = s.URL
	case *trace.Evidence:
		n.What = s.Locator
	case *trace.SearchComplete:
		n.What = s.Query
	case *trace.RihlaComplete:
		n.What = s.Researcher
	case *trace.ModelComplete:
		n.What = s.Prompt
	case *trace.EmbedComplete:
		n.What = s.Model
	}
	return n
}
