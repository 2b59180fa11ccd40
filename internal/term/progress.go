package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"github.com/rivo/uniseg"
)

const (
	// redraw is the least time between two drawings on a terminal.
	redraw = 100 * time.Millisecond
	// tick is how often the times of journeys are drawn anew when nothing happens.
	tick = time.Second
	// plainEvery is how many events of one stage and iteration pass between two
	// plain lines.
	plainEvery = 200
	// erase clears the line that the cursor is on and returns to its start.
	erase = "\r\x1b[2K"
	// eraseRest and eraseBelow clear from the cursor to the end of the line and to
	// the end of the screen.
	eraseRest  = "\x1b[K"
	eraseBelow = "\x1b[J"
	// whoCells is the most that a researcher's name takes of a line.
	whoCells = 12
)

// Progress shows people who wait what a research is doing. On a terminal it is
// one line, drawn over itself at most ten times a second; an investigation has its
// own line first and one for each journey below it, which stays with its outcome
// when the journey is over. Elsewhere it is plain lines, one when a stage of an
// iteration begins and then one for every 200 events; those of a journey begin
// with its number and researcher. Its methods are safe for concurrent use.
// Failures to write are ignored: progress is a courtesy.
type Progress struct {
	w    io.Writer
	st   Style
	live bool
	now  func() time.Time

	mu       sync.Mutex // guards all below, and writing to w
	closed   bool
	began    time.Time         // of the first event
	last     time.Time         // when was drawn
	drawn    int               // lines that stand on the terminal
	own      marchwarden.Event // the latest that belongs to no journey
	journeys []*journey        // by number
	timer    *time.Timer       // draws what waits for its time; nil if nothing does
	due      time.Time         // when it does
	seen     map[stageAt]int   // plain: events by journey, stage and iteration
}

// journey is one line below an investigator's.
type journey struct {
	began, ended time.Time // ended is zero while it is under way
	event        marchwarden.Event
}

// stageAt is a stage of an iteration of a journey, or of the only research.
type stageAt struct {
	rihla     int
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
		p.note(e)
		p.drawBy(p.last.Add(redraw))
	default:
		p.print(e)
	}
}

// Close erases what is drawn and ends the progress. It may be called twice.
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
	switch {
	case p.drawn == 1:
		_, _ = io.WriteString(p.w, erase)
	case p.drawn > 1:
		_, _ = io.WriteString(p.w, top(p.drawn)+eraseBelow)
	}
}

// note remembers an event for the next drawing. p.mu is held.
func (p *Progress) note(e marchwarden.Event) {
	now := p.now()
	if p.began.IsZero() {
		p.began = now
	}
	if e.Rihla <= 0 {
		p.own = e
		return
	}
	at, known := slices.BinarySearchFunc(p.journeys, e.Rihla, func(j *journey, n int) int { return j.event.Rihla - n })
	if !known {
		p.journeys = slices.Insert(p.journeys, at, &journey{began: now})
	}
	j := p.journeys[at]
	if e.Researcher == "" {
		e.Researcher = j.event.Researcher
	}
	j.event, j.ended = e, time.Time{}
	if e.Stage == marchwarden.StageDone {
		j.ended = now
	}
}

// drawBy draws now if the time has come or nothing is drawn yet, and otherwise
// then. p.mu is held.
func (p *Progress) drawBy(when time.Time) {
	wait := when.Sub(p.now())
	if p.drawn == 0 || wait <= 0 {
		p.draw()
		return
	}
	if p.timer != nil && !p.due.After(when) {
		return // it will be drawn by then
	}
	if p.timer != nil {
		p.timer.Stop()
	}
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

// draw writes all lines over those that stand there, in one write and without
// erasing first, so that nothing flickers. Each is one cell short of the width so
// that no terminal wraps it. p.mu is held.
func (p *Progress) draw() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	lines := p.lines()
	if len(lines) == 1 {
		_, _ = io.WriteString(p.w, erase+p.st.paint(dim, lines[0]))
	} else {
		_, _ = io.WriteString(p.w, top(p.drawn)+p.st.paint(dim, strings.Join(lines, eraseRest+"\n"))+eraseRest)
	}
	p.drawn = len(lines)
	p.last = p.now()
	if len(lines) > 1 {
		p.drawBy(p.last.Add(tick)) // the times go on
	}
}

// top moves the cursor from the last of so many lines to the start of the first.
func top(lines int) string {
	if lines > 1 {
		return fmt.Sprintf("\r\x1b[%dA", lines-1)
	}
	return "\r"
}

// lines is what is drawn: the investigator's line, then the journeys; of more than
// the screen has place for the last ones, below a count of the others. The number
// of lines never gets smaller. p.mu is held.
func (p *Progress) lines() []string {
	width := p.st.Width
	if width <= 0 {
		width = defaultText
	}
	first := describe(p.own)
	if len(p.journeys) == 0 {
		return []string{truncate(prefix+first, width-1)}
	}
	over, who := 0, 0
	for _, j := range p.journeys {
		who = max(who, uniseg.StringWidth(j.name()))
		if !j.ended.IsZero() {
			over++
		}
	}
	facts := nonEmpty(clock(p.now().Sub(p.began)), Count(over)+" of "+Plural(len(p.journeys), "rihla")+" over", first)
	out := []string{truncate(prefix+strings.Join(facts, " · "), width-1)}
	height := p.st.Height
	if height <= 0 {
		height = defaultHeight
	}
	most := height - 2 // one for the investigator, one for the cursor after Close
	if most < 2 {
		return out
	}
	shown := p.journeys
	if len(shown) > most {
		shown = shown[len(shown)-most+1:]
		out = append(out, truncate(p.hidden(len(p.journeys)-len(shown)), width-1))
	}
	digits := len(Count(p.journeys[len(p.journeys)-1].event.Rihla))
	for _, j := range shown {
		end := j.ended
		if end.IsZero() {
			end = p.now()
		}
		head := "  " + pad(Count(j.event.Rihla), digits, true) + " " + pad(j.name(), who, false) + "  " + pad(clock(end.Sub(j.began)), 5, true) + "  "
		out = append(out, truncate(head+describe(j.event), width-1))
	}
	return out
}

// hidden counts the first journeys, which have no line of their own.
func (p *Progress) hidden(n int) string {
	under := 0
	for _, j := range p.journeys[:n] {
		if j.ended.IsZero() {
			under++
		}
	}
	return "  … " + Plural(n, "earlier rihla") + ", " + Count(under) + " under way"
}

// name is who is on the journey, short enough for a column.
func (j *journey) name() string { return truncate(CleanLine(j.event.Researcher), whoCells) }

// clock is a time that runs, in minutes and seconds.
func clock(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// print writes a plain line if e is one that deserves it: the first of its kind,
// and now and then another. How a journey ended may be said twice, by whoever was
// on it and by the investigator. p.mu is held.
func (p *Progress) print(e marchwarden.Event) {
	key := stageAt{max(0, e.Rihla), e.Stage, e.Iteration}
	n := p.seen[key]
	p.seen[key] = n + 1
	if n%plainEvery != 0 && !(n == 1 && e.Rihla > 0 && e.Stage == marchwarden.StageDone) {
		return
	}
	whose := ""
	if e.Rihla > 0 {
		whose = "[" + strings.Join(nonEmpty(Count(e.Rihla), truncate(CleanLine(e.Researcher), whoCells)), " ") + "] "
	}
	_, _ = io.WriteString(p.w, prefix+whose+describe(e)+"\n")
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
