package researcher_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// home is a researcher over a folder of its own, with everything real.
type home struct {
	*researcher.Files
	calls  []researcher.Call // as the ledger was told
	path   string
	blobs  blob.Store
	traces *trace.Dir
}

func newHome(t *testing.T, library ...*fetch.Folder) *home {
	t.Helper()
	if len(library) == 0 {
		library = []*fetch.Folder{researcher.Embedded()}
	}
	path := t.TempDir()
	blobs, err := dir.Open(filepath.Join(path, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	traces, err := trace.OpenDir(filepath.Join(path, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	x := extract.New(extract.Config{PDF: pdf.New(pdf.Config{CacheDir: datatest.PDFCache(t)})})
	n := 0
	h := &home{path: path, blobs: blobs, traces: traces}
	h.Files = researcher.NewFiles(researcher.FilesConfig{
		Library: library, IndexPath: filepath.Join(path, "library", "index.db"), Extractor: x,
		Lab: researcher.Lab{
			Spent:  func(_ context.Context, c researcher.Call) { h.calls = append(h.calls, c) },
			Traces: traces, Blobs: blobs, Version: "test", Now: time.Now, NewID: func() marchwarden.TraceID {
				n++
				id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
		},
	})
	t.Cleanup(func() { h.Close(); x.Close(); traces.Close(); blobs.Close() })
	return h
}

func (h *home) ask(t *testing.T, req marchwarden.Request) *marchwarden.Result {
	t.Helper()
	res, err := h.Research(t.Context(), req, nil)
	if err != nil {
		t.Fatalf("%q: %v", req.Question, err)
	}
	report, err := verify.Check(t.Context(), h.blobs, res)
	if err != nil || !report.OK() {
		t.Fatalf("%q: %v %s", req.Question, err, report)
	}
	return res
}

func (h *home) log(t *testing.T, id marchwarden.TraceID) *trace.Log {
	t.Helper()
	log, err := h.traces.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func documents(res *marchwarden.Result) map[string]bool {
	docs := map[string]bool{}
	for _, c := range res.Citations {
		docs[c.Locator] = true
	}
	return docs
}

// A large text is read, split and counted once: what a question about it allocates stays a small multiple of it.
func TestLargeText(t *testing.T) {
	cost := func(bytes int) int {
		var text strings.Builder
		words := []string{"river", "harbour", "keeper", "lantern", "winter", "ledger", "granite", "orchard", "signal", "barrel"}
		for n := 0; text.Len() < bytes; n++ {
			fmt.Fprintf(&text, "The %s of %d was kept beside the %s, and the %s stood near it.\n\n", words[n%10], n, words[n/10%10], words[n/100%10])
		}
		folder := folderOf(t, map[string]string{"large.txt": text.String() + "The capital of the island of Quorra is Vellmar.\n"})
		h := newHome(t, folder)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if res := h.ask(t, marchwarden.Request{Question: "What is the capital of the island of Quorra?"}); !strings.Contains(res.Answer, "Vellmar") {
			t.Errorf("%d bytes: %q", bytes, res.Answer)
		}
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc - before.TotalAlloc)
	}
	const size = 2 << 20
	cost(1 << 10) // models are loaded
	times := (cost(3*size) - cost(size)) / (2 * size)
	t.Logf("a byte of text allocates %d", times)
	if times > 70 {
		t.Errorf("a byte of text allocates %d: it is copied, or read more often than before", times)
	}
}

func TestTheFirstQuestion(t *testing.T) {
	res := newHome(t).ask(t, marchwarden.Request{Question: "What are ideal crops for a garden in Utah?"})
	if docs := documents(res); len(res.Citations) < 4 || len(docs) < 3 {
		t.Errorf("%d citations from %d documents", len(res.Citations), len(docs))
	}
	tomatoes := false
	for _, c := range res.Contradictions {
		if strings.Contains(c.A.RawExcerpt, "omatoes") && strings.Contains(c.B.RawExcerpt, "6,000 feet") {
			tomatoes = true
		}
	}
	if !tomatoes || !res.ConfidenceFactors.ContradictionDetected {
		t.Errorf("the tomato contradiction is not reported: %+v", res.Contradictions)
	}
	if len(res.Gaps)+len(res.OpenQuestions) == 0 {
		t.Error("neither a gap nor an open question")
	}
	for _, c := range res.Claims {
		if len(c.Citations) == 0 {
			t.Errorf("claim %q has no citation", c.Text)
		}
	}
}

func TestExamplesOfTheContract(t *testing.T) {
	h := newHome(t)
	t.Run("capital of France", func(t *testing.T) {
		res := h.ask(t, marchwarden.Request{Question: "What is the capital of France?", Depth: marchwarden.Shallow})
		if len(res.Citations) == 0 || !strings.Contains(res.Citations[0].RawExcerpt, "Paris is the capital of France.") {
			t.Errorf("citations %+v", res.Citations)
		}
		if len(res.Gaps) != 0 || res.CostMetadata.IterationsRun > 2 {
			t.Errorf("gaps %+v after %d iterations", res.Gaps, res.CostMetadata.IterationsRun)
		}
	})
	t.Run("history of AI on a small budget", func(t *testing.T) {
		three, tokens := 3, 5000
		res := h.ask(t, marchwarden.Request{Question: "Comprehensive history of AI from the 1950s to 2026",
			Constraints: &marchwarden.Constraints{MaxIterations: &three, TokenBudget: &tokens}})
		if len(res.Citations) == 0 || res.CostMetadata.TokensUsed > tokens || !res.CostMetadata.BudgetExhausted {
			t.Errorf("%d citations, cost %+v", len(res.Citations), res.CostMetadata)
		}
		arxiv, left := false, false
		for _, d := range res.DiscoveryEvents {
			arxiv = arxiv || d.SuggestedResearcher == "arxiv"
		}
		for _, g := range res.Gaps {
			left = left || g.Category == marchwarden.BudgetExhausted
		}
		if !arxiv || !left {
			t.Errorf("discoveries %+v, gaps %+v", res.DiscoveryEvents, res.Gaps)
		}
	})
	t.Run("nonsense", func(t *testing.T) {
		for _, q := range []string{"What is the airspeed of an unladen blorptang?", "Who won the zzyzx quux cup in Flumbria?", "asdf qwer zxcv"} {
			res := h.ask(t, marchwarden.Request{Question: q})
			if len(res.Citations) != 0 || len(res.Gaps) == 0 || res.Confidence >= 0.3 || res.Answer == "" {
				t.Errorf("%q: answer %q, %d citations, confidence %.2f, gaps %+v", q, res.Answer, len(res.Citations), res.Confidence, res.Gaps)
			}
		}
	})
}

// randomQuestions makes questions out of words that stand in the library, some
// that do not, and odd characters.
func randomQuestions(t *testing.T, n int) []marchwarden.Request {
	t.Helper()
	var words []string
	err := fs.WalkDir(corpus.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(corpus.FS(), name)
		for _, tok := range lexicon.Tokens(string(text)) {
			if !tok.Stop {
				words = append(words, tok.Text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 11))
	openings := []string{"What is", "When did", "How many", "Why does", "Compare", "Who made", "", "Is it true that", "List the"}
	odd := []string{"blorptang", "“quoted”", "€", "naïve", "🌱", "NEAR(", "%"}
	depths := []marchwarden.Depth{"", marchwarden.Shallow, marchwarden.Balanced, marchwarden.Deep}
	reqs := make([]marchwarden.Request, n)
	for i := range reqs {
		parts := []string{openings[rng.IntN(len(openings))]}
		for range 1 + rng.IntN(6) {
			parts = append(parts, words[rng.IntN(len(words))])
		}
		if rng.IntN(4) == 0 {
			parts = append(parts, odd[rng.IntN(len(odd))])
		}
		budget := 1000 + rng.IntN(30000)
		reqs[i] = marchwarden.Request{Question: strings.TrimSpace(strings.Join(parts, " ")) + "?", Depth: depths[rng.IntN(len(depths))],
			Constraints: &marchwarden.Constraints{TokenBudget: &budget}}
		if rng.IntN(3) == 0 {
			reqs[i].Context = strings.Join(parts[1:], " ")
		}
	}
	return reqs
}

// TestRerunHundredQuestions is the third promise on the real researcher, and on
// the way the second: the budget holds whatever is asked.
func TestRerunHundredQuestions(t *testing.T) {
	n := 10
	if datatest.Full() {
		n = 100
	}
	h := newHome(t)
	for _, req := range randomQuestions(t, n) {
		res := h.ask(t, req)
		if res.CostMetadata.TokensUsed > *req.Constraints.TokenBudget {
			t.Errorf("%q used %d tokens of %d", req.Question, res.CostMetadata.TokensUsed, *req.Constraints.TokenBudget)
		}
		again, err := researcher.Again(t.Context(), h.log(t, res.TraceID), h.blobs, nil)
		if err != nil {
			t.Fatalf("rerun of %q: %v", req.Question, err)
		}
		if !again.Same() {
			t.Errorf("rerun of %q differs\nwant %s\ngot  %s", req.Question, again.Want, again.Got)
		}
	}
}

// TestOneFlippedBitIsFound flips a bit in every blob of a run, one after the
// other: the rerun and the check both fail and name the blob.
func TestOneFlippedBitIsFound(t *testing.T) {
	h := newHome(t)
	res := h.ask(t, marchwarden.Request{Question: "Which tomatoes ripen above 6,000 feet in Utah?", Depth: marchwarden.Shallow})
	log := h.log(t, res.TraceID)
	flipped := 0
	for _, s := range log.Steps {
		for _, ref := range trace.Refs(s) {
			path := blobFile(t, h.path, ref)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			bad := append([]byte(nil), good...)
			bad[(flipped*31)%len(bad)] ^= 1 << (flipped % 8)
			flipped++
			overwrite(t, path, bad)
			if _, err := researcher.Again(t.Context(), log, h.blobs, nil); err == nil || !strings.Contains(err.Error(), ref.String()) {
				t.Errorf("rerun with a bit flipped in %s: %v", ref, err)
			}
			if err := replay.CheckBlobs(t.Context(), log, h.blobs); err == nil || !strings.Contains(err.Error(), ref.String()) {
				t.Errorf("check with a bit flipped in %s: %v", ref, err)
			}
			overwrite(t, path, good)
		}
	}
	if _, err := researcher.Again(t.Context(), log, h.blobs, nil); err != nil || flipped < 10 {
		t.Errorf("after mending %d blobs: %v", flipped, err)
	}
}

func blobFile(t *testing.T, home string, ref blob.Ref) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(home, "blobs", "sha256", ref.Hex()[:2], ref.Hex()[2:]+"*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("file of %s: %v %v", ref, found, err)
	}
	return found[0]
}

func overwrite(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUserFolders(t *testing.T) {
	notes := t.TempDir()
	for name, text := range map[string]string{
		"bees.md":     "# Bees\n\nThe honey bees of Hollow Farm produced 41 kilograms of honey in 2025.\n",
		"data.csv":    "hive,kilograms\nNorth hive,23\nSouth hive,18\n",
		".secret.md":  "The hidden password of Hollow Farm is honey.\n",
		"broken.pdf":  "%PDF-1.7 this is no pdf",
		"picture.bin": "\x00\x01\x02",
	} {
		if err := os.WriteFile(filepath.Join(notes, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := fetch.OpenFolder(notes)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	h := newHome(t, folder)
	res := h.ask(t, marchwarden.Request{Question: "How much honey did the bees of Hollow Farm produce in 2025?"})
	if len(res.Citations) == 0 || res.Citations[0].Locator != filepath.Join(folder.Name, "bees.md")+"#L3" || !strings.Contains(res.Answer, "41 kilograms") {
		t.Errorf("answer %q, citations %+v", res.Answer, res.Citations)
	}
	if strings.Contains(res.Answer, "password") {
		t.Error("a hidden file was read")
	}
}

func TestResumeReturnsTheEarlierResult(t *testing.T) {
	h := newHome(t)
	first := h.ask(t, marchwarden.Request{Question: "What is the capital of France?"})
	again := h.ask(t, marchwarden.Request{Resume: first.TraceID.String()})
	want, _ := marchwarden.EncodeResult(first)
	got, _ := marchwarden.EncodeResult(again)
	if string(want) != string(got) {
		t.Errorf("resume gave another result\nwant %s\ngot  %s", want, got)
	}
	_, err := h.Research(t.Context(), marchwarden.Request{Resume: "00000000-0000-7000-8000-00000000ffff"}, nil)
	if marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("resume of an unknown run: %v", err)
	}
}

// A result does not leave the process a second time when its evidence has been
// damaged since, and never as the answer to another question.
func TestResumeIsChecked(t *testing.T) {
	h := newHome(t)
	asked := marchwarden.Request{Question: "What is the capital of France?"}
	first := h.ask(t, asked)
	asked.Resume = first.TraceID.String()
	h.ask(t, asked)
	_, err := h.Research(t.Context(), marchwarden.Request{Question: "What is the capital of Spain?", Resume: asked.Resume}, nil)
	if marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("resume with another question: %v", err)
	}
	ref, err := blob.Parse(first.Citations[0].ContentHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(blobFile(t, h.path, ref)); err != nil {
		t.Fatal(err)
	}
	_, err = h.Research(t.Context(), marchwarden.Request{Resume: asked.Resume}, nil)
	if marchwarden.CodeOf(err) != marchwarden.CodeCorrupt || !strings.Contains(err.Error(), ref.String()) {
		t.Errorf("resume of a run whose evidence is gone: %v", err)
	}
}

// A folder that cannot be read is a gap; what is in the others is found.
func TestAFolderThatFailsIsAGap(t *testing.T) {
	gone, err := fetch.OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	gone.Close() // as a disk that was taken out
	h := newHome(t, gone, researcher.Embedded())
	res := h.ask(t, marchwarden.Request{Question: "What is the capital of France?"})
	if len(res.Citations) == 0 {
		t.Error("the other folder was not searched")
	}
	if len(res.Gaps) == 0 || !strings.Contains(res.Gaps[0].Topic, gone.Name) || res.Gaps[0].Category != marchwarden.AccessDenied {
		t.Errorf("gaps %+v, want one that names %s", res.Gaps, gone.Name)
	}
	again, err := researcher.Again(t.Context(), h.log(t, res.TraceID), h.blobs, nil)
	if err != nil || !again.Same() {
		t.Errorf("rerun: %v\nwant %s\ngot  %s", err, again.Want, again.Got)
	}
}

// A question may hold what looks like a marker; the refusal that quotes it is a
// result, not a fault.
func TestRefusalOfAQuestionWithMarkers(t *testing.T) {
	res := newHome(t).ask(t, marchwarden.Request{Question: `"[1]" Zorblaxian [2]?`})
	if len(res.Citations) != 0 || res.Confidence >= 0.3 {
		t.Errorf("%d citations, confidence %.2f", len(res.Citations), res.Confidence)
	}
}

// TestTheCallIsAccountedFor asks without a watcher: what the ledger is told and
// what the trace says of the library do not depend on progress events.
func TestTheCallIsAccountedFor(t *testing.T) {
	h := newHome(t)
	res := h.ask(t, marchwarden.Request{Question: "What is the capital of France?"})
	log := h.log(t, res.TraceID)
	searches := 0
	for _, s := range log.Steps {
		if _, ok := s.(*trace.SearchComplete); ok {
			searches++
		}
	}
	if len(h.calls) != 1 || searches == 0 || h.calls[0].Result.TraceID != res.TraceID {
		t.Errorf("the ledger was told %+v after %d searches", h.calls, searches)
	}
	start, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	again := h.ask(t, marchwarden.Request{Question: "What is CRISPR?"})
	second, err := h.log(t, again.TraceID).Start()
	if err != nil {
		t.Fatal(err)
	}
	if start.Fingerprint == "" || start.Fingerprint != second.Fingerprint || len(start.Library) != 1 {
		t.Errorf("the same library is %q in one trace and %q in the next", start.Fingerprint, second.Fingerprint)
	}
}

func TestSourceFilterOnLocalDocuments(t *testing.T) {
	h := newHome(t)
	res := h.ask(t, marchwarden.Request{Question: "What are ideal crops for a garden in Utah?", Constraints: &marchwarden.Constraints{SourceFilter: ".gov,.edu"}})
	named := slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Topic, ".gov,.edu") })
	if len(res.Citations) != 0 || !named {
		t.Errorf("a filter that no document passes gave %d citations and gaps %+v", len(res.Citations), res.Gaps)
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	h := newHome(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err := h.Research(ctx, marchwarden.Request{Question: "What is the capital of France?"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !res.CostMetadata.BudgetExhausted || h.log(t, res.TraceID).Complete() == nil {
		t.Errorf("result %+v", res)
	}
}
