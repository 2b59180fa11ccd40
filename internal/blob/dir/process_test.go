//go:build unix

package dir

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// The test binary runs itself as the writers of these tests: roleEnv says what
// to do, storeEnv where, and output is one line per acknowledged blob.
const (
	roleEnv  = "BLOB_DIR_TEST_ROLE"
	storeEnv = "BLOB_DIR_TEST_STORE"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Getenv(storeEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role, path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	last := 100
	switch {
	case role == "endless":
		last = 1 << 30
	case role == "unprivileged" && os.Geteuid() == 0:
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	for i := range last {
		ref, err := s.Put(context.Background(), []byte(line(role, i)))
		if err != nil {
			return err
		}
		fmt.Println(ref)
	}
	return nil
}

// line is the content of a writer's i-th blob; the even ones are common to all
// writers. Lengths run from a few bytes to several pages.
func line(role string, i int) string {
	if i%2 == 0 {
		role = "all"
	}
	return strings.Repeat(fmt.Sprintf("%s %d ", role, i), 1+i*i)
}

func writer(role, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, storeEnv+"="+path)
	return cmd
}

func TestEightProcessesShareOneStore(t *testing.T) {
	path := t.TempDir() + "/new/store" // they also race to create it
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			out, err := writer(fmt.Sprint("writer", i), path).CombinedOutput()
			if err != nil {
				return fmt.Errorf("writer %d: %w: %s", i, err, out)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	want := 0
	for i := range 100 {
		wantContent(t, s, blob.Of([]byte(line("all", i&^1))), line("all", i&^1))
		if i%2 == 0 {
			want++
			continue
		}
		for w := range 8 {
			want++
			content := line(fmt.Sprint("writer", w), i)
			wantContent(t, s, blob.Of([]byte(content)), content)
		}
	}
	if got := tree(t, path); len(got) != want {
		t.Errorf("the store has %d files, want %d and no leftovers", len(got), want)
	}
}

func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	for acked := range 12 {
		path := t.TempDir()
		cmd := writer("endless", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var refs []blob.Ref
		for lines := bufio.NewScanner(out); lines.Scan(); {
			ref, err := blob.Parse(lines.Text())
			if err != nil {
				t.Fatal(err)
			}
			if refs = append(refs, ref); len(refs) == acked+1 {
				_ = cmd.Process.Kill() // then read on to the end of what was acknowledged
			}
		}
		_ = cmd.Wait() // it was killed
		if len(refs) <= acked {
			t.Fatalf("the writer stopped by itself after %d blobs", len(refs))
		}
		s := open(t, path)
		for _, ref := range refs {
			if _, err := s.Get(context.Background(), ref); err != nil {
				t.Errorf("acknowledged blob: %v", err)
			}
		}
		err = s.Files(context.Background(), func(file blob.File) error {
			if file.Leftover {
				return nil
			}
			_, err := s.Get(context.Background(), file.Ref)
			return err
		})
		if err != nil {
			t.Errorf("after a kill: %v", err)
		}
	}
}

// A store that cannot be written to says so, with its place and the blob. The
// writer gives up root first, if it has it, for root may write anywhere.
func TestUnwritableStore(t *testing.T) {
	path := t.TempDir()
	open(t, path)
	if err := os.Chmod(path+"/"+digestDir, 0o500); err != nil {
		t.Fatal(err)
	}
	out, err := writer("unprivileged", path).CombinedOutput()
	if err == nil {
		t.Fatalf("the writer succeeded: %s", out)
	}
	ref := blob.Of([]byte(line("unprivileged", 0)))
	for _, want := range []string{"permission denied", path, ref.String()} {
		if !strings.Contains(string(out), want) {
			t.Errorf("error %q does not contain %q", out, want)
		}
	}
	if got := tree(t, path); len(got) != 0 {
		t.Errorf("files left behind: %v", got)
	}
}
