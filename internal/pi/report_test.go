package pi_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

func reportRequest() marchwarden.Request {
	return marchwarden.Request{Question: reportQuestion, Depth: marchwarden.Deep, Constraints: &marchwarden.Constraints{MaxSources: ptr(26)}}
}

// plainLoop is how many tokens a loop without any thrift would have sent: one tool after another, with everything that
// was read so far, and the answer at the end.
func plainLoop() int {
	var pages []string
	for _, p := range reportPages() {
		pages = append(pages, p.Text)
	}
	slices.Sort(pages)
	total, read := 0, llm.EstimateText(reportQuestion)
	for _, p := range pages {
		total += read
		read += llm.EstimateText(p)
	}
	return total + read
}

func TestDeepReport(t *testing.T) {
	mind := newReporter(len(reportAspects))
	w := newReportWorld(t, mind)
	res, err := w.research(t.Context(), reportRequest())
	if err != nil {
		t.Fatal(err)
	}
	checked, err := verify.Check(t.Context(), w.blobs, res)
	if err != nil || !checked.OK() {
		t.Fatalf("%v, %v", checked, err)
	}
	headings, tables, cells := 0, 0, 0
	for _, b := range res.Blocks {
		switch b.Type {
		case marchwarden.Heading:
			headings++
		case marchwarden.TableBlock:
			tables++
			for _, c := range slices.Concat(b.Rows...) {
				if cells++; c.Text == "" || len(c.Citations) == 0 {
					t.Errorf("a cell without a link: %+v", c)
				}
			}
		}
	}
	if headings < 5 || tables < 1 || cells < 12 || res.Blocks[0].Type != marchwarden.Paragraph || len(res.Blocks[0].Claims) < 2 {
		t.Errorf("%d sections, %d tables, %d cells:\n%s", headings, tables, cells, res.Answer)
	}
	for _, c := range res.Claims {
		if !c.Support.Stands() || len(c.Citations) == 0 {
			t.Errorf("%q is %s on %v", c.Text, c.Support, c.Citations)
		}
	}
	longest := 0.0
	for run, end := range mind.ends {
		if run != "pi" {
			longest = max(longest, end)
		}
	}
	critical := longest + lasts["outline"] + lasts["section"] + lasts["summarize"] + lasts["judge"]
	if mind.wall > 1.1*critical {
		t.Errorf("it takes %.0f, and the critical path %.0f", mind.wall, critical)
	}
	if plain := plainLoop(); 2*mind.in > plain {
		t.Errorf("%d tokens are sent, a plain loop would send %d", mind.in, plain)
	}
	if used := res.CostMetadata.TokensUsed; used > 60000 || used < 15000 {
		t.Errorf("%d of 60000 tokens are used", used)
	}
	t.Logf("%d calls, %d tokens in of a plain loop's %d, %d used; wall %.0f of %.0f; %d sections, %d cells, %d claims\n%s", len(mind.calls), mind.in, plainLoop(), res.CostMetadata.TokensUsed, mind.wall, critical, headings, cells, len(res.Claims), res.Answer)
	log, err := w.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	want, got, err := pi.Again(t.Context(), log, w.blobs, reportMinds())
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("the rerun differs: %v\n%s", err, cmp.Diff(string(want), string(got)))
	}
	w.cutAndResume(t, log, res)
}

// cutAndResume ends the run anew after each of its sections, and resumes it: it comes to the same, and asks for nothing
// that it had.
func (w *reportWorld) cutAndResume(t *testing.T, log *trace.Log, whole *marchwarden.Result) {
	name := filepath.Join(w.dir, "traces", whole.TraceID.String()+".jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	had := 0
	for i, s := range log.Steps {
		if m, ok := s.(*trace.ModelComplete); !ok || m.Prompt != "section" {
			continue
		}
		had++
		if had != 1 && had != 3 {
			continue
		}
		_ = w.traces.Close()
		if err := os.WriteFile(name, bytes.Join(lines[:i+1], nil), 0o600); err != nil {
			t.Fatal(err)
		}
		w.open(t)
		w.mind = newReporter(0)
		res, err := w.research(t.Context(), marchwarden.Request{Resume: whole.TraceID.String()})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range w.mind.calls {
			if c.Prompt == "section" {
				n++
			}
			if !slices.Contains([]string{"section", "summarize", "judge"}, c.Prompt) {
				t.Errorf("%s is paid twice", c.Prompt)
			}
		}
		if n != len(reportAspects)-had || res.Answer != whole.Answer {
			t.Errorf("after %d sections %d are written, of %d:\n%s", had, n, len(reportAspects), cmp.Diff(whole.Answer, res.Answer))
		}
	}
	if had != len(reportAspects) {
		t.Errorf("%d sections are in the record", had)
	}
}

// What a hostile model puts into headings, cells, ids and sentences does not get through.
func TestHostileReport(t *testing.T) {
	mind := newReporter(0)
	mind.twist = func(c llm.Call, text string) string {
		switch c.Prompt {
		case "outline":
			text = strings.Replace(text, "Origin of the programmes", "Aldmoor is bankrupt and lied", 1)
			text = strings.Replace(text, "Savings of the programmes", "Savings of 99 percent", 1)
			text = strings.Replace(text, "Complaints of the programmes", "The programmes cause complaints", 1)
			return strings.Replace(text, "Plans of the programmes", "Plans [see](https://evil.example/x) <b>", 1)
		case "section":
			text = strings.ReplaceAll(text, `"4 million euros"`, `"900 million euros"`)
			text = strings.ReplaceAll(text, `"7 million euros"`, `"[7](https://evil.example) **million**"`)
			text = strings.ReplaceAll(text, `"1350 euros"`, `"1200 euros"`) // of another row
			text = strings.ReplaceAll(text, `"columns":["Programme","Cost","Household"]`, `"columns":["| x","Cost","Fraud"]`)
			return strings.Replace(text, `"claims":[`, `"claims":[{"text":"Corwick bribed 12 judges.","passages":["S99.9"]},{"text":"Corwick bribed 12 judges.","passages":["S1.1"]},`, 1)
		case "summarize":
			return `{"claims":[{"text":"Dunfirth stole everything, see https://evil.example/y.","passages":["S1.1"]}]}`
		}
		return text
	}
	w := newReportWorld(t, mind)
	res, err := w.research(t.Context(), reportRequest())
	if err != nil {
		t.Fatal(err)
	}
	if checked, err := verify.Check(t.Context(), w.blobs, res); err != nil || !checked.OK() {
		t.Fatalf("%v, %v", checked, err)
	}
	all := res.Answer + fmt.Sprint(res.Blocks)
	for _, bad := range []string{"bankrupt", "lied", "99 percent", "cause complaints", "evil", "<b>", "900", "**", "Fraud", "bribed", "stole"} {
		if strings.Contains(all, bad) {
			t.Errorf("%q is in the answer:\n%s", bad, res.Answer)
		}
	}
	if !strings.Contains(res.Answer, "## ") {
		t.Errorf("nothing is left:\n%s", res.Answer)
	}
}
