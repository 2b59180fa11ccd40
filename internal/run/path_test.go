package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// lane is a lane of spans: state, from, to; -1 lasts.
func lane(number int, sent float64, spans ...any) run.Lane {
	l := run.Lane{Number: number}
	if sent >= 0 {
		l.Sent = sec(sent)
	}
	for i := 0; i < len(spans); i += 3 {
		s := run.Span{State: spans[i].(run.State), From: sec(float64(spans[i+1].(int)))}
		if to := spans[i+2].(int); to >= 0 {
			s.To = sec(float64(to))
		}
		l.Spans = append(l.Spans, s)
	}
	return l
}

func TestCritical(t *testing.T) {
	const plan, find, read, write, check = run.Planning, run.Searching, run.Reading, run.Writing, run.Checking
	for name, tt := range map[string]struct {
		last  float64
		ended bool
		lanes []run.Lane
		want  string
	}{
		"nothing":            {0, false, nil, ""},
		"one researcher":     {9, true, []run.Lane{lane(0, -1, plan, 0, 2, find, 2, 6, write, 6, 9)}, "0 planning 0-2, 0 searching 2-6, 0 writing 6-9"},
		"the slower of two":  {9, true, []run.Lane{lane(0, -1, plan, 0, 1, write, 8, 9), lane(1, 1, find, 1, 4), lane(2, 1, find, 1, 8)}, "0 planning 0-1, 2 searching 1-8, 0 writing 8-9"},
		"a follow-up":        {12, true, []run.Lane{lane(0, -1, plan, 0, 1, check, 4, 5, write, 10, 12), lane(1, 1, find, 1, 4), lane(2, 1, find, 1, 6), lane(3, 5, find, 5, 10)}, "0 planning 0-1, 1 searching 1-4, 0 checking 4-5, 3 searching 5-10, 0 writing 10-12"},
		"one that waited":    {10, true, []run.Lane{lane(0, -1, plan, 0, 1, plan, 4, 5, write, 9, 10), lane(1, 1, find, 1, 4), lane(2, 5, run.Planned, 1, 6, find, 6, 9)}, "0 planning 0-1, 1 searching 1-4, 0 planning 4-5, 2 planned 5-6, 2 searching 6-9, 0 writing 9-10"},
		"one never sent":     {10, true, []run.Lane{lane(0, -1, plan, 0, 1, write, 9, 10), lane(1, 1, find, 1, 4), lane(2, -1, run.Planned, 1, 9)}, "0 planning 0-1, 1 searching 1-4, 0 writing 9-10"},
		"it goes on":         {7, false, []run.Lane{lane(0, -1, plan, 0, 1), lane(1, 1, find, 1, 3, read, 3, -1)}, "0 planning 0-1, 1 searching 1-3, 1 reading 3-7"},
		"one goes on beyond": {20, true, []run.Lane{lane(0, -1, plan, 0, 1, write, 5, 9), lane(1, 1, find, 1, 5), lane(2, 1, find, 1, -1)}, "0 planning 0-1, 1 searching 1-5, 0 writing 5-9"},
		"a time between":     {9, true, []run.Lane{lane(0, -1, plan, 0, 2, write, 5, 9)}, "0 planning 0-2, 0 writing 5-9"},
		"they overlap":       {9, true, []run.Lane{lane(0, -1, plan, 0, 5, write, 3, 9)}, "0 planning 0-3, 0 writing 3-9"},
		"backwards":          {9, true, []run.Lane{lane(0, -1, plan, 5, 1, write, 2, 9)}, "0 writing 2-9"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &run.Board{Last: sec(tt.last), Ended: tt.ended, Lanes: tt.lanes}
			var got []string
			var sum time.Duration
			for _, p := range b.Critical() {
				got = append(got, fmt.Sprintf("%d %s %v-%v", p.Lane, p.Span.State, p.Span.From.Sub(zero).Seconds(), p.Span.To.Sub(zero).Seconds()))
				sum += p.Span.To.Sub(p.Span.From)
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("%s\nwant\n%s", s, tt.want)
			}
			for _, s := range b.Stages() {
				sum -= s.Critical
			}
			if sum != 0 {
				t.Errorf("stages lack %v", sum)
			}
		})
	}
}
