package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// folders keeps the folders of a suite on disk, and asks them by starting the program as
// a user does: ask --library. It has a home folder of its own, so that nothing of the
// user's is searched and the index lasts for the run.
type folders struct {
	program, home string
	env           []string
	args          []string // of a question, before the folder
	free          bool     // no model is paid
	scratch       bool     // the home folder is removed in the end
}

var _ eval.Folders = (*folders)(nil)

// productPath finds the program that folders are asked with: the one that is named, the
// one beside the lab, or the one in PATH.
func productPath(named string) (string, error) {
	const name = "marchwarden"
	if named == "" {
		if self, err := os.Executable(); err == nil {
			beside := filepath.Join(filepath.Dir(self), name)
			if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
				return beside, nil
			}
		}
		named = name
	}
	path, err := exec.LookPath(named)
	if err == nil {
		path, err = filepath.Abs(path) // it is started in another folder
	}
	if err != nil {
		return "", invalid("--program", "build it: go build -o dist/ ./cmd/marchwarden", "%q cannot be started: %v", named, err)
	}
	return path, nil
}

// deskFor makes the desk of one suite, and what asks folders where it needs that.
func (b *bench) deskFor(o runOptions, s eval.Suite, home string) (*evaldesk.Desk, *kept, error) {
	if !s.OnDisk {
		return b.desk(o, home)
	}
	bare := o // the asked program keeps its own records
	bare.traces, bare.tracesGiven, bare.researcher = false, true, researcher.FilesName
	d, k, err := b.desk(bare, "")
	if err != nil {
		return nil, nil, err
	}
	k.folders, err = b.openFolders(o, home)
	return d, k, err
}

// openFolders makes the home folder of one suite. Where traces are kept, it is at path.
func (b *bench) openFolders(o runOptions, path string) (f *folders, err error) {
	f = &folders{program: o.program, free: b.model == nil, scratch: !b.keepsTraces(o)}
	if f.scratch {
		f.home, err = os.MkdirTemp("", "marchwarden-lab-")
	} else if f.home, err = filepath.Abs(path); err == nil {
		err = durable.MakeDir(f.home)
	}
	if err != nil {
		return nil, errors.Join(marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a folder to ask in"), f.close())
	}
	f.env = b.folderEnv(o, f.home)
	f.args = []string{"ask", "--quiet", "--json", "--depth", o.depth}
	if o.model != "" {
		f.args = append(f.args, "--model", o.model)
	}
	if o.researcherGiven {
		f.args = append(f.args, "--researcher", o.researcher)
	}
	return f, nil
}

// folderSettings are the settings that the asked program shares with this one: those of
// models and vectors, and none that would have it search anything else.
var folderSettings = []string{
	settings.Embed, settings.AnthropicKey, settings.AnthropicURL, settings.OpenAIKey, settings.OpenAIURL, settings.OpenRouterKey, settings.GeminiKey, settings.OllamaHost,
}

// folderEnv is the environment of the asked program.
func (b *bench) folderEnv(o runOptions, home string) []string {
	env := []string{settings.EnvOf(settings.Home) + "=" + home}
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range folderSettings {
		if b.config.Given(name) {
			env = append(env, settings.EnvOf(name)+"="+b.config.Text(name))
		}
	}
	if o.noVectors {
		env = append(env, settings.EnvOf(settings.Embed)+"="+settings.EmbedOff)
	}
	if b.model != nil { // what is paid is in the user's ledger
		env = append(env, settings.EnvOf(settings.Ledger)+"="+b.config.Text(settings.Ledger))
	}
	return env
}

// Write puts documents on disk. They look older than they are: of a file that changed just
// now, an index cannot tell whether it changes again.
func (f *folders) Write(ctx context.Context, name string, docs eval.Docs) (string, error) {
	dir := filepath.Join(f.home, "documents", name)
	if err := durable.MakeDir(dir); err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the folder %s", name)
	}
	long := evaldesk.Today().Add(-24 * time.Hour)
	for doc, text := range docs {
		path := filepath.Join(dir, doc)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, long, long)); err != nil {
			return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the folder %s", name)
		}
	}
	_, err := f.run(ctx, "library", "search", "--library", dir, "--", name) // makes the index
	return dir, err
}

// Ask asks a folder and charges what it cost.
func (f *folders) Ask(ctx context.Context, dir, question string) ([]byte, error) {
	out, err := f.run(ctx, append(slices.Clone(f.args), "--library", dir, "--", question)...)
	if err != nil {
		return nil, err
	}
	var res struct {
		Cost  marchwarden.CostMetadata `json:"cost_metadata"`
		Trace string                   `json:"trace_id"`
	}
	if err := json.Unmarshal(out, &res); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the result")
	}
	s := eval.Spent{Tokens: res.Cost.TokensUsed}
	if f.free {
		s.USD = new(float64)
	}
	if !f.scratch {
		s.Trace = res.Trace
	}
	eval.Charge(ctx, s)
	return out, nil
}

// run starts the program.
func (f *folders) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env, cmd.Dir = f.env, f.home
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil: // a partial answer is no measure
		return nil, ctx.Err()
	case err != nil:
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "ask a folder: %.400s", term.CleanLine(stderr.String()))
	}
	return out, nil
}

// close removes a home folder that is not kept.
func (f *folders) close() error {
	if f == nil || !f.scratch {
		return nil
	}
	return os.RemoveAll(f.home)
}

// details collects the details of cases for --details.
type details struct {
	path  string // "" for nowhere
	mu    sync.Mutex
	lines map[string]any // by case
}

// taker is what a suite puts details into.
func (d *details) taker(held bool) eval.Details {
	if d.path == "" {
		return eval.Details{}
	}
	d.lines = map[string]any{}
	return eval.Details{Held: held, Add: func(id string, details any) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.lines[id] = details
	}}
}

// write writes a line for each case, by its id.
func (d *details) write() error {
	if d.path == "" {
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for _, id := range slices.Sorted(maps.Keys(d.lines)) {
		if err := enc.Encode(d.lines[id]); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the details")
		}
	}
	return write(d.path, buf.Bytes())
}

// suits refuses flags that are not for the chosen suites.
func (o runOptions) suits(chosen []eval.Suite) error {
	for _, s := range chosen {
		switch {
		case o.part != "" && len(s.Parts) == 0:
			return invalid("--part", "leave it out to run all", "the suite %s has no parts", s.Name)
		case o.part != "" && !slices.Contains(s.Parts, o.part):
			return invalid("--part", "leave it out to run all", "must be all, %s, not %.40q", strings.Join(s.Parts, ", "), o.part)
		case o.details != "" && (!s.OnDisk || len(chosen) > 1):
			return invalid("--details", "", "is for the suite folders alone")
		case o.details == "" && o.heldAnswers:
			return invalid("--held-answers", "", "is for --details")
		}
	}
	return nil
}
