package mcpkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

// A counter of requests counts a batch as one, so there are none.
func TestNoBatches(t *testing.T) {
	s, _ := newTestServer(t, echo)
	url := listen(t, s, 0)
	client := &http.Client{}
	t.Cleanup(client.CloseIdleConnections)
	req, err := post(t.Context(), url, "2025-03-26", hello(t, client, url), "ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	body := append(bytes.Repeat([]byte(" "), 10_000), `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`...)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), "batches are not supported") {
		t.Errorf("%s %.200s, %v", resp.Status, answer, err)
	}
}

// Large resources are in memory for as long as their readers take. A caller who does not read gets
// few of them, and takes no other caller's room.
func TestFewLargeResourcesAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	for _, era := range []string{legacyEra, modernEra} {
		t.Run(era, func(t *testing.T) {
			var loaded atomic.Int64
			kept := &books{trace: bytes.Repeat([]byte("x"), 8<<20-1)}
			s, _ := newTestServer(t, echo, func(c *Config) { c.Records = loadCounter{kept, &loaded} })
			url := listen(t, s, 0)
			res, err := dialAt(t, url, era, nil).CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "What?"}})
			if err != nil || res.IsError {
				t.Fatal(toolText(res, err))
			}
			uri := tracePrefix + sample("").TraceID.String()
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(client.CloseIdleConnections)
			session := ""
			if era == legacyEra {
				session = hello(t, client, url)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			for n := range 3 * maxLoads {
				req, err := post(ctx, url, era, session, "resources/read", map[string]any{"uri": uri})
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(req.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = bytes.Replace(body, []byte(`"id":7`), fmt.Appendf(nil, `"id":%d`, 100+n), 1) // in one session each has its own
				req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				req.Header.Set("Mcp-Name", uri)
				go func() {
					if resp, err := client.Do(req); err == nil {
						<-ctx.Done() // and reads nothing
						_ = resp.Body.Close()
					}
				}()
			}
			settles(t, "as many are read as may be", func() bool { return loaded.Load() == maxLoads })
			// Bob is not kept waiting by what Alice does not read.
			if !s.lines.room("token:bob").TryAcquire(maxLoads) {
				t.Error("Bob has no room")
			}
			s.lines.room("token:bob").Release(maxLoads)
			if got := loaded.Load(); got != maxLoads {
				t.Errorf("%d were read", got)
			}
			leave()
			settles(t, "there is room again", s.lines.empty)
		})
	}
}

// empty reports whether no large resource is on its way.
func (l *lines) empty() bool {
	empty := true
	l.loads.Range(func(caller, _ any) bool {
		room := l.room(caller.(string))
		if empty = room.TryAcquire(maxLoads); empty {
			room.Release(maxLoads)
		}
		return empty
	})
	return empty
}

// loadCounter counts the traces that are read.
type loadCounter struct {
	*books
	n *atomic.Int64
}

func (c loadCounter) Trace(ctx context.Context, id marchwarden.TraceID) ([]byte, error) {
	c.n.Add(1)
	return c.books.Trace(ctx, id)
}

// Small resources do not wait, and leave no room taken.
func TestSmallResourcesTakeNoRoom(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = &books{trace: []byte("{}\n")} })
	url := listen(t, s, 0)
	cs := dialAt(t, url, modernEra, nil)
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "research", Arguments: map[string]any{"question": "What?"}}); err != nil {
		t.Fatal(err)
	}
	for range 4 * maxLoads {
		if _, fault := read(t, cs, tracePrefix+sample("").TraceID.String()); fault != nil {
			t.Fatal(fault)
		}
	}
	if !s.lines.empty() {
		t.Error("room is taken")
	}
}

// A trace that is too large to be handed over is not even read.
func TestATraceThatIsTooLargeIsNotRead(t *testing.T) {
	kept := &books{trace: make([]byte, maxResourceBytes+1)}
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = kept })
	cs := dialAs(t, s, access.Local(), modernEra, nil)
	_, fault := read(t, cs, tracePrefix+sample("").TraceID.String())
	if fault == nil || fault.Code != jsonrpc.CodeInternalError || !strings.Contains(fault.Message, "8388609 bytes") {
		t.Errorf("%v", fault)
	}
	for _, q := range kept.questions() {
		if strings.HasPrefix(q, "trace") {
			t.Error("it was read")
		}
	}
}

// A run is followed by one address: a client that follows it in all its spellings could take the
// room of all others.
func TestARunIsFollowedByOneAddress(t *testing.T) {
	s, _ := newTestServer(t, echo, func(c *Config) { c.Records = &books{} })
	cs := dialAs(t, s, access.Local(), legacyEra, nil)
	id := sample("").TraceID.String()
	if err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: tracePrefix + id}); err != nil {
		t.Fatal(err)
	}
	err := cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: tracePrefix + strings.ToUpper(id)})
	var fault *jsonrpc.Error
	if !errors.As(err, &fault) || fault.Message != "Resource not found" {
		t.Errorf("%v", err)
	}
}
