package term

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func of(rihla int, who string, stage marchwarden.Stage, message string) marchwarden.Event {
	return marchwarden.Event{Rihla: rihla, Researcher: who, Stage: stage, Message: message}
}

// on makes a progress on a glass that is drawn on from the second line.
func on(g *glass, cfg ProgressConfig) *Progress {
	fmt.Fprint(g, "$ marchwarden ask\r\n")
	cfg.Live, cfg.Now = true, time.Now
	cfg.Style.Width, cfg.Style.Height = g.width, g.height
	return NewProgress(g, cfg)
}

func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// hostile are texts that want to be more than text, or wider.
var hostile = []string{"\x1b[31mred\x1b[2J", "\x1b]0;title\a", "\x1b]8;;http://x\x1b\\y", "a\rb\bc", "\u202eevil\u2066", "\u009b5A", "長い名前の研究者", strings.Repeat("x", 300), "e\u0301\u200d👩‍👩‍👧", "two\nlines", "", "\xff\xfe"}

func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGlass(64, 24)
		p := on(g, ProgressConfig{Style: Style{Color: true}})
		see := func(want string) {
			t.Helper()
			if d := cmp.Diff(strings.TrimSpace(want), g.screen()); d != "" || g.wrong() != "" {
				t.Errorf("%s (-want +got):\n%s", g.wrong(), d)
			}
		}
		p.Event(of(0, "", marchwarden.StagePlan, "3 rihlas"))
		pause(200 * time.Millisecond)
		p.Event(of(1, "files", marchwarden.StageIndex, "notes.md"))
		p.Event(of(3, "a\x07 very long name\r of a researcher", marchwarden.StagePlan, "sent: What of it?"))
		pause(200 * time.Millisecond)
		p.Event(of(2, "web", marchwarden.StageSearch, strings.Repeat("長い", 40)))
		pause(3 * time.Second)
		p.Event(of(1, "", marchwarden.StageDone, "3 citations, confidence 0.84"))
		p.Event(of(0, "", marchwarden.StageFetch, "following a gap"))
		pause(20 * time.Second)
		p.Event(of(2, "", marchwarden.StageDone, "failed: it is not there"))
		pause(38 * time.Second)
		see(`
$ marchwarden ask
marchwarden: 1:01 · 2 of 3 done · reading · following a gap
   3 a very long…   1:01  planning · sent: What of it?`)
		p.Close()
		see("$ marchwarden ask")
		p.Event(of(12, "web", marchwarden.StageDone, "late"))
		pause(5 * time.Second)
		see("$ marchwarden ask")
	})
}

// One who works alone has one line.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "marchwarden: 0:05 · reading · iteration 1 · 3 of 5 · a…"
		g := newGlass(86, 10)
		p := on(g, ProgressConfig{})
		p.Event(of(0, "", marchwarden.StagePlan, ""))
		pause(2300 * time.Millisecond)
		p.Event(of(0, "", marchwarden.StageSearch, ""))
		pause(1800 * time.Millisecond)
		e := of(0, "", marchwarden.StageFetch, "a…")
		e.Iteration, e.Done, e.Total = 1, 3, 5
		p.Event(e)
		pause(time.Second)
		if got := strings.Split(g.screen(), "\n"); len(got) != 2 || got[1] != want || g.wrong() != "" {
			t.Errorf("%s %q", g.wrong(), got)
		}
		p.Close()
	})
}

var progressSgrPattern = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// standing is what must be on the terminal now.
func standing(p *Progress) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Now = func() time.Time { return p.last }
	lines := p.drawn()
	p.cfg.Now = time.Now
	for i, l := range lines {
		lines[i] = strings.TrimRight(progressSgrPattern.ReplaceAllString(l, ""), " ")
	}
	return lines
}

// crowd makes events of so many rihlas, some of them over.
func crowd(r *rand.Rand, p *Progress, many int, done bool) {
	stages := []marchwarden.Stage{marchwarden.StagePlan, marchwarden.StageSearch, marchwarden.StageFetch, marchwarden.StageSynthesize, marchwarden.StageCheck, marchwarden.StageDone, "later"}
	pick := func() string { return hostile[r.IntN(len(hostile))] }
	for n := range many + 1 {
		stage := stages[r.IntN(len(stages))]
		if done && n > 0 && n%3 > 0 {
			stage = marchwarden.StageDone
		}
		e := of(n, pick(), stage, pick())
		e.Iteration = r.IntN(3)
		p.Event(e)
	}
}

// Whatever the size is, the lines stand once, below what was there before, and none is wrapped.
func TestEverySize(t *testing.T) {
	for _, many := range []int{1, 8, 60} {
		synctest.Test(t, func(t *testing.T) { sizes(t, many) })
	}
}

func sizes(t *testing.T, many int) {
	r := rand.New(rand.NewPCG(uint64(many), 7))
	widths := []int{80, 200, 20, 47, 48, 31, 133, 21, 60, 100, 25, 79, 199, 40}
	heights := []int{24, 10, 50, 5, 70, 24, 3, 2, 1, 12}
	for i := range 45 {
		width, height := widths[i%len(widths)], heights[i/3%len(heights)]
		what := fmt.Sprintf("%d lanes, %d × %d", many, width, height)
		g := newGlass(width, height)
		p := on(g, ProgressConfig{Style: Style{Color: true}})
		crowd(r, p, many, false)
		crowd(r, p, many, i > 22)
		pause(time.Second + redraw)
		lines := standing(p)
		if len(lines) > max(1, height-1) {
			t.Fatalf("%s: %d lines", what, len(lines))
		}
		for _, l := range lines {
			if n := Width(l); n > width-1 {
				t.Fatalf("%s: %d cells: %q", what, n, l)
			}
		}
		shown := strings.Split(g.screen(), "\n")
		from := slices.IndexFunc(shown, func(s string) bool { return strings.HasPrefix(s, lines[0]) })
		if g.wrong() != "" || from < 0 || !slices.Equal(shown[from:], lines) {
			t.Fatalf("%s: %s (-want +got):\n%s", what, g.wrong(), cmp.Diff(lines, shown))
		}
		for _, above := range shown[:from] {
			if above != "$ marchwarden ask" && above != "" && !strings.HasPrefix("$ marchwarden ask", above) {
				t.Fatalf("%s: %q is above the lines", what, above)
			}
		}
		p.Close()
		if left := g.screen(); strings.Contains(left, "rihla") || strings.Contains(left, "marchwarden:") || g.wrong() != "" {
			t.Errorf("%s: left %q %s", what, left, g.wrong())
		}
	}
}

// A window that gets narrower wraps nothing.
func TestNarrowerThanAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGlass(80, 24)
		p := on(g, ProgressConfig{})
		g.resize(30, 24)
		for n := range 4 {
			p.Event(of(n, "files", marchwarden.StageSearch, strings.Repeat("long ", 20)))
			pause(redraw)
		}
		rows := strings.Split(g.screen(), "\n")
		if len(rows) != 5 {
			t.Fatalf("%q", rows)
		}
		for i, r := range rows[2:] {
			if !strings.HasPrefix(r, fmt.Sprintf("   %d files", i+1)) {
				t.Errorf("row %d: %q", i, r)
			}
		}
		p.Close()
		if g.screen() != "$ marchwarden ask" {
			t.Errorf("left %q", g.screen())
		}
	})
}

// However many events there are, there are few writes, and one a frame.
func TestFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, many := range []int{1, 8, 60} {
			g := newGlass(100, 40)
			p := on(g, ProgressConfig{})
			const span = 4
			before := g.wrote()
			for range span * 100 {
				p.Event(of(rand.IntN(many+1), "web", marchwarden.StageFetch, "x"))
				pause(10 * time.Millisecond)
			}
			busy := g.wrote() - before
			if busy > span*10+1 || busy < span {
				t.Errorf("%d lanes: %d writes in %d s", many, busy, span)
			}
			pause(span * time.Second)
			if idle := g.wrote() - before - busy; idle > span+2 || idle < span-1 {
				t.Errorf("%d lanes: %d writes in %d idle seconds", many, idle, span)
			}
			p.Close()
			p.Close()
			was := g.wrote()
			pause(span * time.Second)
			if g.wrote() != was {
				t.Error("it writes after the end")
			}
		}
	})
}

// Those that are over have no line, and of the others those begun first have none where there is no room.
func TestManyLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGlass(60, 7)
		p := on(g, ProgressConfig{})
		for n := 1; n <= 12; n++ {
			stage := marchwarden.StageSearch
			if n < 5 {
				stage = marchwarden.StageDone
			}
			p.Event(of(n, "web", stage, ""))
			pause(time.Second)
		}
		pause(500 * time.Millisecond)
		want := `$ marchwarden ask
marchwarden: 0:12 · 4 of 12 done
  … 4 more
   9 web   0:04  searching
  10 web   0:03  searching
  11 web   0:02  searching
  12 web   0:01  searching`
		if d := cmp.Diff(want, g.screen()); d != "" || g.wrong() != "" {
			t.Errorf("%s %s", d, g.wrong())
		}
		p.Close()
	})
}

func TestSingle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := NewProgress(&b, ProgressConfig{Style: Style{Width: 40}, Live: true, Single: true, Now: time.Now})
		p.Event(marchwarden.Event{Stage: "questions", Done: 4, Total: 5, Message: strings.Repeat("█", 30)})
		pause(time.Minute)
		if got := b.String(); !strings.Contains(got, "\rmarchwarden: questions · 4 of 5 · ████…\x1b[J") || strings.Count(got, hold) != 1 {
			t.Errorf("%q", got)
		}
		p.Close()
	})
}

func TestConcurrent(t *testing.T) {
	for _, live := range []bool{true, false} {
		var b bytes.Buffer
		p := NewProgress(&b, ProgressConfig{Style: Style{Width: 80}, Live: live, Now: time.Now})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 {
					p.Event(of(g, "web", marchwarden.StageFetch, fmt.Sprint(i)))
				}
			})
		}
		wg.Wait()
		p.Close()
		if b.Len() == 0 {
			t.Error("nothing was written")
		}
	}
}
