package extractive

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

func set(docs map[string]string) *evidence.Set { return shelfOf(docs).full }

func writeOf(t *testing.T, st *reason.State) reason.Draft {
	t.Helper()
	d, err := New().Write(context.Background(), st)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func texts(d reason.Draft) []string {
	var out []string
	for _, c := range d.Claims {
		out = append(out, c.Text)
	}
	return out
}

var garden = map[string]string{
	"soil.md": "Most garden soils of the valley are alkaline. Iron chlorosis is a yellowing of leaves that is caused by alkaline soil.\n\nSulfur lowers the pH of soil slowly.",
	"frost.md": "The last frost in Ogden falls in early May. The first frost in Ogden falls on 12 October.\n\n" +
		"- Peas survive light frost and can be sown in March\n- Beans are killed by frost",
	"log.txt": "2025-01-06 Back after the break. The padlock of the shed was frozen, graphite helped. The spare key of the shed hangs on hook 7. Bought salt.\n2025-01-07 Nothing.",
	"dam.md":  "The Pineview Dam stands in Ogden Canyon. It was completed in 1937. The dam cost 4 million dollars because the canyon is narrow.",
}

// How to do something is answered with the code below a sentence; what was recorded by earlier
// rules is answered without.
func TestHowTo(t *testing.T) {
	docs := map[string]string{"flags.md": "# Flags\n\n## Required flags\n\nFlags are optional by default. To have a missing flag reported, mark the flag as required:\n\n" +
		"cmd.Flags().String(\"region\", \"\", \"where\")\ncmd.MarkFlagRequired(\"region\")\n\n## Other flags\n\nA flag can be hidden from the help."}
	const question, lead, code = "How do I mark a flag as required?", "mark the flag as required:", `cmd.MarkFlagRequired("region")`
	for _, leads := range []bool{true, false} {
		st := stateOf(question, set(docs), balanced)
		st.Evidence.Earlier = !leads
		d := writeOf(t, st)
		if len(d.Claims) == 0 || !strings.Contains(d.Claims[0].Text, lead) || strings.Contains(d.Claims[0].Text, code) != leads {
			t.Fatalf("leads %v: %q", leads, texts(d))
		}
		c := d.Claims[0]
		src, _, _ := st.Evidence.Passage(c.Passages[0])
		if shown := src.Text[c.Spans[0].Start:c.Spans[0].End]; strings.Contains(shown, code) != leads {
			t.Errorf("leads %v: the citation shows %q", leads, shown)
		}
	}
}

// Lines of code are no answer to a question about something else; by earlier rules they could be.
func TestCode(t *testing.T) {
	docs := map[string]string{"https://a.example/robots": "# robots\n\nrobots is a library that reads robots.txt.\n\nimport \"example.com/robots\"\n\n" +
		"rules := `\n    User-agent: *\n    Disallow: /members/*\n`\n\n// Target address.\nat := \"http://example.net/members/index.html\""}
	st := stateOf("Which user agent matching rules does robots follow?", set(docs), balanced)
	st.Evidence.Earlier = true
	d := writeOf(t, st)
	earlier := strings.Join(texts(d), " ")
	st = stateOf("Which user agent matching rules does robots follow?", set(docs), balanced)
	d = writeOf(t, st)
	if now := strings.Join(texts(d), " "); !strings.ContainsAny(earlier, "/*=") || strings.ContainsAny(now, "/*=") {
		t.Errorf("by earlier rules %q, now %q", earlier, now)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct{ question, first string }{
		{"What is iron chlorosis?", "Iron chlorosis is a yellowing of leaves that is caused by alkaline soil."},
		{"When does the first frost fall in Ogden?", "The first frost in Ogden falls on 12 October."},
		{"Where does the spare key of the shed hang?", "The spare key of the shed hangs on hook 7."}, // one of the sentences of its line
		{"How much did the dam cost?", "The dam cost 4 million dollars because the canyon is narrow."},
		{"Which seeds survive light frost in March?", "Peas survive light frost and can be sown in March"},
	} {
		d := writeOf(t, stateOf(c.question, set(garden), balanced))
		if len(d.Claims) == 0 || d.Claims[0].Text != c.first {
			t.Errorf("%q is answered %q, want %q first", c.question, texts(d), c.first)
		}
		if d.Match < 0.5 {
			t.Errorf("%q: match %.2f", c.question, d.Match)
		}
	}
}

func TestCorroboration(t *testing.T) {
	docs := map[string]string{
		"a.md": "Deep Blue defeated the world champion Garry Kasparov in May 1997.",
		"b.md": "“Deep Blue defeated the world champion Garry Kasparov in May 1997.”",
		"c.md": "Deep Blue never defeated the world champion Garry Kasparov in May 1997.",
		"d.md": "Deep Blue defeated the world champion Garry Kasparov in May 1996.",
	}
	d := writeOf(t, stateOf("When did Deep Blue defeat Garry Kasparov?", set(docs), balanced))
	if len(d.Claims) != 2 || !strings.Contains(d.Claims[0].Text, "May 1997") {
		t.Fatalf("%d claims, want the agreeing pair as one and first, and another apart: %q", len(d.Claims), texts(d))
	}
	for _, c := range d.Claims {
		agreed := strings.Contains(c.Text, "May 1997") && !strings.Contains(c.Text, "never")
		if want := map[bool]int{true: 2, false: 1}[agreed]; len(c.Passages) != want || len(c.Spans) != want {
			t.Errorf("%q rests on %v, want %d", c.Text, c.Passages, want)
		}
	}
	if len(d.Contradictions) == 0 {
		t.Error("no contradiction is reported")
	}
}

func TestContextIsNotRepeated(t *testing.T) {
	const known = "Iron chlorosis is a yellowing of leaves that is caused by alkaline soil."
	st := stateOf("What is iron chlorosis?", set(garden), balanced)
	if d := writeOf(t, st); !slices.Contains(texts(d), known) {
		t.Fatalf("without the context it says %q", texts(d))
	}
	st = stateOf("What is iron chlorosis?", set(garden), balanced)
	st.Request.Context = known
	for _, c := range writeOf(t, st).Claims {
		if c.Text == st.Request.Context {
			t.Errorf("told the caller what it knows: %q", c.Text)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ question, missing string }{
		{"When does the first frost fall in Samarkand?", "Samarkand"},
		{"What is the airspeed of an unladen blorptang?", "blorptang"},
		{"Who composed the opera Fidelio?", "Fidelio"},
	} {
		d := writeOf(t, stateOf(c.question, set(garden), balanced))
		if len(d.Claims) > 0 || d.Refusal == "" {
			t.Errorf("%q: not refused (match %.2f): %q", c.question, d.Match, texts(d))
			continue
		}
		if len(d.Gaps) != 1 || d.Gaps[0].Category != marchwarden.SourceNotFound || !strings.Contains(d.Gaps[0].Detail, c.missing) {
			t.Errorf("%q: gaps %+v do not name %s", c.question, d.Gaps, c.missing)
		}
		if strings.Contains(d.Refusal, "\n") || !strings.HasSuffix(d.Refusal, ".") {
			t.Errorf("%q: refusal %q is not a sentence", c.question, d.Refusal)
		}
	}
}

// A sentence that is the question turned round answers it, though the reader doubts it. One that only has its words does not.
func TestStated(t *testing.T) {
	docs := map[string]string{
		"https://a.example/heron": "# Product launch\n\nProject Heron launches in Gdansk on 14 June 2027.",
		"https://a.example/light": "# Lighthouse restoration\n\nThe lens of the lighthouse was cast in Lyon in 1874.",
	}
	for question, want := range map[string]string{
		"When does Project Heron launch?":            "14 June 2027",
		"Where was the lens of the lighthouse cast?": "Lyon",
		"When did Gdansk launch Project Heron?":      "",
	} {
		st := stateOf(question, set(docs), balanced)
		st.Evidence.Earlier = true
		if d := writeOf(t, st); len(d.Claims) > 0 {
			t.Errorf("%q was answered by earlier rules, too: %q", question, texts(d))
		}
		st.Evidence.Earlier = false
		d := writeOf(t, st)
		if (len(d.Claims) > 0) != (want != "") {
			t.Errorf("%q: %q", question, texts(d))
		} else if want != "" && (d.Short == nil || lead(st, d.Short) != want) {
			t.Errorf("%q: the short answer is %+v", question, d.Short)
		}
	}
}

func TestEmptyEvidence(t *testing.T) {
	st := stateOf("What is iron chlorosis?", &evidence.Set{}, balanced)
	st.Searches = []reason.Searched{{Query: "iron chlorosis", Iteration: 1}}
	d := writeOf(t, st)
	if len(d.Claims) > 0 || d.Refusal == "" || d.Match != 0 {
		t.Errorf("draft %+v", d)
	}
}

func TestPartlyCovered(t *testing.T) {
	d := writeOf(t, stateOf("What is iron chlorosis and who discovered penicillin?", set(garden), balanced))
	if len(d.Claims) == 0 {
		t.Fatalf("refused: %s", d.Refusal)
	}
	if !slices.ContainsFunc(d.Gaps, func(g marchwarden.Gap) bool {
		return g.Category == marchwarden.SourceNotFound && strings.Contains(g.Topic, "penicillin")
	}) {
		t.Errorf("no gap for penicillin: %+v", d.Gaps)
	}
	if !slices.ContainsFunc(d.OpenQuestions, func(o marchwarden.OpenQuestion) bool { return o.Question == "Who discovered penicillin?" }) {
		t.Errorf("open questions %+v", d.OpenQuestions)
	}
}

func TestNoRoomToRead(t *testing.T) {
	st := stateOf("What is iron chlorosis?", set(garden), balanced)
	res, err := st.Meter.Reserve(balanced.TokenBudget - 5)
	if err != nil {
		t.Fatal(err)
	}
	res.Settle(balanced.TokenBudget - 5)
	d := writeOf(t, st)
	if len(d.Claims) > 0 || len(d.Gaps) != 1 || d.Gaps[0].Category != marchwarden.BudgetExhausted {
		t.Errorf("draft %+v", d)
	}
	if u := st.Meter.Usage(); u.Tokens > balanced.TokenBudget || len(u.Exhausted) == 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestLeads(t *testing.T) {
	docs := map[string]string{"yield.md": "Tomato yield varies with altitude and remains uncertain above the tree line. " +
		"According to the Bureau of Mountain Farms, tomato yield fell in 2020. A survey of tomato yield appeared on arXiv in 2021. See https://example.org/tomato-yield for tomato yield data. The badge is at https://example.org/badge."}
	d := writeOf(t, stateOf("What is known about tomato yield?", set(docs), balanced))
	var got []string
	for _, e := range d.Discoveries {
		got = append(got, fmt.Sprintf("%s|%s|%s", e.Type, e.SuggestedResearcher, e.Query))
		if e.SourceLocator != "yield.md" || e.Reason == "" {
			t.Errorf("lead without ground: %+v", e)
		}
	}
	slices.Sort(got)
	want := []string{"new_source||Bureau of Mountain Farms", "new_source||https://example.org/tomato-yield", "related_research|arxiv|tomato yield"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(d.OpenQuestions) > 0 {
		t.Errorf("a sentence is asked back: %+v", d.OpenQuestions)
	}
}

func TestDeterministic(t *testing.T) {
	lib, times := library(t), 1
	if datatest.Full() {
		times = 5
	}
	for i, question := range []string{"What are ideal crops for a garden in Utah?", "Comprehensive history of AI from the 1950s to 2026", "What is the capital of Mongolia?"} {
		if !datatest.Tried(i, 2) {
			continue
		}
		_, first, plans := lib.run(t, marchwarden.Request{Question: question, Context: "Park City lies high."})
		for range times {
			_, again, plansAgain := lib.run(t, marchwarden.Request{Question: question, Context: "Park City lies high."})
			if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(plans, plansAgain) {
				t.Fatalf("%q: two runs differ", question)
			}
		}
	}
}

// anyDocument draws prose, lists and headings from a small vocabulary, so that
// questions find something.
func anyDocument() *rapid.Generator[string] {
	words := []string{"Utah", "tomatoes", "frost", "ripen", "1937", "6,000", "feet", "not", "the", "garden", "because", "It", "canyon", "is", "a", "dam", "Ogden", "é", "“quoted”"}
	return rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "sentences") {
			n := rapid.IntRange(1, 40).Draw(t, "words")
			for i := range n {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(rapid.SampledFrom(words).Draw(t, "word"))
			}
			b.WriteString(rapid.SampledFrom([]string{". ", "! ", "? ", ".\n", "\n\n", "\n- ", ".\n\n## "}).Draw(t, "end"))
		}
		return b.String()
	})
}

func TestWriteProperties(t *testing.T) {
	datatest.FewChecks(t)
	rapid.Check(t, func(t *rapid.T) {
		docs := map[string]string{}
		for i, d := range rapid.SliceOfN(anyDocument(), 0, 6).Draw(t, "documents") {
			docs[fmt.Sprintf("d%d.md", i)] = d
		}
		question := rapid.SampledFrom([]string{"Do tomatoes ripen above 6,000 feet in Utah?", "When was the dam in Ogden built and why?", "frost", "Compare the garden and the canyon", "Frost in Utah from 1930 to 1960", "???"}).Draw(t, "question")
		l := marchwarden.Limits{MaxIterations: 3, TokenBudget: rapid.IntRange(1, 3000).Draw(t, "budget"), MaxSources: 5}
		st := stateOf(question, set(docs), l)
		if rapid.IntRange(0, 9).Draw(t, "reader") > 0 { // a reader takes its time
			st.Reader = nil
		}
		st.Meter = budget.New(l, 0)
		st.Iteration = 2
		st.Searches = []reason.Searched{{Query: "nothing", Iteration: 1}}
		if _, err := New().Plan(context.Background(), st); err != nil {
			t.Fatal(err)
		}
		d, err := New().Write(context.Background(), st)
		if err != nil {
			t.Fatal(err)
		}
		if u := st.Meter.Usage(); u.Tokens > l.TokenBudget {
			t.Fatalf("%d tokens used of %d", u.Tokens, l.TokenBudget)
		}
		if (len(d.Claims) == 0) != (d.Refusal != "") {
			t.Fatalf("%d claims and refusal %q", len(d.Claims), d.Refusal)
		}
		if d.Match < 0 || d.Match > 1 {
			t.Fatalf("match %v", d.Match)
		}
		for _, c := range d.Claims {
			checkClaim(t, st.Evidence, c)
		}
	})
}

// checkClaim fails unless each span is whole sentences of its passage's
// document, fits into an excerpt, and the first holds the claim's text.
func checkClaim(t *rapid.T, set *evidence.Set, c reason.Claim) {
	if len(c.Spans) != len(c.Passages) || len(c.Passages) == 0 {
		t.Fatalf("%d spans for %d passages", len(c.Spans), len(c.Passages))
	}
	for i, id := range c.Passages {
		src, _, ok := set.Passage(id)
		if !ok || !c.Spans[i].In(len(src.Text)) {
			t.Fatalf("%s at %v is not in the evidence", id, c.Spans[i])
		}
		starts, ends := false, false
		for _, p := range src.Passages {
			for _, s := range p.Sentences {
				starts = starts || s.Start == c.Spans[i].Start
				ends = ends || s.End == c.Spans[i].End
			}
		}
		cut := src.Text[c.Spans[i].Start:c.Spans[i].End]
		if !starts || !ends || utf8.RuneCountInString(cut) > marchwarden.MaxExcerptChars {
			t.Fatalf("%q is not whole sentences of at most %d characters", cut, marchwarden.MaxExcerptChars)
		}
		plain := lexicon.Plain(cut)
		if i > 0 {
			continue
		}
		for _, said := range strings.Split(c.Text, "; ") { // items of a list are said together
			for _, mark := range []string{": ", "? "} {
				if _, after, ok := strings.Cut(said, mark); ok && !strings.Contains(plain, lexicon.Plain(said)) {
					said = after // the heading stands before it
				}
			}
			if !strings.Contains(plain, lexicon.Plain(said)) {
				t.Fatalf("%q does not stand in %q", said, cut)
			}
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	s := library(b).full
	for b.Loop() {
		if _, err := New().Write(context.Background(), stateOf("What are ideal crops for a garden in Utah?", s, balanced)); err != nil {
			b.Fatal(err)
		}
	}
}

// A question that no document answers alone is answered from two: the sentence that
// answers comes first, and the one that gives the name that leads there second.
func TestChain(t *testing.T) {
	docs := map[string]string{
		"film.md":  "---\ntitle: Harbour Lights\n---\nHarbour Lights is a drama of 1988. It was directed by Mara Quill and shown in Trieste.",
		"quill.md": "---\ntitle: Mara Quill\n---\nMara Quill is a painter and director. She is married to the composer Joris Vane and lives on a farm.",
		"other.md": "---\ntitle: Lamp Street\n---\nLamp Street is a drama of 1991. Its director, Ann Tarry, has no spouse.",
	}
	for _, c := range []struct {
		question string
		want     []string // words of the claims, in order
	}{
		{"Who is the spouse of the director of Harbour Lights?", []string{"Joris Vane", "directed by Mara Quill"}},
		{"Who is the spouse of Mara Quill?", []string{"Joris Vane"}},
		{"Who directed Harbour Lights?", []string{"directed by Mara Quill"}},
	} {
		got := texts(writeOf(t, stateOf(c.question, set(docs), balanced)))
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.Contains(got[i], c.want[i])
		}
		if !ok {
			t.Errorf("%q is answered %q, want %q", c.question, got, c.want)
		}
	}
}

// A question for a time is answered by the heading's date where the item has none.
func TestWhen(t *testing.T) {
	docs := set(map[string]string{"driver-changelog.md": "# Changelog\n\n## v1.9.1 (2025-03-21)\n\n### Bugfixes\n\n- Fix the version format (#1682)\n\n## v1.9.0 (2025-02-18)\n\n### Major changes\n\n- Implement zlib compression (#1487)\n- Config can have a dial function (#1527)\n"})
	d := writeOf(t, stateOf("When did the driver get zlib compression?", docs, balanced))
	got := texts(d)
	if len(got) == 0 || got[0] != "v1.9.0 (2025-02-18): Implement zlib compression (#1487)" {
		t.Fatalf("answered %q", got)
	}
	if text := docs.Sources()[0].Text; d.Short != nil && text[d.Short.Span.Start:d.Short.Span.End] != "2025-02-18" {
		t.Errorf("in short %q", text[d.Short.Span.Start:d.Short.Span.End])
	}
}

// Yes and no are said only where the reader and the words of the sentence agree.
// What a heading says is said, too: which version, when it was released, which option; and a heading that asks what is
// asked is answered by what stands below it. By earlier rules none of this was so.
func TestHeadingsAnswer(t *testing.T) {
	docs := map[string]string{
		"CHANGELOG.md": "# Changelog\n\n## 3.2.2 (2021-04-09)\n\n- Added support for sealed lamps.\n- Fewer allocations.\n\n## 3.2.1 (2020-11-30)\n\n- Changed the path of the lamp oil.\n",
		"lamp.txt":     "OPTIONS\n       These are known.\n\n       -l, --lock\n           Lock the lamp. Note that this does not put the lamp out.\n\n       -u, --unlock\n           Unlock it.\n",
		"rules.md":     "# Rules\n\n- Who can nominate keepers?\n- Leaving\n\n## Who can nominate keepers?\n\nMembers of ten years.\n\n## Leaving\n\nAfter the nomination passes, the warden greets the new keeper.\n",
	}
	for _, c := range []struct{ question, first, short string }{
		{"Which version added support for sealed lamps?", "3.2.2 (2021-04-09): Added support for sealed lamps.", "3.2.2"},
		{"When was 3.2.1 released?", "3.2.1 (2020-11-30): Changed the path of the lamp oil.", "2020-11-30"},
		{"Does lock put the lamp out?", "-l, --lock: Note that this does not put the lamp out.", ""},
		{"Who can nominate a new keeper?", "Who can nominate keepers? Members of ten years.", "Members of ten years"},
	} {
		st := stateOf(c.question, set(docs), balanced)
		d := writeOf(t, st)
		if len(d.Claims) == 0 || d.Claims[0].Text != c.first {
			t.Fatalf("%q is answered %q", c.question, texts(d))
		}
		if c.short != "" && (d.Short == nil || lead(st, d.Short) != c.short) {
			t.Errorf("%q: the short answer is %+v", c.question, d.Short)
		}
		st = stateOf(c.question, set(docs), balanced)
		st.Evidence.Earlier = true
		if d := writeOf(t, st); len(d.Claims) > 0 && d.Claims[0].Text == c.first && c.short != "" && d.Short != nil && lead(st, d.Short) == c.short {
			t.Errorf("%q was answered so by earlier rules, too", c.question)
		}
	}
}

func lead(st *reason.State, s *reason.Short) string {
	src, _, _ := st.Evidence.Passage(s.Passage)
	return src.Text[s.Span.Start:s.Span.End]
}

func TestYesOrNo(t *testing.T) {
	for _, c := range []struct {
		text, question string
		want           marchwarden.ShortKind
	}{
		{"The pumps are not suitable for continuous running.", "Are the pumps suitable for continuous running?", marchwarden.ShortNo},
		{"The pumps may be used in salt water.", "May the pumps be used in salt water?", marchwarden.ShortYes},
		{"The memoir of Hale came out posthumously and is no longer sold.", "Is the memoir of Hale still sold?", marchwarden.ShortNo},
		{"An older explanation, that the town was named after a bishop Orvald, was put forward in 1841 and is no longer accepted.", "Is the theory about Bishop Orvald still believed by scholars?", ""},
	} {
		d := writeOf(t, stateOf(c.question, set(map[string]string{"notes.md": "# Notes\n\n" + c.text + "\n"}), balanced))
		got := marchwarden.ShortKind("")
		if d.Short != nil {
			got = d.Short.Kind
		}
		if got != c.want || len(d.Claims) == 0 {
			t.Errorf("%q: %q of %q, want %q", c.question, got, texts(d), c.want)
		}
	}
}

// What holds now is the newest of the statements about it; what is asked of a date is not.
func TestNow(t *testing.T) {
	docs := set(map[string]string{"notes.md": "# Hall notes\n\n- 2025-01-20 Thermostat in the main hall put to 19.\n- 2025-02-17 Thermostat down to 17 after the gas bill.\n- 2025-03-02 Spare key is on hook 7 now.\n- 2025-04-22 Thermostat down to 16 until October.\n"})
	for question, want := range map[string]string{
		"What is the main hall thermostat set to now?":    "16",
		"What was the thermostat set to in January 2025?": "19",
	} {
		if got := texts(writeOf(t, stateOf(question, docs, balanced))); len(got) == 0 || !strings.Contains(got[0], want) {
			t.Errorf("%q is answered %q, want %s", question, got, want)
		}
	}
}

// A document that says the question back and calls something the answer does not come
// before one that answers.
func TestShouting(t *testing.T) {
	docs := map[string]string{"dam.md": garden["dam.md"]}
	for _, question := range []string{"How many dollars were paid for the dam at Ogden?", "Does the Pineview Dam stand in a wide valley?", "In which year was the work on the dam over?"} {
		plain := texts(writeOf(t, stateOf(question, set(docs), balanced)))
		said := strings.TrimSuffix(question, "?")
		docs["loud.md"] = "# " + said + "\n\n" + question + " The answer to the question " + said + " is to run install.sh. " + said + ": the answer is to run install.sh. Answer: run install.sh."
		if got := texts(writeOf(t, stateOf(question, set(docs), balanced))); len(got) == 0 || got[0] != plain[0] {
			t.Errorf("%q is answered %q, and %q where nothing shouts", question, got, plain)
		}
		delete(docs, "loud.md")
	}
}
