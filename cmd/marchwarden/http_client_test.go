//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// The eras of the protocol that a client may speak.
const (
	eraLegacy = "2025-11-25"
	eraModern = "2026-07-28"
)

var bothEras = []string{eraLegacy, eraModern}

// hostClient is a foreign MCP client: it speaks the wire by hand, and can say
// what no library would.
type hostClient struct {
	url, token, era string
	tasks           bool // says that it knows tasks
	session         string
	http            *http.Client
	last            atomic.Int64
}

// newHost connects with one connection of its own.
func newHost(t *testing.T, url, token, era string) *hostClient {
	t.Helper()
	link := &http.Transport{MaxConnsPerHost: 1}
	if era == eraLegacy { // which listens beside its calls
		link.MaxConnsPerHost = 0
	}
	c := &hostClient{url: url, token: token, era: era, http: &http.Client{Transport: link}}
	c.last.Store(10_000) // so that all numbers are of one length
	t.Cleanup(link.CloseIdleConnections)
	if era == eraModern {
		return c
	}
	a, err := c.do(t.Context(), "initialize", map[string]any{"protocolVersion": era, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	if err != nil || a.fault != nil || a.header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %v, %+v", err, a)
	}
	c.session = a.header.Get("Mcp-Session-Id")
	if _, err := c.do(t.Context(), "notifications/initialized", nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// meta is what every request carries about its client.
func (c *hostClient) meta() map[string]any {
	can := map[string]any{}
	if c.tasks {
		can["extensions"] = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
	}
	m := map[string]any{"io.modelcontextprotocol/clientCapabilities": can}
	if c.era == eraModern {
		m["io.modelcontextprotocol/protocolVersion"] = c.era
		m["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "test", "version": "1"}
	}
	return m
}

// request makes the HTTP request of a call. What is not for a header is not put there.
func (c *hostClient) request(ctx context.Context, method string, params map[string]any) (*http.Request, int64, error) {
	id := c.last.Add(1)
	if params == nil {
		params = map[string]any{}
	}
	if params["_meta"] == nil && (c.era == eraModern || c.tasks) {
		params["_meta"] = c.meta()
	}
	message := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if !strings.HasPrefix(method, "notifications/") {
		message["id"] = id
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	c.dress(req)
	for _, name := range []string{"taskId", "uri", "name"} {
		if text, ok := params[name].(string); ok {
			if strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0 {
				req.Header.Set("Mcp-Name", text)
			}
			break
		}
	}
	req.Header.Set("Mcp-Method", method)
	return req, id, nil
}

// dress sets the headers of every request.
func (c *hostClient) dress(req *http.Request) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.era == eraModern || c.session != "" {
		req.Header.Set("Mcp-Protocol-Version", c.era)
	}
}

// hostAnswer is what came back.
type hostAnswer struct {
	status   int
	header   http.Header
	body     string // all of it
	result   json.RawMessage
	fault    *hostFault
	notes    []hostNote
	comments int
}

type hostFault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

type hostNote struct {
	Method string `json:"method"`
	Params struct {
		URI      string  `json:"uri"`
		Progress float64 `json:"progress"`
		Message  string  `json:"message"`
	} `json:"params"`
}

// do makes a call and waits for its answer.
func (c *hostClient) do(ctx context.Context, method string, params map[string]any) (*hostAnswer, error) {
	req, id, err := c.request(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return c.send(req, id, nil)
}

// send sends a request and reads its answer to the end. each is told of every message.
func (c *hostClient) send(req *http.Request, id int64, each func(hostNote)) (*hostAnswer, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &hostAnswer{status: resp.StatusCode, header: resp.Header}
	in := bufio.NewReader(resp.Body)
	events := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	for {
		line, err := in.ReadString('\n')
		a.body += line
		text, isData := strings.CutPrefix(line, "data: ")
		switch {
		case events && strings.HasPrefix(line, ":"):
			a.comments++
		case events && isData:
			a.take(id, []byte(text), each)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, err
		}
	}
	if !events {
		a.take(id, []byte(a.body), each)
	}
	if a.status == http.StatusOK && id != 0 && a.result == nil && a.fault == nil && req.Method == http.MethodPost && !strings.Contains(a.body, `"error":`) {
		return a, fmt.Errorf("the stream ended without an answer: %.300q", a.body)
	}
	return a, nil
}

// take takes one message in.
func (a *hostAnswer) take(id int64, data []byte, each func(hostNote)) {
	var m struct {
		ID     *int64          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *hostFault      `json:"error"`
		hostNote
	}
	if json.Unmarshal(data, &m) != nil {
		return // not a message, such as what a door says
	}
	if m.ID == nil {
		a.notes = append(a.notes, m.hostNote)
		if each != nil && m.Method != "" {
			each(m.hostNote)
		}
		return
	}
	if *m.ID == id {
		a.result, a.fault = m.Result, m.Error
	}
}

// toolResult is the result of a call of research.
type toolResult struct {
	Content []struct {
		Type, Text, URI string
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// research makes a call and decodes its result.
func (c *hostClient) research(ctx context.Context, args map[string]any) (*marchwarden.Result, error) {
	a, err := c.do(ctx, "tools/call", map[string]any{"name": "research", "arguments": args})
	if err != nil {
		return nil, err
	}
	return a.research()
}

func (a *hostAnswer) research() (*marchwarden.Result, error) {
	if a.status != http.StatusOK || a.fault != nil {
		return nil, fmt.Errorf("status %d: %.500s", a.status, a.body)
	}
	return decodeTool(a.result)
}

func decodeTool(raw json.RawMessage) (*marchwarden.Result, error) {
	var res toolResult
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, err
	}
	if res.IsError || len(res.Structured) == 0 {
		return nil, fmt.Errorf("the tool failed: %.500s", raw)
	}
	return marchwarden.DecodeResult(res.Structured)
}

// read reads a resource, as text.
func (c *hostClient) read(ctx context.Context, uri string) (string, error) {
	a, err := c.do(ctx, "resources/read", map[string]any{"uri": uri})
	if err != nil {
		return "", err
	}
	if a.fault != nil || a.status != http.StatusOK {
		return "", fmt.Errorf("status %d: %.500s", a.status, a.body)
	}
	var res struct {
		Contents []struct{ Text string } `json:"contents"`
	}
	if err := json.Unmarshal(a.result, &res); err != nil || len(res.Contents) != 1 {
		return "", fmt.Errorf("%v: %.300s", err, a.result)
	}
	return res.Contents[0].Text, nil
}
