package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// old is a home that an earlier version of the program left, with its clock.
type old struct {
	t       *testing.T
	program string
	home    string
}

// unpack makes a copy of a home in testdata/formats. first.zip was made by the first
// version that had 'ask': three runs of one researcher, and one that was cut off.
// last.zip was made just before traces got checksums: an investigation, a run of one
// researcher, and an investigation that was cut off. before.zip was made by the version
// before package run became the one reader of a record: an investigation, also as a signed
// bundle, two runs of one researcher, one of them ended at a cap, and an investigation
// that was cut off with its rihla.
func unpack(t *testing.T, name string) old {
	t.Helper()
	home := t.TempDir()
	archive, err := zip.OpenReader(filepath.Join("testdata", "formats", name))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, filepath.FromSlash(f.Name))
		write(t, path, string(data))
		if err := os.Chtimes(path, f.Modified, f.Modified); err != nil {
			t.Fatal(err)
		}
	}
	return old{t: t, program: asMarchwarden(t), home: home}
}

// run runs a command there and returns what it printed and its exit code.
func (o old) run(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	cmd := exec.Command(o.program, args...)
	cmd.Env = []string{"HOME=" + o.t.TempDir(), "MARCHWARDEN_HOME=" + o.home, "PATH=" + filepath.Dir(o.program), "GOCOVERDIR=" + o.t.TempDir()}
	cmd.Dir = o.t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		o.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// wants runs a command that must end with a code and print something.
func (o old) wants(code int, text string, args ...string) {
	o.t.Helper()
	stdout, stderr, got := o.run(args...)
	if got != code || !strings.Contains(stdout+stderr, text) {
		o.t.Errorf("%s: exit code %d, want %d with %q\n%s%s", strings.Join(args, " "), got, code, text, stdout, stderr)
	}
}

func (o old) runs() []run.Entry {
	o.t.Helper()
	stdout, stderr, code := o.run("traces", "--json", "--limit", "0", "--all")
	var infos []run.Entry
	if err := json.Unmarshal([]byte(stdout), &infos); err != nil || code != 0 {
		o.t.Fatalf("traces: %v\n%s", err, stderr)
	}
	return infos
}

// What an earlier version left can be listed, shown, verified, run again (or it is
// said why not), checked, exported and cleared by this one, and this one's runs
// stand beside it.
func TestHomesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		complete, other int
		rerun           int    // exit code
		said            string // by a rerun
		torn            bool
	}{
		{"first.zip", 3, 1, exitFailed, "the run was made by extractive/1; this program has extractive/4", true},
		{"last.zip", 6, 1, exitFailed, "the run was made by extractive/2; this program has extractive/4", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := unpack(t, c.name)
			complete, other := 0, 0
			for _, r := range o.runs() {
				id := r.ID.String()
				if r.Status != run.Complete {
					other++
					if r.Status != run.Interrupted || !r.Resumable {
						t.Errorf("%+v", r)
					}
					continue
				}
				complete++
				o.wants(exitOK, "everything stands", "verify", id)
				o.wants(exitOK, "complete", "replay", id)
				o.wants(c.rerun, c.said, "replay", "--rerun", id)
				o.wants(exitOK, "", "export", id, "-o", filepath.Join(t.TempDir(), "x.mwz"))
			}
			if complete != c.complete || other != c.other {
				t.Errorf("%d complete runs and %d others, want %d and %d", complete, other, c.complete, c.other)
			}
			if c.torn {
				o.wants(exitOK, "traces whose last line a crash tore: 1", "check")
			}
			o.wants(exitOK, "nothing is wrong", "check")
			o.wants(exitOK, "", "costs")
			o.wants(exitOK, "", "ask", "-q", "--embedded", "What is iron chlorosis?")
			before := len(o.runs())
			o.wants(exitOK, "", "gc")
			o.wants(exitOK, "nothing is wrong", "check")
			if after := len(o.runs()); after != before {
				t.Errorf("gc without flags left %d of %d runs", after, before)
			}
			past := time.Now().AddDate(0, 0, -40)
			for _, r := range o.runs() {
				if r.Confidence != nil && strings.Contains(r.Question, "shingles") {
					if err := os.Chtimes(filepath.Join(o.home, "traces", r.ID.String()+".jsonl"), past, past); err != nil {
						t.Fatal(err)
					}
				}
			}
			o.wants(exitOK, "removed: 1 run with 1 trace", "gc", "--keep-days", "30")
			o.wants(exitOK, "nothing is wrong", "check")
			if after := len(o.runs()); after != before-1 {
				t.Errorf("%d of %d runs are left, want one less", after, before)
			}
		})
	}
}

// A run of an earlier version that was cut off goes on in the format that it began with.
func TestAnOldRunGoesOnAsItBegan(t *testing.T) {
	t.Parallel()
	o := unpack(t, "last.zip")
	at := slices.IndexFunc(o.runs(), func(r run.Entry) bool { return r.Resumable })
	id := o.runs()[at].ID.String()
	o.wants(exitOK, "going on after step 8", "resume", "-q", id)
	text, err := os.ReadFile(filepath.Join(o.home, "traces", id+".jsonl"))
	if lines := string(text); err != nil || !strings.Contains(lines, `"format":1,`) || !strings.Contains(lines, `"action":"resume"`) || strings.Contains(lines, `"sum":`) {
		t.Errorf("%v\n%s", err, lines)
	}
	o.wants(exitOK, "everything stands", "verify", id)
	o.wants(exitOK, "is identical", "replay", "--rerun", id)
	o.wants(exitOK, "nothing is wrong", "check")
}

// What the version before this one wrote is read, verified and run again byte by byte; a
// run that was cut off and one that ended at a cap are resumed, and its bundle stands.
func TestHomeOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	o := unpack(t, "before.zip")
	complete := 0
	var cut, capped string
	for _, r := range o.runs() {
		id := r.ID.String()
		switch {
		case r.Resumable:
			cut = id
			continue
		case r.Status == run.Interrupted: // the rihla of that
			continue
		case strings.Contains(r.Question, "ideal crops"):
			capped = id
		}
		complete++
		o.wants(exitOK, "everything stands", "verify", id)
		o.wants(exitOK, "is identical", "replay", "--rerun", id)
		o.wants(exitOK, r.Question, "show", id)
	}
	if complete != 4 || cut == "" || capped == "" {
		t.Fatalf("%d complete runs, one cut off %q, one at a cap %q", complete, cut, capped)
	}
	o.wants(exitOK, "everything stands", "verify", filepath.Join(o.home, "run.mwz"))
	o.wants(exitOK, "going on after step 4", "resume", "-q", cut)
	o.wants(exitOK, "", "resume", "-q", "--budget", "20000", capped)
	for _, id := range []string{cut, capped} {
		o.wants(exitOK, "everything stands", "verify", id)
		o.wants(exitOK, "is identical", "replay", "--rerun", id)
	}
	o.wants(exitOK, "nothing is wrong", "check")
	elsewhere := old{t: t, program: o.program, home: t.TempDir()}
	elsewhere.wants(exitOK, "", "import", filepath.Join(o.home, "run.mwz"))
	for i, r := range elsewhere.runs() {
		if !datatest.Tried(i, 3) {
			continue
		}
		elsewhere.wants(exitOK, "is identical", "replay", "--rerun", r.ID.String())
	}
}

// What a later version wrote is refused, named and left as it is.
func TestHomesOfLaterVersions(t *testing.T) {
	t.Parallel()
	o := unpack(t, "last.zip")
	id := o.runs()[0].ID.String()
	path := filepath.Join(o.home, "traces", id+".jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(data), `"format":1`, `"format":77`, 1)
	write(t, path, later)
	past := time.Now().AddDate(0, 0, -400)
	for _, r := range o.runs() {
		if err := os.Chtimes(filepath.Join(o.home, "traces", r.ID.String()+".jsonl"), past, past); err != nil {
			t.Fatal(err)
		}
	}
	o.wants(exitFailed, "the trace has format 77", "replay", id)
	o.wants(exitFailed, "the trace has format 77", "verify", id)
	o.wants(exitFailed, "format 77", "check")
	o.wants(exitOK, "kept because a trace cannot be read: 1 run", "gc", "--keep-days", "30")
	if got, err := os.ReadFile(path); err != nil || string(got) != later {
		t.Errorf("the trace was changed: %v", err)
	}
}
