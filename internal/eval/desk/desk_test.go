package desk_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

var docs = eval.Docs{
	"valley.md": "# Deseret Valley\n\nFarmers of Deseret Valley grow alfalfa and barley.\n\nThe Sevier River gives Deseret Valley its water.\n",
	"pie.md":    "# Pie\n\nPeach pie is made of peaches and flour.\n",
}

const question = "What do farmers of Deseret Valley grow?"

func config(t *testing.T) desk.Config {
	t.Helper()
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	return desk.Config{Extractor: x}
}

func records(t *testing.T) *desk.Records {
	t.Helper()
	home, now := t.TempDir(), desk.OnToday(time.Now)
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), now)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blobdir.Open(filepath.Join(home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = traces.Close(), blobs.Close() })
	return &desk.Records{Traces: traces, Blobs: blobs, Version: "test", Now: now, NewID: serve.NewTraceID}
}

func open(t *testing.T, cfg desk.Config) eval.Library {
	t.Helper()
	d, err := desk.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Open(t.Context(), "valley", docs.FS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func excerpts(res *marchwarden.Result) (out []string) {
	for _, c := range res.Citations {
		out = append(out, c.Locator+" "+c.RawExcerpt)
	}
	return out
}

// The answer is the same with a record and without, and an investigator finds it too.
func TestAsk(t *testing.T) {
	plain, err := open(t, config(t)).Ask(t.Context(), marchwarden.Request{Question: question})
	if err != nil {
		t.Fatal(err)
	}
	if len(plain.Citations) == 0 || !strings.HasPrefix(excerpts(plain)[0], "valley:valley.md#L3 ") || !strings.Contains(plain.Answer, "alfalfa") {
		t.Errorf("answer %q by %v", plain.Answer, excerpts(plain))
	}
	if !strings.HasPrefix(plain.CostMetadata.ModelID, "extractive/") || plain.CostMetadata.WallTimeSec != 0 {
		t.Errorf("cost %+v", plain.CostMetadata)
	}
	cfg := config(t)
	cfg.Records = records(t)
	kept, err := open(t, cfg).Ask(t.Context(), marchwarden.Request{Question: question})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(excerpts(plain), excerpts(kept)); diff != "" || plain.Answer != kept.Answer || plain.Confidence != kept.Confidence {
		t.Errorf("with a record: %q\n%s", kept.Answer, diff)
	}
	log, err := cfg.Records.Traces.Load(kept.TraceID)
	if err != nil || log.Complete() == nil {
		t.Errorf("the trace: %v", err)
	}
	cfg.Pi = true
	found, err := open(t, cfg).Ask(t.Context(), marchwarden.Request{Question: question})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Rihlas) == 0 || !strings.Contains(found.Answer, "alfalfa") {
		t.Errorf("an investigator: %q after %d rihlas", found.Answer, len(found.Rihlas))
	}
	cfg.Records = nil
	if _, err := desk.New(cfg); err == nil {
		t.Error("an investigator without a record")
	}
}

// babbler is a model whose replies are of no use, and cost all the same.
type babbler string

func (b babbler) ID() string { return string(b) }

func (b babbler) Generate(context.Context, llm.Call) (llm.Reply, error) {
	return llm.Reply{Text: "la la", Usage: llm.Usage{In: 1000, Out: 10}, Stop: llm.StopEnd}, nil
}

// one is a suite of one question.
type one struct{ eval.Library }

func (o one) Cases() []string                  { return []string{"1"} }
func (o one) Score(r []eval.Row) []eval.Metric { return []eval.Metric{eval.Mean("cited", r)} }

func (o one) Run(ctx context.Context, _ string) (eval.Row, error) {
	res, err := o.Ask(ctx, marchwarden.Request{Question: question})
	if err != nil {
		return eval.Row{}, err
	}
	return eval.Row{Values: map[string]float64{"cited": float64(len(res.Citations))}}, nil
}

// What a question cost is in its row: tokens, the price where it is known, the trace
// where it is kept.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		model llm.Model
		keep  bool
		price func(*float64) bool
	}{
		{nil, false, func(usd *float64) bool { return usd != nil && *usd == 0 }},
		{babbler("openai/gpt-4.1"), true, func(usd *float64) bool { return usd != nil && *usd > 0 }},
		{babbler("openai/nobody-knows"), false, func(usd *float64) bool { return usd == nil }},
	} {
		cfg := config(t)
		cfg.Model = c.model
		if c.keep {
			cfg.Records = records(t)
		}
		d, err := desk.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := eval.Suite{Name: "one", Open: func(ctx context.Context, env eval.Env) (eval.Session, error) {
			l, err := env.Desk.Open(ctx, "valley", docs.FS())
			return one{l}, err
		}}
		r, err := eval.Run(t.Context(), s, eval.Env{Desk: d}, eval.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		row := r.Rows[0]
		if row.Tokens <= 0 || !c.price(row.USD) || !c.price(r.USD) || len(row.Traces) > 0 != c.keep {
			t.Errorf("%s: %+v", d.Mind(), row)
		}
		if used := d.Used(); c.model != nil && (len(used) != 1 || used[c.model.ID()].In == 0) || c.model == nil && len(used) != 0 {
			t.Errorf("%s used %v", d.Mind(), used)
		}
		n, err := eval.Count(t.Context(), s, eval.Env{})
		if err != nil || n != 1 {
			t.Errorf("%d cases, %v", n, err)
		}
	}
}

func TestOpenFails(t *testing.T) {
	d, err := desk.New(config(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(t.Context(), "bad", eval.Docs{"a.docx": "PK\x03\x04 no more"}.FS())
	if err == nil || !strings.Contains(err.Error(), "a.docx") {
		t.Errorf("a document that cannot be read: %v", err)
	}
	hits, err := open(t, config(t)).Engine().Search(t.Context(), search.Query{Text: "peach pie", Limit: 3})
	if err != nil || len(hits) == 0 || hits[0].Locator != "valley:pie.md" {
		t.Errorf("hits %v, %v", hits, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, config(t)).Ask(ctx, marchwarden.Request{Question: question}); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("an answer that was cut short counts: %v", err)
	}
}
