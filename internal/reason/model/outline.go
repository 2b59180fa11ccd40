package model

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

const (
	mostSections   = 8
	leastSections  = 2
	sectionRoom    = 2500 // tokens that a section should have
	outlineShare   = 6    // of the room's parts, one may be an outline
	mostOutline    = 6000 // tokens of evidence in it
	outlineReply   = 1200
	outlineChars   = 200 // of a passage that an outline shows
	outlineSources = 5   // sections of an outline that is made without a model, one a source
	sectionIDs     = 12
	headingChars   = 80
)

// section is a part of a report.
type section struct {
	heading string
	asks    string // the part of the plan that it answers, or ""
	about   string // what its passages are chosen by
	form    string // text, list or table
	ids     []evidence.ID
}

// parts are what the evidence was gathered for: the plan's questions, or those that the question itself is made of.
func parts(s *reason.State) []string {
	if len(s.Questions) > 0 {
		return s.Questions[:min(len(s.Questions), mostSections)]
	}
	var out []string
	for _, p := range lexicon.ReadQuestion(s.Request.Question, "").Parts {
		out = append(out, p.Question())
	}
	return out
}

// outline asks for the sections of a report. Where the model gives none that can be written, they are the parts of the
// plan or, of one question, the sources; the fault of a call is returned beside them.
func (r *Reasoner) outline(ctx context.Context, s *reason.State) ([]section, error) {
	room := s.Meter.Room()
	most := max(leastSections, min(mostSections, room/sectionRoom))
	v := newView(s.Nonce)
	c := r.begun("outline", outlineSchema, min(outlineReply, room/outlineShare), room/4)
	c.Input = llm.Limit(c.MaxTokens) + v.Question(s.Request, s.Limits.TokenBudget, s.Now) + fmt.Sprintf("Sections: at most %d\n", most)
	for _, p := range parts(s) {
		c.Input += "Part: " + v.Line(p, marchwarden.MaxQuestionChars) + "\n"
	}
	c.Input += wishes(v, s.Request)
	p := newPacker(v, s.Evidence, min(mostOutline, room/outlineShare), outlineChars)
	p.fill(append(queriesOf(s), termsOf(parts(s))...))
	c.Input += v.Block("sources", p.lines())
	var sections []section
	reply, err := r.ask(ctx, s, c)
	if err == nil {
		sections = readOutline(s, llm.ListIn(reply.Text, "sections"), most)
	}
	if len(sections) < leastSections {
		sections = plainOutline(s, most)
	}
	return sections, err
}

// readOutline reads the sections of a reply. One without a heading or a question, or about what another is about, is
// left out.
func readOutline(s *reason.State, items []json.RawMessage, most int) []section {
	v := newView(s.Nonce)
	var out []section
	seen := map[string]bool{}
	for _, item := range items {
		fields := llm.Fields(item)
		question := fields.Text("question")
		sec := section{heading: v.Line(fields.Text("heading"), headingChars), form: strings.ToLower(v.Line(fields.Text("form"), idChars))}
		sec.about = strings.TrimSpace(v.Line(question, marchwarden.MaxQuestionChars) + " " + sec.heading)
		for _, p := range parts(s) {
			if lexicon.Plain(p) == lexicon.Plain(question) {
				sec.asks = p
			}
		}
		for _, id := range idsOf(v, fields["passages"], sectionIDs) {
			if _, _, ok := s.Evidence.Passage(id); ok {
				sec.ids = append(sec.ids, id)
			}
		}
		if key := lexicon.SameWords(sec.heading); sec.heading != "" && len(lexicon.Terms(sec.about)) > 0 && !seen[key] && len(out) < most {
			seen[key] = true
			out = append(out, sec)
		}
	}
	return out
}

// plainOutline has a section for each part of the plan or, of one question, for each of the sources that bear most on it.
func plainOutline(s *reason.State, most int) []section {
	var out []section
	if all := parts(s); len(all) >= leastSections {
		for _, p := range all[:min(len(all), most)] {
			out = append(out, section{heading: p, asks: p, about: p})
		}
		return out
	}
	for _, p := range evidence.PackFor(s.Evidence, queriesOf(s), mostOutline, func(ps evidence.Passage, _ bool) int { return llm.EstimateText(ps.Text) }) {
		src, _, _ := s.Evidence.Passage(p.ID)
		at := slices.IndexFunc(out, func(o section) bool { return o.heading == src.Page.Title })
		switch {
		case at >= 0:
			out[at].ids = append(out[at].ids, p.ID)
		case len(out) < min(most, outlineSources):
			out = append(out, section{heading: src.Page.Title, about: s.Request.Question, ids: []evidence.ID{p.ID}})
		}
	}
	return out
}

// wishes are how the caller wants to be written to, as data.
func wishes(v llm.Quoter, req marchwarden.Request) string {
	var lines []string
	for _, w := range []struct{ name, text string }{{"audience", req.Audience}, {"instructions", req.Instructions}} {
		if text := v.Line(w.text, marchwarden.MaxWritingChars); text != "" {
			lines = append(lines, w.name+": "+text)
		}
	}
	return v.Block("wishes", lines)
}

// words asks for a length, "" for none.
func words(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("Length: about %d words\n", n)
}

func termsOf(texts []string) [][]string {
	var out [][]string
	for _, t := range texts {
		if terms := lexicon.Terms(t); len(terms) > 0 {
			out = append(out, terms)
		}
	}
	return out
}
