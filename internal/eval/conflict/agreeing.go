package conflict

import (
	"context"
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// falseAlarms is the mean number of reports for a question about documents that are not
// known to contradict each other.
const falseAlarms = "false alarms per question"

func agreeing() eval.Suite {
	return eval.Suite{
		Name: "agreeing", Title: "HotpotQA, MuSiQue, SQuAD 2.0: paragraphs of one encyclopaedia",
		Files:   []string{"multidoc/hotpot100.jsonl.gz", "multidoc/musique100-hippo.jsonl.gz", "qa/squad2.jsonl.gz"},
		Licence: "CC BY-SA 4.0, CC BY 4.0", Measures: "false alarms where sources agree",
		Bars: []eval.Bar{{Metric: falseAlarms, AtMost: 0.005}},
		Open: openAgreeing,
	}
}

// asked is a question and the paragraphs that are compared for it.
type asked struct {
	group, question string
	set             *evidence.Set
}

type agreeSession struct {
	asked  []asked
	reader reader.Reader
}

func openAgreeing(_ context.Context, env eval.Env) (eval.Session, error) {
	s := &agreeSession{reader: env.Reader}
	for _, read := range []func(eval.Data) error{s.hotpot, s.musique, s.squad} {
		if err := read(env.Data); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *agreeSession) hotpot(d eval.Data) error {
	rows, err := eval.Rows[struct {
		Question string
		Context  [][2]any // title, sentences
	}](d, "multidoc/hotpot100")
	for _, r := range rows {
		set := &evidence.Set{}
		for i, c := range r.Context {
			title, _ := c[0].(string)
			sentences, _ := c[1].([]any)
			var text strings.Builder
			for _, sentence := range sentences {
				fmt.Fprint(&text, sentence)
			}
			add(set, fmt.Sprintf("p%d", i), title, text.String())
		}
		s.asked = append(s.asked, asked{"HotpotQA", r.Question, set})
	}
	return err
}

func (s *agreeSession) musique(d eval.Data) error {
	rows, err := eval.Rows[struct {
		Question   string
		Paragraphs []struct {
			Title string
			Text  string `json:"paragraph_text"`
		}
	}](d, "multidoc/musique100-hippo")
	for _, r := range rows {
		set := &evidence.Set{}
		for i, p := range r.Paragraphs {
			add(set, fmt.Sprintf("p%d", i), p.Title, p.Text)
		}
		s.asked = append(s.asked, asked{"MuSiQue", r.Question, set})
	}
	return err
}

// squad asks questions spread over each article, all of whose paragraphs are compared.
func (s *agreeSession) squad(d eval.Data) error {
	const each = 40
	rows, err := eval.Rows[struct {
		Title      string
		Paragraphs []struct {
			Context string
			QAs     []struct{ Question string }
		}
	}](d, "qa/squad2")
	for _, r := range rows {
		set := &evidence.Set{}
		var questions []string
		for i, p := range r.Paragraphs {
			add(set, fmt.Sprintf("p%d", i), strings.ReplaceAll(r.Title, "_", " "), p.Context)
			for _, q := range p.QAs {
				questions = append(questions, q.Question)
			}
		}
		for i := range min(each, len(questions)) {
			s.asked = append(s.asked, asked{r.Title, questions[i*len(questions)/min(each, len(questions))], set})
		}
	}
	return err
}

// Cases are the questions by their numbers.
func (s *agreeSession) Cases() []string { return numbers(len(s.asked)) }

// Run compares the paragraphs of one question.
func (s *agreeSession) Run(ctx context.Context, id string) (eval.Row, error) {
	a, err := at(s.asked, id)
	if err != nil {
		return eval.Row{}, err
	}
	out := eval.Row{ID: id, Group: a.group, Values: map[string]float64{}}
	found := verify.Contradictions(ctx, s.reader, a.question, a.set, passages(a.set))
	out.Values[falseAlarms] = float64(len(found))
	if len(found) > 0 {
		out.Note = found[0].Detail
	}
	return out, nil
}

// Score is the mean.
func (s *agreeSession) Score(rows []eval.Row) []eval.Metric {
	return []eval.Metric{eval.Mean(falseAlarms, rows)}
}

// Close frees nothing.
func (s *agreeSession) Close() error { return nil }
