//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// pipeHost is a client of a server on stdio.
type pipeHost struct {
	gone    chan struct{} // closed when the server has ended
	mu      sync.Mutex    // guards what follows
	in      io.Writer
	last    int
	waiting map[int]chan json.RawMessage
}

// pipe starts the program as a server on stdio. The end of the test ends it.
func (r *rack) pipe(t *testing.T, home string, args ...string) *pipeHost {
	t.Helper()
	spec := r.spec(home, append([]string{"serve"}, args...)...)
	cmd := exec.Command(spec.program, spec.args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	launch(t, spec, cmd)
	h := &pipeHost{in: in, gone: make(chan struct{}), waiting: map[int]chan json.RawMessage{}}
	go h.read(out)
	if _, err := h.call(t.Context(), "initialize", map[string]any{"protocolVersion": eraLegacy, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}}); err != nil {
		t.Fatal(err)
	}
	h.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return h
}

func (h *pipeHost) read(out io.Reader) {
	defer close(h.gone)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue // a notification
		}
		h.mu.Lock()
		if c := h.waiting[*m.ID]; c != nil {
			c <- m.Result
		}
		h.mu.Unlock()
	}
}

func (h *pipeHost) send(message map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	_, _ = h.in.Write(append(data, '\n')) // a server that is gone does not answer
}

// call waits for an answer until ctx ends, which cancels the call.
func (h *pipeHost) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	answer := make(chan json.RawMessage, 1)
	h.mu.Lock()
	h.last++
	id := h.last
	h.waiting[id] = answer
	h.mu.Unlock()
	h.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	select {
	case result := <-answer:
		return result, nil
	case <-h.gone:
		select {
		case result := <-answer:
			return result, nil
		default:
			return nil, errors.New("the server ended")
		}
	case <-ctx.Done():
		h.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		return nil, ctx.Err()
	}
}

func (h *pipeHost) research(ctx context.Context, args map[string]any) (*marchwarden.Result, error) {
	raw, err := h.call(ctx, "tools/call", map[string]any{"name": "research", "arguments": args})
	if err != nil {
		return nil, err
	}
	return decodeTool(raw)
}

// researching is a client of any transport.
type researching interface {
	research(ctx context.Context, args map[string]any) (*marchwarden.Result, error)
}

// TestACancelledCallLeavesTheNextAlone cancels calls of an investigator while its
// researcher works, and asks at once again: as the same caller and as another one.
func TestACancelledCallLeavesTheNextAlone(t *testing.T) {
	t.Parallel()
	rounds := 3
	if longTests() {
		rounds = 20
	}
	args := []string{"pi", "--library", "notes", "--model", "openai/gpt-test"}
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newHTTPWorld(t)
			w.env = append(w.env, "MARCHWARDEN_ONLINE=false") // files is all there is
			var one, other researching
			if over == "stdio" {
				h := w.pipe(t, w.home(t), args...)
				one, other = h, h
			} else {
				s := w.serve(t, w.home(t), args...)
				one, other = newHost(t, s.url, "", eraModern), newHost(t, s.url, "", eraModern)
			}
			for n := range rounds {
				askAfterCancel(t, w, n, one, other)
			}
		})
	}
}

func askAfterCancel(t *testing.T, w *httpWorld, n int, one, other researching) {
	t.Helper()
	held := w.hold(4) // the investigator has planned, its researchers ask
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := one.research(ctx, map[string]any{"question": fmt.Sprintf("%s It is cancelled in round %d.", aboutBoats, n)})
		ended <- err
	}()
	arrives(t, held)
	cancel()
	if err := <-ended; err == nil {
		t.Errorf("round %d: a cancelled call was answered", n)
	}
	w.hold(0)
	var wg sync.WaitGroup
	for who, c := range map[string]researching{"the same caller": one, "another caller": other} {
		wg.Go(func() {
			res, err := c.research(t.Context(), map[string]any{"question": fmt.Sprintf("%s This is round %d of %s.", aboutBoats, n, who)})
			if err != nil || len(res.Citations) == 0 {
				t.Errorf("round %d: %s got %v, %+v", n, who, err, res)
			}
		})
	}
	wg.Wait()
}
