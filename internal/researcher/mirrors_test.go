package researcher_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// serveAt serves one page on an address of its own and returns where.
func serveAt(t *testing.T, host, title, text string) string {
	t.Helper()
	var body strings.Builder
	body.WriteString("<!doctype html><html lang=en><head><title>" + title + "</title></head><body><article><h1>" + title + "</h1>")
	for _, para := range strings.Split(text, "\n\n") {
		body.WriteString("<p>" + para + "</p>")
	}
	body.WriteString("</article></body></html>")
	s := serveOn(t, host, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(body.String())) // a client that went away is its own affair
	}, nil)
	return s.URL + "/crispr"
}

// readsAll is a model that reads every hit and cites everything it is shown.
func readsAll(turn llmtest.Turn) llmtest.Said {
	switch webtest.SiteOf(turn) {
	case webtest.SiteStep:
		if strings.Contains(turn.Input, "[S4.") {
			return llmtest.Said{Text: "DONE, all are read"}
		}
		calls := []llm.ToolCall{searchFor(fmt.Sprint("crispr therapy startups ", turn.N))}
		for i := range 6 {
			calls = append(calls, read(fmt.Sprint("H", i+1)))
		}
		return llmtest.Said{Calls: calls}
	case webtest.SiteJudge:
		return allSupported(nil, turn)
	}
	ids, texts := shown(turn)
	var claims []object
	for i := range ids {
		claims = append(claims, object{"text": texts[i], "passages": []string{ids[i]}})
	}
	claims = append(claims, object{"text": "Many sites say that Nova Edit develops a CRISPR therapy.", "passages": []string{"S1.1", "S2.1", "S3.1", "S4.1", "S5.1", "S6.1"}})
	return reply(object{"claims": claims, "gaps": []object{}})
}

// article is a text of some length about the question.
func article(paragraphs int) string {
	var b strings.Builder
	for i := range paragraphs {
		fmt.Fprintf(&b, "Nova Edit, a startup of the city number %d, develops the CRISPR gene therapy called NE%d for a disease of the blood that %d people have. ", i, 100+i, 1000*(i+1))
		fmt.Fprintf(&b, "The company hopes to treat its first patients in the %dth month of its trial, and it has raised %d million dollars for that from people who believe in gene editing.\n\n", i+3, 10*(i+2))
	}
	return strings.TrimSpace(b.String())
}

// Copies of one text on many hosts are one source, however many are cited.
func TestMirrorsAreOneSource(t *testing.T) {
	others := func(i int) string {
		return []string{
			"Vector Cure is a startup in Utrecht that works on a CRISPR gene therapy for muscles and was founded by two doctors in spring.",
			"Helix Therapy brings its CRISPR gene therapy to the liver by particles of fat, and twelve patients are in its trial so far.",
			"Among the emerging startups of biotech is Arc Base, whose base editing is a form of CRISPR gene therapy for inherited blindness.",
			"A report of a bank counts ninety startups that work on CRISPR gene therapy, most of them in Boston and around the bay.",
			"Working on CRISPR gene therapy takes ten years and more, says the founder of Lumen Gene, a startup of last autumn in Kyoto.",
			"Regulators have allowed the first CRISPR gene therapy of a startup, Orchard Cell, to be tried on children with a rare disease.",
		}[i]
	}
	for _, tt := range []struct {
		name string
		text func(i int) string
		want int // at most; exactly for different texts
	}{
		{"same text", func(int) string { return article(4) }, 1},
		{"dates and ids differ", func(i int) string {
			return fmt.Sprintf("Published on %d March 2026, article %d.\n\n%s\n\nPrinted copy %d of %d.", i+1, 90000+17*i, article(6), 6-i, 77+i)
		}, 1},
		{"different texts", others, 6},
	} {
		for _, noModel := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, model %v", tt.name, !noModel), func(t *testing.T) {
				l := newLab(t, map[string]webtest.Page{}, readsAll, options{noModel: noModel})
				var hits []string
				for i := range 6 {
					hits = append(hits, serveAt(t, fmt.Sprintf("127.0.%d.1", i+1), fmt.Sprint("CRISPR news ", i+1), tt.text(i)))
				}
				l.site.Finds(func(string) []string { return hits })
				res := l.ask(t, marchwarden.Request{Question: webtest.Startups, Depth: marchwarden.Deep})
				cited := map[string]bool{}
				for _, c := range res.Citations {
					cited[c.Locator] = true
				}
				got := res.ConfidenceFactors.NumCorroboratingSources
				t.Logf("%d of 6 hosts are cited and count as %d, confidence %.2f", len(cited), got, res.Confidence)
				if len(cited) == 0 || got > tt.want {
					t.Errorf("%d sources, want %d: %s", got, tt.want, res.Answer)
				}
				if tt.want > 1 && got != len(cited) {
					t.Errorf("%d different texts count as %d", len(cited), got)
				}
				if tt.want == 1 && res.Confidence > 0.89 {
					t.Errorf("confidence %.2f from one origin", res.Confidence)
				}
			})
		}
	}
}
