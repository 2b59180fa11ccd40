package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// appHere is a program with these settings and no others, and what they come to.
func appHere(t *testing.T, env map[string]string) (*app, *settings.Settings) {
	t.Helper()
	a := system()
	a.stdout, a.Stderr, a.Dir = io.Discard, io.Discard, env["MARCHWARDEN_HOME"]
	a.Env = lookup(env)
	a.Environ = func() []string { return nil }
	a.UserHome = func() (string, error) { return env["MARCHWARDEN_HOME"], nil }
	c, err := a.loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	return a, c
}

// A model that an investigation had merely found is not named to its private members
// when it goes on; one that was named, is.
func TestAFoundModelIsNotNamedToMembers(t *testing.T) {
	t.Parallel()
	a, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": t.TempDir(), "ANTHROPIC_API_KEY": "sk-ant-test"})
	const model = "anthropic/claude-x"
	for _, tt := range []struct {
		chosen marchwarden.Choice
		model  string // of the run
		named  string // to members
		begun  string
	}{
		{marchwarden.Choice{Online: true}, model, "", model},
		{marchwarden.Choice{Online: true, Model: model}, model, model, model},
		{marchwarden.Choice{}, "", "", network.NoModel},
	} {
		inv := &trace.Investigation{}
		for _, name := range settings.Builtin {
			inv.Members = append(inv.Members, dispatch.Member{Name: name})
		}
		o, err := network.Options{}.AsBegun(c, &trace.Start{Researcher: settings.PI, Model: tt.model, Investigation: inv, Choice: &tt.chosen})
		if err != nil {
			t.Fatal(err)
		}
		if o.BegunBy != tt.begun {
			t.Errorf("%v: the run goes on by %q, want %q", tt.chosen, o.BegunBy, tt.begun)
		}
		for _, name := range []string{"files", "database"} {
			part := o.PartFor(name)
			if part.Model != tt.named || part.BegunBy != "" || network.ChooseModel(c, part.Model, false).Name != tt.named {
				t.Errorf("%v: %s in this process has %q, want %q", tt.chosen, name, part.Model, tt.named)
			}
			child, err := a.Child(c, o, name)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(child.Command, "--model") != (tt.named != "") || slices.Contains(child.Command, model) != (tt.named != "") || strings.Contains(strings.Join(child.Env, "\n"), "MARCHWARDEN_MODEL") {
				t.Errorf("%v: %s is started as %q with %q", tt.chosen, name, child.Command, child.Env)
			}
		}
	}
}

// What a run is begun with is recorded as it took effect, wherever it was set, so that
// it means the same in another folder; a password is not.
func TestHowARunWasBegun(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	all := marchwarden.Choice{Researchers: []string{"files", "web"}, AllowEgress: []string{"files"}, Online: true, Embedded: true, Isolate: true, Parallel: 2, MaxRihlas: 9, Model: "ollama/x", Search: "brave,searxng"}
	for name, tt := range map[string]struct {
		env        map[string]string
		have, want marchwarden.Choice
	}{
		"nothing":                  {},
		"a library by setting":     {env: map[string]string{"MARCHWARDEN_LIBRARY": at("papers")}, want: marchwarden.Choice{Library: []string{at("papers")}}},
		"a library by flag":        {env: map[string]string{"MARCHWARDEN_LIBRARY": at("papers")}, have: marchwarden.Choice{Library: []string{"drafts, old", "~/notes"}}, want: marchwarden.Choice{Library: []string{at("drafts, old"), at("notes")}}},
		"a file as database":       {have: marchwarden.Choice{DB: "data/harbour.db"}, want: marchwarden.Choice{DB: at("data/harbour.db")}},
		"a file by setting":        {env: map[string]string{"MARCHWARDEN_DB": "harbour.db"}, want: marchwarden.Choice{DB: at("harbour.db")}},
		"a password":               {have: marchwarden.Choice{DB: "postgres://me:secret@127.0.0.1/harbour"}},
		"a password by setting":    {env: map[string]string{"MARCHWARDEN_DB": "mysql://me:secret@127.0.0.1/harbour"}},
		"a password in the query":  {have: marchwarden.Choice{DB: "postgres://127.0.0.1/harbour?user=me&PASSWORD=secret"}},
		"an address without one":   {have: marchwarden.Choice{DB: "postgres://me@127.0.0.1/harbour"}, want: marchwarden.Choice{DB: "postgres://me@127.0.0.1/harbour"}},
		"lists, numbers, switches": {have: all, want: all},
	} {
		env := map[string]string{"MARCHWARDEN_HOME": home}
		for k, v := range tt.env {
			env[k] = v
		}
		a, c := appHere(t, env)
		choice := network.Options{Choice: tt.have}.Recorded(&a.Host, c)
		if diff := cmp.Diff(&tt.want, choice); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		back, err := network.Options{}.AsBegun(c, &trace.Start{Researcher: "files", Choice: choice})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tt.want.Researcher = "files"
		if diff := cmp.Diff(&tt.want, back.Recorded(&a.Host, c)); diff != "" {
			t.Errorf("%s: what was read back: %s", name, diff)
		}
	}
}

// A server's runs can be resumed as they were begun; the rihlas of an investigation
// are its own affair.
func TestServedRunsAreRecordedAsBegun(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, filepath.Join(home, "papers", "lamp.md"), "The lamp of Port Ellery was lit in 1887.")
	a, c := appHere(t, map[string]string{"MARCHWARDEN_HOME": home, "MARCHWARDEN_LIBRARY": filepath.Join(home, "papers")})
	for _, part := range []bool{false, true} {
		d, err := a.Open(c, network.Options{Choice: marchwarden.Choice{Researcher: "files"}, PartOf: part, Told: func(network.Finished) {}, Warn: func(string) {}}) // as serve does
		if err != nil {
			t.Fatal(err)
		}
		res, err := d.Research(t.Context(), marchwarden.Request{Question: "When was the lamp lit?"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		log, err := d.Records.Traces.Load(res.TraceID)
		if err != nil {
			t.Fatal(err)
		}
		start, err := log.Start()
		if err != nil {
			t.Fatal(err)
		}
		want := &marchwarden.Choice{Researcher: "files", Library: []string{filepath.Join(home, "papers")}}
		if part {
			want = nil
		}
		if diff := cmp.Diff(want, start.Choice); diff != "" || start.PartOf != part {
			t.Errorf("a rihla: %v: %s", part, diff)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// inHome runs a command that must succeed, and decodes the result that it prints.
func inHome(t *testing.T, home string, args ...string) *marchwarden.Result {
	t.Helper()
	code, out, said := runHere(t.Context(), map[string]string{"MARCHWARDEN_HOME": home}, append(args, "-q", "--json")...)
	var res marchwarden.Result
	if err := json.Unmarshal([]byte(out), &res); code != exitOK || err != nil {
		t.Fatalf("%q: exit %d, %v\n%s%s", args, code, err, out, said)
	}
	return &res
}

// dropLines takes away the lines of a file from the n-th on.
func dropLines(t *testing.T, path string, n int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:n], nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The lines of the ledger about a run add up to what it has used, whenever it was
// killed.
func TestTheLedgerAddsUp(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"files", "pi"} {
		home := t.TempDir()
		first := inHome(t, home, "ask", "--researcher", who, "--budget", "1000", "What are ideal crops for a garden in Utah?")
		id := first.TraceID.String()
		adds := func(when string, res *marchwarden.Result, lines int) {
			t.Helper()
			entries, _, err := ledger.Read(filepath.Join(home, "costs.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			n, sum := 0, marchwarden.CostMetadata{}
			for _, e := range entries {
				if e.TraceID == res.TraceID {
					n++
					sum.TokensUsed, sum.IterationsRun, sum.WallTimeSec = sum.TokensUsed+e.TokensUsed, sum.IterationsRun+e.Iterations, sum.WallTimeSec+e.WallTimeSec
				}
			}
			use := res.CostMetadata
			if n != lines || use.TokensUsed == 0 || sum.TokensUsed != use.TokensUsed || sum.IterationsRun != use.IterationsRun || math.Abs(sum.WallTimeSec-use.WallTimeSec) > 0.002 {
				t.Errorf("%s %s: %d lines, want %d, of %+v; the result tells of %+v", who, when, n, lines, sum, use)
			}
		}
		adds("ended at a cap", first, 1)
		second := inHome(t, home, "resume", "--budget", "20000", id)
		adds("went on", second, 2)

		path := filepath.Join(home, "traces", id+".jsonl")
		costs, err := os.ReadFile(filepath.Join(home, "costs.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		told := bytes.Count(costs, []byte("\n"))
		dropLines(t, filepath.Join(home, "costs.jsonl"), told-1) // killed between the end and the ledger
		adds("ended and did not tell", inHome(t, home, "resume", id), 2)
		dropLines(t, filepath.Join(home, "costs.jsonl"), told-1)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Count(data[:bytes.Index(data, []byte(`"go on past the end"`))], []byte("\n"))
		dropLines(t, path, at+3) // killed soon after it went on
		third := inHome(t, home, "resume", id)
		adds("was killed and went on", third, 2)
		if third.CostMetadata.TokensUsed <= first.CostMetadata.TokensUsed {
			t.Errorf("%s: nothing was done with more: %+v", who, third.CostMetadata)
		}
	}
}

// SIGHUP asks for what there is, as SIGINT does; under nohup it says nothing.
func TestSIGHUP(t *testing.T) {
	env := map[string]string{"MARCHWARDEN_HOME": t.TempDir()}
	hup := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("heard", func(t *testing.T) {
		if signal.Ignored(syscall.SIGHUP) {
			t.Skip("these tests run under nohup")
		}
		ctx, stop := interruptible(t.Context())
		hup()
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			t.Fatal("nobody heard it")
		}
		if !errors.Is(context.Cause(ctx), errInterrupted) {
			t.Errorf("%v", context.Cause(ctx))
		}
		code, out, said := runHere(ctx, env, "ask", "-q", "--json", "--researcher", "files", "What is iron chlorosis?")
		stop()
		if code != exitInterrupted || !strings.Contains(out, `"trace_id"`) || !strings.Contains(said, "the result is partial") {
			t.Errorf("exit %d\n%s%s", code, out, said)
		}
	})

	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	ctx, stop := interruptible(t.Context())
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("a signal that was ignored is not any more")
	}
	hup()
	time.Sleep(20 * time.Millisecond)
	if ctx.Err() != nil {
		t.Error("a signal that was ignored has stopped the run")
	}
}

// leaver is a stderr whose reader presses Ctrl-C when it is told something.
type leaver struct {
	bytes.Buffer
	at     string
	cancel context.CancelCauseFunc
	left   bool
}

func (l *leaver) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(l.at)) {
		l.left = true
		l.cancel(errInterrupted)
	}
	return l.Buffer.Write(p)
}

// Ctrl-C when all is written changes nothing.
func TestStoppedWhenAllIsDone(t *testing.T) {
	t.Parallel()
	for at, args := range map[string][]string{"checking every citation": {"--researcher", "files"}, "checking every excerpt": nil} {
		ctx, cancel := context.WithCancelCause(t.Context())
		a, _ := appHere(t, map[string]string{"MARCHWARDEN_HOME": t.TempDir()})
		var out bytes.Buffer
		said := &leaver{at: at, cancel: cancel}
		a.stdin, a.stdout, a.Stderr = strings.NewReader(""), &out, said
		code := command(ctx, a, append(append([]string{"ask", "--json", "--json-events"}, args...), "What is iron chlorosis?"))
		cancel(nil)
		var res marchwarden.Result
		if err := json.Unmarshal(out.Bytes(), &res); !said.left || code != exitOK || err != nil || len(res.Citations) == 0 || res.CostMetadata.BudgetExhausted {
			t.Errorf("%q: left: %v, exit %d, %v\n%s%s", args, said.left, code, err, out.String(), said.String())
		}
	}
}
