package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// damaged is a store in which one document is not what it was.
type damaged struct {
	blob.Store
	bad map[blob.Ref]bool
}

func (d *damaged) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	if d.bad[ref] {
		return nil, fmt.Errorf("%s: %w", ref, blob.ErrCorrupt)
	}
	return d.Store.Get(ctx, ref)
}

// investigation is a run that goes on and is recorded as it does.
type investigation struct {
	*replay.Recorder
	t      *testing.T
	traces *trace.Dir
	blobs  *damaged
	now    time.Time
	sent   int
}

func sentRihlas(t *testing.T, start *trace.Start) *investigation {
	t.Helper()
	in := &investigation{t: t, blobs: &damaged{blob.NewMem(), map[blob.Ref]bool{}}, now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	var err error
	if in.traces, err = trace.OpenDir(t.TempDir(), func() time.Time { return in.now }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.traces.Close() })
	start.Format, start.TraceID, start.StartedAt, start.Request = trace.Format, idOf(1), in.now, marchwarden.Request{Question: "What is it?"}
	w, err := in.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := w.Append(start); err != nil {
		t.Fatal(err)
	}
	began := in.now
	in.Recorder = replay.Record(w, in.blobs, func() time.Duration { return in.now.Sub(began) }, nil)
	return in
}

// finds makes the report of a rihla: each sentence cites a document of its own, and the
// claims are listed.
func (in *investigation) finds(id string, confidence marchwarden.Unit, sentences ...string) *marchwarden.Result {
	in.t.Helper()
	run, err := marchwarden.ParseTraceID(id)
	if err != nil {
		in.t.Fatal(err)
	}
	res := &marchwarden.Result{TraceID: run, Confidence: confidence, ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.HighAuthority, NumCorroboratingSources: len(sentences)},
		Gaps: []marchwarden.Gap{{Topic: "more than " + sentences[0], Category: marchwarden.SourceNotFound, Detail: "none"}}, CostMetadata: marchwarden.CostMetadata{TokensUsed: 100 * len(sentences), ModelID: "m"}}
	for i, s := range sentences {
		ref, err := in.blobs.Put(in.t.Context(), []byte("It is said that "+s))
		if err != nil {
			in.t.Fatal(err)
		}
		const at = len("It is said that ")
		res.Citations = append(res.Citations, marchwarden.Citation{Source: "web", Locator: "https://example.org/" + s, RawExcerpt: s, Confidence: 1, ContentHash: ref.String(), Span: &marchwarden.Span{Start: at, End: at + len(s)}})
		res.Claims = append(res.Claims, marchwarden.Claim{Text: s, Citations: []int{i + 1}, Support: marchwarden.Supported})
		res.Answer += fmt.Sprintf("%s [%d]\n\n", s, i+1)
	}
	res.Normalize()
	return res
}

// sends records one rihla, which takes a minute.
func (in *investigation) sends(researcher string, report *marchwarden.Result, failure error) {
	in.t.Helper()
	in.sent++
	_, err := replay.Rihla(in.t.Context(), in, replay.Journey{Number: in.sent, Researcher: researcher, Request: marchwarden.Request{Question: fmt.Sprint("Question ", in.sent)}, Reason: "to know"},
		func(context.Context) (*marchwarden.Result, error) {
			in.now = in.now.Add(time.Minute)
			return report, failure
		})
	if (err != nil) != (failure != nil) {
		in.t.Fatal(err)
	}
}

// sofar is what there is, which stands as any result does.
func (in *investigation) sofar() *marchwarden.Result {
	in.t.Helper()
	log, err := in.traces.Load(idOf(1))
	if err != nil {
		in.t.Fatal(err)
	}
	res, err := run.SoFar(in.t.Context(), in.blobs, log)
	if err != nil {
		in.t.Fatal(err)
	}
	checked, err := verify.Check(in.t.Context(), in.blobs, res)
	if err != nil || !checked.OK() {
		in.t.Errorf("what there is does not stand: %v, %v", checked, err)
	}
	if _, err := marchwarden.EncodeResult(res); err != nil {
		in.t.Error(err)
	}
	return res
}

const (
	rihla1 = "00000000-0000-7000-8000-0000000000a1"
	rihla2 = "00000000-0000-7000-8000-0000000000a2"
	rihla3 = "00000000-0000-7000-8000-0000000000a3"
)

// The reports that have come in stand one after the other, and each marker and claim
// still means its own source. What failed, or no longer stands, is not told.
func TestSoFarOfAnInvestigation(t *testing.T) {
	in := sentRihlas(t, &trace.Start{Mind: "extractive", Model: "m/1", Investigation: &trace.Investigation{}})
	if res := in.sofar(); res.Answer != "" || len(res.Citations) != 0 || res.Confidence != 0 || res.TraceID != idOf(1) || res.ConfidenceFactors.SourceAuthority != marchwarden.LowAuthority {
		t.Errorf("at the beginning: %+v", res)
	}
	in.sends("web", in.finds(rihla1, 0.9, "Peas are green.", "Peas are round."), nil)
	in.sends("files", nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "nobody there"))
	broken := in.finds(rihla2, 0.2, "Peas are blue.", "Peas are square.")
	in.sends("web", broken, nil)
	in.sends("files", in.finds(rihla3, 0.4, "Peas are sweet."), nil)
	nothing := &marchwarden.Result{Answer: "No stored document answers this question.", Gaps: []marchwarden.Gap{{Topic: "peas on Mars", Category: marchwarden.SourceNotFound}}, CostMetadata: marchwarden.CostMetadata{TokensUsed: 7}}
	nothing.Normalize()
	in.sends("arxiv", nothing, nil)
	if err := in.Note(&trace.ModelComplete{TokensIn: 30, TokensOut: 12}); err != nil {
		t.Fatal(err)
	}
	ref, err := blob.Parse(broken.Citations[1].ContentHash)
	if err != nil {
		t.Fatal(err)
	}
	in.blobs.bad[ref] = true

	res := in.sofar()
	if want := "Peas are green. [1]\n\nPeas are round. [2]\n\nPeas are sweet. [3]"; res.Answer != want {
		t.Errorf("the answer is %q, want %q", res.Answer, want)
	}
	var excerpts, topics []string
	for _, c := range res.Citations {
		excerpts = append(excerpts, c.RawExcerpt)
	}
	for _, g := range res.Gaps {
		topics = append(topics, g.Topic)
	}
	if diff := cmp.Diff([]string{"Peas are green.", "Peas are round.", "Peas are sweet."}, excerpts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"more than Peas are green.", "more than Peas are sweet.", "peas on Mars"}, topics); diff != "" {
		t.Error(diff)
	}
	want := []marchwarden.Claim{{Text: "Peas are green.", Citations: []int{1}, Support: "supported"}, {Text: "Peas are round.", Citations: []int{2}, Support: "supported"}, {Text: "Peas are sweet.", Citations: []int{3}, Support: "supported"}}
	if diff := cmp.Diff(want, res.Claims); diff != "" {
		t.Error(diff)
	}
	if res.Confidence != 0.4 || res.ConfidenceFactors.NumCorroboratingSources != 1 {
		t.Errorf("confidence %v by %+v", res.Confidence, res.ConfidenceFactors)
	}
	cost := marchwarden.CostMetadata{TokensUsed: 200 + 200 + 100 + 7 + 42, WallTimeSec: 300, ModelID: "m/1"}
	if diff := cmp.Diff(cost, res.CostMetadata); diff != "" {
		t.Error(diff)
	}
	if again := in.sofar(); !cmp.Equal(res, again, cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })) {
		t.Error("asked again, it says something else")
	}
}

// A rihla that went on reports for both of its parts: its latest report is told, once.
func TestSoFarOfARihlaThatWentOn(t *testing.T) {
	in := sentRihlas(t, &trace.Start{Mind: "m", Investigation: &trace.Investigation{}})
	in.sends("web", in.finds(rihla1, 0.5, "Peas are green."), nil)
	in.sends("web", in.finds(rihla2, 0.6, "Beans are long."), nil)
	in.sends("web", in.finds(rihla1, 0.7, "Peas are green.", "Peas are round."), nil)
	stranger := in.finds(rihla3, 0.8, "Corn is yellow.")
	stranger.TraceID = marchwarden.TraceID{} // strangers may say nothing of their runs
	in.sends("stranger", stranger, nil)
	in.sends("stranger", stranger, nil)
	res := in.sofar()
	if want := "Beans are long. [1]\n\nPeas are green. [2]\n\nPeas are round. [3]\n\nCorn is yellow. [4]\n\nCorn is yellow. [5]"; res.Answer != want {
		t.Errorf("the answer is %q, want %q", res.Answer, want)
	}
	if res.CostMetadata.TokensUsed != 100+100+100+200 || res.CostMetadata.ModelID != "m" {
		t.Errorf("%+v", res.CostMetadata)
	}
}

// A report may list no claims; then no claims are listed, for those of some would say that
// there are no others.
func TestSoFarOfReportsWithoutClaims(t *testing.T) {
	for _, first := range []bool{true, false} {
		in := sentRihlas(t, &trace.Start{Mind: "m", Investigation: &trace.Investigation{}})
		bare := in.finds(rihla1, 0.5, "Peas are green.")
		bare.Claims = nil
		whole := in.finds(rihla2, 0.6, "Beans are long.")
		if first {
			in.sends("stranger", bare, nil)
		}
		in.sends("web", whole, nil)
		if !first {
			in.sends("stranger", bare, nil)
		}
		if res := in.sofar(); len(res.Citations) != 2 || len(res.Claims) != 0 {
			t.Errorf("%d citations, claims %+v", len(res.Citations), res.Claims)
		}
	}
}

// However a marker is written, it means the same citation afterwards.
func TestSoFarShiftsEveryMarker(t *testing.T) {
	in := sentRihlas(t, &trace.Start{Mind: "m", Investigation: &trace.Investigation{}})
	in.sends("web", in.finds(rihla1, 0.5, "Peas are green."), nil)
	odd := in.finds(rihla2, 0.6, "Beans are long.", "Corn is yellow.")
	odd.Answer, odd.Claims = "Beans are long. [000001] Corn is yellow. [02][1]", nil
	in.sends("web", odd, nil)
	if res := in.sofar(); !strings.HasSuffix(res.Answer, "Beans are long. [2] Corn is yellow. [3][2]") {
		t.Errorf("the answer is %q", res.Answer)
	}
}

// Of research there is nothing to tell before its end but what it cost.
func TestSoFarOfResearch(t *testing.T) {
	in := sentRihlas(t, &trace.Start{Mind: "extractive"})
	ref, err := in.blobs.Put(t.Context(), []byte("a page"))
	if err != nil {
		t.Fatal(err)
	}
	in.now = in.now.Add(90 * time.Second)
	for _, s := range []trace.Step{&trace.Iteration{}, &trace.FetchComplete{URL: "https://example.org", ContentHash: ref}, &trace.FetchComplete{URL: "https://example.org/none", Effect: trace.Effect{Error: marchwarden.CodeNotFound}}, &trace.ModelComplete{TokensIn: 10, TokensOut: 5}, &trace.Iteration{}, &trace.ModelComplete{TokensIn: 1, TokensOut: 1}} {
		if err := in.Note(s); err != nil {
			t.Fatal(err)
		}
	}
	res := in.sofar()
	want := &marchwarden.Result{TraceID: idOf(1), ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority},
		CostMetadata: marchwarden.CostMetadata{TokensUsed: 17, IterationsRun: 2, WallTimeSec: 90, ModelID: "extractive", SourcesRead: 1}}
	want.Normalize()
	if diff := cmp.Diff(want, res, cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// Whoever stops asking is told so, and a log without a beginning is no run.
func TestSoFarThatCannotBeTold(t *testing.T) {
	in := sentRihlas(t, &trace.Start{Mind: "m", Investigation: &trace.Investigation{}})
	in.sends("web", in.finds(rihla1, 0.5, "Peas are green."), nil)
	log, err := in.traces.Load(idOf(1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res, err := run.SoFar(ctx, gone{in.blobs}, log); !errors.Is(err, context.Canceled) || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := run.SoFar(t.Context(), in.blobs, &trace.Log{}); err == nil || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

// gone is a store that nobody waits for any more.
type gone struct{ blob.Store }

func (g gone) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return g.Store.Get(ctx, ref)
}
