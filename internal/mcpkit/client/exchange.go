package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

const (
	// maxCallBytes bounds all that a server may send about one call.
	maxCallBytes = 4 * maxFrameBytes
	// maxRefusalBytes bounds what is read of an answer that only says no.
	maxRefusalBytes = 64 << 10
	// parting is how long a server may take to end a stream, so that its connection can be used again.
	parting = 50 * time.Millisecond
)

// exchange speaks to a server at an address without the SDK: one request of the protocol of
// 2026-07-28, and its answer. The SDK's client drops every field of an answer that it does not
// know, and takes a server that fails once for one that is gone; a task has such fields, and
// outlives such failures. It is safe for concurrent use.
type exchange struct {
	web  *http.Client
	url  string
	era  string
	self *mcp.Implementation
	last atomic.Int64 // id of a request
}

type turn struct {
	method, name string // name is what the header Mcp-Name says
	params       map[string]any
	meta         map[string]any // goes into params with what the protocol asks for
	heed         func(*jsonrpc.Request) bool
	left         *int64 // how many bytes may still come
}

// absence is why a server did not answer that may do so in a moment.
type absence struct{ why string }

func (a *absence) Error() string { return a.why }

// refusal is the HTTP status of an answer that says no and not why.
type refusal int

func (r refusal) Error() string { return fmt.Sprintf("status %d", int(r)) }

// send gives the result of a request, or why there is none: ctx's error, a *jsonrpc.Error of the
// server's, an *absence, a refusal, or a *marchwarden.Error that is final.
func (x *exchange) send(ctx context.Context, t turn) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, id, err := x.request(ctx, t)
	if err != nil {
		return nil, err
	}
	resp, err := x.web.Do(req)
	if err != nil {
		return nil, broken(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refused(resp)
	}
	body := &metered{resp.Body, t.left}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		data, err := io.ReadAll(body)
		if err != nil {
			return nil, broken(ctx, err)
		}
		result, _, err := t.take(data, id)
		return result, err
	case "text/event-stream":
		result, err := t.listen(body, id)
		if err != nil {
			return nil, broken(ctx, err)
		}
		defer time.AfterFunc(parting, cancel).Stop()
		_, _ = io.CopyN(io.Discard, body, maxRefusalBytes) // the answer is there already
		return result, nil
	}
	return nil, malformed("its answer is neither JSON nor a stream of events")
}

func (x *exchange) request(ctx context.Context, t turn) (*http.Request, jsonrpc.ID, error) {
	name := fmt.Sprintf("marchwarden-%d", x.last.Add(1))
	id, _ := jsonrpc.MakeID(name) // a text always makes one
	meta := maps.Clone(t.meta)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[mcp.MetaKeyProtocolVersion] = x.era
	meta[mcp.MetaKeyClientInfo] = x.self
	meta[mcp.MetaKeyClientCapabilities] = map[string]any{"extensions": map[string]any{mcpkit.TasksExtension: map[string]any{}}}
	params := maps.Clone(t.params)
	params["_meta"] = meta
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": name, "method": t.method, "params": params})
	if err != nil {
		return nil, id, marchwarden.Wrap(err, marchwarden.CodeInternal, "encode the request")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return nil, id, marchwarden.Wrap(err, marchwarden.CodeInternal, "make the request")
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": x.era, "Mcp-Method": t.method, "Mcp-Name": t.name,
	} {
		req.Header.Set(key, value)
	}
	return req, id, nil
}

// broken says why a request or its answer did not get through. What has a code, or is the server's
// word, stays as it is.
func broken(ctx context.Context, err error) error {
	var own *marchwarden.Error
	var theirs *jsonrpc.Error
	var away *absence
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &own):
		return own
	case errors.As(err, &theirs), errors.As(err, &away):
		return err
	}
	if sent, ok := errors.AsType[*url.Error](err); ok {
		err = sent.Err // the address, which may hold a key, is not for messages
	}
	return &absence{said(err.Error())}
}

// refused makes sense of a status other than success.
func refused(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return &absence{fmt.Sprintf("status %d", code)}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes))
	if err == nil {
		if msg, err := jsonrpc.DecodeMessage(data); err == nil {
			if answer, ok := msg.(*jsonrpc.Response); ok && answer.Error != nil {
				return answer.Error
			}
		}
	}
	return refusal(resp.StatusCode)
}

// take reads one message, and says whether it is the answer to id. A notification is heeded.
func (t turn) take(data []byte, id jsonrpc.ID) (result json.RawMessage, answered bool, err error) {
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, true, malformed(said(err.Error()))
	}
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if !msg.IsCall() && t.heed != nil {
			t.heed(msg)
		}
	case *jsonrpc.Response:
		switch {
		case msg.Error != nil && (msg.ID == id || !msg.ID.IsValid()):
			return nil, true, msg.Error
		case msg.ID == id:
			return msg.Result, true, nil
		}
	}
	return nil, false, nil
}

// listen reads a stream of events up to the answer. A server may leave out the empty line after
// its last event; a message that broke off is none.
func (t turn) listen(body io.Reader, id jsonrpc.ID) (json.RawMessage, error) {
	end := strings.NewReader("\n\n")
	for e, err := range httpapi.EventsWithin(io.MultiReader(body, end), maxFrameBytes) {
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, errHuge
		case err != nil:
			return nil, err
		case e.Name != "" && e.Name != "message" || len(e.Data) == 0 || end.Len() == 0 && !json.Valid(e.Data):
			continue
		}
		if result, answered, err := t.take(e.Data, id); answered {
			return result, err
		}
	}
	return nil, &absence{"it ended the answer before its end"}
}

// metered is a body whose bytes count against what a call may cost.
type metered struct {
	io.Reader
	left *int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if *m.left -= int64(n); *m.left < 0 {
		return 0, marchwarden.Errorf(marchwarden.CodeMalformed, "the researcher sent more than %d bytes about one call", maxCallBytes)
	}
	return n, err
}
