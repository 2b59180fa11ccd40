//go:build linux

package torture

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
)

// ground is a switch with hosts at it, each in a network namespace of its own: nothing
// of it is to be seen from outside, so that many can stand side by side.
type ground struct {
	t     *testing.T
	tag   string
	dir   string
	hosts int
}

// host is one machine: an address, and a plug that can be drawn.
type host struct {
	g    *ground
	name string
	ip   string
	port string // at the switch
}

// mark begins the names of all namespaces that these tests make.
const mark = "mwt-"

var grounds atomic.Int32

// newGround lays out a switch, and takes it away with all hosts and their processes
// when the test ends.
func newGround(t *testing.T) *ground {
	t.Helper()
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("network namespaces can be made by root only")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces are made by the ip command, which is not here: ", err)
	}
	sweep(func(tag string) bool { return !alive(tag) })
	g := &ground{t: t, tag: fmt.Sprintf("%s%s-%d", mark, self(), grounds.Add(1)), dir: resumetest.Memory(t)}
	if full() { // what is on a disk takes its time
		g.dir = t.TempDir()
	}
	if out, err := ip("netns add " + g.tag + "-switch"); err != nil {
		t.Skipf("no network namespace can be made: %v: %s", err, out)
	}
	t.Cleanup(func() { sweep(func(tag string) bool { return tag == g.tag }) })
	g.ip("-n "+g.tag+"-switch link add br0 type bridge", "-n "+g.tag+"-switch link set br0 up")
	return g
}

// host adds a host.
func (g *ground) host(name string) *host {
	g.t.Helper()
	g.hosts++
	h := &host{g: g, name: name, ip: fmt.Sprintf("10.77.0.%d", g.hosts), port: fmt.Sprintf("port%d", g.hosts)}
	ns, hub := h.ns(), g.tag+"-switch"
	g.ip("netns add "+ns, "-n "+ns+" link set lo up",
		fmt.Sprintf("link add %s netns %s type veth peer name eth0 netns %s", h.port, hub, ns),
		fmt.Sprintf("-n %s link set %s master br0 up", hub, h.port),
		fmt.Sprintf("-n %s addr add %s/24 dev eth0", ns, h.ip), "-n "+ns+" link set eth0 up")
	return h
}

func (h *host) ns() string { return h.g.tag + "-" + h.name }

// cut is a way to lose a host.
type cut string

const (
	// silent: packets of both directions vanish without a notice.
	silent cut = "silent"
	// unplugged: the cable is drawn, which the host sees.
	unplugged cut = "unplugged"
)

// cut takes a host off the net.
func (h *host) cut(how cut) error {
	if how == unplugged {
		return h.plug("down")
	}
	return h.plug("nomaster")
}

// mend puts a host back on the net.
func (h *host) mend(how cut) error {
	if how == unplugged {
		return h.plug("up")
	}
	return h.plug("master br0")
}

func (h *host) plug(what string) error {
	out, err := ip(fmt.Sprintf("-n %s-switch link set %s %s", h.g.tag, h.port, what))
	if err != nil {
		return fmt.Errorf("set the port of %s %s: %w: %s", h.name, what, err, out)
	}
	return nil
}

// ip runs commands of ip and fails the test if one does.
func (g *ground) ip(commands ...string) {
	g.t.Helper()
	for _, c := range commands {
		if out, err := ip(c); err != nil {
			g.t.Fatalf("ip %s: %v: %s", c, err, out)
		}
	}
}

func ip(command string) ([]byte, error) {
	return exec.Command("ip", strings.Fields(command)...).CombinedOutput()
}

// self is this process, so that a later one with its number is told from it.
func self() string { return fmt.Sprintf("%d-%s", os.Getpid(), began(os.Getpid())) }

// began is when a process began, as the kernel counts; "" if there is none.
func began(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if fields := strings.Fields(string(rest)); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// alive says whether the maker of a ground is still there.
func alive(tag string) bool {
	part := strings.Split(tag, "-")
	if len(part) != 4 {
		return true // of another process
	}
	pid, err := strconv.Atoi(part[1])
	return err != nil || began(pid) == part[2]
}

// sweep takes away grounds, also those of a run that was killed.
func sweep(which func(tag string) bool) {
	list, err := ip("netns list")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(list)) {
		ns, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		end := strings.LastIndexByte(ns, '-')
		if !strings.HasPrefix(ns, mark) || end < 0 || !which(ns[:end]) {
			continue
		}
		pids, _ := ip("netns pids " + ns)
		for _, p := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(p); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_, _ = ip("netns delete " + ns)
	}
}
