package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// sequences want to do something to a terminal, or to deceive its reader. None is
// a code of our own.
var sequences = map[string]string{
	"colour":         "\x1b[35;45m",
	"clear screen":   "\x1b[2J\x1b[H",
	"cursor moves":   "\x1b[5B\x1b[2K\x1b[9C",
	"other screen":   "\x1b[?1049h",
	"report":         "\x1b[6n\x1b[c",
	"window title":   "\x1b]0;owned\a",
	"link":           "\x1b]8;;http://evil.example/\x1b\\",
	"clipboard":      "\x1b]52;c;ZXZpbA==\a",
	"device control": "\x1bP+q544e\x1b\\",
	"APC":            "\x1b_apc\x1b\\",
	"PM":             "\x1b^pm\x1b\\",
	"SOS":            "\x1bXsos\x1b\\",
	"C1 CSI":         "\u009b35m",
	"C1 OSC":         "\u009d0;owned\u009c",
	"C1 bytes":       "\x9b35m\x9d0;owned\x9c",
	"reset":          "\x1bc",
	"save, restore":  "\x1b7\x1b8",
	"end of paste":   "\x1b[201~",
	"overprinting":   "safe\rfake\b\b\b\b\a",
	"bidi override":  "\u202ednekcab\u202c",
	"bidi isolates":  "\u2066\u2067\u2068\u2069\u200f\u061c",
	"zero width":     "\u200b\u200c\u200d\ufeff\u2060\u00ad",
	"tags":           "\U000e0001\U000e0065\U000e007f",
	"vertical":       "\v\f\x7f\x00",
	"open string":    "\x1b]0;",
	"lone escape":    "\x1b",
}

// bazaar is a home full of them, and an app in it.
type bazaar struct {
	t    *testing.T
	root string
	ids  map[string]marchwarden.TraceID // by the name of the sequence in the run
	cut  marchwarden.TraceID            // a run that was cut off
}

func newBazaar(t *testing.T) *bazaar {
	b := &bazaar{t: t, root: t.TempDir(), ids: map[string]marchwarden.TraceID{}}
	traces, err := trace.OpenDir(filepath.Join(b.home(), "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer traces.Close()
	blobs, err := blobdir.Open(filepath.Join(b.home(), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	books := filepath.Join(b.home(), "costs.jsonl")
	all := ""
	for _, name := range slices.Sorted(maps.Keys(sequences)) {
		s := sequences[name]
		plant := func(text string) string { return text[:len(text)/2] + s + text[len(text)/2:] }
		b.ids[name] = b.record(traces, blobs, plant, true)
		b.cut = b.record(traces, blobs, plant, false)
		if err := ledger.Append(books, ledger.Entry{Time: time.Now(), TraceID: b.ids[name], Researcher: plant("files"), Question: plant("What?"), Model: plant("model"), TokensUsed: 5}); err != nil {
			t.Fatal(err)
		}
		all += " word " + s
	}
	name := strings.NewReplacer("/", "", "\x00", "", " word ", "").Replace(all)
	text := strings.ToValidUTF8(strings.ReplaceAll(all, "\x00", ""), "") // else it would be no text
	write(t, filepath.Join(b.library(), name[:100]+".md"), "Its name is none.\n")
	write(t, filepath.Join(b.library(), "a"+strings.ToValidUTF8(name, "")[:180]+".md"), "# Iron "+text+"\n\nIron chlorosis is a yellowing of leaves"+text+" in soil.\n")
	write(t, filepath.Join(b.home(), "traces", "stray"+name[:40]), "nobody's")
	questions, err := json.Marshal(map[string]any{"id": "q1", "question": "What is iron chlorosis" + strings.ToValidUTF8(all[:200], "") + "?"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.root, "work", "questions.jsonl"), string(questions)+"\n")
	write(t, filepath.Join(b.home(), "config.yaml"), "researchers:\n  - name: lamps\n    scope: "+strconv.QuoteToASCII("lamps of"+all)+"\n    command: [\"/nowhere/lamps\"]\n    off: true\n")
	return b
}

func (b *bazaar) home() string    { return filepath.Join(b.root, "user", ".marchwarden") }
func (b *bazaar) library() string { return filepath.Join(b.root, "library") }

// record writes a run in which every text was planted.
func (b *bazaar) record(traces *trace.Dir, blobs blob.Store, plant func(string) string, whole bool) marchwarden.TraceID {
	b.t.Helper()
	must := func(err error) {
		if b.t.Helper(); err != nil {
			b.t.Fatal(err)
		}
	}
	put := func(content []byte) blob.Ref {
		ref, err := blobs.Put(b.t.Context(), content)
		must(err)
		return ref
	}
	id, at := serve.NewTraceID(), time.Now()
	w, err := traces.Create(id)
	must(err)
	defer w.Close()
	head := trace.Head{Decision: plant("it was decided")}
	researcher := "files" // one that can be resumed
	if whole {
		researcher = plant(researcher)
	}
	must(w.Append(&trace.Start{Head: head, Format: trace.Format, TraceID: id, Researcher: researcher, Mind: plant("mind"), Engine: plant("engine"), Version: plant("v1"), StartedAt: at,
		Request: marchwarden.Request{Question: plant("What is iron chlorosis?"), Context: plant("context")}, Library: []string{plant("notes")}}))
	must(w.Append(&trace.Message{Head: head}))
	must(w.Append(&trace.Search{Head: head, Query: plant("iron")}))
	if !whole {
		return id
	}
	text := plant("Before it stands this.") + "\n" + plant("Iron chlorosis is a yellowing.") + "\n" + plant("After it stands that.")
	excerpt := plant("Iron chlorosis is a yellowing.")
	start := strings.Index(text, excerpt)
	locator := "file:" + plant("notes/iron.md")
	page := fetch.Page{Locator: locator, Title: plant("Iron"), Source: plant("file"), Author: plant("Ann Bee"), MediaType: plant("text/plain"), Text: put([]byte(text)), Raw: put([]byte(text))}
	outcome, err := json.Marshal(map[string]any{"ok": page})
	must(err)
	must(w.Append(&trace.FetchComplete{Head: head, Effect: trace.Effect{OutputID: put(outcome)}, URL: locator, ContentHash: page.Text, RawHash: page.Raw}))
	cited := marchwarden.Citation{Source: plant("file"), Locator: locator, Title: plant("Iron"), RawExcerpt: excerpt, ContentHash: page.Text.String(), Span: &marchwarden.Span{Start: start, End: start + len(excerpt)},
		FetchedAt: &at, Published: plant("2025"), Origin: plant("example.org"), Authority: marchwarden.Authority(plant("high"))}
	side := marchwarden.Side{Locator: locator, RawExcerpt: excerpt, Value: plant("yellow"), Title: plant("Iron"), Published: plant("2025"), Authority: marchwarden.Authority(plant("high")), Researcher: plant("files")}
	claim := plant("Iron chlorosis is a yellowing.")
	res := &marchwarden.Result{TraceID: id, Answer: claim + " [1]\n\n" + plant("# A title") + "\n\n```\n" + plant("code") + "\n```\n\n| a | b |\n|---|---|\n| " + plant("cell") + " | x |\n", Citations: []marchwarden.Citation{cited},
		Claims: []marchwarden.Claim{{Text: claim, Citations: []int{1}, Support: marchwarden.Support(plant("supported"))}}, Warnings: []string{plant("a warning")},
		ShortAnswer:     &marchwarden.ShortAnswer{Text: plant("a yellowing"), Citation: 1, Kind: marchwarden.ShortSpan},
		Closest:         []marchwarden.Closest{{Source: plant("file"), Locator: plant("near.md"), Title: plant("Near"), RawExcerpt: plant("Leaves are green."), Reason: plant("reason")}},
		Gaps:            []marchwarden.Gap{{Topic: plant("topic"), Category: marchwarden.GapCategory(plant("category")), Detail: plant("detail")}, {Topic: plant("topic"), Category: marchwarden.SourceNotFound, Detail: plant("detail")}},
		DiscoveryEvents: []marchwarden.DiscoveryEvent{{Type: marchwarden.DiscoveryType(plant("type")), SuggestedResearcher: plant("web"), Query: plant("query"), Reason: plant("reason"), SourceLocator: plant("locator")}},
		OpenQuestions:   []marchwarden.OpenQuestion{{Question: plant("Why?"), Context: plant("context"), Priority: marchwarden.Priority(plant("high")), SourceLocator: plant("locator")}},
		Rihlas:          []marchwarden.Rihla{{Researcher: plant("files"), Question: plant("What?"), Reason: plant("reason"), Outcome: plant("outcome")}},
		Decisions:       []marchwarden.Decision{{About: plant("gap"), Topic: plant("topic"), Action: marchwarden.Action(plant("flagged")), Reason: plant("reason")}},
		Contradictions:  []marchwarden.Contradiction{{Subject: plant("leaves"), Attribute: plant("colour"), Detail: plant("detail"), A: side, B: side}},
		CostMetadata:    marchwarden.CostMetadata{ModelID: plant("model"), TokensUsed: 5},
	}
	encoded, err := marchwarden.EncodeResult(res)
	must(err)
	must(w.Append(&trace.Complete{Head: head, Result: put(encoded), Citations: 1, TokensUsed: 5}))
	return id
}

// run executes a command as on a terminal with colours, or as on none.
func (b *bazaar) run(terminal bool, args ...string) (stdout, stderr string) {
	var out, errs bytes.Buffer
	env := map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", settings.EnvOf(settings.Embed): settings.EmbedOff}
	for _, service := range []string{"ARXIV_URL", "ARXIV_SITE", "CROSSREF_URL", "OPENALEX_URL", "SEMANTIC_SCHOLAR_URL", "WIKIPEDIA_URL"} {
		env[service] = "http://127.0.0.1:1"
	}
	a := (&app{stdin: strings.NewReader(""), stdout: &out, Host: network.Host{Stderr: &errs, Env: lookup(env), Environ: os.Environ, Self: selfPath, Dir: filepath.Join(b.root, "work"), UserHome: func() (string, error) { return filepath.Join(b.root, "user"), nil }, Now: time.Now, NewID: serve.NewTraceID}}).ready()
	style := term.Style{}
	if terminal {
		style = term.Style{Color: true, Width: 100}
	}
	a.look = func(io.Writer) term.Style { return style }
	command(b.t.Context(), a, args)
	return out.String(), errs.String()
}

// ours are the codes that we write: colours, and the drawing of frames. Links are package report's to test.
var ours = regexp.MustCompile(`\x1b\[(?:0|[123]|3[1236])(?:;(?:[123]|3[1236]))*m|\x1b\[\?2026h\x1b\[\?7l\r|\x1b\[K\r\n|\x1b\[J\r\n|\x1b\[J(?:\x1b\[[0-9]+A)?\r|\r?\x1b\[\?7h\x1b\[\?2026l|\r\x1b\[J`)

// passed is the first of a text that must not reach a terminal; "" for nothing.
func passed(s string) string {
	for i, r := range s {
		bad := r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Cf, r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") || r == '\u2028' || r == '\u2029'
		if bad {
			return fmt.Sprintf("%q in %q", r, s[max(0, i-60):min(len(s), i+40)])
		}
	}
	return ""
}

// exhibit is how a command is made to show what others wrote; or why it shows nothing
// of the kind.
type exhibit struct {
	runs    [][]string // once; EVIL is an argument with all sequences, and TEXT one that is valid text
	ofRun   [][]string // for every run; ID is its id
	json    [][]string // for every run, on a terminal alone: programs get it as it is
	shows   string     // must be in what the first of them shows, so that it is no error
	nothing string
}

// first is what the command with an index must show.
func (e exhibit) first(i int) string {
	if i > 0 {
		return ""
	}
	return e.shows
}

var exhibits = map[string]exhibit{
	"ask":        {shows: "chlorosis", runs: [][]string{{"ask", "--library", "LIBRARY", "What is iron chlorosis TEXT?"}, {"ask", "--plain", "--library", "LIBRARY", "--verbose", "--researcher", "files", "What is iron chlorosis?"}, {"ask", "--plan", "--library", "LIBRARY", "What is TEXT?"}, {"ask", "--researcher", "EVIL", "what"}}},
	"ui":         {runs: [][]string{{"ui", "--listen", "EVIL"}}},
	"show":       {shows: "chlorosis", json: [][]string{{"show", "--json", "ID"}}, ofRun: [][]string{{"show", "ID"}, {"show", "--verbose", "ID"}}, runs: [][]string{{"show", "EVIL"}, {"show", "CUT"}}},
	"replay":     {shows: "ecided", json: [][]string{{"replay", "--raw", "ID"}}, ofRun: [][]string{{"replay", "ID"}, {"replay", "--rerun", "ID"}}, runs: [][]string{{"replay", "EVIL"}}},
	"verify":     {shows: "citation [1]", ofRun: [][]string{{"verify", "ID"}}, runs: [][]string{{"verify", "EVIL"}}},
	"traces":     {shows: "What", json: [][]string{{"traces", "--json"}}, runs: [][]string{{"traces", "--all", "--limit", "0"}, {"traces", "--status", "EVIL"}}},
	"costs":      {shows: "tokens", runs: [][]string{{"costs"}}},
	"doctor":     {shows: "trace_dir", runs: [][]string{{"doctor", "--verbose"}, {"doctor"}}},
	"resume":     {ofRun: [][]string{{"resume", "ID"}}, runs: [][]string{{"resume", "--plain", "CUT"}, {"resume", "EVIL"}}},
	"drift":      {shows: "on.md", json: [][]string{{"drift", "--json", "ID"}}, ofRun: [][]string{{"drift", "ID"}}},
	"export":     {shows: "chlorosis", json: [][]string{{"export", "--format", "json", "-o", "-", "ID"}}, ofRun: [][]string{{"export", "--format", "md", "-o", "-", "ID"}, {"export", "--format", "bibtex", "-o", "-", "ID"}}, runs: [][]string{{"export", "--force", "-o", "EVIL.html", "last"}, {"export", "--format", "EVIL", "last"}}},
	"import":     {runs: [][]string{{"import", "EVIL.mwz"}}},
	"check":      {runs: [][]string{{"check"}}},
	"gc":         {runs: [][]string{{"gc", "--dry-run", "--keep-days", "1"}, {"gc", "--dry-run", "--run", "CUT"}}},
	"submit":     {runs: [][]string{{"submit", "--file", "WORK/questions.jsonl", "--library", "LIBRARY", "--researcher", "files"}, {"submit", "--file", "EVIL"}}},
	"follow":     {runs: [][]string{{"follow", "EVIL"}, {"follow", "--engine", "EVIL", "last"}}},
	"watch add":  {runs: [][]string{{"watch", "add", "--researcher", "files", "--library", "LIBRARY", "What is iron chlorosis TEXT?"}, {"watch", "add", "--every", "EVIL", "what"}, {"watch", "add", "--notify", "EVIL", "what"}, {"watch", "EVIL"}}},
	"watch list": {shows: "chlorosis", runs: [][]string{{"watch", "list"}}, json: [][]string{{"watch", "list", "--json"}}},
	"watch run":  {runs: [][]string{{"watch", "run", "EVIL"}}}, "watch show": {runs: [][]string{{"watch", "show", "EVIL"}}}, "watch remove": {runs: [][]string{{"watch", "remove", "EVIL"}}},
	"cancel":          {runs: [][]string{{"cancel", "EVIL"}}},
	"hub":             {runs: [][]string{{"hub", "--listen", "EVIL"}}},
	"worker":          {runs: [][]string{{"worker", "--engine", "EVIL"}}},
	"cluster status":  {runs: [][]string{{"cluster", "status", "--engine", "EVIL"}}},
	"cluster key add": {runs: [][]string{{"cluster", "key", "add", "EVIL"}}}, "cluster key list": {runs: [][]string{{"cluster", "key", "list", "--keys", "EVIL"}}}, "cluster key remove": {runs: [][]string{{"cluster", "key", "remove", "EVIL"}}},
	"library add":         {shows: "1 document ", runs: [][]string{{"library", "add", "LIBRARY"}, {"library", "add", "EVIL"}}},
	"library list":        {shows: "library", runs: [][]string{{"library", "list"}}},
	"library search":      {shows: "Iron", runs: [][]string{{"library", "search", "--library", "LIBRARY", "iron chlorosis"}, {"library", "search", "--library", "LIBRARY", "EVIL"}}},
	"library remove":      {runs: [][]string{{"library", "remove", "EVIL"}}},
	"researchers":         {shows: "lamps of", runs: [][]string{{"researchers"}}},
	"researchers approve": {runs: [][]string{{"researchers", "approve", "EVIL"}}}, "researchers check": {runs: [][]string{{"researchers", "check", "/nowhere/EVIL"}}}, "researchers login": {runs: [][]string{{"researchers", "login", "EVIL"}}},
	"token add": {runs: [][]string{{"token", "add", "EVIL"}}}, "token list": {runs: [][]string{{"token", "list"}}}, "token remove": {runs: [][]string{{"token", "remove", "EVIL"}}},
	"mcp config": {runs: [][]string{{"mcp", "config", "EVIL"}}}, "mcp ping": {runs: [][]string{{"mcp", "ping", "EVIL"}}},
	"schema": {runs: [][]string{{"schema", "EVIL"}}}, "man": {nothing: "it writes files with words of our own"}, "version": {nothing: "it shows what was built"}, "licenses": {nothing: "it prints a file of the program"}, "help": {runs: [][]string{{"help", "EVIL"}}},
	"serve files": {runs: [][]string{{"serve", "files", "--http", "EVIL"}}}, "serve web": {runs: [][]string{{"serve", "web", "--http", "EVIL"}}}, "serve arxiv": {runs: [][]string{{"serve", "arxiv", "--http", "EVIL"}}},
	"serve database": {runs: [][]string{{"serve", "database", "--db", "EVIL"}}}, "serve pi": {runs: [][]string{{"serve", "pi", "--http", "EVIL"}}},
	"completion bash": {nothing: "it is a script of cobra's"}, "completion fish": {nothing: "it is a script of cobra's"}, "completion powershell": {nothing: "it is a script of cobra's"}, "completion zsh": {nothing: "it is a script of cobra's"},
}

// TestHostileSequences leads everything that wants to be more than text through every
// command, on a terminal and on none: nothing of it passes. A command that is not in the
// table fails.
func TestHostileSequences(t *testing.T) {
	t.Parallel()
	if len(sequences) < 12 {
		t.Fatal("too few")
	}
	b := newBazaar(t)
	evil := ""
	for _, name := range slices.Sorted(maps.Keys(sequences)) {
		evil += sequences[name]
	}
	evil = strings.ReplaceAll(evil, "\x00", "") // no argument can hold it
	args := func(template []string, id marchwarden.TraceID) []string {
		fill := strings.NewReplacer("EVIL", evil, "TEXT", strings.ToValidUTF8(evil, ""), "LIBRARY", b.library(), "WORK", filepath.Join(b.root, "work"), "CUT", b.cut.String(), "ID", id.String())
		out := make([]string, len(template))
		for i, word := range template {
			out[i] = fill.Replace(word)
		}
		return out
	}
	ran, shown := 0, 0
	try := func(t *testing.T, template []string, id marchwarden.TraceID, what, shows string) {
		t.Helper()
		for _, terminal := range []bool{true, false} {
			stdout, stderr := b.run(terminal, args(template, id)...)
			for stream, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
				ran++
				shown += len(text)
				if terminal {
					text = ours.ReplaceAllString(text, "\n")
				}
				if found := passed(text); found != "" {
					t.Errorf("%q %s, terminal %v, %s: %s", template, what, terminal, stream, found)
				}
			}
			if all := ours.ReplaceAllString(stdout+stderr, ""); all == "" || !strings.Contains(all, shows) {
				t.Errorf("%q %s shows no %q: %.500q", template, what, shows, all)
			}
		}
	}
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "marchwarden ")
		e, known := exhibits[name]
		seen[name] = true
		if cmd.HasSubCommands() && !known {
			return // it only holds others
		}
		if !known || len(e.runs)+len(e.ofRun) == 0 && e.nothing == "" {
			t.Errorf("%q is not in the table of commands", name)
			return
		}
		t.Run(name, func(t *testing.T) {
			for what, id := range b.ids {
				for i, template := range e.ofRun {
					try(t, template, id, what, e.first(i))
				}
			}
			for what, id := range b.ids {
				for _, template := range e.json {
					stdout, _ := b.run(true, args(template, id)...)
					if found := passed(stdout); found != "" || !strings.Contains(stdout, `":`) {
						t.Errorf("%q %s: %s in %.200q", template, what, found, stdout)
					}
				}
			}
			for i, template := range e.runs {
				try(t, template, marchwarden.TraceID{}, "", e.first(i+len(e.ofRun)))
			}
		})
	}
	root := newRoot(world(t, nil))
	root.InitDefaultHelpCmd()
	walk(root)
	for name := range exhibits {
		if !seen[name] {
			t.Errorf("there is no command %q", name)
		}
	}
	t.Logf("%d sequences, %d streams, %d bytes shown", len(sequences), ran, shown)
}

// What the test looks for is found.
func TestPassed(t *testing.T) {
	for name, s := range sequences {
		if passed(ours.ReplaceAllString("a"+s+"b", "\n")) == "" {
			t.Errorf("%s passes", name)
		}
	}
	if got := passed(ours.ReplaceAllString("a\x1b[1;36mb\x1b[0m\x1b[?2026h\x1b[?7l\rmarchwarden\x1b[K\r\nx\x1b[J\x1b[3A\r\x1b[?7h\x1b[?2026l\n", "\n")); got != "" {
		t.Error(got)
	}
}
