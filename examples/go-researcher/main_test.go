package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/conform"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

// asProgram makes this test binary the program itself.
const asProgram = "GO_RESEARCHER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	m.Run()
}

// TestKeepsTheContract runs the program and what 'marchwarden researchers check'
// runs against it.
func TestKeepsTheContract(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &client.Dialer{Now: time.Now}
	dial := func(ctx context.Context) (*client.Session, error) {
		return d.Dial(ctx, client.Target{Command: []string{self}, Env: []string{asProgram + "=1"}, Stderr: os.Stderr})
	}
	report := conform.Check(t.Context(), dial, conform.Options{Question: "What is the state tree of Utah?"})
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "embedding.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Outcome != conform.Pass {
			t.Errorf("%s: %s: %s", f.ID, f.Outcome, f.Detail)
		}
		if !strings.Contains(string(doc), "`"+f.ID+"`") {
			t.Errorf("docs/embedding.md does not list the check %s", f.ID)
		}
	}
	if !report.OK() {
		t.Error("it does not keep the contract")
	}
}

func ask(t *testing.T, req marchwarden.Request) *marchwarden.Result {
	t.Helper()
	s, err := newSymbols(table, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Research(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Citations {
		text, err := s.evidence(t.Context(), c.ContentHash)
		if err != nil || string(text[c.Span.Start:c.Span.End]) != c.RawExcerpt {
			t.Errorf("%q is not in %q: %v", c.RawExcerpt, text, err)
		}
	}
	return res
}

func TestAnswers(t *testing.T) {
	three := 3
	for question, tc := range map[string]struct {
		constraints *marchwarden.Constraints
		citations   int
		answer      string
		gap         marchwarden.GapCategory
	}{
		"What is the state tree of Utah?":                 {nil, 1, "quaking aspen, chosen in 2014. [1]", ""},
		"Which symbols were chosen in 1997?":              {nil, 3, "cherry, chosen in 1997. [3]", ""},
		"What is the airspeed of an unladen blorptang?":   {nil, 0, "Nothing was found", marchwarden.SourceNotFound},
		"What are the state symbols of Utah?":             {&marchwarden.Constraints{MaxSources: &three}, 3, "elk", marchwarden.BudgetExhausted},
		"What is the state bird of Utah?":                 {&marchwarden.Constraints{SourceFilter: ".gov"}, 0, "Nothing", marchwarden.SourceNotFound},
		"What is the state bird of Utah, in our symbols?": {&marchwarden.Constraints{SourceFilter: ".csv"}, 1, "gull", ""},
	} {
		res := ask(t, marchwarden.Request{Question: question, Constraints: tc.constraints})
		var gap marchwarden.GapCategory
		if len(res.Gaps) > 0 {
			gap = res.Gaps[0].Category
		}
		if len(res.Citations) != tc.citations || !strings.Contains(res.Answer, tc.answer) || gap != tc.gap {
			t.Errorf("%s: %q, %d citations, gap %q", question, res.Answer, len(res.Citations), gap)
		}
		if spent := tc.gap == marchwarden.BudgetExhausted; res.CostMetadata.BudgetExhausted != spent {
			t.Errorf("%s: budget exhausted is %v", question, !spent)
		}
	}
}

func TestStopped(t *testing.T) {
	s, err := newSymbols(table, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err := s.Research(ctx, marchwarden.Request{Question: "What is the state tree of Utah?"}, nil)
	if err != nil || len(res.Citations) > 0 || len(res.Gaps) != 1 || res.Gaps[0].Category != marchwarden.BudgetExhausted {
		t.Errorf("%+v %v", res, err)
	}
	if _, err := s.Research(t.Context(), marchwarden.Request{Resume: "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"}, nil); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("resume: %v", err)
	}
}
