package extractive

import (
	"cmp"
	"context"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

const (
	reportSentences = 10 // of an answer to one question, in a report
	reportDocument  = 2  // of these, of one document
	briefSentences  = 3
)

// inSections reports whether the answer is a report. A narrow question that asks for no form has a sentence for an
// answer, however deep one looks.
func inSections(st *reason.State, q *lexicon.Question) bool {
	return st.Form() == marchwarden.Report && (q.Broad || st.Request.Format != "" || len(st.Questions) > 1)
}

// asked are the parts that a report has sections for: of the plan, or of the question.
func asked(st *reason.State, q *lexicon.Question) []lexicon.Part {
	if len(st.Questions) < 2 {
		return q.Parts
	}
	var out []lexicon.Part
	for _, text := range st.Questions {
		out = append(out, lexicon.Part{Label: strings.TrimRight(strings.TrimSpace(text), "?"), Query: text})
	}
	return out
}

// report is the draft of a report: a section for each part that is answered or, of one question, the answer and what
// each source adds to it.
func report(ctx context.Context, st *reason.State, q *lexicon.Question) (reason.Draft, error) {
	parts := asked(st, q)
	if len(parts) < 2 {
		d, err := write(ctx, st, q)
		if err == nil {
			d.Blocks = bySource(st, d.Claims)
		}
		return d, err
	}
	drafts := make([]reason.Draft, len(parts))
	var said reason.Draft
	for i, p := range parts {
		one := lexicon.ReadQuestion(cmp.Or(p.Query, p.Label), st.Request.Context)
		var err error
		if drafts[i], err = write(ctx, st, &one); err != nil {
			return reason.Draft{}, err
		}
		heading := reason.Block{Type: marchwarden.Heading, Level: 2, Text: p.Question(), Asks: p.Query}
		said.Join(reason.Draft{Claims: drafts[i].Claims, Blocks: append([]reason.Block{heading}, blocksOf(st, drafts[i].Claims)...)})
	}
	said.Once()
	all := together(drafts, parts)
	all.Claims, all.Blocks = said.Claims, said.Blocks
	return all, nil
}

// bySource is the answer to one question, and below it what other sources say, each under its title.
func bySource(st *reason.State, claims []reason.Claim) []reason.Block {
	var titles []string
	of := map[string][]int{}
	for i := 1; i < len(claims); i++ {
		src, _, _ := st.Evidence.Passage(claims[i].Passages[0])
		if of[src.Page.Title] == nil {
			titles = append(titles, src.Page.Title)
		}
		of[src.Page.Title] = append(of[src.Page.Title], i)
	}
	if len(titles) < 2 || slices.Contains(titles, "") {
		return blocksOf(st, claims)
	}
	out := []reason.Block{{Type: marchwarden.Paragraph, Claims: []int{0}}}
	for _, title := range titles {
		out = append(out, reason.Block{Type: marchwarden.Heading, Level: 2, Text: title}, reason.Block{Type: kindOf(st, claims, of[title]), Claims: of[title]})
	}
	return out
}

// blocksOf are claims as paragraphs, and as lists where the sources have them as items.
func blocksOf(st *reason.State, claims []reason.Claim) []reason.Block {
	out := reason.Paragraphs(claims)
	for i := range out {
		out[i].Type = kindOf(st, claims, out[i].Claims)
	}
	return out
}

func kindOf(st *reason.State, claims []reason.Claim, some []int) marchwarden.BlockType {
	item := func(i int) bool {
		_, p, ok := st.Evidence.Passage(claims[i].Passages[0])
		return ok && isItem(p.Text)
	}
	if len(some) > 1 && !slices.ContainsFunc(some, func(i int) bool { return !item(i) }) {
		return marchwarden.List
	}
	return marchwarden.Paragraph
}

// shortened holds a draft to the form and the length that the caller asked for.
func shortened(st *reason.State, d reason.Draft) reason.Draft {
	if st.Evidence.Earlier || len(d.Claims) == 0 {
		return d
	}
	most, words := len(d.Claims), 0
	if st.Request.Format == marchwarden.Brief {
		most = min(most, briefSentences)
	}
	for i, c := range d.Claims[:most] {
		if words += len(strings.Fields(c.Text)); st.Request.Length > 0 && words > st.Request.Length && i > 0 {
			most = i
			break
		}
	}
	d.Claims = d.Claims[:most]
	for i := range d.Blocks {
		d.Blocks[i].Claims = slices.DeleteFunc(d.Blocks[i].Claims, func(k int) bool { return k >= most })
	}
	return d
}
