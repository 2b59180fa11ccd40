package client

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programMode is the variable that says which program a process of these tests is.
const programMode = "MARCHWARDEN_CHILD"

func childMain() {
	switch os.Getenv(programMode) {
	case "echo":
		dir, _ := os.Getwd()
		fmt.Println(strings.Join(os.Environ(), ","), dir)
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "parent": // of a deaf one, whose pid it tells
		p, err := startProcess(Target{Command: []string{os.Args[0]}, Env: []string{programMode + "=deaf"}})
		if err != nil {
			panic(err)
		}
		_, _ = io.ReadFull(p.Out, make([]byte, 5))
		fmt.Println(p.cmd.Process.Pid)
		time.Sleep(time.Minute)
	case "noisy":
		for i := range 100_000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		fmt.Fprint(os.Stderr, "last\n \n")
		os.Exit(4)
	case "parting": // says a lot while it goes
		fmt.Print(strings.Repeat("x", 1<<20))
	}
}

func run(t *testing.T, what string, stderr io.Writer) *process {
	t.Helper()
	p, err := startProcess(Target{Command: []string{os.Args[0]}, Dir: os.TempDir(), Env: []string{programMode + "=" + what}, Stderr: stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func TestEnvironmentAndFolderAreWhatIsGiven(t *testing.T) {
	p := run(t, "echo", nil)
	if p.State() != "" {
		t.Errorf("state is %q", p.State())
	}
	fmt.Fprintln(p.In, "and back")
	p.In.Close()
	out, err := io.ReadAll(p.Out)
	want := programMode + "=echo " + os.TempDir() + "\nand back\n"
	if err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	<-p.exited
	if p.State() != "exit status 0" {
		t.Errorf("state is %q", p.State())
	}
}

func TestStopIsFirm(t *testing.T) {
	p := run(t, "deaf", nil)
	if _, err := io.ReadFull(p.Out, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p.Stop()
	if d := time.Since(start); d > 5*time.Second || p.State() != "signal: killed" {
		t.Errorf("it took %v and ended with %q", d, p.State())
	}
	p.Stop()
}

func TestStandardErrorIsReadAndKeptInPart(t *testing.T) {
	p := run(t, "noisy", failing{})
	<-p.exited
	if p.LastWords() != "last" || p.State() != "exit status 4" || len(p.tail.kept) > tailBytes {
		t.Errorf("last words %q, state %q, %d bytes kept", p.LastWords(), p.State(), len(p.tail.kept))
	}
}

// failing is a writer that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestPartingWordsAreWhole(t *testing.T) {
	p := run(t, "parting", nil)
	out, err := io.ReadAll(p.Out)
	if err != nil || len(out) != 1<<20 {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}

func TestStartFails(t *testing.T) {
	for _, argv := range [][]string{{""}, {"/no/such/program"}} {
		if p, err := startProcess(Target{Command: argv}); err == nil {
			p.Stop()
			t.Errorf("%q was started", argv)
		}
	}
}
