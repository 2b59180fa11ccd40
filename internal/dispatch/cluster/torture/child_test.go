//go:build linux

package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// roleEnv is what this program plays on a host; "" is the test itself.
const roleEnv = "MARCHWARDEN_TORTURE_ROLE"

// part is what a role does when it is asked: one request at a time.
type part func(do string, arg json.RawMessage) (any, error)

// roles are what can run on a host: each is begun with its settings and answers when it
// is ready. ctx ends when the process that began it is gone.
var roles = map[string]func(ctx context.Context, settings json.RawMessage) (part, error){
	"hub": playHub, "worker": playWorker, "provider": playProvider, "driver": playDriver, "asker": playAsker,
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(roles[role]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	datatest.Abreast(8)
	datatest.InMemory()
	os.Exit(m.Run())
}

type (
	request struct {
		Do  string          `json:"do"`
		Arg json.RawMessage `json:"arg,omitempty"`
	}
	reply struct {
		Error string          `json:"error,omitempty"`
		Value json.RawMessage `json:"value,omitempty"`
	}
)

// play serves requests from standard input until it ends.
func play(role func(context.Context, json.RawMessage) (part, error)) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var settings json.RawMessage
	if err := in.Decode(&settings); err != nil {
		return err
	}
	do, err := role(ctx, settings)
	if err != nil {
		return errors.Join(err, out.Encode(reply{Error: err.Error()}))
	}
	if err := out.Encode(reply{}); err != nil {
		return err
	}
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			return nil // the test has gone
		}
		var answer reply
		value, err := do(r.Do, r.Arg)
		if err == nil {
			answer.Value, err = json.Marshal(value)
		}
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

// process is a role that runs on a host.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  string // of what it says
	gone chan struct{}

	mu  sync.Mutex // guards what follows: one request at a time
	in  io.WriteCloser
	out *json.Decoder
}

// launch begins a role on a host, without waiting for it to be ready.
func (h *host) launch(role string, settings any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{t: h.g.t, name: h.name, log: filepath.Join(h.g.dir, h.name+".log"), gone: make(chan struct{})}
	said, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	p.cmd = exec.Command("ip", "netns", "exec", h.ns(), self)
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.Stderr = said
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(out))
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _, _ = p.cmd.Process.Wait(); close(p.gone) }()
	p.t.Cleanup(p.bury)
	return p, json.NewEncoder(p.in).Encode(settings)
}

// bury ends a process at the end of a test, and shows its last words if that failed.
func (p *process) bury() {
	p.kill()
	if !p.t.Failed() || !testing.Verbose() {
		return
	}
	said, err := os.ReadFile(p.log)
	_ = os.Remove(p.log) // told once, though several may have written to it
	if err == nil && len(said) > 0 {
		p.t.Logf("%s said:\n%s", p.name, said[max(0, len(said)-4000):])
	}
}

// ready waits until the role can be asked.
func (p *process) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hear(nil)
}

// start begins a role and waits until it is ready.
func (h *host) start(role string, settings any) *process {
	h.g.t.Helper()
	p, err := h.launch(role, settings)
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		h.g.t.Fatalf("%s: %v", h.name, err)
	}
	return p
}

// ask has the role do something.
func (p *process) ask(do string, arg, value any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(p.in).Encode(request{Do: do, Arg: raw}); err != nil {
		return fmt.Errorf("%s: %s: %w", p.name, do, err)
	}
	return p.hear(value)
}

func (p *process) hear(value any) error {
	var r reply
	if err := p.out.Decode(&r); err != nil {
		return fmt.Errorf("%s says nothing: %w", p.name, err)
	}
	if r.Error != "" {
		return fmt.Errorf("%s: %s", p.name, r.Error)
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(r.Value, value)
}

// must is ask for what cannot fail.
func (p *process) must(do string, arg, value any) {
	p.t.Helper()
	if err := p.ask(do, arg, value); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as a power cut does, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.gone
}

// stop freezes the process; resume lets it go on.
func (p *process) stop() error   { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// leave asks the process to end by itself, and says whether it did within a time.
func (p *process) leave(within time.Duration) bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
		return true
	case <-time.After(within):
		return false
	}
}
