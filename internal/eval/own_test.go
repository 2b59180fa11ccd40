package eval_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// noted is a suite that has something to say.
type noted struct{ mini }

func (*noted) Notes() []string { return []string{"half is missing"} }

// A report names what is part of the program and which optional files were there, and has
// the notes of the suite and the part that it is of.
func TestOwnData(t *testing.T) {
	data, m := numbers(t, 4), &noted{}
	data["mini/more.gz"] = []byte("more")
	s := m.suite()
	s.Optional, s.Own = []string{"mini/absent.gz", "mini/more.gz"}, fstest.MapFS{"own/a.md": {Data: []byte("a")}}
	read := s.Open
	s.Open = func(ctx context.Context, env eval.Env) (eval.Session, error) {
		_, err := read(ctx, env)
		return m, err
	}
	o := options("")
	o.Part = "open"
	r, err := eval.Run(t.Context(), s, eval.Env{Data: data.Folder(), Part: o.Part}, o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Data {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"mini/numbers.jsonl.gz", "mini/more.gz", "own/a.md"}) || !slices.Equal(r.Notes, []string{"half is missing"}) {
		t.Errorf("data %q, notes %q", names, r.Notes)
	}
	if !strings.Contains(r.Command(), "mini --part open") || !strings.HasSuffix(r.Settings.Describe(), "part open") {
		t.Errorf("%s; %s", r.Command(), r.Settings.Describe())
	}
}

// Where less is better, more is worse, also without anything to reach.
func TestSmaller(t *testing.T) {
	report := func(v float64) *eval.Report {
		r := &eval.Report{Suite: "s", Metrics: []eval.Metric{{Name: "words", Value: v, N: 9}}, Bars: []eval.Held{{Bar: eval.Bar{Metric: "words", Smaller: true}}}}
		for _, id := range strings.Fields("a b c d e f g h i") {
			r.Rows = append(r.Rows, eval.Row{ID: id, Values: map[string]float64{"words": v}})
		}
		return r
	}
	list, err := eval.Compare(report(10), report(5), nil, 1)
	if err != nil || len(list) != 1 || list[0].Verdict != eval.Better {
		t.Errorf("%+v, %v", list, err)
	}
}
