package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

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

// stateOf is what a lane is at, in a word or two.
func stateOf(l run.Lane) string {
	switch {
	case l.State == run.Planned && !l.Sent.IsZero():
		return "sent"
	case l.State == run.Waiting:
		return "waiting for the rihlas"
	case l.State == "":
		return string(run.Planning)
	}
	return CleanLine(string(l.State))
}

// laneWords is a lane in one clean line: state, iteration, what was read, what it does.
func laneWords(l run.Lane) string {
	state, doing := stateOf(l), CleanLine(l.Doing)
	parts := []string{state}
	switch l.State {
	case run.Planned:
		doing = CleanLine(l.Question)
	case run.Failed:
		doing = strings.TrimPrefix(doing, "failed: ")
	case run.Done:
	default:
		if l.Iteration > 0 {
			parts = append(parts, "iteration "+Count(l.Iteration))
		}
		if l.Documents > 0 {
			parts = append(parts, Count(l.Documents)+" read")
		}
	}
	if strings.HasPrefix(strings.ToLower(doing), state) {
		parts, doing = append([]string{doing}, parts[1:]...), ""
	}
	if doing != "" {
		parts = append(parts, doing)
	}
	return strings.Join(parts, " · ")
}

func over(l run.Lane) bool { return l.State == run.Done || l.State == run.Failed }

// tokens is what a run used of its budget, as far as that is known.
func tokens(b *run.Board) string {
	switch {
	case b.Budget > 0:
		return Count(b.Tokens) + " of " + Count(b.Budget) + " tokens"
	case b.Tokens > 0:
		return Plural(b.Tokens, "token")
	}
	return ""
}

func rihlas(b *run.Board) string {
	all, done := b.More, 0
	for _, l := range b.Lanes {
		if l.Number == 0 {
			continue
		}
		if all++; over(l) {
			done++
		}
	}
	if all == 0 {
		return ""
	}
	return Count(done) + " of " + Plural(all, "rihla") + " over"
}

// clock is a time that runs: minutes and seconds, with hours if there are any.
func clock(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

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

// Bar shows how far work is that has a count: a bar on a terminal, now and then a line
// elsewhere. A nil Bar shows nothing. Say is safe for concurrent use.
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

// Live reports whether a bar is drawn.
func (b *Bar) Live() bool { return b != nil && b.cfg.Live }

// Say tells about a slow step.
func (b *Bar) Say(message string) {
	if b != nil {
		b.progress.Event(marchwarden.Event{Stage: marchwarden.Stage(b.name), Message: message})
	}
}

// Begin says how many were done when the work began.
func (b *Bar) Begin(done int) {
	if b != nil {
		b.first, b.began = done, b.cfg.Now()
	}
}

// Fail counts one that failed.
func (b *Bar) Fail() {
	if b != nil {
		b.failed++
	}
}

// Step shows how many are done.
func (b *Bar) Step(done, total int) {
	if b == nil {
		return
	}
	if b.first < 0 {
		b.Begin(done)
	}
	message := b.Pace(done, total)
	if b.cfg.Live {
		const cells = 20
		marks := [2]string{"█", "░"}
		if b.cfg.ASCII {
			marks = [2]string{"#", "."}
		}
		full := done * cells / max(1, total)
		message = strings.Repeat(marks[0], full) + strings.Repeat(marks[1], cells-full) + " " + message
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
func (b *Bar) Close() {
	if b != nil {
		b.progress.Close()
	}
}
