package term

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// This part shows people who wait what a research is at: on a terminal a head line and below it a
// line for each who is at work, drawn over themselves; elsewhere plain lines, few of them.
//
// A frame is one write. It begins where the cursor is, at the first cell of the lines, writes each
// line with an erasure of its rest, erases what is below, and goes back to where it began. So
// nothing flickers; and lines that a narrower window has wrapped are below the cursor, where the
// next frame erases them. While a frame is written, lines are cut at the edge and not wrapped. The
// size is that of the terminal at the start.

const (
	// redraw is the least time between two frames.
	redraw = 100 * time.Millisecond

	// hold and show have the terminal show a frame at once, where it can, and cut long
	// lines meanwhile. A terminal that does not know a mode ignores it.
	hold = "\x1b[?2026h\x1b[?7l"
	show = "\x1b[?7h\x1b[?2026l"
	// eraseRest and eraseBelow clear from the cursor to the end of the line and to the
	// end of the screen.
	eraseRest  = "\x1b[K"
	eraseBelow = "\x1b[J"
	// whoCells is the most that a researcher's name takes of a line.
	whoCells = 12
)

// ProgressConfig is how to show progress. Now must be set.
type ProgressConfig struct {
	Style Style
	// Live draws over what was drawn. It must be true only if the writer is a terminal
	// that knows escape codes, and nothing else writes to it before the end.
	Live bool
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
	began  time.Time     // when the first was heard of
	lanes  map[int]*lane // by rihla; 0 is the whole
	frame  string        // what stands on the terminal
	last   time.Time     // when was drawn or printed
	stop   chan struct{} // ends the drawing; nil before it begins
	seen   map[stageAt]int
}

// lane is one who is asked.
type lane struct {
	researcher string
	began      time.Time
	said       marchwarden.Event // the latest
}

// NewProgress makes a Progress that writes to w. Close must be called.
func NewProgress(w io.Writer, cfg ProgressConfig) *Progress {
	return &Progress{w: w, cfg: cfg, lanes: map[int]*lane{}, seen: map[stageAt]int{}}
}

// Event shows an event. It may be passed as a marchwarden.Sink. It waits for nothing
// but the write; after the end it does nothing.
func (p *Progress) Event(e marchwarden.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return
	case !p.cfg.Live:
		p.print(e)
		return
	}
	now := p.cfg.Now()
	l := p.lanes[max(0, e.Rihla)]
	if l == nil {
		l = &lane{began: now.Truncate(time.Second)} // so that all times change at once
		p.lanes[max(0, e.Rihla)] = l
	}
	if text := []rune(CleanLine(e.Draft)); len(text) > 0 { // its end moves on as it is written
		e.Message = "draft: …" + string(text[max(0, len(text)-draftShown):])
	}
	l.researcher, l.said = cmp.Or(e.Researcher, l.researcher), e
	if p.began.IsZero() {
		p.began = now.Truncate(time.Second)
	}
	if p.stop == nil {
		p.stop = make(chan struct{})
		go p.drawOn(p.stop)
	}
	if now.Sub(p.last) >= redraw {
		p.draw()
	}
}

// drawOn draws what has changed, times among it, until the end.
func (p *Progress) drawOn(stop chan struct{}) {
	ticks := time.NewTicker(redraw)
	defer ticks.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticks.C:
		}
		p.mu.Lock()
		if p.stop == stop && !p.closed {
			p.draw()
		}
		p.mu.Unlock()
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
	if p.stop != nil {
		close(p.stop)
	}
	if p.frame != "" {
		p.write("\r" + eraseBelow)
	}
}

func (p *Progress) write(s string) { _, _ = io.WriteString(p.w, s) }

// draw writes a frame, if it is another. p.mu is held.
func (p *Progress) draw() {
	lines := p.drawn()
	frame := strings.Join(lines, eraseRest+"\r\n")
	p.last = p.cfg.Now()
	if frame == p.frame {
		return
	}
	p.frame = frame
	back := "\r"
	if n := len(lines); n > 1 {
		back = fmt.Sprintf("\x1b[%dA\r", n-1)
	}
	p.write(hold + "\r" + frame + eraseBelow + back + show)
}

// drawn is the lines of a frame, smaller than the terminal: what the whole is at, and the researchers
// that are at work. p.mu is held.
func (p *Progress) drawn() []string {
	width, height := cmp.Or(p.cfg.Style.Width, defaultText), cmp.Or(p.cfg.Style.Height, defaultHeight)
	if p.cfg.Single {
		return []string{p.fit(width-1, Run{Prefix + describe(p.lanes[0].said), Dim})}
	}
	now, done := p.cfg.Now(), 0
	var working []int
	names := 0
	for _, n := range slices.Sorted(maps.Keys(p.lanes)) {
		switch l := p.lanes[n]; {
		case n == 0:
		case l.said.Stage == marchwarden.StageDone:
			done++
		default:
			working = append(working, n)
			names = max(names, Width(l.name()))
		}
	}
	head := []string{clock(now.Sub(p.began))}
	if all := len(working) + done; all > 0 {
		head = append(head, Count(done)+" of "+Count(all)+" done")
	}
	if own := p.lanes[0]; own != nil {
		head = append(head, describe(own.said))
	}
	out := []string{p.fit(width-1, Run{Prefix + strings.Join(head, " · "), Dim})}
	room := max(0, height-2) // one for the head, one for the cursor at the end
	if more := len(working) - room; more > 0 && room > 0 {
		out = append(out, p.fit(width-1, Run{"  … " + Count(more+1) + " more", Dim}))
		room--
	}
	for _, n := range working[max(0, len(working)-room):] {
		l := p.lanes[n]
		out = append(out, p.fit(width-1, Run{"  " + Pad(Count(n), 2, true) + " " + Pad(l.name(), names, false), Plain}, Run{"  " + Pad(clock(now.Sub(l.began)), 5, true) + "  " + describe(l.said), Dim}))
	}
	return out
}

// draftShown is how many characters of a draft stand on its line.
const draftShown = 60

func (l *lane) name() string { return Truncate(CleanLine(l.researcher), whoCells) }

// fit paints the parts of a line, cut to so many cells.
func (p *Progress) fit(width int, parts ...Run) string {
	var b strings.Builder
	left := max(width, 1)
	for _, s := range parts {
		text := Truncate(s.Text, left)
		b.WriteString(p.cfg.Style.Paint(s.Look, text))
		if left -= Width(text); text != s.Text || left <= 0 {
			break
		}
	}
	return b.String()
}

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

// clock is a time that runs: minutes and seconds, with hours if there are any.
func clock(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// plainSilence is the longest time without a plain line while there are events.
const plainSilence = 4 * time.Second

type stageAt struct {
	rihla     int
	stage     marchwarden.Stage
	iteration int
}

// print writes a plain line if e is one that deserves it: the first of its kind, one after a silence,
// and how a rihla ended, which the researcher and the investigator may both say. p.mu is held.
func (p *Progress) print(e marchwarden.Event) {
	key := stageAt{max(0, e.Rihla), e.Stage, e.Iteration}
	n := p.seen[key]
	p.seen[key] = n + 1
	now := p.cfg.Now()
	if n > 0 && !(n == 1 && e.Rihla > 0 && e.Stage == marchwarden.StageDone) && now.Sub(p.last) < plainSilence {
		return
	}
	p.last = now
	whose := ""
	if e.Rihla > 0 {
		whose = "[" + strings.TrimSpace(Count(e.Rihla)+" "+Truncate(CleanLine(e.Researcher), whoCells)) + "] "
	}
	p.write(Prefix + whose + describe(e) + "\n")
}

// Bar shows how far work is that has a count: a bar on a terminal, now and then a line
// elsewhere. Say is safe for concurrent use.
type Bar struct {
	name     string
	progress *Progress
	cfg      ProgressConfig
	began    time.Time
	first    int // how many were done when it began; -1 until it has
	failed   int // of those since
}

// NewBar makes a Bar for work of a name. Close must be called.
func NewBar(w io.Writer, name string, cfg ProgressConfig) *Bar {
	cfg.Single = true
	return &Bar{name: name, progress: NewProgress(w, cfg), cfg: cfg, first: -1}
}

// Say tells about a slow step.
func (b *Bar) Say(message string) {
	b.progress.Event(marchwarden.Event{Stage: marchwarden.Stage(b.name), Message: message})
}

// Begin says how many were done when the work began.
func (b *Bar) Begin(done int) {
	b.first, b.began = done, b.cfg.Now()
}

// Fail counts one that failed.
func (b *Bar) Fail() { b.failed++ }

// Step shows how many are done.
func (b *Bar) Step(done, total int) {
	if b.first < 0 {
		b.Begin(done)
	}
	message := b.Pace(done, total)
	if b.cfg.Live {
		const cells = 20
		full := done * cells / max(1, total)
		message = strings.Repeat("█", full) + strings.Repeat("░", cells-full) + " " + message
	}
	b.progress.Event(marchwarden.Event{Stage: marchwarden.Stage(b.name), Iteration: 0, Done: done, Total: total, Message: message})
}

// Pace is how many failed, how many a second or a minute are done, and how long the rest
// takes, as far as there is something to say.
func (b *Bar) Pace(done, total int) string {
	var parts []string
	if b.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", b.failed))
	}
	if took, ran := b.cfg.Now().Sub(b.began), done-b.first; took > 0 && ran > 0 && done < total {
		rate, unit := float64(ran)/took.Seconds(), "s"
		if rate < 1 {
			rate, unit = rate*60, "min"
		}
		left := time.Duration(float64(took) / float64(ran) * float64(total-done))
		parts = append(parts, fmt.Sprintf("%.1f/%s", rate, unit), Duration(left.Round(time.Second))+" left")
	}
	return strings.Join(parts, ", ")
}

// Close ends it.
func (b *Bar) Close() { b.progress.Close() }
