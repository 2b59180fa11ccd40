//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// hatch is what must come out of no file.
const hatch = "CANARY-5b1f7d2e-do-not-read"

// straying are ids that are none: ways to other files. Each is tried with the names of
// files that are there.
func straying(home string) []string {
	forms := []string{
		"../%s", "../../%s", "../../../%s", "../../../../../../../../../../%s", "./../%s", "x/../../%s", "..//%s", ".//..//%s", "/../%s",
		"..%%2f%s", "%%2e%%2e%%2f%s", "%%2e%%2e/%s", "..%%252f%s", "%%252e%%252e%%252f%s", "..%%c0%%af%s", "..%%c1%%9c%s",
		`..\%s`, `..\..\%s`, "..%%5c%s", "..\x00/%s", "../%s\x00", "%s\x00.jsonl", "%%00../%s",
		"\u2024\u2024/%s", "..\u2215%s", "..\uff0f%s", "\uff0e\uff0e/%s", "..\u2044%s", "\u202e../%s",
		"file:///%s", "~/%s", "$HOME/%s", "${HOME}/%s", "....//%s", "..;/%s", "%s/.", "../traces/../%s", "../runs/../%s", "*%s", "../%s?x=1", "../%s#x",
		"0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10/../../%s", "../%s/0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10",
	}
	var all []string
	for _, form := range forms {
		for _, name := range []string{"canary", "canary.jsonl", "tokens.json"} {
			all = append(all, fmt.Sprintf(form, name))
		}
	}
	return append(all, "", ".", "..", "/", "\x00", "%", "{id}", filepath.Join(home, "canary.jsonl"), "/etc/passwd", "/proc/self/environ", "//etc/passwd",
		`C:\Windows\win.ini`, `\\host\share`, "CON", strings.Repeat("../", 300)+"etc/passwd", strings.Repeat("a", 100_000), strings.Repeat("%2e", 10_000),
		"0198c0de-7a3b-7c11-9d55-3f2f6f1c9a1", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a100", "0198c0de/7a3b/7c11/9d55/3f2f6f1c9a10", "{0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10}",
		strings.Repeat("0", 64), strings.Repeat("G", 64), strings.Repeat("../", 21)+"a")
}

// TestTraversal asks for what is none of the server's business, by every way there is,
// with ids that are paths. Nothing of the files beside comes back, and where the system
// can be asked, no file outside the home was opened.
func TestTraversal(t *testing.T) {
	t.Parallel()
	w := newHTTPWorld(t)
	home := w.home(t)
	kept := filepath.Join(home, ".marchwarden")
	for _, dir := range []string{w.dir, home, kept, filepath.Join(kept, "blobs")} {
		for _, name := range []string{"canary", "canary.jsonl", "canary.json", "canary.lock"} {
			write(t, filepath.Join(dir, name), hatch)
		}
	}
	token := w.token(t, home, "alice")
	spec := w.spec(home, "serve", "pi", "--rate", "100000", "--http", "127.0.0.1:0")
	log := filepath.Join(t.TempDir(), "calls")
	cmd, traced := spec.underStrace(t, log)
	s := startServed(t, spec, cmd)
	first, last := serve.NewTraceID().String(), serve.NewTraceID().String()
	ids := straying(home)
	tried := map[string]int{}
	for _, era := range bothEras {
		c := newHost(t, s.url, token, era)
		channels[1].try(t, c, first) // a mark in the list of calls
		for _, ch := range channels {
			if !slices.Contains(ch.eras, era) {
				continue
			}
			for i, id := range ids {
				if i%3 != 0 && !longTests() {
					continue
				}
				a := ch.try(t, c, id)
				tried[ch.name]++
				if a.allowed() || strings.Contains(a.body, hatch) || strings.Contains(a.body, "root:") || strings.Contains(a.body, `"hash"`) {
					t.Errorf("%s, %s: %.60q is answered with %d %.300s", ch.name, era, id, a.status, a.body)
				}
			}
		}
		channels[1].try(t, c, last)
	}
	s.endBy(t, syscall.SIGTERM)
	t.Logf("%d ids by %v", len(ids), tried)
	if !traced {
		t.Log("which files were opened is not known here: there is no strace, or it may not trace")
		return
	}
	opened, outside := opens(t, log, first, last, home)
	// The server of hubs, which is in the program, looks every second how much the process
	// uses, whether there is a hub or not.
	self := fmt.Sprintf(`"/proc/%d/stat", O_RDONLY`, s.cmd.Process.Pid)
	outside = slices.DeleteFunc(outside, func(line string) bool { return strings.Contains(line, self) })
	if opened == 0 || len(outside) > 0 {
		t.Errorf("%d system calls, outside of the home %.2000q", opened, outside)
	}
	t.Logf("%d system calls about names of files while it was tried, %d outside of the home", opened, len(outside))
}

// underStrace is a command with all files that it opens written down, if that can be
// done. The process is the program's own.
func (spec runSpec) underStrace(t *testing.T, log string) (cmd *exec.Cmd, traced bool) {
	t.Helper()
	plain := exec.Command(spec.program, spec.args...)
	strace, err := exec.LookPath("strace")
	if err != nil || exec.Command(strace, "-D", "-f", "-o", os.DevNull, "true").Run() != nil {
		return plain, false
	}
	with := []string{"-D", "-f", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-e", "trace=%file", "-o", log, spec.program}
	return exec.Command(strace, append(with, spec.args...)...), true
}

var (
	callLine = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)
	inFolder = regexp.MustCompile(`(\w+|-?\d+)<([^>]*)>, "((?:[^"\\]|\\.)*)"`)
	resolved = regexp.MustCompile(` = \d+<([^>]*)>`)
	firstArg = regexp.MustCompile(`^"((?:[^"\\]|\\.)*)"`)
)

// opens counts the calls about names of files between two marks, and tells those about
// something outside of a home.
func opens(t *testing.T, log, from, to, home string) (n int, outside []string) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 4<<20)
	between := false
	for in.Scan() {
		line := in.Text()
		switch {
		case strings.Contains(line, from):
			between = true
		case strings.Contains(line, to):
			between = false
		}
		call := callLine.FindStringSubmatch(line)
		if !between || call == nil {
			continue
		}
		n++
		path := ""
		if m := resolved.FindStringSubmatch(line); m != nil {
			path = m[1]
		} else if m := inFolder.FindStringSubmatch(call[2]); m != nil {
			path = m[3]
			if !filepath.IsAbs(path) {
				path = m[2] + "/" + path // not cleaned: going up is going out
			}
		} else if m := firstArg.FindStringSubmatch(call[2]); m != nil {
			path = m[1]
		}
		if strings.Contains(path, "..") || !strings.HasPrefix(path, filepath.Join(home, ".marchwarden")+"/") || strings.Contains(path, "canary") {
			outside = append(outside, line)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return n, outside
}
