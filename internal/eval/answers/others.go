package answers

import (
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// asked is a question of a set with what the set says about it.
type asked struct {
	request    marchwarden.Request
	group      string
	answerable bool
	wanted     string // what an answer should say; "" if the set does not tell
	decision   string // yes, no or maybe; "" if the set does not tell
	source     string // the document that answers; "" if the set does not tell
}

// session asks questions of one library.
type session struct {
	lib   eval.Library
	ids   []string
	cases map[string]asked
	score func(rows []eval.Row) []eval.Metric
}

func (s *session) add(id string, a asked) {
	if _, twice := s.cases[id]; !twice {
		s.ids = append(s.ids, id)
		s.cases[id] = a
	}
}

func (s *session) Cases() []string                     { return s.ids }
func (s *session) Close() error                        { return s.lib.Close() }
func (s *session) Score(rows []eval.Row) []eval.Metric { return s.score(rows) }

func (s *session) Run(ctx context.Context, id string) (eval.Row, error) {
	c := s.cases[id]
	res, err := s.lib.Ask(ctx, c.request)
	if err != nil {
		return eval.Row{}, err
	}
	row := eval.Row{ID: id, Group: c.group, Values: common(res)}
	row.Values[answerable] = number(c.answerable)
	if c.source != "" {
		row.Values["document@1"] = number(len(res.Citations) > 0 && nameOf(res.Citations[0]) == c.source)
	}
	if c.wanted != "" {
		row.Values["answer F1"] = overlap(res.Answer, c.wanted)
	}
	if c.decision != "" {
		said := decide(res)
		row.Values["decision"] = number(said == c.decision)
		row.Values["always yes"] = number(c.decision == "yes")
	}
	return row, nil
}

// nameOf is the name of the document that is cited: what stands between the library and
// the line.
func nameOf(c marchwarden.Citation) string {
	_, name, _ := strings.Cut(c.Locator, ":")
	name, _, _ = strings.Cut(name, "#")
	return name
}

func mtrag() eval.Suite {
	return eval.Suite{
		Name: "mtrag", Title: "MTRAG, last turns of conversations over all their contexts", Files: []string{"qa/mtrag-un.jsonl.gz"},
		Licence: "Apache-2.0", Measures: "confidence tells what the documents answer from what they do not, or not wholly",
		Bars: []eval.Bar{{Metric: "answerability AUROC"}, {Metric: cited, AtLeast: 1}},
		Open: func(ctx context.Context, env eval.Env) (eval.Session, error) {
			type turn struct {
				Speaker string `json:"speaker"`
				Text    string `json:"text"`
			}
			rows, err := eval.Rows[struct {
				Task          string   `json:"task_id"`
				Collection    string   `json:"Collection"`
				Answerability []string `json:"answerability"`
				Contexts      []struct {
					ID    string `json:"document_id"`
					Title string `json:"title"`
					Text  string `json:"text"`
				} `json:"contexts"`
				Input []turn `json:"input"`
			}](env.Data, "qa/mtrag-un")
			if err != nil {
				return nil, err
			}
			s := &session{cases: map[string]asked{}, score: func(rows []eval.Row) []eval.Metric { return append(told(rows), eval.Mean(cited, rows)) }}
			docs := eval.Docs{}
			for i, r := range rows {
				for _, c := range r.Contexts {
					docs[plainName(c.ID)+".md"] = titled(c.Title, c.Text)
				}
				if len(r.Input) == 0 || len(r.Answerability) == 0 {
					continue
				}
				// What was said before stands in the context of the request.
				var before []string
				for _, t := range r.Input[:len(r.Input)-1] {
					before = append(before, t.Speaker+": "+t.Text)
				}
				context := end(strings.Join(before, "\n"), marchwarden.MaxContextChars)
				s.add(fmt.Sprintf("%03d-%s", i, plainName(r.Task)), asked{
					request: marchwarden.Request{Question: end(r.Input[len(r.Input)-1].Text, marchwarden.MaxQuestionChars), Context: context},
					group:   r.Collection, answerable: r.Answerability[0] == "ANSWERABLE",
				})
			}
			s.lib, err = env.Desk.Open(ctx, "mtrag", docs.FS())
			return s, err
		},
	}
}

// end is the last n characters of a text.
func end(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

// plainName is a name that a file can have.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

func pubmedqa() eval.Suite {
	return eval.Suite{
		Name: "pubmedqa", Title: "PubMedQA, 500 abstracts as one library", Files: []string{"qa/pubmedqa.jsonl.gz"},
		Licence: "MIT", Measures: "the abstract that answers is cited first; yes, no or maybe read from the answer's words",
		Bars: []eval.Bar{{Metric: "document@1"}, {Metric: "decision", Known: "always yes, printed beside it"}, {Metric: cited, AtLeast: 1}},
		Open: func(ctx context.Context, env eval.Env) (eval.Session, error) {
			rows, err := eval.Rows[struct {
				ID       string   `json:"pmid"`
				Question string   `json:"QUESTION"`
				Contexts []string `json:"CONTEXTS"`
				Long     string   `json:"LONG_ANSWER"`
				Decision string   `json:"final_decision"`
			}](env.Data, "qa/pubmedqa")
			if err != nil {
				return nil, err
			}
			s := &session{cases: map[string]asked{}, score: func(rows []eval.Row) []eval.Metric {
				return []eval.Metric{eval.Mean("document@1", rows), eval.Mean("answer F1", rows), eval.Mean("decision", rows),
					eval.Mean("always yes", rows), eval.Mean(refused, rows), eval.Mean(cited, rows)}
			}}
			docs := eval.Docs{}
			for _, r := range rows {
				name := plainName(r.ID) + ".md"
				docs[name] = titled("Abstract "+r.ID, strings.Join(r.Contexts, "\n\n"))
				s.add(r.ID, asked{request: marchwarden.Request{Question: r.Question}, answerable: true, wanted: r.Long, decision: r.Decision, source: name})
			}
			s.lib, err = env.Desk.Open(ctx, "pubmedqa", docs.FS())
			return s, err
		},
	}
}

// decide reads yes, no or maybe off an answer, by the plainest of signs: nothing said is
// maybe, and a first sentence that denies is no.
func decide(res *marchwarden.Result) string {
	switch {
	case len(res.Claims) == 0:
		return "maybe"
	case lexicon.Negated(res.Claims[0].Text):
		return "no"
	}
	return "yes"
}

func selfaware() eval.Suite {
	return eval.Suite{
		Name: "selfaware", Title: "SelfAware, questions that nobody can answer, over no document about them", Files: []string{"qa/selfaware.jsonl.gz"},
		Licence: "Apache-2.0", Measures: "what the question alone tells about having an answer",
		Bars: []eval.Bar{{Metric: "answerability AUROC", Known: "chance .5: the library holds no answer"}},
		Open: func(ctx context.Context, env eval.Env) (eval.Session, error) {
			rows, err := eval.Rows[struct {
				ID         int    `json:"question_id"`
				Question   string `json:"question"`
				Answerable bool   `json:"answerable"`
				Source     string `json:"source"`
			}](env.Data, "qa/selfaware")
			if err != nil {
				return nil, err
			}
			s := &session{cases: map[string]asked{}, score: told}
			docs := eval.Docs{}
			for _, r := range rows {
				s.add(fmt.Sprintf("%05d", r.ID), asked{request: marchwarden.Request{Question: r.Question}, group: r.Source, answerable: r.Answerable})
			}
			docs["none.md"] = titled("Nothing", "This library holds no document about the questions.")
			s.lib, err = env.Desk.Open(ctx, "selfaware", docs.FS())
			return s, err
		},
	}
}
