package run

// This part is a run as lanes on one time axis: the investigator, or the only researcher,
// and below it a lane a rihla, each with what it was at and when. It has no clock, and how
// a Board looks is the affair of those who show it. A trace may be damaged, or made up by
// another program: whatever is in it, a Board is bounded, its times do not go backwards
// and its texts are single lines. They are still text from outside.

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// State is what a lane is at, or where a whole run stands.
type State string

// The states of a lane, in the order of a run.
const (
	Planned   State = "planned"   // decided on, and not begun; of a whole run, only a plan was asked for
	Planning  State = "planning"  // deciding what to look for, or what to do about a report
	Searching State = "searching" // for what is known no closer, too: a stranger's whole journey
	Reading   State = "reading"
	Writing   State = "writing"
	Checking  State = "checking" // evidence, reports or the answer
	Waiting   State = "waiting"  // an investigator, for its rihlas; no span has it
	Done      State = "done"     // no span has it
	Failed    State = "failed"   // no span has it
)

// The further states of a whole run.
const (
	Complete    State = "complete"    // it has its answer
	Interrupted State = "interrupted" // its caller stopped it, or a crash cut it off
	Running     State = "running"     // a process is at work on it
	Damaged     State = "damaged"     // its trace cannot be read, or no run was begun in it
)

// works reports whether a state takes time of its own, and so can be that of a span.
func (s State) works() bool {
	switch s {
	case Planned, Planning, Searching, Reading, Writing, Checking:
		return true
	}
	return false
}

// Span is a time in which a lane was in one state.
type Span struct {
	State State
	From  time.Time
	To    time.Time // zero while it lasts
}

// Lane is one run on the time axis.
type Lane struct {
	// Number is 0 for the investigator, or the only researcher; rihlas count from one.
	// One that waits to be sent has the number that comes next.
	Number     int
	Researcher string
	Question   string
	State      State
	Doing      string    // what it is at, or why it failed; one line
	Sent       time.Time // when a rihla was sent last; zero while it waits for its turn
	// Spans are in the order of time and do not overlap. Between them a lane waits, or
	// its run was cut off.
	Spans []Span
	// Iteration is the round that it is in. Tokens are those that are known so far: a
	// mind without a model tells at the end. Budget is what it may use of them; 0 is
	// unknown.
	Iteration, Tokens, Budget, Searches, Documents, Citations int
	Read                                                      []string // locators of documents, as they came; of many the first
	// Paid are the tokens by what they were spent on. What is in none of them of
	// Tokens, no step tells.
	Paid        map[State]int
	Gaps        []marchwarden.Gap
	Discoveries []marchwarden.DiscoveryEvent
}

// Board is a run as far as it is known.
type Board struct {
	Question, Researcher string
	Began                time.Time
	Last                 time.Time // when the newest step was written, or the newest event came
	Ended                bool      // it has its result
	// Interrupted says that the caller stopped it, or that it was cut off.
	Interrupted               bool
	Tokens, Budget, Citations int
	// Lanes are the own one first, then the rihlas by number, then those of the plan
	// that wait for their turn.
	Lanes []Lane
	// More counts rihlas for which there was no lane left.
	More      int
	Decisions []marchwarden.Decision // what was done about what rihlas reported
}

// Bounds of a Board. Honest runs stay far below them.
const (
	maxLanes = 1000
	maxSpans = 4000 // of one lane
	maxItems = 1000 // of a list
	maxLine  = 300  // characters
	maxParts = 200  // times that a run went on
)

// Cut says of a run that has not ended that no process resumes it: what lasts ends with
// the newest step, and what is not done has failed.
func (b *Board) Cut() {
	if b.Ended {
		return
	}
	b.Interrupted = true
	for i := range b.Lanes {
		l := &b.Lanes[i]
		if n := len(l.Spans); n > 0 && l.Spans[n-1].To.IsZero() {
			if l.Spans[n-1].To = b.Last; !b.Last.After(l.Spans[n-1].From) {
				l.Spans = l.Spans[:n-1]
			}
		}
		if l.State != Done && l.State != Failed {
			l.State, l.Doing = Failed, "cut off"
		}
	}
}

// Gaps are what is missing, each once: of a run that ended as its result says, and until
// then as the lanes report it.
func (b *Board) Gaps() []marchwarden.Gap {
	type key struct {
		marchwarden.GapCategory
		topic string
	}
	var out []marchwarden.Gap
	seen := map[key]bool{}
	for i, l := range b.Lanes {
		if i > 0 && b.Ended {
			break
		}
		for _, g := range l.Gaps {
			if k := (key{g.Category, g.Topic}); !seen[k] {
				seen[k] = true
				out = append(out, g)
			}
		}
	}
	return out
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// plus adds what is not negative; what does not fit is the largest number.
func plus(a, b int) int {
	if b = max(0, b); a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Stage is what one state took in all lanes together.
type Stage struct {
	State  State // "" for tokens of which nothing tells what they were spent on
	Tokens int
	Time   time.Duration // lanes work side by side, so this is more than went by
}

// Stages are what went where, in the order of a run, without those that took nothing.
func (b *Board) Stages() []Stage {
	stages := []Stage{{State: Planned}, {State: Planning}, {State: Searching}, {State: Reading}, {State: Writing}, {State: Checking}, {State: ""}}
	of := func(s State) *Stage {
		i := slices.IndexFunc(stages, func(st Stage) bool { return st.State == s })
		if i < 0 {
			i = len(stages) - 1
		}
		return &stages[i]
	}
	told := 0
	for _, l := range b.Lanes {
		for s, n := range l.Paid {
			st := of(s)
			st.Tokens, told = plus(st.Tokens, n), plus(told, n)
		}
		for _, s := range l.Spans {
			st := of(s.State)
			if s.To.IsZero() {
				s.To = latest(b.Last, s.From)
			}
			st.Time = time.Duration(plus(int(st.Time), int(s.To.Sub(s.From))))
		}
	}
	of("").Tokens = plus(of("").Tokens, max(0, b.Tokens-told))
	return slices.DeleteFunc(stages, func(s Stage) bool { return s.Tokens == 0 && s.Time == 0 })
}

// This part watches a run that is being written, by whichever process: it reads
// what is new in its trace and in those of its rihlas, and gives the run as lanes. It
// writes nothing, and no writer of a trace waits for it.

// Records are where traces are kept. A trace that is not there is CodeNotFound.
type Records interface {
	// Raw opens the lines of a trace as they are; the caller closes. If it can seek,
	// nothing is read twice.
	Raw(id marchwarden.TraceID) (io.ReadCloser, error)
	// Size says how long a trace is, and whether it is complete.
	Size(ctx context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error)
}

// Follower is a run that is followed. It is not safe for concurrent use.
type Follower struct {
	records Records
	blobs   blob.Store
	id      marchwarden.TraceID

	fold    *Fold
	own     tail
	rihlas  map[*journey]*tail // those whose runs may be kept here
	reports []trace.Step       // ends, of rihlas and of the run itself, whose results are not read yet
	board   *Board             // the last
	over    bool
	empty   bool // no process wrote it, and nothing was in it
}

// Follow makes a follower, which reads nothing yet.
func Follow(records Records, blobs blob.Store, id marchwarden.TraceID) *Follower {
	r := &Follower{records: records, blobs: blobs, id: id}
	r.anew()
	return r
}

func (r *Follower) anew() {
	r.fold, r.own, r.rihlas, r.reports = NewFold(), tail{id: r.id}, map[*journey]*tail{}, nil
}

// Read reads what is new. It reports whether anything changed since the last time, and
// whether it is over: the run has its result, or no process writes its trace. A process that goes on
// reading sees a run that goes on. With an error the board is the last one, nil if there
// was none; a trace that cannot be read on, or is gone, is over.
//
// A rihla whose trace is not here, cannot be read or is none of a rihla has no states of
// its own, and that is no error.
func (r *Follower) Read(ctx context.Context) (board *Board, changed, over bool, err error) {
	steps, ended, err := r.own.next(ctx, r.records)
	if errors.Is(err, errShrunk) { // it is another file
		r.anew()
		changed = true
		steps, ended, err = r.own.next(ctx, r.records)
	}
	for _, s := range steps {
		r.fold.Step(s)
		switch s.(type) {
		case *trace.RihlaComplete, *trace.Complete:
			r.reports = append(r.reports, s)
		}
	}
	broken := err != nil && marchwarden.CodeOf(err) != marchwarden.CodeUnavailable && ctx.Err() == nil
	if err != nil && len(steps) == 0 && !changed {
		return r.board, false, broken, err
	}
	// Between its making and its lock a trace is empty, and no process seems to write it.
	idle := ended && (r.own.tail.Lines() > 0 || r.empty)
	r.empty = ended
	over = idle || r.fold.Ended() || broken
	changed = changed || len(steps) > 0 || over != r.over || r.board == nil
	if r.readRihlas(ctx) {
		changed = true
	}
	if r.readReports(ctx) {
		changed = true
	}
	if changed {
		r.board = r.fold.Board()
		if over {
			r.board.Cut()
		}
	}
	r.over = over
	return r.board, changed, over, err
}

func (r *Follower) readRihlas(ctx context.Context) (changed bool) {
	for _, j := range r.fold.journeys {
		if !j.id.Valid() || j.id == r.id {
			continue
		}
		t := r.rihlas[j]
		if t == nil || t.id != j.id {
			t = &tail{id: j.id}
			r.rihlas[j] = t
		}
		if t.shut || t.idle && !j.back.IsZero() && j.ended() {
			continue // there is nothing to come
		}
		steps, _, err := t.next(ctx, r.records)
		if errors.Is(err, errShrunk) {
			*t = tail{id: j.id}
			steps, _, err = t.next(ctx, r.records)
		}
		if code := marchwarden.CodeOf(err); err != nil && code != marchwarden.CodeNotFound && code != marchwarden.CodeUnavailable && ctx.Err() == nil {
			t.shut = true // damaged: it ends here
		}
		for _, s := range steps {
			if start, ok := s.(*trace.Start); ok && !start.PartOf {
				t.shut = true // an investigation from elsewhere may name any run
				break
			}
			r.fold.RihlaStep(j.Number, s)
			changed = true
		}
	}
	return changed
}

func (r *Follower) readReports(ctx context.Context) (changed bool) {
	for len(r.reports) > 0 && ctx.Err() == nil {
		var number int
		var res *marchwarden.Result
		var err error
		switch s := r.reports[0].(type) {
		case *trace.RihlaComplete:
			number = s.Number
			res, err = replay.Outcome[*marchwarden.Result](ctx, r.blobs, s)
		case *trace.Complete:
			_, res, err = ResultOf(ctx, r.blobs, s.Result)
		}
		if err != nil && ctx.Err() != nil {
			return changed // next time
		}
		r.reports = r.reports[1:]
		if err == nil && res != nil {
			r.fold.Report(number, res)
			changed = true
		}
	}
	return changed
}

var errShrunk = errors.New("the trace is shorter than it was")

type tail struct {
	id   marchwarden.TraceID
	tail trace.Tail
	seen int64 // how long it was when it was read last, what is torn included
	idle bool  // no process wrote it when it was read last
	shut bool  // it is not read any more
}

// next gives the steps that are new, and whether no process writes the trace. It may give both steps and an error.
func (t *tail) next(ctx context.Context, records Records) (steps []trace.Step, ended bool, err error) {
	size, ended, err := records.Size(ctx, t.id)
	if err != nil {
		return nil, false, err
	}
	t.idle = ended
	switch {
	case size < t.tail.Offset():
		return nil, ended, errShrunk
	case size == t.seen:
		return nil, ended, nil
	}
	steps, err = t.read(records, size)
	if err == nil {
		t.seen = size
	}
	return steps, ended, err
}

// read reads on to where the trace ended when it was looked at.
func (t *tail) read(records Records, size int64) ([]trace.Step, error) {
	f, err := records.Raw(t.id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := skip(f, t.tail.Offset()); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", t.id)
	}
	return t.tail.Next(io.LimitReader(f, size-t.tail.Offset()))
}

func skip(f io.Reader, offset int64) error {
	if s, ok := f.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, f, offset)
	return err
}
