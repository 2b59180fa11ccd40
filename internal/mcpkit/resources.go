package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
)

// The resources.
const (
	tracePrefix  = "marchwarden://trace/"
	resultPrefix = "marchwarden://result/"
	contractURI  = "marchwarden://contract"

	// uiExtension is the name of MCP Apps, appURI where the view is, and appType what it is.
	uiExtension = "io.modelcontextprotocol/ui"
	appURI      = "ui://marchwarden/result.html"
	appType     = "text/html;profile=mcp-app"
)

const (
	// maxResourceBytes is the largest resource that is handed over.
	maxResourceBytes = 8 << 20
	// maxTextBytes is the longest text that is sent as such, and not as bytes: escaped it still fits.
	maxTextBytes = 2 << 20
	// evidenceTTL, in milliseconds, is a week: a hash names one content, and 32 bits must do.
	evidenceTTL = 7 * 24 * 3600 * 1000
)

// appMeta says what the view may do in a host: nothing but be shown. It loads nothing.
var appMeta = mcp.Meta{"ui": map[string]any{
	"csp":           map[string]any{"connectDomains": []string{}, "resourceDomains": []string{}, "frameDomains": []string{}, "baseUriDomains": []string{}},
	"prefersBorder": true,
}}

// Records are the runs of the past. The server asks for those only that its caller may
// see; CodeNotFound says that there is none. It is called from several goroutines.
type Records interface {
	// Trace gives the lines of a run's record, as far as it has come.
	Trace(ctx context.Context, id marchwarden.TraceID) ([]byte, error)
	// Size is how long the record is, and whether the run has ended.
	Size(ctx context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error)
	// Result gives the result of a run that has ended.
	Result(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error)
	// SoFar gives what a run has found that goes on, or nil.
	SoFar(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error)
}

// App is a view of results for hosts that show HTML of servers (MCP Apps).
type App struct {
	// Page is the page that the host loads, once.
	Page []byte
	// Body gives one result as HTML for that page.
	Body func(*marchwarden.Result) (string, error)
}

func (s *Server) addResources() {
	contract, _ := json.Marshal(struct { // schemas always marshal
		Version string          `json:"version"`
		Request json.RawMessage `json:"request"`
		Result  json.RawMessage `json:"result"`
	}{marchwarden.ContractVersion, marchwarden.RequestSchema(), marchwarden.ResultSchema()})
	s.addFixed(&mcp.Resource{URI: contractURI, Name: "contract", Title: "The research contract", MIMEType: "application/json",
		Description: "The version of the contract that research keeps, with the schemas of its request and its result."}, contract)
	if s.cfg.App != nil {
		s.addFixed(&mcp.Resource{URI: appURI, Name: "result-view", Title: "View of a result", MIMEType: appType,
			Description: "Shows a result with its evidence, in hosts that can.", Meta: appMeta}, s.cfg.App.Page)
	}
	if s.cfg.Evidence != nil {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: EvidencePrefix + "{hex}", Name: "evidence", Title: "Stored evidence",
			Description: "The stored content that a citation's content_hash names, byte for byte."}, s.measured(s.evidence))
	}
	s.addOfRun(&mcp.ResourceTemplate{URITemplate: resultPrefix, Name: "result", Title: "Result of a run", MIMEType: "application/json",
		Description: "The result of the run that a trace_id names; of one that goes on, what there is."},
		func(ctx context.Context, id marchwarden.TraceID) ([]byte, error) {
			res, err := s.resultOf(ctx, id)
			if err != nil {
				return nil, err
			}
			return marchwarden.EncodeResult(res)
		})
	if s.cfg.Records != nil {
		s.addOfRun(&mcp.ResourceTemplate{URITemplate: tracePrefix, Name: "trace", Title: "Record of a run", MIMEType: "application/jsonl",
			Description: "Every step of the run that a trace_id names, one JSON object a line. Subscribe to follow it."},
			func(ctx context.Context, id marchwarden.TraceID) ([]byte, error) {
				if size, _, err := s.cfg.Records.Size(ctx, id); err == nil && size > maxResourceBytes { // and is not read at all
					return nil, tooLarge(size)
				}
				return s.cfg.Records.Trace(ctx, id)
			})
	}
}

// addFixed serves what is always the same.
func (s *Server) addFixed(r *mcp.Resource, data []byte) {
	s.mcp.AddResource(r, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		res, err := contents(data)
		if err == nil {
			res.Contents[0].Meta = r.Meta
		}
		return res, err
	})
}

// addOfRun serves what read gives of a run, to those who may see it. The id follows the URI of the template.
func (s *Server) addOfRun(t *mcp.ResourceTemplate, read func(context.Context, marchwarden.TraceID) ([]byte, error)) {
	prefix := t.URITemplate
	t.URITemplate += "{id}"
	s.mcp.AddResourceTemplate(t, s.measured(func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		id, ok := idIn(uri, prefix)
		if !ok || !s.runs.Owns(ctx, id) {
			return nil, notFound(uri)
		}
		data, err := read(ctx, id)
		if err != nil {
			return nil, s.unreadable(uri, err)
		}
		return contents(data)
	}))
}

// idIn is the id in an address of a run, if it is one.
func idIn(uri, prefix string) (marchwarden.TraceID, bool) {
	text, ok := strings.CutPrefix(uri, prefix)
	if !ok {
		return marchwarden.TraceID{}, false
	}
	id, err := marchwarden.ParseTraceID(text)
	return id, err == nil
}

// notFound is the one answer for what is not there, has another owner, or is no address at all.
func notFound(uri string) error {
	data, _ := json.Marshal(map[string]string{"uri": Clip(Plain(uri), MaxProgressChars)}) // text always marshals
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Resource not found", Data: data}
}

// sound is the error of a read. What the SDK says of an unknown address may be no JSON, and would
// never be sent.
func sound(req mcp.Request, err error) error {
	fault, told := errors.AsType[*jsonrpc.Error](err)
	if read, ok := req.(*mcp.ReadResourceRequest); ok && told && fault.Code == jsonrpc.CodeInvalidParams {
		return notFound(read.Params.URI)
	}
	return err
}

// unreadable is the answer when something that is there cannot be given.
func (s *Server) unreadable(uri string, err error) error {
	_, told := errors.AsType[*jsonrpc.Error](err)
	code := marchwarden.CodeOf(err)
	switch {
	case code == marchwarden.CodeNotFound:
		return notFound(uri)
	case code == marchwarden.CodeCanceled || told:
		return err
	}
	s.cfg.Log.Error("a resource could not be read", "resource", uri[:strings.LastIndexByte(uri, '/')], "error", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("it could not be read (%s); the server's log has the details", code)}
}

func tooLarge(bytes int64) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("it has %d bytes; at most %d are handed over", bytes, maxResourceBytes)}
}

// contents wraps text or bytes; both arrive as they are.
func contents(data []byte) (*mcp.ReadResourceResult, error) {
	if len(data) > maxResourceBytes {
		return nil, tooLarge(int64(len(data)))
	}
	content := &mcp.ResourceContents{Text: string(data)}
	if len(data) == 0 || len(data) > maxTextBytes || !utf8.Valid(data) {
		content = &mcp.ResourceContents{Blob: append([]byte{}, data...)}
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
}

func (s *Server) evidence(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	hex, ok := strings.CutPrefix(uri, EvidencePrefix)
	if !ok || !s.runs.MaySee(ctx, "sha256:"+hex) {
		return nil, notFound(uri)
	}
	data, err := s.cfg.Evidence(ctx, "sha256:"+hex)
	if err != nil {
		return nil, s.unreadable(uri, err)
	}
	res, err := contents(data)
	if err != nil {
		return nil, err
	}
	res.TTLMs, res.Contents[0].MIMEType = evidenceTTL, "text/plain"
	if !utf8.Valid(data) {
		res.Contents[0].MIMEType = "application/octet-stream"
	}
	return res, nil
}

// resultOf is the result of a run, or what there is of one that goes on.
func (s *Server) resultOf(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	run, err := s.runs.Find(ctx, id)
	working := err == nil && run.State().Status == runs.Working
	if err == nil && !working {
		if res, failed := run.Outcome(); failed == nil {
			return res, nil
		}
	}
	if s.cfg.Records != nil && (!working || s.ended(ctx, id)) { // another process may have ended it meanwhile, such as a command
		res, err := s.cfg.Records.Result(ctx, id)
		if err == nil || !working && marchwarden.CodeOf(err) != marchwarden.CodeUnsupported { // which says that it did not end
			return res, err
		}
	}
	if working {
		return s.sofar(ctx, run), nil
	}
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no result of %s", id)
}

// ended tells whether a run has ended by its record.
func (s *Server) ended(ctx context.Context, id marchwarden.TraceID) bool {
	if s.cfg.Records == nil {
		return false
	}
	_, ended, err := s.cfg.Records.Size(ctx, id)
	return err == nil && ended
}

func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	uri := req.Params.URI
	id, ok := idIn(uri, tracePrefix)
	if !ok {
		id, ok = idIn(uri, resultPrefix)
	}
	// In one spelling only: a client that follows one run in many would take the room of others.
	if !ok || !strings.HasSuffix(uri, id.String()) || !s.runs.Owns(ctx, id) {
		return notFound(uri)
	}
	size, _, err := s.cfg.Records.Size(ctx, id)
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound { // the run may not have written its first line yet
		_, err = s.runs.Find(ctx, id)
	}
	if err != nil {
		return s.unreadable(uri, err)
	}
	if err := s.live.follow(req.Session, uri, id, size); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return nil
}

func (s *Server) unsubscribe(_ context.Context, req *mcp.UnsubscribeRequest) error {
	s.live.leave(req.Session, req.Params.URI)
	return nil
}

const (
	// followEvery is how often a followed record is looked at.
	followEvery = 500 * time.Millisecond
	// maxFollowed bounds the records that are followed at once.
	maxFollowed = 1000
)

// tails are the records that clients follow: whenever one has grown, its followers are told. A record
// is polled, so that runs of other processes are followed, too. They are safe for concurrent use.
type tails struct {
	size func(context.Context, marchwarden.TraceID) (bytes int64, ended bool, err error)
	tell func(ctx context.Context, name string) error

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex // guards what follows
	tail map[string]*tail
}

type tail struct {
	followers map[any]bool
	stop      context.CancelFunc
}

// newTails makes empty tails. size says how long a record is and whether its run has ended; CodeNotFound
// says that there is none yet. tell gets the name under which a record is followed; its error ends that.
func newTails(size func(context.Context, marchwarden.TraceID) (int64, bool, error), tell func(ctx context.Context, name string) error) *tails {
	t := &tails{size: size, tell: tell, tail: map[string]*tail{}}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// close ends all following and returns when no client will be told any more.
func (t *tails) close() {
	t.mu.Lock()
	t.end()
	t.mu.Unlock()
	t.work.Wait()
}

// follow has who follow the record of a run under a name, from a size on and until the
// run has ended. CodeUnavailable says that as many are followed as can be.
func (t *tails) follow(who any, name string, id marchwarden.TraceID, from int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.tail[name]
	if own == nil {
		if len(t.tail) >= maxFollowed || t.life.Err() != nil {
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "no more runs can be followed now; try again later")
		}
		ctx, stop := context.WithCancel(t.life)
		own = &tail{map[any]bool{}, stop}
		t.tail[name] = own
		t.work.Go(func() {
			defer stop()
			t.watch(ctx, name, id, from)
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.tail[name] == own {
				delete(t.tail, name)
			}
		})
	}
	own.followers[who] = true
	return nil
}

// leave ends what who has begun, and nothing of others.
func (t *tails) leave(who any, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.tail[name]
	if known == nil {
		return
	}
	if delete(known.followers, who); len(known.followers) == 0 {
		delete(t.tail, name)
		known.stop()
	}
}

func (t *tails) watch(ctx context.Context, name string, id marchwarden.TraceID, known int64) {
	for httpapi.Sleep(ctx, followEvery) == nil {
		size, ended, err := t.size(ctx, id)
		if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			return // a record that cannot be read does not grow
		}
		if size != known || ended {
			known = size
			if t.tell(ctx, name) != nil {
				return // the connection notices its own faults
			}
		}
		if ended {
			return
		}
	}
}
