package term

import (
	"io"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// plainEvery is how many events of one stage and iteration pass between two plain
// lines, and plainSilence the longest time without a line while there are events.
const (
	plainEvery   = 200
	plainSilence = 4 * time.Second
)

type stageAt struct {
	rihla     int
	stage     marchwarden.Stage
	iteration int
}

// print writes a plain line if e is one that deserves it: the first of its kind, now and
// then another, and one after a silence. How a rihla ended may be said twice, by the researcher and
// by the investigator. p.mu is held.
func (p *Progress) print(e marchwarden.Event) {
	key := stageAt{max(0, e.Rihla), e.Stage, e.Iteration}
	n := p.seen[key]
	p.seen[key] = n + 1
	now := p.cfg.Now()
	if n%plainEvery != 0 && !(n == 1 && e.Rihla > 0 && e.Stage == marchwarden.StageDone) && now.Sub(p.last) < plainSilence {
		return
	}
	p.last = now
	whose := ""
	if e.Rihla > 0 {
		whose = who(e.Rihla, e.Researcher)
	}
	p.write(Prefix + whose + describe(e) + "\n")
}

func who(number int, researcher string) string {
	return "[" + strings.Join(nonEmpty(Count(number), Truncate(CleanLine(researcher), whoCells)), " ") + "] "
}

// Lines tells of a run by its boards in plain lines: one when a lane enters a state for
// the first time in an iteration, one when it ends, and one for the whole at the end.
// Each begins with the time since the run began. It is not safe for concurrent use.
type Lines struct {
	w    io.Writer
	seen map[laneAt]bool
}

type laneAt struct {
	number, iteration int
	state             run.State
}

// NewLines makes Lines that write to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w, seen: map[laneAt]bool{}} }

// Board writes what is new, in one write, and returns the error of it.
func (p *Lines) Board(b *run.Board) error {
	var out strings.Builder
	at := func(l run.Lane) string {
		end := b.Last
		if over(l) {
			end = ended(l, b.Last)
		}
		return clock(end.Sub(b.Began)) + "  "
	}
	for _, l := range b.Lanes {
		key := laneAt{l.Number, l.Iteration, l.State}
		if over(l) || l.State == run.Planned {
			key.iteration = 0
		}
		if l.State == "" || l.State == run.Waiting || p.seen[key] || l.Number == 0 && over(l) {
			continue
		}
		p.seen[key] = true
		whose := ""
		if l.Number > 0 {
			whose = who(l.Number, l.Researcher)
		}
		out.WriteString(at(l) + whose + laneWords(l) + "\n")
	}
	if whole := (laneAt{state: run.Done}); len(b.Lanes) > 0 && over(b.Lanes[0]) && !p.seen[whole] {
		p.seen[whole] = true
		out.WriteString(at(b.Lanes[0]) + strings.Join(nonEmpty(laneWords(b.Lanes[0]), rihlas(b), tokens(b)), " · ") + "\n")
	}
	if out.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(p.w, out.String())
	return err
}
