package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// scenarioEnv is set by the conformance suite where it tries a client. The address of
// its server is the last argument.
const scenarioEnv = "MCP_CONFORMANCE_SCENARIO"

// contextEnv has what a scenario gives to its client.
const contextEnv = "MCP_CONFORMANCE_CONTEXT"

// visit has our client meet the suite's server, and call its tool, or each of those
// that a scenario is about. A server without a tool is not for our client, which says
// so; what it has sent until then is what is judged.
func visit(url string) error {
	scenario := os.Getenv(scenarioEnv)
	tools := []string{`[\w-]+`}
	if scenario == "sep-2322-client-request-state" {
		tools = []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"}
	}
	home, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	target := Target{URL: url, Patience: time.Minute} // many of us are started at once
	if strings.HasPrefix(scenario, "auth/") {
		if target.Login, err = suiteLogin(url, filepath.Join(home, "logins.json")); err != nil {
			return err
		}
	}
	var failed []error
	for _, tool := range tools {
		failed = append(failed, callSuite(target, tool))
	}
	return errors.Join(failed...)
}

// suiteLogin is the login of a user who agrees to everything, at the suite's own
// authorization server, with the name of the client that a scenario is about.
func suiteLogin(url, file string) (*Login, error) {
	l := &Login{URL: url, Name: "suite", File: file, HTTP: &http.Client{}, Browser: agreeing{}, Now: time.Now, Hide: func(...string) {}}
	if os.Getenv(scenarioEnv) == "auth/basic-cimd" {
		l.ClientID = "https://conformance-test.local/client-metadata.json"
	}
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if text := os.Getenv(contextEnv); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return nil, err
		}
		if given.ID != "" {
			l.ClientID, l.ClientSecret = given.ID, given.Secret
		}
	}
	return l, nil
}

// agreeing is the browser of a user who agrees: the suite's server sends it back at once.
type agreeing struct{}

func (agreeing) Redirect() string { return "http://127.0.0.1:3000/callback" }

func (agreeing) Visit(ctx context.Context, address string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

// callSuite dials the suite's server and calls one of its tools.
func callSuite(target Target, tool string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dialer := Dialer{Now: time.Now, HTTP: &http.Client{Transport: &interpreter{wanted: regexp.MustCompile(`(?s)"tools":\s*\[.*?"name":\s*"(` + tool + `)"`)}}}
	s, err := dialer.Dial(ctx, target)
	if err != nil {
		fmt.Println("the server is not for us:", err)
		if marchwarden.CodeOf(err) == marchwarden.CodeUnsupported {
			return nil
		}
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := s.Call(ctx, map[string]any{"a": 5, "b": 3}); err != nil {
		fmt.Println("the call failed:", err) // not every scenario has a tool that can be called
	}
	return s.Close()
}

// interpreter stands between our client, which knows one tool only, and a server that
// has another: there the tool has its own name, here it is called research and takes a
// question, too. All else passes as it is.
type interpreter struct {
	wanted *regexp.Regexp // the name there, where tools are listed
	tool   []byte         // the name there, once it is known
}

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
	if at := i.wanted.FindSubmatchIndex(body); at != nil {
		i.tool = bytes.Clone(body[at[2]:at[3]])
		body = slices.Concat(body[:at[2]], []byte("research"), body[at[3]:])
		body = bytes.ReplaceAll(body, []byte(`"inputSchema":{"type":"object"}`), []byte(`"inputSchema":{"type":"object","properties":{}}`))
		body = bytes.ReplaceAll(body, []byte(`"properties":{`), []byte(`"properties":{"question":{"type":"string"},`))
		body = bytes.ReplaceAll(body, []byte(`"string"},}`), []byte(`"string"}}`))
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Del("Content-Length")
	return res, nil
}
