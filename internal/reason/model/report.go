package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

const (
	reportRoom      = 9000 // tokens without which a report is written as an answer
	tableRoom       = 2500 // the same of a table
	sectionsShare   = 0.65 // of the room after the outline, for the sections together; the rest is for summary and judge
	sectionEvidence = 3500 // tokens of one
	sectionReply    = 1800
	leastSection    = 400 // tokens of reply, and of evidence
	summaryReply    = 500
	summaryChars    = 300 // of a statement that the summary is shown
	mostSummary     = 3   // sentences
	mostColumns     = 8
	mostRows        = 24
	cellChars       = 200
	mostQuarrels    = 3 // contradictions that are put beside what they are about, and that are discoveries
	formTable       = "table"
)

// report writes a report: an outline, its sections side by side, and above them the answer in short, made of what stood.
// A section that the model fails at is made of sentences of the sources, and the first fault comes beside the draft.
func (r *Reasoner) report(ctx context.Context, s *reason.State) (reason.Draft, []evidence.Passage, error) {
	sections, fault := r.outline(ctx, s)
	if len(sections) == 0 {
		return reason.Draft{}, nil, errors.Join(fault, marchwarden.Errorf(marchwarden.CodeMalformed, "it outlined nothing that can be written"))
	}
	calls, packed := r.sectionCalls(s, sections)
	if len(calls) == 0 {
		return reason.Draft{}, nil, errors.Join(fault, exhausted(s))
	}
	sections = sections[:len(calls)]
	r.readAlong(s, calls, sectionBegun)
	replies, errs := r.askAll(ctx, s, calls)
	var d reason.Draft
	failed := 0
	for i, sec := range sections {
		part, err := r.readSection(s, replies[i], errs[i])
		if err != nil {
			failed++
			fault = errors.Join(fault, err)
			part = r.standInSection(ctx, s, sec)
		}
		part.Blocks = slices.Insert(part.Blocks, 0, reason.Block{Type: marchwarden.Heading, Level: 2, Text: sec.heading, Asks: sec.asks})
		d.Join(part)
	}
	if failed == len(sections) || len(d.Claims) == 0 {
		return reason.Draft{}, packed, errors.Join(fault, marchwarden.Errorf(marchwarden.CodeMalformed, "none of its %d sections could be read", len(sections)))
	}
	fault = errors.Join(fault, r.summarize(ctx, s, &d))
	d.Once()
	return d, packed, fault
}

// table writes one comparison with a sentence before it.
func (r *Reasoner) table(ctx context.Context, s *reason.State) (reason.Draft, []evidence.Passage, error) {
	calls, packed := r.sectionCalls(s, []section{{about: s.Request.Question, form: formTable}})
	if len(calls) == 0 {
		return reason.Draft{}, nil, exhausted(s)
	}
	r.readAlong(s, calls, sectionBegun)
	reply, err := r.ask(ctx, s, calls[0])
	d, err := r.readSection(s, reply, err)
	return d, packed, err
}

func exhausted(s *reason.State) error {
	s.Meter.Exhaust(budget.TokenCap(s.Limits.TokenBudget))
	return tooFew(s)
}

func tooFew(s *reason.State) error {
	return marchwarden.Errorf(marchwarden.CodeExhausted, "the %d tokens left of a budget of %d are too few for it", s.Meter.Room(), s.Limits.TokenBudget)
}

// sectionCalls are the calls of as many sections as there is room for, each with passages of its own and an equal share
// of the tokens. All are made before the first is sent, so that no reply changes another's.
func (r *Reasoner) sectionCalls(s *reason.State, sections []section) ([]llm.Call, []evidence.Passage) {
	room := int(sectionsShare * float64(s.Meter.Room()))
	v := newView(s.Nonce)
	build := func(sec section, share, n int) (llm.Call, *packer) {
		c := r.begun("section", sectionSchema, min(sectionReply, share/3), share/3)
		told := v.Question(s.Request, s.Limits.TokenBudget, s.Now)
		if sec.heading != "" {
			told += "Section: " + sec.heading + "\nIt answers: " + v.Line(sec.about, marchwarden.MaxQuestionChars) + "\n"
		}
		switch sec.form {
		case "list":
			told += "Form: a sentence, and a list\n"
		case formTable:
			told += "Form: a sentence, and a table that compares\n"
		}
		c.Input = llm.Limit(c.MaxTokens) + told + words(s.Request.Length/(n+1)) + wishes(v, s.Request)
		left := share - llm.Price(s.Scale, c) - llm.Scaled(s.Scale, llm.EstimateText(v.Open("sources")+v.End()))
		p := newPacker(v, s.Evidence, min(sectionEvidence, llm.Unscaled(s.Scale, left)), evidence.MaxPassageChars)
		for _, id := range sec.ids {
			if _, ps, ok := s.Evidence.Passage(id); ok {
				p.add(ps)
			}
		}
		p.fill(termsOf([]string{sec.about}))
		c.Input += v.Block("sources", p.lines())
		return c, p
	}
	for n := len(sections); n > 0; n-- {
		share := room / n
		if c, _ := build(sections[0], share, n); c.MaxTokens < leastSection || share-llm.Price(s.Scale, c) < 0 && n > 1 {
			continue
		}
		var calls []llm.Call
		var packed []evidence.Passage
		for _, sec := range sections[:n] {
			c, p := build(sec, share, n)
			calls = append(calls, c)
			packed = append(packed, slices.DeleteFunc(p.passages(), func(ps evidence.Passage) bool {
				return slices.ContainsFunc(packed, func(o evidence.Passage) bool { return o.ID == ps.ID })
			})...)
		}
		return calls, packed
	}
	return nil, nil
}

// askAll makes calls side by side where the model can, and gives their outcomes in order.
func (r *Reasoner) askAll(ctx context.Context, s *reason.State, calls []llm.Call) ([]llm.Reply, []error) {
	replies, errs := make([]llm.Reply, len(calls)), make([]error, len(calls))
	if m, ok := s.Model.(interface {
		GenerateAll(context.Context, []llm.Call) ([]llm.Reply, []error)
	}); ok {
		replies, errs = m.GenerateAll(ctx, calls)
	} else {
		for i, c := range calls {
			replies[i], errs[i] = s.Model.Generate(ctx, c)
		}
	}
	for i, c := range calls {
		if errs[i] == nil {
			errs[i] = r.heard(c, replies[i])
		}
	}
	return replies, errs
}

// readSection reads a part of an answer. A block or a claim that cannot be read is left out.
func (r *Reasoner) readSection(s *reason.State, reply llm.Reply, err error) (reason.Draft, error) {
	if err != nil {
		return reason.Draft{}, err
	}
	raw, ok := llm.Object(reply.Text)
	d := sectionOf(s, raw)
	switch {
	case !ok || len(d.Blocks) == 0 && len(llm.List(llm.Fields(raw)["blocks"])) > 0:
		return d, marchwarden.Errorf(marchwarden.CodeMalformed, "a section of its could not be read")
	case reply.Stop == llm.StopLength:
		d.Gaps = append(d.Gaps, marchwarden.Gap{Topic: "the end of a section", Category: marchwarden.BudgetExhausted, Detail: "the model's reply was cut; its whole sentences are kept"})
	}
	return d, nil
}

func sectionOf(s *reason.State, raw json.RawMessage) reason.Draft {
	fields := llm.Fields(raw)
	rd := reader{v: newView(s.Nonce), s: s}
	each(fields["gaps"], rd.gap)
	had := each(fields["blocks"], rd.block)
	if claims := fields["claims"]; had == 0 && claims != nil { // it answered as to a shorter question
		rd.block(llm.Named{"type": json.RawMessage(`"paragraph"`), "claims": claims})
	}
	return rd.out
}

// block reads one block with its claims or cells.
func (r *reader) block(fields llm.Named) {
	b := reason.Block{Type: marchwarden.BlockType(strings.ToLower(strings.TrimSpace(fields.Text("type"))))}
	switch b.Type {
	case marchwarden.TableBlock:
		for _, c := range llm.List(fields["columns"]) {
			name, _ := llm.Text(c)
			b.Columns = append(b.Columns, r.v.Line(name, cellChars))
		}
		rows := llm.List(fields["rows"])
		for _, row := range rows[:min(len(rows), mostRows)] {
			var cells []reason.Cell
			all := llm.List(row)
			for _, c := range all[:min(len(all), mostColumns)] {
				f := llm.Fields(c)
				cells = append(cells, reason.Cell{Text: r.v.Line(f.Text("text"), cellChars), Passages: idsOf(r.v, f["passages"], maxPassages)})
			}
			b.Rows = append(b.Rows, cells)
		}
		b.Columns = b.Columns[:min(len(b.Columns), mostColumns)]
		if len(b.Rows) == 0 || len(b.Columns) == 0 {
			return
		}
	case marchwarden.Paragraph, marchwarden.List:
		first := len(r.out.Claims)
		each(fields["claims"], r.claim)
		for i := first; i < len(r.out.Claims); i++ {
			b.Claims = append(b.Claims, i)
		}
		if len(b.Claims) == 0 {
			return
		}
	default:
		return
	}
	r.out.Blocks = append(r.out.Blocks, b)
}

// standInSection is a section made of sentences of the sources.
func (r *Reasoner) standInSection(ctx context.Context, s *reason.State, sec section) reason.Draft {
	other := *r.apart(s)
	other.Request, other.Questions = marchwarden.Request{Question: llm.Clip(sec.about, marchwarden.MaxQuestionChars-1), Format: marchwarden.Plain}, nil
	d, err := r.plain.Write(context.WithoutCancel(ctx), &other)
	if err != nil {
		return reason.Draft{}
	}
	return reason.Draft{Claims: d.Claims, Blocks: reason.Paragraphs(d.Claims)}
}

// summarize puts the answer in short above a report: two or three sentences of the model's on the claims that stand or,
// where it gives none, the first that stands of each section.
func (r *Reasoner) summarize(ctx context.Context, s *reason.State, d *reason.Draft) error {
	var stood []int
	for i, c := range d.Claims {
		if o, err := r.opinions.of(s, c)(); err == nil && o.Verdict == verify.VerdictSupported {
			stood = append(stood, i)
		}
	}
	if len(stood) == 0 {
		return nil
	}
	top, fault := r.askSummary(ctx, s, d.Claims, stood)
	if len(top.Claims) == 0 {
		for _, b := range d.Blocks {
			at := slices.IndexFunc(b.Claims, func(i int) bool { return slices.Contains(stood, i) })
			if at >= 0 && len(b.Claims) > 1 && len(top.Claims) < mostSummary {
				top.Claims = append(top.Claims, d.Claims[b.Claims[at]])
			}
		}
	}
	top.Claims = top.Claims[:min(len(top.Claims), mostSummary)]
	for i := range top.Claims {
		top.Claims[i].Paragraph = i == 0
	}
	top.Blocks = reason.Paragraphs(top.Claims)
	top.Join(*d)
	*d = top
	return fault
}

func (r *Reasoner) askSummary(ctx context.Context, s *reason.State, claims []reason.Claim, stood []int) (reason.Draft, error) {
	v := newView(s.Nonce)
	room := s.Meter.Room()
	c := r.begun("summarize", summarySchema, min(summaryReply, room/4), room/4)
	c.Input = llm.Limit(c.MaxTokens) + v.Question(s.Request, s.Limits.TokenBudget, s.Now) + wishes(v, s.Request)
	l := lister{left: llm.Unscaled(s.Scale, room-llm.Price(s.Scale, c)) / 2}
	for n, i := range stood {
		line := strconv.Itoa(n+1) + ". " + v.Line(claims[i].Text, summaryChars)
		for _, id := range claims[i].Passages {
			line += " " + string(id)
		}
		if !l.add(line) {
			break
		}
	}
	if c.MaxTokens < leastSection/2 || len(l.lines) == 0 {
		return reason.Draft{}, nil // there is no room for it, and it can be done without
	}
	c.Input += v.Block("statements", l.lines)
	reply, err := r.ask(ctx, s, c)
	if err != nil {
		return reason.Draft{}, fmt.Errorf("the answer in short: %w", err)
	}
	raw, _ := llm.Object(reply.Text)
	said, _ := draftOf(s, llm.Fields(raw))
	stands := slices.DeleteFunc(said.Claims, func(c reason.Claim) bool { // what does not stand is not worth a gap: the statements are there
		o, err := r.opinions.of(s, c)()
		return err != nil || o.Verdict.Wire() == marchwarden.Unsupported
	})
	return reason.Draft{Claims: stands}, nil
}

// oppose puts contradictions where they belong: both sides, word for word, below the section that says one of them. What
// the sections say of both is there already.
func oppose(s *reason.State, d *reason.Draft) {
	for _, q := range d.Contradictions[:min(len(d.Contradictions), mostQuarrels)] {
		var sides reason.Draft
		at, said := -1, 0
		for _, side := range []marchwarden.Side{q.A, q.B} {
			id := passageOf(s.Evidence, side)
			if id == "" {
				break
			}
			sides.Claims = append(sides.Claims, reason.Claim{Text: llm.Clip(strings.Join(strings.Fields(side.RawExcerpt), " "), claimChars), Passages: []evidence.ID{id}, Support: marchwarden.Supported, Judge: marchwarden.JudgeLocal})
			first := slices.IndexFunc(d.Blocks, func(b reason.Block) bool {
				return slices.ContainsFunc(b.Claims, func(i int) bool { return slices.Contains(d.Claims[i].Passages, id) })
			})
			if first >= 0 {
				said++
				at = max(at, first)
			}
		}
		if len(sides.Claims) < 2 || said != 1 {
			continue
		}
		list := reason.Block{Type: marchwarden.List}
		for i := range sides.Claims {
			list.Claims = append(list.Claims, len(d.Claims)+i)
		}
		d.Claims = append(d.Claims, sides.Claims...)
		d.Blocks = slices.Insert(d.Blocks, at+1, list)
	}
}

// passageOf is the passage that one side of a contradiction begins in, or "".
func passageOf(set *evidence.Set, side marchwarden.Side) evidence.ID {
	for _, src := range set.Sources() {
		at := strings.Index(src.Text, side.RawExcerpt)
		if src.Page.Locator != side.Locator || at < 0 {
			continue
		}
		for _, p := range src.Passages {
			if p.Span.Start <= at && at < p.Span.End {
				return p.ID
			}
		}
	}
	return ""
}
