package term

import (
	"fmt"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
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
	return "[" + strings.TrimSpace(Count(number)+" "+Truncate(CleanLine(researcher), whoCells)) + "] "
}
