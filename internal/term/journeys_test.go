package term

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

// glass is a terminal as far as progress needs one: it moves, erases, scrolls and
// wraps. An escape code it does not know is a fault.
type glass struct {
	width, height int
	rows          [][]string // of cells
	row, col      int
	fault         string
}

func newGlass(width, height int) *glass {
	g := &glass{width: width, height: height}
	for range height {
		g.rows = append(g.rows, nil)
	}
	return g
}

var codePattern = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (g *glass) Write(b []byte) (int, error) {
	for s := string(b); s != ""; {
		if m := codePattern.FindStringSubmatch(s); m != nil {
			g.code(m[1], m[2])
			s = s[len(m[0]):]
			continue
		}
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
		s = rest
		switch cluster {
		case "\r":
			g.col = 0
		case "\n", "\r\n":
			g.down()
		default:
			g.put(cluster, width)
		}
	}
	return len(b), nil
}

func (g *glass) code(parameter, final string) {
	switch parameter + final {
	case "K":
		g.rows[g.row] = g.rows[g.row][:min(g.col, len(g.rows[g.row]))]
	case "2K":
		g.rows[g.row] = nil
	case "J":
		g.code("", "K")
		for i := g.row + 1; i < g.height; i++ {
			g.rows[i] = nil
		}
	default:
		n, err := strconv.Atoi(parameter)
		switch {
		case final == "m":
		case final == "A" && err == nil:
			if n > g.row {
				g.fault = fmt.Sprintf("%d up from row %d", n, g.row)
			}
			g.row = max(0, g.row-n)
		default:
			g.fault = "the code " + parameter + final
		}
	}
}

func (g *glass) down() {
	g.col = 0
	if g.row++; g.row == g.height {
		g.rows = append(g.rows[1:], nil)
		g.row--
	}
}

func (g *glass) put(cluster string, width int) {
	if g.col+width > g.width {
		g.down()
	}
	for len(g.rows[g.row]) < g.col+width {
		g.rows[g.row] = append(g.rows[g.row], " ")
	}
	g.rows[g.row][g.col] = cluster
	for i := 1; i < width; i++ {
		g.rows[g.row][g.col+i] = ""
	}
	g.col += width
}

// screen is what stands there, without the empty end.
func (g *glass) screen() string {
	var lines []string
	for _, r := range g.rows {
		lines = append(lines, strings.TrimRight(strings.Join(r, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

func of(rihla int, who string, stage marchwarden.Stage, message string) marchwarden.Event {
	return marchwarden.Event{Rihla: rihla, Researcher: who, Stage: stage, Message: message}
}

func TestProgressOfJourneys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGlass(64, 24)
		fmt.Fprint(g, "$ marchwarden ask\n")
		p := NewProgress(g, Style{Width: 64, Height: 24, Color: true}, true, time.Now)
		pause := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		p.Event(of(0, "", marchwarden.StagePlan, "3 rihlas"))
		pause(200 * time.Millisecond)
		p.Event(of(1, "files", marchwarden.StageIndex, "notes.md"))
		p.Event(of(3, "a\x1b[31m very long name\r of a researcher", marchwarden.StagePlan, ""))
		pause(200 * time.Millisecond)
		p.Event(of(2, "web", marchwarden.StageSearch, strings.Repeat("長い", 40)))
		pause(3 * time.Second)
		p.Event(of(1, "", marchwarden.StageDone, "3 citations, confidence 0.84"))
		p.Event(of(0, "", marchwarden.StageFetch, "following a gap"))
		pause(62 * time.Second)
		diff := func(want string) {
			t.Helper()
			if d := cmp.Diff(want, g.screen()); d != "" || g.fault != "" {
				t.Errorf("%s (-want +got):\n%s", g.fault, d)
			}
		}
		diff(`$ marchwarden ask
marchwarden: 1:04 · 1 of 3 rihlas over · reading · following a…
  1 files          0:03  done · 3 citations, confidence 0.84
  2 web            1:04  searching · 長い長い長い長い長い長い…
  3 a very long…   1:04  planning
`)
		p.Event(of(12, "web", marchwarden.StageDone, "failed"))
		p.Close()
		diff("$ marchwarden ask\n")
	})
}

func TestProgressOfManyJourneys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, height := range []int{1, 2, 3, 4, 5, 9, 24} {
			g := newGlass(50, height)
			p := NewProgress(g, Style{Width: 50, Height: height}, true, time.Now)
			for n := 1; n <= 12; n++ {
				stage := marchwarden.StageSearch
				if n%2 == 0 {
					stage = marchwarden.StageDone
				}
				p.Event(of(n, "web", stage, ""))
				time.Sleep(time.Second)
				synctest.Wait()
				if g.fault != "" {
					t.Fatalf("height %d: %s", height, g.fault)
				}
			}
			if height == 5 {
				want := "marchwarden: 0:11 · 6 of 12 rihlas over\n  … 10 earlier rihlas, 5 under way\n  11 web   0:01  searching\n  12 web   0:00  done\n"
				if d := cmp.Diff(want, g.screen()); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
			if lines := strings.Count(g.screen(), "\n"); lines > max(1, height-1) {
				t.Errorf("%d lines on a screen of %d", lines, height)
			}
			p.Close()
			if left := g.screen(); left != "\n" {
				t.Errorf("height %d: left %q", height, left)
			}
		}
	})
}

// Whatever happens in whatever order, what was on the terminal before stays, and
// the lines stand below it once.
func TestProgressDrawsOverItselfOnly(t *testing.T) {
	texts := append(hostileTexts(), "長い", strings.Repeat("x", 300), "")
	rapid.Check(t, func(t *rapid.T) {
		g := newGlass(rapid.IntRange(10, 90).Draw(t, "width"), rapid.IntRange(4, 12).Draw(t, "height"))
		fmt.Fprint(g, "above\n")
		var mu sync.Mutex // guards now
		now := time.Unix(0, 0)
		pass := func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(d)
		}
		p := NewProgress(g, Style{Width: g.width, Height: g.height}, true, func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		})
		event := func() {
			p.Event(marchwarden.Event{
				Rihla: rapid.IntRange(-1, 15).Draw(t, "rihla"), Researcher: rapid.SampledFrom(texts).Draw(t, "who"), Message: rapid.SampledFrom(texts).Draw(t, "message"),
				Stage: rapid.SampledFrom([]marchwarden.Stage{marchwarden.StagePlan, marchwarden.StageFetch, marchwarden.StageDone, "later"}).Draw(t, "stage"),
			})
		}
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			event()
			pass(time.Duration(rapid.IntRange(0, 1500).Draw(t, "pause")) * time.Millisecond)
		}
		pass(redraw)
		event() // drawn at once
		p.mu.Lock()
		lines, screen := p.lines(), g.screen()
		p.mu.Unlock()
		p.Close()
		if want := "above\n" + strings.Join(lines, "\n") + "\n"; screen != want || g.fault != "" {
			t.Fatalf("%s:\n%s\nwant:\n%s", g.fault, screen, want)
		}
		if g.screen() != "above\n" || g.fault != "" {
			t.Fatalf("%s: left:\n%s", g.fault, g.screen())
		}
	})
}

// investigated is a result of an investigator: three rihlas, two sides that
// disagree, an unchecked citation and decisions of every kind.
func investigated(t testing.TB) (*marchwarden.Result, ResultOptions) {
	r, o := rich(t)
	r.Citations[1].Published, r.Citations[1].Authority, r.Citations[1].Origin = "2019-04-02", marchwarden.HighAuthority, "example.edu"
	r.Citations[3].Unchecked, r.Citations[3].Source = true, "almanac"
	a, b := &r.Contradictions[0].A, &r.Contradictions[0].B
	a.Title, a.Published, a.Authority, a.Researcher = "Tomatoes at elevation", "2019-04-02", marchwarden.HighAuthority, "files"
	b.Authority, b.Researcher = marchwarden.LowAuthority, "almanac"
	r.Rihlas = []marchwarden.Rihla{
		{Researcher: "files", Question: o.Question, Reason: "the question itself", Outcome: "answered with 3 citations", Citations: 3, TraceID: traceID(t), TokensUsed: 912, WallTimeSec: 0.084},
		{Researcher: "almanac", Question: "Which vegetables ripen above 6,000 feet in Utah, and which of them need a greenhouse or another shelter from the cold?", Reason: "within its scope: mountain gardens", Outcome: "report taken as it is", Citations: 1, TraceID: traceID(t), WallTimeSec: 12.44},
		{Researcher: "web", Question: "What are the frost dates of Kanab?", Reason: "files found nothing", Outcome: "failed: web: the search engine cannot be reached", Parent: 1},
	}
	r.Decisions = []marchwarden.Decision{
		{About: "source_not_found", Topic: "frost dates of Kanab", From: 1, Action: marchwarden.Dispatched, Reason: "another researcher may know", Rihla: 3},
		{About: "open_question", Topic: "Which cultivars were tried?", From: 1, Action: marchwarden.Accepted, Reason: "kept as an open question"},
		{About: "new_source", Topic: "the seed list of 2025", From: 2, Action: marchwarden.Withheld, Reason: "it holds words from files, which web must not learn"},
		{About: "contradictory_sources", Topic: "tomatoes above 6,000 feet", From: 2, Action: marchwarden.Flagged, Reason: "nobody else can be asked; both excerpts are given for a person to compare"},
		{About: "related_research", Topic: "cold tolerance", From: 3, Action: marchwarden.Capped, Reason: "there are 3 rihlas at most"},
	}
	return r, o
}

func TestPlanGolden(t *testing.T) {
	r, o := investigated(t)
	for name, st := range map[string]Style{"plan": {}, "plan-50": {Width: 50, Color: true}} {
		var b bytes.Buffer
		if err := st.Plan(&b, o.Question, r.Rihlas); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
	for _, hostile := range hostileTexts() {
		var b bytes.Buffer
		if err := (Style{}).Plan(&b, hostile, []marchwarden.Rihla{{Researcher: hostile, Question: hostile, Reason: hostile, Outcome: hostile}}); err != nil || firstControl(b.String()) >= 0 {
			t.Errorf("%q, %v", b.String(), err)
		}
	}
	var b bytes.Buffer
	if err := (Style{}).Plan(&b, "", nil); err != nil || b.String() != "nobody would be asked\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := (Style{}).Plan(failing{}, "q", nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Plan: %v", err)
	}
}

// Few of many decisions are shown, those for a person first, and the rest is
// counted.
func TestManyDecisions(t *testing.T) {
	r := &marchwarden.Result{Answer: "x"}
	for i := range 40 {
		action := marchwarden.Dispatched
		if i >= 20 {
			action = marchwarden.Accepted
		}
		r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: fmt.Sprintf("topic %d.", i), Action: action})
	}
	r.Decisions = append(r.Decisions, marchwarden.Decision{Topic: "a later one.", Action: "postponed for ever"}, marchwarden.Decision{Topic: "the last.", Action: marchwarden.Flagged})
	got := screen(t, Style{}, r, ResultOptions{})
	for _, want := range []string{"\n  flagged     the last.\n  accepted    topic 20.\n", "  accepted    topic 30.\n  10 more not followed · 20 reports followed · --verbose shows all\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	got = screen(t, Style{}, r, ResultOptions{Verbose: true})
	for _, want := range []string{"  dispatched  topic 0.\n  dispatched  topic 1.\n", "  accepted    topic 39.\n  postponed…  a later one.\n  flagged     the last.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A contradiction that stands in its own section is counted in the follow-up; one
// that does not stand there is listed.
func TestFlaggedContradictions(t *testing.T) {
	head := strings.Repeat("the season above 6,000 feet ", 8)
	flagged := func(topic string) marchwarden.Decision {
		return marchwarden.Decision{About: string(marchwarden.ContradictorySources), Topic: topic, From: 1, Action: marchwarden.Flagged, Reason: "nobody else can be asked"}
	}
	contradictions := []marchwarden.Contradiction{{Subject: "the season", Attribute: "number of days"}, {Subject: head, Attribute: "days"}}
	for name, tc := range map[string]struct {
		decisions []marchwarden.Decision
		want      string // the whole section
	}{
		"all shown": {[]marchwarden.Decision{flagged("the season: number of days"), flagged(head[:100] + "…")},
			"  2 flagged as contradictory, shown above · --verbose shows all\n"},
		"not shown": {[]marchwarden.Decision{flagged("notes.md"), flagged("…"), flagged("the season")},
			"  flagged     contradictory sources: notes.md — nobody else can be asked (rihla 1)\n" +
				"  flagged     contradictory sources: … — nobody else can be asked (rihla 1)\n" +
				"  flagged     contradictory sources: the season — nobody else can be asked (rihla 1)\n"},
		"followed": {[]marchwarden.Decision{flagged("the season: number of days"),
			{About: string(marchwarden.ContradictorySources), Topic: "the season: number of days", From: 1, Action: marchwarden.Dispatched, Rihla: 2},
			{About: string(marchwarden.SourceNotFound), Topic: "the season: number of days", Action: marchwarden.Flagged}},
			"  flagged     source not found: the season: number of days\n" +
				"  1 flagged as contradictory, shown above · 1 report followed · --verbose shows all\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &marchwarden.Result{Answer: "x", Contradictions: contradictions, Decisions: tc.decisions}
			_, got, _ := strings.Cut(screen(t, Style{Width: 120}, r, ResultOptions{}), "what was done about the reports\n")
			got, _, _ = strings.Cut(got, "\nconfidence")
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			all := screen(t, Style{}, r, ResultOptions{Verbose: true})
			if n := strings.Count(all, "  flagged     "); n != len(slices.DeleteFunc(slices.Clone(tc.decisions), func(d marchwarden.Decision) bool { return d.Action != marchwarden.Flagged })) {
				t.Errorf("%d of the flagged are shown with verbose:\n%s", n, all)
			}
		})
	}
}

func TestProgressOfJourneysPlain(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Style{}, false, time.Now)
	p.Event(of(0, "", marchwarden.StagePlan, "2 rihlas"))
	for i := range 3 {
		p.Event(of(1, "files", marchwarden.StageSearch, fmt.Sprint("query ", i)))
		p.Event(of(2, "web\x1b[1m\nhost", marchwarden.StageSearch, fmt.Sprint("query ", i)))
	}
	p.Event(of(2, "web", marchwarden.StageDone, "4 citations, confidence 0.70"))
	p.Event(of(2, "web", marchwarden.StageDone, "3 of 4 citations stand"))
	p.Event(of(2, "web", marchwarden.StageDone, "again"))
	p.Event(of(1, "", marchwarden.StageDone, "failed: it is not there"))
	p.Event(of(0, "", marchwarden.StageSynthesize, ""))
	p.Close()
	want := `marchwarden: planning · 2 rihlas
marchwarden: [1 files] searching · query 0
marchwarden: [2 web host] searching · query 0
marchwarden: [2 web] done · 4 citations, confidence 0.70
marchwarden: [2 web] done · 3 of 4 citations stand
marchwarden: [1] done · failed: it is not there
marchwarden: writing the answer
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
