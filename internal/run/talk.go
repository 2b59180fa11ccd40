package run

import (
	"cmp"
	"context"
	_ "embed" // the prompt
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// This part is a conversation: runs that follow one another. It reads the turns that went before, and completes a question
// that leaves out what they named, by rule or with one call to a model. What came of sources of the user's own is told only
// where it may be, and nothing that a page or a model wrote decides more than a few words of a question.

// What is carried of a conversation.
const (
	maxTurns  = 6
	maxShort  = 120 // characters
	maxAnswer = 400
)

// Chain are the runs of a conversation, the last one first: the run of an id, the one that
// it follows, and so on, as far as their traces are here. An id without a run, and one that
// cannot be continued, is an error about the field follow.
func Chain(traces trace.Book, id string) ([]*Run, error) {
	var chain []*Run
	for next := id; next != "" && len(chain) < maxTurns; {
		r, err := loadTurn(traces, next)
		switch {
		case err != nil && len(chain) > 0: // what is gone is not needed
			return chain, nil
		case err != nil:
			return nil, AboutFollow(err)
		case slices.ContainsFunc(chain, func(o *Run) bool { return o.ID == r.ID }):
			return chain, nil
		}
		chain, next = append(chain, r), r.Start.Request.Follow
	}
	return chain, nil
}

func loadTurn(traces trace.Book, text string) (*Run, error) {
	id, err := marchwarden.ParseTraceID(text)
	if err != nil {
		return nil, err
	}
	if foreign, err := traces.Foreign(id); err == nil && foreign { // its documents are what another says that it fetched
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: fmt.Sprintf("run %s was imported, and is no turn of a conversation here", id), Hint: "ask the question anew"}
	}
	return Load(id, traces.Load)
}

// AboutFollow says in an error that it is about the field follow of a request.
func AboutFollow(err error) error {
	e := &marchwarden.Error{Code: marchwarden.CodeOf(err), Field: "follow", Message: err.Error(), Hint: marchwarden.HintOf(err)}
	var was *marchwarden.Error
	if errors.As(err, &was) && was.Message != "" {
		e.Message = was.Message
	}
	return e
}

// Turns are the turns of a chain, the first one first. What a run found is left out of its
// turn where private says so. The last run must have a result.
func Turns(ctx context.Context, blobs blob.Store, chain []*Run, private func(*trace.Start) bool) ([]trace.Turn, error) {
	var turns []trace.Turn
	for i, r := range chain {
		t := trace.Turn{TraceID: r.ID, Asked: r.Start.Request.Question}
		_, res, err := Store{Blobs: blobs}.Result(ctx, r)
		switch {
		case err != nil && i == 0:
			return nil, AboutFollow(err)
		case err == nil && !private(r.Start):
			t.Question, t.Answer = res.CompletedQuestion, plaintext.Line(res.Answer, maxAnswer)
			if s := res.ShortAnswer; s != nil && (s.Kind == marchwarden.ShortSpan || s.Kind == marchwarden.ShortValue) {
				t.Short = plaintext.Line(s.Text, maxShort)
			}
		}
		turns = append(turns, t)
	}
	slices.Reverse(turns)
	return turns, nil
}

// TurnsBefore are the turns before a run as its reader may see them, as far as they are kept.
func TurnsBefore(ctx context.Context, s Store, r *Run) []trace.Turn {
	if s.Traces == nil || r.Start.PartOf {
		return nil
	}
	chain, err := Chain(s.Traces, r.Start.Request.Follow)
	if err != nil {
		return nil
	}
	turns, _ := Turns(ctx, s.Blobs, chain, func(*trace.Start) bool { return false }) // a turn without a result has no question to show
	return turns
}

// Private reports whether a run may have found what is the user's own, by members who are
// not among those whose findings others may be told.
func Private(start *trace.Start, allowed []string) bool {
	if start.Investigation == nil {
		return start.Researcher != "web" && start.Researcher != "arxiv" && !slices.Contains(allowed, start.Researcher)
	}
	for _, m := range start.Investigation.Members {
		if m.Private && !slices.Contains(allowed, m.Name) {
			return true
		}
	}
	return false
}

// MarkFollow says in a result which run it follows, and how its question was understood if that
// is not how it was asked.
func MarkFollow(res *marchwarden.Result, start *trace.Start) {
	t := start.Talk
	if t == nil || len(t.Turns) == 0 {
		return
	}
	res.Follows = t.Turns[len(t.Turns)-1].TraceID
	if start.Request.Question != t.Asked {
		res.CompletedQuestion = start.Request.Question
	}
}

// Understand is the start of a run with its question completed from the conversation: by
// the model, or by rule where there is none or it fails, which comes with the fault. A
// budget without room for the model is no fault. A nil *llm.Metered is no model.
func Understand(ctx context.Context, start *trace.Start, model *llm.Metered) (*trace.Start, error) {
	asked := start.Request.Question
	plain, same := CompletedByRule(start.Talk.Turns, asked)
	question, err := "", error(nil)
	if model != nil && !same {
		if question, err = ask(ctx, start, model); marchwarden.CodeOf(err) == marchwarden.CodeExhausted {
			err = nil
		}
	}
	understood, talk := *start, *start.Talk
	talk.Asked, understood.Talk = asked, &talk
	understood.Request.Question = cmp.Or(question, plain)
	return &understood, err
}

// CompletedByRule is a question completed from the turns before it without a model, and whether it
// is the last one asked again.
func CompletedByRule(turns []trace.Turn, asked string) (question string, same bool) {
	before, short := "", ""
	for _, t := range turns {
		before, short = cmp.Or(t.Question, lexicon.Complete(t.Asked, before, short)), t.Short
		if names := lexicon.Names(t.Answer); short == "" && len(names) > 0 && lexicon.ReadQuestion(before, "").Kind == "who" {
			short = names[0]
		}
	}
	return fit(lexicon.Complete(asked, before, short), asked), lexicon.SameWords(asked) == lexicon.SameWords(before)
}

// fit is a question as a request may ask it, or else the one that was asked.
func fit(question, asked string) string {
	if question = plaintext.Line(question, marchwarden.MaxQuestionChars+1); question == "" || utf8.RuneCountInString(question) > marchwarden.MaxQuestionChars {
		return asked
	}
	return question
}

//go:embed prompts/complete.md
var completeText string

var completeSchema = json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"}},"required":["question"],"additionalProperties":false}`)

// replyTokens is what the reply may have, thinking included.
const replyTokens = 600

// ask has a model complete the question. What it loses of the question, or adds as an
// address, makes its reply one that cannot be used: a page may have told it to.
func ask(ctx context.Context, start *trace.Start, model llm.Model) (string, error) {
	v := llm.NewQuoter(llm.Nonce(start.TraceID))
	asked, typed := start.Request.Question, start.Request.Question
	var lines []string
	for _, t := range start.Talk.Turns {
		typed += " " + t.Asked
		lines = append(lines, "Question: "+v.Line(cmp.Or(t.Question, t.Asked), marchwarden.MaxQuestionChars))
		if t.Answer != "" {
			lines = append(lines, "Answer: "+v.Line(t.Answer, maxAnswer))
		}
	}
	c := llm.Prompt{Name: "complete", Text: completeText}.Call()
	c.Schema, c.MaxTokens = completeSchema, replyTokens
	c.Input = llm.Limit(replyTokens) + v.Block("conversation", lines) + "Last question: " + v.Line(asked, marchwarden.MaxQuestionChars) + "\n"
	reply, err := model.Generate(ctx, c)
	if err != nil {
		return "", err
	}
	raw, _ := llm.Object(reply.Text)
	said, _ := llm.Text(llm.Fields(raw)["question"])
	question := fit(v.Line(said, marchwarden.MaxQuestionChars), "")
	unused := marchwarden.Errorf(marchwarden.CodeMalformed, "its reply is not the question that was asked")
	if question == "" || verify.Unlink(question, func(a string) bool { return strings.Contains(typed, a) }) != question {
		return "", unused
	}
	has := lexicon.TermSet(question)
	for _, t := range lexicon.ReadQuestion(asked, "").Terms {
		if (t.Name || t.Number) && !has[t.Stem] {
			return "", unused
		}
	}
	if !slices.ContainsFunc(lexicon.Terms(typed), func(stem string) bool { return has[stem] }) {
		return "", unused
	}
	return question, nil
}
