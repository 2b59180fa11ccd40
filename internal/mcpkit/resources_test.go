package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
)

const (
	traceTemplate    = tracePrefix + "{id}"
	resultTemplate   = resultPrefix + "{id}"
	evidenceTemplate = EvidencePrefix + "{hex}"
)

// books are records of the test's own making, which note what they are asked for.
type books struct {
	fails  error // of every question
	trace  []byte
	result *marchwarden.Result
	sofar  func() *marchwarden.Result

	mu    sync.Mutex // guards asked
	asked []string
}

func (b *books) note(what string, id marchwarden.TraceID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, what+" "+id.String())
}

func (b *books) questions() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func (b *books) Trace(_ context.Context, id marchwarden.TraceID) ([]byte, error) {
	b.note("trace", id)
	return b.trace, b.fails
}

func (b *books) Size(_ context.Context, id marchwarden.TraceID) (int64, bool, error) {
	b.note("size", id)
	return int64(len(b.trace)), b.sofar == nil, b.fails
}

func (b *books) Result(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	b.note("result", id)
	return b.result, b.fails
}

func (b *books) SoFar(_ context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	b.note("sofar", id)
	if b.sofar == nil {
		return nil, b.fails
	}
	return b.sofar(), b.fails
}

// foreign are forms of an id that lead out of a folder, end a path early, or name
// nothing.
var foreign = []string{
	"", ".", "..", "../", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", `..\..\windows\win.ini`, "..%5c..%5cboot.ini", "/etc/passwd", "//etc/passwd",
	"%2fetc%2fpasswd", "....//....//etc/passwd", "..;/etc/passwd", "%c0%ae%c0%ae/etc/passwd", "%252e%252e%252fetc", "C:\\\\x", "file:///etc/passwd", "~/.ssh/id_rsa", "nul", "a%00b",
	"0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10/../x", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10.jsonl", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10%00", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10?x", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10#x",
	" 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10 ", "{0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10}", "0198c0de7a3b7c119d553f2f6f1c9a10", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a1\u0660",
	"\u0007", "\x1b[31m", "\U000f0000", "\U0001f600", "\"", "\\\\", strings.Repeat("x", 100_000),
}

// Nothing is looked up by an address that is none, and the answer is always the same.
func TestAddressesThatAreNone(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		kept := &books{}
		s, log := newTestServer(t, echo, func(c *Config) {
			c.Records = kept
			c.Evidence = func(context.Context, string) ([]byte, error) { t.Error("the evidence was asked"); return nil, nil }
		})
		cs := dial(s, nil)
		for _, prefix := range []string{tracePrefix, resultPrefix, EvidencePrefix, "marchwarden://", "marchwarden://trace", "MARCHWARDEN://trace/", ""} {
			for _, id := range foreign {
				if prefix == resultPrefix || prefix == tracePrefix {
					id = strings.Replace(id, "\\\\", "\\", 1)
				}
				_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: prefix + id})
				var fault *jsonrpc.Error
				if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams || len(err.Error()) > 1000 {
					t.Fatalf("%.80q: %.200v", prefix+id, err)
				}
			}
		}
		if asked := kept.questions(); len(asked) > 0 {
			t.Errorf("the records were asked for %q", asked)
		}
		if log.String() != "" {
			t.Errorf("the log: %.300s", log)
		}
	})
}

func read(t *testing.T, cs *mcp.ClientSession, uri string) (*mcp.ReadResourceResult, *jsonrpc.Error) {
	t.Helper()
	res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	var fault *jsonrpc.Error
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("%s: %v", uri, err)
	}
	return res, fault
}

// dialAs connects a caller with the SDK's client.
func dialAs(t *testing.T, s *Server, who access.Principal, era string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	session, err := s.mcp.Connect(access.With(t.Context(), who), far, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Wait() })
	return dial(t, near, era, o)
}

func TestTheContractIsAResource(t *testing.T) {
	eachLink(t, func(t *testing.T, dial func(*Server, *mcp.ClientOptions) *mcp.ClientSession) {
		s, _ := newTestServer(t, echo)
		cs := dial(s, nil)
		res, fault := read(t, cs, "marchwarden://contract")
		if fault != nil || len(res.Contents) != 1 || res.Contents[0].MIMEType != "application/json" {
			t.Fatalf("%+v, %v", res, fault)
		}
		var got struct {
			Version         string
			Request, Result any
		}
		if err := json.Unmarshal([]byte(res.Contents[0].Text), &got); err != nil {
			t.Fatal(err)
		}
		if got.Version != marchwarden.ContractVersion {
			t.Errorf("the version is %q", got.Version)
		}
		for _, schema := range []struct {
			want json.RawMessage
			got  any
		}{{marchwarden.RequestSchema(), got.Request}, {marchwarden.ResultSchema(), got.Result}} {
			var want any
			if err := json.Unmarshal(schema.want, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, schema.got); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// Only what there is to read is listed.
func TestTemplatesAsConfigured(t *testing.T) {
	for _, tc := range []struct {
		edit func(*Config)
		want []string
	}{
		{func(*Config) {}, []string{resultTemplate}},
		{func(c *Config) { c.Records = noRecords{} }, []string{resultTemplate, traceTemplate}},
		{func(c *Config) { c.Evidence = func(context.Context, string) ([]byte, error) { return nil, nil } }, []string{evidenceTemplate, resultTemplate}},
		{func(c *Config) {
			c.Records, c.Evidence = noRecords{}, func(context.Context, string) ([]byte, error) { return nil, nil }
		}, []string{evidenceTemplate, resultTemplate, traceTemplate}},
	} {
		s, _ := newTestServer(t, echo, tc.edit)
		cs := dialMemory(t, s, "2026-07-28", nil)
		list, err := cs.ListResourceTemplates(t.Context(), nil)
		if err != nil || list.CacheScope != "private" {
			t.Fatalf("%+v, %v", list, err)
		}
		var got []string
		for _, r := range list.ResourceTemplates {
			got = append(got, r.URITemplate)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("templates (-want +got):\n%s", diff)
		}
		hash := strings.Repeat("a", 64)
		for _, uri := range []string{traceTemplate, evidenceTemplate} {
			_, fault := read(t, cs, strings.NewReplacer("{id}", sample("").TraceID.String(), "{hex}", hash).Replace(uri))
			if !slices.Contains(tc.want, uri) && (fault == nil || fault.Code != jsonrpc.CodeInvalidParams) {
				t.Errorf("%s: %v", uri, fault)
			}
		}
	}
}

// What goes wrong with a resource is told by its code, and its words stay in the log.
func TestResourcesThatFail(t *testing.T) {
	id := sample("").TraceID.String()
	for _, tc := range []struct {
		fails error
		codes [3]int64 // of the trace, the result and the evidence
	}{
		{marchwarden.Errorf(marchwarden.CodeNotFound, "no such secret"), [3]int64{jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams}},
		{marchwarden.Errorf(marchwarden.CodeUnsupported, "the secret has not ended"), [3]int64{jsonrpc.CodeInternalError, jsonrpc.CodeInvalidParams, jsonrpc.CodeInternalError}},
		{marchwarden.Errorf(marchwarden.CodeCorrupt, "the secret is damaged"), [3]int64{jsonrpc.CodeInternalError, jsonrpc.CodeInternalError, jsonrpc.CodeInternalError}},
		{errors.New("secret disk on fire"), [3]int64{jsonrpc.CodeInternalError, jsonrpc.CodeInternalError, jsonrpc.CodeInternalError}},
	} {
		s, log := newTestServer(t, echo, func(c *Config) {
			c.Records = &books{fails: tc.fails}
			c.Evidence = func(context.Context, string) ([]byte, error) { return nil, tc.fails }
		})
		cs := dialMemory(t, s, "2026-07-28", nil)
		for i, uri := range []string{tracePrefix + id, resultPrefix + id, EvidencePrefix + strings.Repeat("a", 64)} {
			_, fault := read(t, cs, uri)
			if fault == nil || fault.Code != tc.codes[i] || strings.Contains(fault.Message+string(fault.Data), "secret") {
				t.Errorf("%v: %s: %v", tc.fails, uri, fault)
			}
			if fault != nil && fault.Code == jsonrpc.CodeInternalError && !strings.Contains(fault.Message, "("+string(marchwarden.CodeOf(tc.fails))+")") {
				t.Errorf("%v: %s: it says %q", tc.fails, uri, fault.Message)
			}
		}
		if logged := strings.Contains(log.String(), "secret"); logged != slices.Contains(tc.codes[:], jsonrpc.CodeInternalError) || strings.Contains(log.String(), id) {
			t.Errorf("%v: the log: %s", tc.fails, log)
		}
	}
}

// Documents arrive byte for byte: text as text, what is none or is very long as bytes,
// and what no message could carry not at all.
func TestSizesOfResources(t *testing.T) {
	if testing.Short() {
		t.Skip("moves much data")
	}
	id := sample("").TraceID.String()
	for name, tc := range map[string]struct {
		data []byte
		mime string // of the evidence
		text bool
		gone bool
	}{
		"text":       {[]byte("tomäto\n\x00\x1b <&>\u2028"), "text/plain", true, false},
		"empty":      {[]byte{}, "text/plain", false, false},
		"binary":     {[]byte{0xff, 0xfe, 0}, "application/octet-stream", false, false},
		"long":       {bytes.Repeat([]byte("x"), maxTextBytes), "text/plain", true, false},
		"very long":  {bytes.Repeat([]byte("y"), maxTextBytes+1), "text/plain", false, false},
		"over limit": {bytes.Repeat([]byte("z"), maxResourceBytes+1), "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTestServer(t, echo, func(c *Config) {
				c.Records = &books{trace: tc.data}
				c.Evidence = func(context.Context, string) ([]byte, error) { return tc.data, nil }
			})
			cs := dialMemory(t, s, "2026-07-28", nil)
			for uri, mime := range map[string]string{tracePrefix + id: "application/jsonl", EvidencePrefix + strings.Repeat("a", 64): tc.mime} {
				res, fault := read(t, cs, uri)
				if tc.gone {
					if fault == nil || fault.Code != jsonrpc.CodeInternalError || fault.Message != "it has 8388609 bytes; at most 8388608 are handed over" {
						t.Errorf("%s: %v", uri, fault)
					}
					continue
				}
				if fault != nil {
					t.Fatal(fault)
				}
				c := res.Contents[0]
				got := c.Blob
				if tc.text {
					got = []byte(c.Text)
				}
				if !bytes.Equal(got, tc.data) || c.MIMEType != mime || c.URI != uri || (tc.text && c.Blob != nil) || (!tc.text && c.Text != "") {
					t.Errorf("%s: %d bytes of %s, text %d", uri, len(c.Blob), c.MIMEType, len(c.Text))
				}
				if res.CacheScope != "private" || (res.TTLMs == evidenceTTL) != strings.HasPrefix(uri, EvidencePrefix) {
					t.Errorf("%s: %+v", uri, res.Cacheable)
				}
			}
		})
	}
	if res, err := contents(make([]byte, maxResourceBytes)); err != nil || len(res.Contents[0].Blob) != maxResourceBytes {
		t.Errorf("the largest: %v", err)
	}
}

// A run, its record and what it cites are for its caller, and for the local user; to all others it
// is as if they were not there.
func TestResourcesOfOthers(t *testing.T) {
	for _, era := range eras {
		kept := &books{trace: []byte("{}\n")}
		var stored []string
		s, _ := newTestServer(t, scripted(func(ctx context.Context, _ marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
			res := sample("yes [1]")
			res.TraceID, _ = marchwarden.ChosenTraceID(ctx)
			return res, nil
		}), func(c *Config) {
			c.Records = kept
			c.Evidence = func(_ context.Context, hash string) ([]byte, error) {
				stored = append(stored, hash)
				return []byte("text"), nil
			}
		})
		hash := strings.Repeat("ab", 32) // which sample cites
		first := dialAs(t, s, alice, era, nil)
		if _, fault := read(t, first, EvidencePrefix+hash); fault == nil {
			t.Error("a document is read before anything cites it")
		}
		made := call(t, first, map[string]any{"question": "q"})
		id := made.StructuredContent.(map[string]any)["trace_id"].(string)
		uris := []string{tracePrefix + id, resultPrefix + id, resultPrefix + strings.ToUpper(id), EvidencePrefix + hash}
		for who, sees := range map[string]bool{"token:alice": true, "token:bob": false, "anonymous": false, "local": true, "token:alice ": false, "": false} {
			cs := dialAs(t, s, access.Principal{ID: who, Scopes: access.Scopes()}, era, nil)
			before := len(kept.questions()) + len(stored)
			for _, uri := range uris {
				_, fault := read(t, cs, uri)
				if (fault == nil) != sees || (who != "" && !sees && fault.Code != jsonrpc.CodeInvalidParams) {
					t.Errorf("%s: %q reads %s: %v", era, who, uri, fault)
				}
			}
			if asked := len(kept.questions()) + len(stored) - before; (asked > 0) != sees {
				t.Errorf("%s: %q: the stores were asked %d times", era, who, asked)
			}
			if _, fault := read(t, cs, EvidencePrefix+strings.Repeat("cd", 32)); (fault == nil) != (who == "local") { // which nothing cites
				t.Errorf("%s: %q reads a document of nobody's: %v", era, who, fault)
			}
		}
	}
}
