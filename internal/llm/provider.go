package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// What the adapters of all providers share.

// Fault is a failed call: the error, and what to do about it.
type Fault struct {
	Err   *marchwarden.Error
	Retry bool          // the same call may succeed later
	Wait  time.Duration // what the provider asked to wait, or 0

	Status int    // by which the provider refused the request, or 0
	Said   string // what it said then, in lower case
}

// NewFault makes the fault of a call. The hint may be "".
func NewFault(code marchwarden.Code, retry bool, hint, format string, args ...any) *Fault {
	e := marchwarden.Errorf(code, format, args...)
	e.Hint = hint
	return &Fault{Err: e, Retry: retry}
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// Retryable reports whether the same call may succeed later.
func (f *Fault) Retryable() bool { return f.Retry }

// RetryAfter is the wait that the provider asked for, if it did.
func (f *Fault) RetryAfter() (time.Duration, bool) { return f.Wait, f.Wait > 0 }

// Config says which model of a provider is asked, and where.
type Config struct {
	Provider string        // the first part of the ID; of use for a protocol that several speak
	Key      string        // the API key; "" sends none, which a local server may accept
	BaseURL  string        // where the API is, such as "http://localhost:11434/v1"; "" is the provider's own address
	Model    string        // the name that the provider knows
	HTTP     *http.Client  // sends the requests; nil is a client of its own that uses no proxy
	Idle     time.Duration // how long nothing of a reply may come, signs of life not counted; 0 is a minute
	MaxReply int64         // the most bytes of a reply; 0 is 8 MiB
}

// Wire is the way to a model of a provider: one streaming request a call. Redirects are never followed: they
// would carry key and text elsewhere.
type Wire struct {
	Config
	Address string      // where requests are sent; "" where the base URL is unusable, which every call says
	Header  http.Header // what is sent with every request, the key among it
	Hints   Hints

	secrets []string // that no error repeats and no reply holds
	client  http.Client
	hide    *secret.Redactor
}

// Hints say what to do about a provider's faults.
type Hints struct {
	Silent, Lost string // it sends nothing, or is not reached
	Address      string // something else is at its address
	Key          string // it refuses the key
	Model        string // it does not know the model
	Spend        string // the account has no money left
}

// Base is the address below which an API is, or nil for none that can be used.
func Base(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return u
}

// Open makes a wire ready for calls.
func (w Wire) Open() *Wire {
	w.Idle, w.MaxReply = cmp.Or(w.Idle, time.Minute), cmp.Or(w.MaxReply, 8<<20)
	w.client = *cmp.Or(w.HTTP, &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true}})
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	w.secrets = httpapi.SecretsOf(w.Key, w.BaseURL)
	w.hide = secret.New(w.secrets...)
	return &w
}

// Why a reply could not be read. A reader may also return an error of the connection, or a Fault of its own.
var (
	ErrGarbled = errors.New("the reply has a part that is no JSON")
	ErrCut     = errors.New("the reply broke off")

	errTooLarge = errors.New("the reply is over its limit")
	errSilent   = errors.New("nothing came for too long")
)

// Answer is what a provider answers a request, for those who read a reply.
type Answer struct {
	Media  string // its media type
	Header http.Header
	Body   io.Reader
	// Alive says that a piece of the reply has come: the next has to come within most, and within Idle.
	Alive func(most time.Duration)
}

// Ask sends the request of a call and has read take in the reply. After a failure, what was heard tells by Lost
// what the call may have cost.
func (w *Wire) Ask(parent context.Context, c Call, body []byte, read func(*Heard, Answer) error) (h *Heard, failed *Fault) {
	h = &Heard{wire: w, call: c, slots: map[int64]*heardCall{}}
	if w.Address == "" {
		return h, NewFault(marchwarden.CodeInvalid, false, w.Hints.Address, "the base URL of %s is no http or https address", w.Provider)
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watch := time.AfterFunc(w.Idle, func() { cancel(errSilent) })
	defer watch.Stop()
	var sent atomic.Bool
	res, err := w.send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(sent.Load() || i.Err == nil) },
	}), body)
	if err == nil {
		defer func() { _ = res.Body.Close() }() // what was not read is not wanted
		res.Body = httpapi.Limit(res.Body, w.MaxReply, errTooLarge)
		media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // one that cannot be read is none
		if err = w.refusal(res, media); err == nil {
			h.opened = true
			err = read(h, Answer{media, res.Header, res.Body, func(most time.Duration) { watch.Reset(min(w.Idle, most)) }})
		}
	}
	if err == nil {
		return h, nil
	}
	failed = w.fault(parent, ctx, err, res != nil)
	// A request that went out, and of which nothing is known, may have cost something.
	waited := failed.Err.Code == marchwarden.CodeTimeout || failed.Err.Code == marchwarden.CodeCanceled
	h.opened = h.opened || res == nil && waited && sent.Load()
	return h, failed
}

func (w *Wire) send(ctx context.Context, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"marchwarden"}}
	for name, values := range w.Header {
		req.Header[name] = values
	}
	return w.client.Do(req)
}

func (w *Wire) fault(parent, ctx context.Context, err error, answered bool) *Fault {
	var own *Fault
	var late interface{ Timeout() bool }
	var at *url.Error
	switch {
	case parent.Err() != nil:
		f := NewFault(marchwarden.CodeCanceled, false, "", "the call to %s was canceled", w.Provider)
		f.Err.Err = parent.Err()
		return f
	case errors.Is(context.Cause(ctx), errSilent):
		return NewFault(marchwarden.CodeTimeout, true, w.Hints.Silent, "%s sent nothing for %s", w.Provider, w.Idle)
	case errors.As(err, &own):
		return own
	case errors.As(err, &late) && late.Timeout():
		return NewFault(marchwarden.CodeTimeout, true, w.Hints.Lost, "the connection to %s at %s timed out", w.Provider, w.Host())
	case errors.Is(err, errTooLarge), errors.Is(err, bufio.ErrTooLong):
		return NewFault(marchwarden.CodeMalformed, false, "", "the reply of %s is over %d bytes", w.Provider, w.MaxReply)
	case errors.Is(err, ErrGarbled):
		return NewFault(marchwarden.CodeMalformed, true, "", "the reply of %s has a part that is no JSON", w.Provider)
	case answered:
		return NewFault(marchwarden.CodeTruncated, true, "", "the reply of %s broke off in the middle", w.Provider)
	case errors.As(err, &at): // it repeats the address
		err = at.Err
	}
	return NewFault(marchwarden.CodeUnavailable, true, w.Hints.Lost, "%s cannot be reached at %s: %s", w.Provider, w.Host(), w.Said(err.Error()))
}

// Host is where the provider is, for people.
func (w *Wire) Host() string {
	u, err := url.Parse(w.Address)
	if err != nil {
		return w.Provider
	}
	return u.Host
}

// Said makes a provider's words fit for an error.
func (w *Wire) Said(words string) string { return httpapi.Said(words, w.secrets) }

// Clean is a reply without the secrets: a provider has the key, and what it sends back is recorded.
func (w *Wire) Clean(r Reply) Reply {
	r.Text = w.hide.Text(r.Text)
	for i, c := range r.Calls {
		r.Calls[i] = ToolCall{Name: w.hide.Text(c.Name), Input: w.hide.Bytes(c.Input)}
	}
	return r
}

// Decode reads JSON of a provider. A field of another type is as good as none.
func Decode(data []byte, into any) error {
	var odd *json.UnmarshalTypeError
	if err := json.Unmarshal(data, into); err != nil && !errors.As(err, &odd) {
		return ErrGarbled
	}
	return nil
}

// ToolInput is the input of a tool call as JSON: none is an empty object, what is no JSON a JSON string of it.
func ToolInput(said string) json.RawMessage {
	switch {
	case strings.TrimSpace(said) == "":
		return json.RawMessage(`{}`)
	case json.Valid([]byte(said)):
		return json.RawMessage(said)
	}
	quoted, _ := json.Marshal(said) // a string always marshals
	return quoted
}
