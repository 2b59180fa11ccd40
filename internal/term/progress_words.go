package term

import (
	"fmt"
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
