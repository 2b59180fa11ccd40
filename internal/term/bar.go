package term

import (
	"fmt"
	"io"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

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
