package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// A flag of a list may be given several times; of another the last one counts.
func TestSettingFlags(t *testing.T) {
	flags := newHub(world(t, nil)).Flags()
	if err := flags.Parse([]string{"--routes", "a:1,b:1", "--routes", "c:1", "--name", "x", "--name", "y"}); err != nil {
		t.Fatal(err)
	}
	said := settingFlags(flags)
	if routes, name := said[settings.HubRoutes].Text, said[settings.HubName].Text; routes != "a:1,b:1,c:1" || name != "y" {
		t.Errorf("--routes say %q, and --name %q", routes, name)
	}
}

func TestExitCode(t *testing.T) {
	stopped, stop := context.WithCancelCause(context.Background())
	stop(errInterrupted)
	ended, end := context.WithCancel(context.Background())
	end()
	canceled := marchwarden.Wrap(context.Canceled, marchwarden.CodeCanceled, "index")
	tests := []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{context.Background(), errors.New("anything"), exitFailed},
		{context.Background(), marchwarden.Errorf(marchwarden.CodeCorrupt, "x"), exitFailed},
		{context.Background(), invalid("--x", "", "y"), exitUsage},
		{context.Background(), errors.Join(invalid("--x", "", "y"), errors.New("z")), exitUsage},
		{stopped, canceled, exitInterrupted},
		{stopped, fmt.Errorf("a: %w", errInterrupted), exitInterrupted},
		{stopped, errors.New("the disk is full"), exitFailed},
		{ended, canceled, exitFailed},
	}
	for _, tt := range tests {
		if got := exitCode(tt.ctx, tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

// TestEveryCommandStatesItsExitCodes walks the whole tree. No line of prose is too
// wide for a terminal.
func TestEveryCommandStatesItsExitCodes(t *testing.T) {
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		seen++
		for _, want := range []string{"EXIT STATUS", "\n  0 ", "\n  1 ", "\n  2 "} {
			if !strings.Contains(cmd.Long, want) {
				t.Errorf("the help of %q has no %q", cmd.CommandPath(), want)
			}
		}
		for line := range strings.Lines(cmd.Long) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && cmd.Name() != "completion" && (!cmd.HasParent() || cmd.Parent().Name() != "completion") {
				t.Errorf("the help of %q has a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		if cmd.Short == "" {
			t.Errorf("%q has no short help", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(world(t, nil)))
	if seen < 20 {
		t.Errorf("only %d commands", seen)
	}
}

// TestEightProcesses has eight processes ask at once in one fresh home: nothing
// is torn and nothing is lost.
func TestEightProcesses(t *testing.T) {
	t.Parallel()
	const processes = 8
	questions := 1
	if datatest.Full() {
		questions = 3
	}
	program := asMarchwarden(t)
	home, coverage := t.TempDir(), t.TempDir()
	notes := filepath.Join(home, "notes")
	for i := range 30 {
		write(t, filepath.Join(notes, fmt.Sprintf("n%d.md", i)), fmt.Sprintf("# Bed %d\n\nBed %d of the garden grows carrots and beans of kind %d.\n", i, i, i))
	}
	marchwardenCmd := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + filepath.Dir(program), "GOCOVERDIR=" + coverage}
		cmd.Dir = home
		return cmd
	}
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			for q := range questions {
				args := []string{"ask", "-q", "--json", fmt.Sprintf("What does bed %d grow in the garden?", i*questions+q)}
				if i%2 == 0 {
					args = append(args, "--library", notes)
				}
				var stderr bytes.Buffer
				cmd := marchwardenCmd(args...)
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil || stderr.Len() > 0 {
					t.Errorf("process %d: %v\n%s", i, err, stderr.String())
				}
				if _, err := marchwarden.DecodeResult(out); err != nil {
					t.Errorf("process %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	entries, bad, err := ledger.Read(filepath.Join(home, ".marchwarden", "costs.jsonl"))
	if err != nil || len(bad) != 0 || len(entries) != processes*questions {
		t.Errorf("%d entries in the ledger, %d bad, %v", len(entries), len(bad), err)
	}
	out, err := marchwardenCmd("traces", "--json", "--limit", "0").Output()
	if err != nil {
		t.Fatal(err)
	}
	var runs []run.Entry
	if err := json.Unmarshal(out, &runs); err != nil || len(runs) != processes*questions {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		if r.Status != run.Complete {
			t.Errorf("run %s is %s: %s", r.ID, r.Status, r.Problem)
		}
		for _, args := range [][]string{{"verify", r.ID.String()}, {"replay", "--rerun", r.ID.String()}} {
			if out, err := marchwardenCmd(args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
	}
}

// TestAServerThatIsToldToEndHasNotFailed ends a serving process by a signal.
func TestAServerThatIsToldToEndHasNotFailed(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(program)
	cmd.Args = []string{"marchwarden", "serve", "files"}
	cmd.Env = []string{"HOME=" + home, "GOCOVERDIR=" + t.TempDir()}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	if _, err := in.Write([]byte(hello + "\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it serves
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.Contains(stderr.String(), "error") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}

// stubborn is a program that does not end when it should.
func stubborn() {
	ctx, _ := interruptible(context.Background())
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	select {}
}

// TestSecondSignalEndsTheProgram whatever it is doing.
func TestSecondSignalEndsTheProgram(t *testing.T) {
	cmd := exec.Command("stubborn")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"ready", errInterrupted.Error()} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("%q, want %q", lines.Text(), want)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	_ = cmd.Wait() // its exit code says how it ended
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	a := &app{Host: network.Host{Now: func() time.Time { return now }}}
	tests := map[string]time.Time{
		"":           {},
		"2026-11-01": time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		"7d":         now.AddDate(0, 0, -7),
		"90m":        now.Add(-90 * time.Minute),
	}
	for s, want := range tests {
		if got, err := since(a, s); err != nil || !got.Equal(want) {
			t.Errorf("since(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"d", "-1d", "-1h", "yesterday", "2026-13-01", "1.5d", "99999d"} {
		if _, err := since(a, s); !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("since(%q): %v", s, err)
		}
	}
}

func TestKeptFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folders")
	paths := []string{"/a/b", "/a b/ü", "/z\nq"}
	var wg sync.WaitGroup
	for range 4 {
		for _, p := range paths {
			wg.Go(func() {
				if err := network.KeepFolder(dir, p); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	write(t, filepath.Join(dir, "foreign.path"), "/etc")
	write(t, filepath.Join(dir, ".new-123"), "/etc")
	got, err := network.KeptFolders(dir)
	if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", []string{"/a b/ü", "/a/b", "/z\nq"}) {
		t.Errorf("kept %q, %v", got, err)
	}
	if err := network.ForgetFolder(dir, "/a/b"); err != nil {
		t.Error(err)
	}
	if err := network.ForgetFolder(dir, "/a/b"); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("forgetting twice: %v", err)
	}
}

// TestNewID: ids are new, and sort by time.
func TestNewID(t *testing.T) {
	last := ""
	for range 1000 {
		id := serve.NewTraceID().String()
		if id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		last = id
	}
}

// TestDeliverPrintsWhenTheFileFails: an answer that took its time is not lost
// because the file beside it cannot be written.
func TestDeliverPrintsWhenTheFileFails(t *testing.T) {
	a := world(t, nil)
	var stdout bytes.Buffer
	a.stdout, a.json = &stdout, true
	o := askOptions{out: filepath.Join(t.TempDir(), "gone", "r.json")}
	err := deliver(a, o, outcome{res: &marchwarden.Result{Answer: "Peas grow in March."}})
	if err == nil {
		t.Error("no error though the file was not written")
	}
	if !strings.Contains(stdout.String(), "Peas grow in March.") {
		t.Errorf("the answer was not printed: %q", stdout.String())
	}
}

// asMarchwarden is this test binary under the name that makes it the program: an
// investigator starts its researchers by it.
func asMarchwarden(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "marchwarden")
	if err := os.Symlink(program, path); err != nil {
		t.Skip("no links on this file system: ", err)
	}
	return path
}
