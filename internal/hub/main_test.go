package hub_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
)

// storeVariable makes the test binary a hub on a folder, until its stdin ends.
const storeVariable = "MARCHWARDEN_TEST_HUB_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(storeVariable); dir != "" {
		os.Exit(runHub(dir))
	}
	datatest.Abreast(8)
	datatest.InMemory()
	os.Exit(m.Run())
}

func runHub(dir string) int {
	h, err := hub.Start(hub.Config{Store: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("hub", h.Address())
	_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	return 0
}

// startProcess starts a hub as a process of its own and returns what it says first.
func startProcess(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), storeVariable+"="+dir)
	cmd.Stderr = os.Stderr
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
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the process said %q: %v", line, err)
	}
	return cmd, strings.TrimSpace(line)
}
