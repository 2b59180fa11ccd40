package term

import (
	"io"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	// redraw is the least time between two drawings of the live line.
	redraw = 100 * time.Millisecond
	// plainEvery is how many events of one stage and iteration pass between two
	// plain lines.
	plainEvery = 200
	// erase clears the line that the cursor is on and returns to its start.
	erase = "\r\x1b[2K"
)

// Progress shows people who wait what a research is doing. On a terminal it is
// one line, drawn over itself at most ten times a second; elsewhere it is plain
// lines, one when a stage of an iteration begins and then one for every 200
// events. Its methods are safe for concurrent use. Failures to write are ignored:
// progress is a courtesy.
type Progress struct {
	w    io.Writer
	st   Style
	live bool
	now  func() time.Time

	mu      sync.Mutex // guards all below, and writing to w
	closed  bool
	drawn   bool               // a live line stands on the terminal
	last    time.Time          // when it was drawn
	pending *marchwarden.Event // the event that waits for its time
	timer   *time.Timer        // draws pending
	seen    map[stageAt]int    // plain: events by stage and iteration
}

// stageAt is a stage of an iteration.
type stageAt struct {
	stage     marchwarden.Stage
	iteration int
}

// NewProgress makes a Progress that writes to w, which is stderr. Live must be
// true only if w is a terminal that knows escape codes and nothing else writes
// to it before Close. Close must be called.
func NewProgress(w io.Writer, st Style, live bool, now func() time.Time) *Progress {
	return &Progress{w: w, st: st, live: live, now: now, seen: map[stageAt]int{}}
}

// Event shows an event. It may be passed as a marchwarden.Sink. It waits for
// nothing but the write; after Close it does nothing.
func (p *Progress) Event(e marchwarden.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.live:
		p.show(e)
	default:
		p.print(e)
	}
}

// Close erases the live line and ends the progress. It may be called twice.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.drawn {
		_, _ = io.WriteString(p.w, erase)
	}
}

// show draws e now, or when the line's time has come. p.mu is held.
func (p *Progress) show(e marchwarden.Event) {
	if p.pending != nil {
		p.pending = &e // the timer is running
		return
	}
	wait := redraw - p.now().Sub(p.last)
	if !p.drawn || wait <= 0 {
		p.draw(e)
		return
	}
	p.pending = &e
	p.timer = time.AfterFunc(min(wait, redraw), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed && p.pending != nil {
			p.draw(*p.pending)
			p.pending = nil
		}
	})
}

// draw writes the live line, one cell short of the width so that no terminal
// wraps it. p.mu is held.
func (p *Progress) draw(e marchwarden.Event) {
	width := p.st.Width
	if width <= 0 {
		width = defaultText
	}
	_, _ = io.WriteString(p.w, erase+p.st.paint(dim, truncate(prefix+describe(e), width-1)))
	p.drawn = true
	p.last = p.now()
}

// print writes a plain line if e is one that deserves it. p.mu is held.
func (p *Progress) print(e marchwarden.Event) {
	key := stageAt{e.Stage, e.Iteration}
	n := p.seen[key]
	p.seen[key] = n + 1
	if n%plainEvery == 0 {
		_, _ = io.WriteString(p.w, prefix+describe(e)+"\n")
	}
}

// stageWords is what a stage does.
var stageWords = map[marchwarden.Stage]string{
	marchwarden.StageIndex:      "indexing",
	marchwarden.StagePlan:       "planning",
	marchwarden.StageSearch:     "searching",
	marchwarden.StageFetch:      "reading",
	marchwarden.StageSynthesize: "writing the answer",
	marchwarden.StageCheck:      "checking the citations",
	marchwarden.StageDone:       "done",
}

// describe is an event in one clean line: stage, iteration, count, message.
func describe(e marchwarden.Event) string {
	words, ok := stageWords[e.Stage]
	if !ok {
		words = CleanLine(string(e.Stage))
	}
	message := CleanLine(e.Message)
	if strings.HasPrefix(strings.ToLower(message), words) {
		words, message = message, ""
	}
	if e.Iteration > 0 {
		words += " · iteration " + Count(e.Iteration)
	}
	if e.Total > 0 {
		words += " · " + Count(e.Done) + " of " + Count(e.Total)
	}
	if message != "" {
		words += " · " + message
	}
	return words
}
