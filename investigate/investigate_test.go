package investigate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/investigate"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// asServer makes this test binary a researcher that serves one fact.
const asServer = "INVESTIGATE_TEST_FACT"

func TestMain(m *testing.M) {
	fact := os.Getenv(asServer)
	if fact == "" {
		goleak.VerifyTestMain(m)
		return
	}
	r := teller{fact}
	err := serve.Stdio(context.Background(), serve.Config{Name: "teller", Scope: "one fact", Researcher: r, Evidence: r.evidence}, os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// teller answers everything with one fact.
type teller struct{ fact string }

func (r teller) hash() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.fact))) }

func (r teller) evidence(_ context.Context, hash string) ([]byte, error) {
	if hash != r.hash() {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "not here")
	}
	return []byte(r.fact), nil
}

func (r teller) Research(context.Context, marchwarden.Request, marchwarden.Sink) (*marchwarden.Result, error) {
	if r.fact == "panic" {
		panic("as it was told to")
	}
	res := &marchwarden.Result{
		Answer: r.fact + " [1]", Confidence: 0.5, TraceID: serve.NewTraceID(),
		Citations:         []marchwarden.Citation{{Source: "file", Locator: r.hash()[7:15] + ".txt", RawExcerpt: r.fact, Confidence: 0.8, ContentHash: r.hash(), Span: &marchwarden.Span{Start: 0, End: len(r.fact)}}},
		Claims:            []marchwarden.Claim{{Text: r.fact, Citations: []int{1}, Support: marchwarden.Supported}},
		ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority},
	}
	res.Normalize()
	return res, nil
}

// command is this binary as a researcher.
func command(t *testing.T, name, fact string) investigate.Researcher {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return investigate.Researcher{Name: name, Scope: "zanthium plants and their flowers", Command: []string{self}, Env: []string{asServer + "=" + fact}, Stderr: os.Stderr}
}

func value(name, fact string) investigate.Researcher {
	r := teller{fact}
	return investigate.Researcher{Name: name, Scope: "zanthium plants and where they grow", Value: r, Evidence: r.evidence}
}

// open opens an investigator that goes by words, which is quicker.
func open(t *testing.T, cfg investigate.Config) *investigate.Investigator {
	t.Helper()
	cfg.WordsAlone = true
	return started(t, cfg)
}

func started(t *testing.T, cfg investigate.Config) *investigate.Investigator {
	t.Helper()
	if cfg.Home == "" {
		cfg.Home = t.TempDir()
	}
	inv, err := investigate.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
	return inv
}

// ask researches, and holds every citation of the result against its evidence.
func ask(t *testing.T, inv *investigate.Investigator, question string) *marchwarden.Result {
	t.Helper()
	res, err := inv.Research(t.Context(), marchwarden.Request{Question: question}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Citations {
		stored, err := inv.Evidence(t.Context(), c.ContentHash)
		if err != nil || !c.Span.In(len(stored)) || strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut) != string(stored[c.Span.Start:c.Span.End]) {
			t.Errorf("%s: %q is not in the evidence: %v", c.Locator, c.RawExcerpt, err)
		}
	}
	return res
}

func asked(res *marchwarden.Result) []string {
	var names []string
	for _, r := range res.Rihlas {
		if !slices.Contains(names, r.Researcher) {
			names = append(names, r.Researcher)
		}
	}
	slices.Sort(names)
	return names
}

func cites(res *marchwarden.Result, excerpt string) *marchwarden.Citation {
	i := slices.IndexFunc(res.Citations, func(c marchwarden.Citation) bool { return strings.Contains(c.RawExcerpt, excerpt) })
	if i < 0 {
		return nil
	}
	return &res.Citations[i]
}

// TestLibraryValueAndCommand asks a folder, a value and a process together.
func TestLibraryValueAndCommand(t *testing.T) {
	const inFolder, inValue, inCommand = "A zanthium plant needs sand.", "A zanthium plant grows in Utah.", "A zanthium plant flowers in June."
	folder, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "sand.md"), []byte("# Notes\n\n"+inFolder+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inv := open(t, investigate.Config{Home: home, Library: []string{folder, folder}, Researchers: []investigate.Researcher{
		value("near", inValue), command(t, "far", inCommand),
	}})
	res := ask(t, inv, "What is known of the zanthium plant?")
	if got := asked(res); !slices.Equal(got, []string{"far", "files", "near"}) {
		t.Errorf("asked %v", got)
	}
	for _, fact := range []string{inFolder, inValue, inCommand} {
		if c := cites(res, fact); c == nil || c.Unchecked {
			t.Errorf("%q is not cited and checked: %+v", fact, res.Citations)
		}
	}
	again, err := inv.Research(t.Context(), marchwarden.Request{Resume: res.TraceID.String()}, nil)
	if err != nil || again.Answer != res.Answer {
		t.Errorf("the kept run: %v %v", again, err)
	}
	for _, kept := range []string{"traces/" + res.TraceID.String() + ".jsonl", "blobs", "pins.json", "library/index.db"} {
		if _, err := os.Stat(filepath.Join(home, filepath.FromSlash(kept))); err != nil {
			t.Error(err)
		}
	}
}

// TestRecordsCanBeRerun has the record of an investigation run again, as the command does, with no
// researcher there to ask.
func TestRecordsCanBeRerun(t *testing.T) {
	home := t.TempDir()
	res := ask(t, open(t, investigate.Config{Home: home, Embedded: true, Researchers: []investigate.Researcher{value("near", "A zanthium plant grows in Utah.")}}),
		"Where does the zanthium plant grow?")
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	blobs, err := dir.Open(filepath.Join(home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	log, err := traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	want, got, err := pi.Again(t.Context(), log, blobs, pi.Minds{
		Planner: func(string) pi.Planner { return derive.New() },
		Writer:  func(string) reason.Reasoner { return extractive.New() },
	})
	if err != nil || len(want) == 0 || string(want) != string(got) {
		t.Errorf("%v\n%s\n%s", err, want, got)
	}
}

func TestEmbeddedLibraryAlone(t *testing.T) {
	res := ask(t, started(t, investigate.Config{Embedded: true}), "What is the capital of France?")
	if !strings.Contains(res.Answer, "Paris") || len(res.Citations) == 0 {
		t.Errorf("answer %q", res.Answer)
	}
}

// TestFailuresAreGaps has one sound researcher among broken ones.
func TestFailuresAreGaps(t *testing.T) {
	const fact = "A zanthium plant grows in Utah."
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	gone := command(t, "gone", "x")
	gone.Command = []string{filepath.Join(t.TempDir(), "no-such-program")}
	silent := value("silent", fact+" It says so itself.")
	silent.Evidence = nil
	inv := open(t, investigate.Config{Deadline: time.Minute, Researchers: []investigate.Researcher{
		value("sound", fact), value("wild", "panic"), gone, silent,
		{Name: "down", Scope: "zanthium plants and their seeds", URL: down.URL, Token: "secret-token"},
	}})
	res := ask(t, inv, "Where does the zanthium plant grow?")
	if c := cites(res, fact); c == nil {
		t.Errorf("the sound one is not cited: %+v", res)
	}
	for _, c := range res.Citations {
		if strings.HasSuffix(c.RawExcerpt, "itself.") && !c.Unchecked {
			t.Errorf("nobody could check %+v", c)
		}
	}
	wire, err := marchwarden.EncodeResult(res)
	if err != nil || strings.Contains(string(wire), "secret-token") {
		t.Errorf("%v, or the token is in %s", err, wire)
	}
	for _, name := range asked(res) {
		broken := name == "wild" || name == "gone" || name == "down"
		if named := slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Topic+g.Detail, name) }); broken && !named {
			t.Errorf("no gap names %s: %+v", name, res.Gaps)
		}
	}
	if got := asked(res); len(got) < 2 {
		t.Errorf("asked only %v", got)
	}
}

// TestClockAndIDs gives an investigator both.
func TestClockAndIDs(t *testing.T) {
	var given []string
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	inv := open(t, investigate.Config{
		Researchers: []investigate.Researcher{value("near", "A zanthium plant grows in Utah.")},
		Now:         func() time.Time { return at },
		NewID: func() marchwarden.TraceID {
			id := serve.NewTraceID()
			given = append(given, id.String())
			return id
		},
	})
	res := ask(t, inv, "Where does the zanthium plant grow?")
	if len(given) != 1 || res.TraceID.String() != given[0] || res.CostMetadata.WallTimeSec != 0 {
		t.Errorf("ids %v, result %s after %v s", given, res.TraceID, res.CostMetadata.WallTimeSec)
	}
}

func TestEvidenceThatIsNotThere(t *testing.T) {
	inv := open(t, investigate.Config{Embedded: true})
	if _, err := inv.Evidence(t.Context(), "sha256:"+strings.Repeat("0", 64)); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Error(err)
	}
	if _, err := inv.Evidence(t.Context(), "../../etc/passwd"); !errors.Is(err, marchwarden.CodeInvalid) {
		t.Error(err)
	}
}

// TestChangedToolNeedsApproval runs a command whose description is another one than
// that which was met first.
func TestChangedToolNeedsApproval(t *testing.T) {
	home := t.TempDir()
	inv := open(t, investigate.Config{Home: home, Researchers: []investigate.Researcher{command(t, "far", "A zanthium plant flowers in June.")}})
	_, hash, err := inv.Approve(t.Context(), "far")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(hash, hash[7:], strings.Repeat("0", 64))
	pins := fmt.Sprintf(`{"version":1,"pins":{"far":%q}}`, other)
	if err := os.WriteFile(filepath.Join(home, "pins.json"), []byte(pins), 0o600); err != nil {
		t.Fatal(err)
	}
	const question = "When does the zanthium plant flower?"
	if res := ask(t, inv, question); len(res.Citations) > 0 || len(res.Gaps) == 0 {
		t.Errorf("it was asked all the same: %+v", res)
	}
	if before, after, err := inv.Approve(t.Context(), "far"); before != other || after != hash || err != nil {
		t.Errorf("approved %s for %s: %v", after, before, err)
	}
	if res := ask(t, inv, question); len(res.Citations) == 0 {
		t.Errorf("it is not asked after approval: %+v", res.Gaps)
	}
}

func TestRefusesWhatCannotWork(t *testing.T) {
	good := value("near", "x")
	with := func(edit func(*investigate.Researcher)) []investigate.Researcher {
		r := good
		edit(&r)
		return []investigate.Researcher{r}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for name, tc := range map[string]struct {
		cfg  investigate.Config
		code marchwarden.Code
		part string
	}{
		"no home":       {investigate.Config{Embedded: true}, marchwarden.CodeInvalid, "Home"},
		"home a file":   {investigate.Config{Home: file, Embedded: true}, marchwarden.CodeUnavailable, "not a directory"},
		"nobody":        {investigate.Config{Home: home}, marchwarden.CodeInvalid, "no researcher to ask"},
		"no folder":     {investigate.Config{Home: home, Library: []string{file + "s"}}, marchwarden.CodeInvalid, "does not exist"},
		"parallel":      {investigate.Config{Home: home, Embedded: true, Parallel: -1}, marchwarden.CodeInvalid, "Parallel"},
		"rihlas":        {investigate.Config{Home: home, Embedded: true, MaxRihlas: -1}, marchwarden.CodeInvalid, "MaxRihlas"},
		"deadline":      {investigate.Config{Home: home, Embedded: true, Deadline: -1}, marchwarden.CodeInvalid, "Deadline"},
		"egress":        {investigate.Config{Home: home, Embedded: true, AllowEgress: []string{"web"}}, marchwarden.CodeInvalid, "AllowEgress"},
		"bad name":      {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Name = "Near" })}, marchwarden.CodeInvalid, "Near"},
		"two names":     {investigate.Config{Home: home, Researchers: []investigate.Researcher{good, good}}, marchwarden.CodeInvalid, "two researchers"},
		"taken name":    {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Name = "files" })}, marchwarden.CodeInvalid, "library"},
		"own name":      {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Name = "pi" })}, marchwarden.CodeInvalid, "itself"},
		"no scope":      {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Scope = " " })}, marchwarden.CodeInvalid, "Scope"},
		"no way":        {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Value, r.Evidence = nil, nil })}, marchwarden.CodeInvalid, "exactly one"},
		"two ways":      {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.URL = "http://localhost" })}, marchwarden.CodeInvalid, "exactly one"},
		"evidence":      {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Value, r.Command = nil, []string{"x"} })}, marchwarden.CodeInvalid, "Evidence"},
		"blind trust":   {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Trust = "own" })}, marchwarden.CodeInvalid, "Trust"},
		"negative time": {investigate.Config{Home: home, Researchers: with(func(r *investigate.Researcher) { r.Timeout = -1 })}, marchwarden.CodeInvalid, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			inv, err := investigate.Open(tc.cfg)
			if !errors.Is(err, tc.code) || !strings.Contains(fmt.Sprint(err), tc.part) || inv != nil {
				t.Errorf("%v, %v", inv, err)
			}
		})
	}
}
