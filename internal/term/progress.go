package term

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// This part shows people who wait what a research is at: on a terminal a head line
// and below it a line a rihla, on one time axis, drawn over themselves; elsewhere plain
// lines, few of them. What a run is at is package run's to say. It asks the size of the
// terminal by a function that it is given.
//
// A frame is one write. It begins where the cursor is, at the first cell of the lines,
// writes each line with an erasure of its rest, erases what is below, and goes back to
// where it began. So nothing flickers; and since the cursor stands before all of it,
// lines that a narrower window has wrapped are below the cursor, in terminals that wrap
// them anew and in those that do not, and the next frame erases them. Only what a
// terminal has scrolled off when it wrapped them is out of reach. While a frame is
// written, lines are cut at the edge and not wrapped, should the window have just got
// narrower.

const (
	// redraw is the least time between two frames.
	redraw = 100 * time.Millisecond
	// tick is how often times are drawn anew when nothing happens.
	tick = time.Second

	// hold and show have the terminal show a frame at once, where it can, and cut long
	// lines meanwhile. A terminal that does not know a mode ignores it.
	hold = "\x1b[?2026h\x1b[?7l"
	show = "\x1b[?7h\x1b[?2026l"
	// eraseRest and eraseBelow clear from the cursor to the end of the line and to the
	// end of the screen.
	eraseRest  = "\x1b[K"
	eraseBelow = "\x1b[J"
	// mostSaid bounds of how many rihlas the words are kept.
	mostSaid = 1000
)

// ProgressConfig is how to show progress. Now must be set.
type ProgressConfig struct {
	Style Style
	// Live draws over what was drawn. It must be true only if the writer is a terminal
	// that knows escape codes, and nothing else writes to it before the end.
	Live bool
	// Size is the terminal's size, asked before every frame; nil, or a size that is not
	// positive, leaves it to Style.
	Size func() (width, height int)
	// ASCII draws nothing but ASCII, for terminals that cannot do more.
	ASCII bool
	// Single is one line of words alone, for work that is no research.
	Single bool
	Now    func() time.Time
}

// Progress shows a run. On a terminal it is drawn at most ten times a second. Its
// methods are safe for concurrent use. Failures to write are ignored: progress is a
// courtesy.
type Progress struct {
	w   io.Writer
	cfg ProgressConfig

	mu     sync.Mutex // guards all below, and writing to w
	closed bool
	fold   *run.Fold
	board  *run.Board                // of a trace, if one is read: it knows more than events tell
	said   map[int]marchwarden.Event // the latest by rihla
	last   time.Time                 // when was drawn
	drawn  bool                      // a frame stands on the terminal
	timer  *time.Timer               // draws what waits for its time; nil if nothing does
	due    time.Time                 // when it does
	seen   map[stageAt]int           // plain: events by rihla, stage and iteration
}

// NewProgress makes a Progress that writes to w. Close or Leave must be called.
func NewProgress(w io.Writer, cfg ProgressConfig) *Progress {
	return &Progress{w: w, cfg: cfg, fold: run.NewFold(), said: map[int]marchwarden.Event{}, seen: map[stageAt]int{}}
}

// Event shows an event. It may be passed as a marchwarden.Sink. It waits for nothing
// but the write; after the end it does nothing.
func (p *Progress) Event(e marchwarden.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.cfg.Live:
		p.note(e)
		p.drawBy(p.last.Add(redraw))
	default:
		p.print(e)
	}
}

// Board shows a run as its trace tells it, which takes the place of what events told;
// the latest of their words stay beside what is under way. Where lines are plain it
// shows nothing.
func (p *Progress) Board(b *run.Board) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !p.cfg.Live || b == nil {
		return
	}
	p.board = b
	p.drawBy(p.last.Add(redraw))
}

// Close erases what is drawn and ends the progress. It may be called twice.
func (p *Progress) Close() { p.end(func() { p.write("\r" + eraseBelow) }) }

// Aside erases what is drawn and shows nothing until back is called: a person types meanwhile.
func (p *Progress) Aside() (back func()) {
	p.Close()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closed, p.drawn = false, false
	}
}

// Leave draws once more and ends the progress; what is drawn stays, and the cursor
// stands below it. After Close it does nothing.
func (p *Progress) Leave() {
	p.end(func() {
		lines := p.frame()
		p.write(hold + "\r" + strings.Join(lines, eraseRest+"\r\n") + eraseBelow + "\r\n" + show)
	})
}

// end ends the progress by a last write, if anything is drawn.
func (p *Progress) end(last func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	p.stop()
	if p.drawn {
		last()
	}
}

func (p *Progress) write(s string) { _, _ = io.WriteString(p.w, s) }

// stop forgets what waits to be drawn. p.mu is held.
func (p *Progress) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// note remembers an event for the next frame. p.mu is held.
func (p *Progress) note(e marchwarden.Event) {
	p.fold.Event(e, p.cfg.Now())
	rihla := max(0, e.Rihla)
	if _, known := p.said[rihla]; known || len(p.said) < mostSaid {
		p.said[rihla] = e
	}
}

// drawBy draws now if the time has come or nothing is drawn yet, else then. p.mu is held.
func (p *Progress) drawBy(when time.Time) {
	wait := when.Sub(p.cfg.Now())
	if !p.drawn || wait <= 0 {
		p.draw()
		return
	}
	if p.timer != nil && !p.due.After(when) {
		return // it will be drawn by then
	}
	p.stop()
	p.due = when
	var own *time.Timer
	own = time.AfterFunc(min(wait, tick), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed && p.timer == own { // else it was replaced in the meantime
			p.draw()
		}
	})
	p.timer = own
}

// draw writes a frame. p.mu is held.
func (p *Progress) draw() {
	p.stop()
	lines := p.frame()
	var b strings.Builder
	b.WriteString(hold + "\r" + strings.Join(lines, eraseRest+"\r\n") + eraseBelow)
	if n := len(lines); n > 1 {
		fmt.Fprintf(&b, "\x1b[%dA", n-1)
	}
	b.WriteString("\r" + show)
	p.write(b.String())
	p.drawn, p.last = true, p.cfg.Now()
	if !p.cfg.Single {
		p.drawBy(p.last.Add(tick)) // the times go on
	}
}

func (p *Progress) size() (width, height int) {
	if p.cfg.Size != nil {
		width, height = p.cfg.Size()
	}
	st := p.cfg.Style
	return cmp.Or(max(0, width), max(0, st.Width), defaultText), cmp.Or(max(0, height), max(0, st.Height), defaultHeight)
}
