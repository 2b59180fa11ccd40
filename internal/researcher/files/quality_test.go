package files_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/squadtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// sampled is how many questions of each article and kind the golden file is about.
const sampled = 80

var (
	update  = flag.Bool("update", false, "rewrite the golden files")
	perPart = flag.Int("squad", sampled, "SQuAD2 questions per article and kind; 0 for all")
)

// straight is a journal that records nothing: quality is measured on the same
// loop, without the disk.
type straight struct{}

func (straight) Do(ctx context.Context, e replay.Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	return run(ctx)
}
func (straight) Note(trace.Step) error  { return nil }
func (straight) Live(marchwarden.Event) {}
func (straight) Past(int)               {}
func (straight) Lose(error)             {}

// tally counts over questions.
type tally struct {
	answerable, first, three, refused int
	unanswerable, declined            int
	yes, no                           []float64 // confidence of answerable and unanswerable questions
}

// TestQualitySQuAD2 asks real questions, each over the one article it is about,
// and compares the numbers with the committed file.
func TestQualitySQuAD2(t *testing.T) {
	if testing.Short() {
		t.Skip("quality is measured without -short")
	}
	articles := squadtest.Read(t)
	x := extract.New(extract.Config{})
	defer x.Close()
	var sum tally
	for _, a := range articles {
		measure(t, &sum, a, x)
	}
	share := func(n, of int) float64 { return float64(n) / float64(max(1, of)) }
	hit3, auroc := share(sum.three, sum.answerable), squadtest.AUROC(sum.yes, sum.no)
	got := fmt.Sprintf(`SQuAD2 dev half, one article as library per question, depth balanced, %s
questions answerable                      %d
  answer in the first citation            %.3f
  answer within three citations           %.3f   floor 0.800
  refused                                 %.3f
questions unanswerable                    %d
  refused                                 %.3f
confidence tells them apart (AUROC)       %.3f   floor 0.650, BM25's own score 0.589
`, extractive.New().ID(), sum.answerable, share(sum.first, sum.answerable), hit3, share(sum.refused, sum.answerable),
		sum.unanswerable, share(sum.declined, sum.unanswerable), auroc)
	t.Log("\n" + got)
	if hit3 < 0.80 || auroc < 0.65 {
		t.Errorf("below the floor: %.3f within three citations, AUROC %.3f", hit3, auroc)
	}
	if *perPart == sampled {
		datatest.Golden(t, "testdata/quality.txt", got, *update)
	}
}

// measure asks the article's questions.
func measure(t *testing.T, sum *tally, a squadtest.Article, x *extract.Extractor) {
	t.Helper()
	ctx := t.Context()
	fsys := fstest.MapFS{}
	var yes, no []squadtest.Question
	for i, p := range a.Paragraphs {
		fsys[fmt.Sprintf("%03d.md", i)] = &fstest.MapFile{Data: []byte("---\ntitle: " + a.Name() + "\n---\n" + p.Context + "\n")}
		for _, q := range p.QAs {
			if q.Impossible {
				no = append(no, q)
			} else {
				yes = append(yes, q)
			}
		}
	}
	folder := fetch.EmbeddedFolder(a.Title, "squad", fsys)
	ix, err := local.Open(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	now := func() time.Time { return time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC) }
	if _, err := ix.Update(ctx, folder, local.UpdateOptions{Extract: x, Now: now}); err != nil {
		t.Fatal(err)
	}
	blobs := blob.NewMem()
	l := loop.New(loop.Config{Engine: ix.Engine(folder), Fetcher: fetch.NewFiles(blobs, x, now, folder), Reasoner: extractive.New(), Blobs: blobs})
	ask := func(q squadtest.Question) *marchwarden.Result {
		req := marchwarden.Request{Question: q.Question}
		res, err := l.Run(ctx, straight{}, &trace.Start{Request: req, Limits: req.Limits(), StartedAt: now(), Engine: "local"}, func() time.Duration { return 0 })
		if err != nil {
			t.Fatalf("%q: %v", q.Question, err)
		}
		if report, err := verify.Check(ctx, blobs, res); err != nil || !report.OK() {
			t.Fatalf("%q: %v %s", q.Question, err, report)
		}
		return res
	}
	for _, q := range sample(yes) {
		res := ask(q)
		sum.answerable++
		sum.yes = append(sum.yes, float64(res.Confidence))
		switch n := holds(res, q); {
		case len(res.Citations) == 0:
			sum.refused++
		case n == 1:
			sum.first++
			fallthrough
		case n > 0 && n <= 3:
			sum.three++
		}
	}
	for _, q := range sample(no) {
		res := ask(q)
		sum.unanswerable++
		sum.no = append(sum.no, float64(res.Confidence))
		if len(res.Citations) == 0 {
			sum.declined++
		}
	}
}

// sample takes questions evenly from the list.
func sample(qs []squadtest.Question) []squadtest.Question {
	if *perPart == 0 || len(qs) <= *perPart {
		return qs
	}
	out := make([]squadtest.Question, *perPart)
	for i := range out {
		out[i] = qs[i*len(qs)/len(out)]
	}
	return out
}

// holds is the number of the first citation whose excerpt holds an answer, or 0.
func holds(res *marchwarden.Result, q squadtest.Question) int {
	for i, c := range res.Citations {
		if q.HeldIn(c.RawExcerpt) {
			return i + 1
		}
	}
	return 0
}
