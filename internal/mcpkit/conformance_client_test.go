package mcpkit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

// scenarioEnv is set by the conformance suite where it tries a client. The address of
// its server is the last argument.
const scenarioEnv = "MCP_CONFORMANCE_SCENARIO"

// visit has our client meet the suite's server, and call its tool. A server without a
// tool is not for our client, which says so; what it has sent until then is what is
// judged.
func visit(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dialer := client.Dialer{Now: time.Now, HTTP: &http.Client{Transport: &interpreter{}}}
	s, err := dialer.Dial(ctx, client.Target{URL: url})
	if err != nil {
		fmt.Println("the server is not for us:", err)
		if marchwarden.CodeOf(err) == marchwarden.CodeUnsupported {
			return nil
		}
		return err
	}
	if _, err := s.Call(ctx, map[string]any{"a": 5, "b": 3}); err != nil {
		fmt.Println("the call failed:", err) // not every scenario has a tool that can be called
	}
	return s.Close()
}

// interpreter stands between our client, which knows one tool only, and a server that
// has another: there the tool has its own name, here it is called research and takes a
// question, too. All else passes as it is.
type interpreter struct {
	tool []byte // its name there, once it is known
}

var firstTool = regexp.MustCompile(`("tools":\s*\[\s*\{\s*"name":\s*)"(\w+)"`)

func (i *interpreter) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.Body != nil && i.tool != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.Replace(body, []byte(`"name":"research"`), []byte(`"name":"`+string(i.tool)+`"`), 1)
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(body)), nil, int64(len(body))
		if req.Header.Get("Mcp-Name") == "research" {
			req.Header.Set("Mcp-Name", string(i.tool))
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || req.Header.Get("Mcp-Method") != "tools/list" && i.tool != nil {
		return res, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if found := firstTool.FindSubmatch(body); found != nil {
		i.tool = bytes.Clone(found[2])
		body = firstTool.ReplaceAll(body, []byte(`$1"research"`))
		body = bytes.Replace(body, []byte(`"properties":{`), []byte(`"properties":{"question":{"type":"string"},`), 1)
		body = bytes.Replace(body, []byte(`"string"},}`), []byte(`"string"}}`), 1)
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, nil
}
