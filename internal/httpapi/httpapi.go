// Package httpapi makes one request to a web service that the user configured and reads one answer,
// small and whole: JSON, or bytes for those that speak XML. It owns the limits (size after
// decompression, time, redirects), the translation of every fault into a code, one free repetition
// where the service asks for it, and the promise that no secret is in any error, nor comes back in
// an answer. It does not fetch pages: those are untrusted and belong to package fetch. What an
// answer means is the caller's business.
//
// Who has a client of its own, for streams or for pages, finds here what every
// client needs: RetryAfter, StayAway, Limit and Sleep.
package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
)

// What holds where a Service says nothing else.
const (
	DefaultMaxBytes  = 2 << 20
	DefaultTimeout   = 20 * time.Second
	defaultUserAgent = "marchwarden"
)

// Service is one configured service. Set its fields before the first request and
// leave them alone after; then it is safe for concurrent use.
//
// Every error of its methods is a *marchwarden.Error that begins with Name:
//
//	401, 402, 403           CodeDenied, with DeniedHint
//	429                     CodeRateLimited
//	408, 504                CodeTimeout
//	other 4xx               CodeDenied if the answer speaks of a quota or a key, else CodeUnavailable
//	5xx, no connection      CodeUnavailable
//	redirect to elsewhere   CodeUnavailable
//	Timeout passed          CodeTimeout
//	ctx ended               CodeCanceled
//	empty, HTML, cut off, not JSON, over MaxBytes   CodeMalformed
//	Base is no address      CodeInvalid
//
// No error is ever CodeNotFound: that a service did not answer says nothing about
// what there is to find.
type Service struct {
	Name string // in every error, such as "tavily"
	// Base is the address that paths are joined to, such as "https://api.tavily.com". A user and
	// password in it are sent as basic authentication and treated as secrets.
	Base string
	// BaseField names the setting that Base comes from, for the error of a bad one.
	BaseField  string
	HTTP       *http.Client  // nil is a client of its own with Go's usual transport
	MaxBytes   int64         // of an answer after decompression; 0 is DefaultMaxBytes
	Timeout    time.Duration // of a call with its repetition; 0 is DefaultTimeout
	UserAgent  string        // "" is "marchwarden"
	Header     http.Header   // sent with every request, such as Authorization
	Secrets    []string      // values that must be in no error and in no answer; "" is none
	DeniedHint string        // what to check when the service refuses, such as "check TAVILY_API_KEY"
	// NoRetry turns the free repetition off. Without it, a 429 or 5xx is asked once more after the time
	// that the service names, if that is at most three seconds, or after a moment.
	NoRetry bool
}

// Get asks for path below Base and returns the bytes of the answer.
func (s *Service) Get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return s.call(ctx, request{method: http.MethodGet, path: path, query: query})
}

// GetJSON asks for path below Base and decodes the answer.
func (s *Service) GetJSON(ctx context.Context, path string, query url.Values, into any) error {
	return s.callJSON(ctx, request{method: http.MethodGet, path: path, query: query, json: true}, into)
}

// PostJSON sends body as JSON to path below Base and decodes the answer. The
// request may be sent twice, so it must be one that changes nothing.
func (s *Service) PostJSON(ctx context.Context, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return s.fail(marchwarden.CodeInternal, "", "write the request: %v", err)
	}
	return s.callJSON(ctx, request{method: http.MethodPost, path: path, body: b, json: true}, into)
}

// request is what is asked, and whether the answer has to be JSON.
type request struct {
	method, path string
	query        url.Values
	body         []byte
	json         bool
}

// errSlow is the cause of a context that Timeout ended.
var errSlow = errors.New("no answer in time")

// call sends a request and, where the service asks for it, sends it once more.
func (s *Service) call(ctx context.Context, r request) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, s.canceled(ctx)
	}
	target, err := s.target(r)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(s.Timeout, DefaultTimeout)
	inner, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	body, again, err := s.once(inner, r, target)
	if err != nil && again >= 0 && !s.NoRetry {
		if Sleep(inner, again) != nil && ctx.Err() == nil {
			return nil, err
		}
		body, _, err = s.once(inner, r, target)
	}
	switch {
	case err == nil:
		return body, nil
	case ctx.Err() != nil:
		return nil, s.canceled(ctx)
	case errors.Is(context.Cause(inner), errSlow):
		return nil, s.fail(marchwarden.CodeTimeout, "", "no answer within %v", limit)
	}
	return nil, err
}

func (s *Service) target(r request) (*url.URL, error) {
	bad := func(why string) error { // never with the address, which may hold a password
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: s.Name + ": " + cmp.Or(s.BaseField, "the address") + " " + why, Hint: "for example https://search.example"}
	}
	u, err := url.Parse(strings.TrimSpace(s.Base))
	switch {
	case err != nil:
		return nil, bad("is no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, bad("must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, bad("has no host")
	}
	u.Fragment, u.RawQuery = "", r.query.Encode()
	return u.JoinPath(r.path), nil
}

// once sends the request. With an error, again is how long to wait before another try, or negative.
func (s *Service) once(ctx context.Context, r request, target *url.URL) (body []byte, again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, -1, s.fail(marchwarden.CodeInternal, "", "make the request: %v", err)
	}
	for k, v := range s.Header {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	req.Header.Set("User-Agent", cmp.Or(s.UserAgent, defaultUserAgent))
	if r.json {
		req.Header.Set("Accept", "application/json")
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client().Do(req)
	if err != nil {
		return nil, -1, s.noAnswer(err)
	}
	defer resp.Body.Close() // what is left unread ends with the connection
	limit := cmp.Or(s.MaxBytes, DefaultMaxBytes)
	success := resp.StatusCode >= 200 && resp.StatusCode <= 299
	if !success {
		limit = min(limit, 16<<10) // only the reason is wanted
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(body)) <= limit { // else it is not used, and the end of a secret may be missing
		body = secret.New(s.secrets()...).Bytes(body)
	}
	if !success {
		again, err = s.refused(resp, body)
		return nil, again, err
	}
	return body, -1, s.unreadable(resp, body, err, r.json)
}

// client has no cookies and follows redirects to the same host only, and never from https to http.
func (s *Service) client() *http.Client {
	var c http.Client
	if s.HTTP != nil {
		c = *s.HTTP
	}
	c.Jar = nil
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		from := via[0].URL
		switch {
		case !strings.EqualFold(req.URL.Host, from.Host) || from.Scheme == "https" && req.URL.Scheme != "https":
			return elsewhere("redirects to another place, " + oneLine(req.URL.Host, 80))
		case len(via) > 3:
			return elsewhere("redirects in a circle")
		}
		return nil
	}
	return &c
}

// elsewhere stops a redirect.
type elsewhere string

func (e elsewhere) Error() string { return string(e) }

func (s *Service) noAnswer(err error) error {
	if stop, ok := errors.AsType[elsewhere](err); ok {
		return s.fail(marchwarden.CodeUnavailable, "set the address to where the service is now, if you trust it", "%s", stop)
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return s.fail(marchwarden.CodeTimeout, "", "no answer in time")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the address and its query, which may be long or secret
	}
	return s.fail(marchwarden.CodeUnavailable, "", "no answer: %v", err)
}

// unreadable says what is wrong with the body of a success, or nil.
func (s *Service) unreadable(resp *http.Response, body []byte, err error, wantJSON bool) error {
	limit := cmp.Or(s.MaxBytes, DefaultMaxBytes)
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	slow, ok := errors.AsType[net.Error](err)
	switch {
	case ok && slow.Timeout():
		return s.fail(marchwarden.CodeTimeout, "", "fell silent in the middle of an answer")
	case err != nil:
		return s.fail(marchwarden.CodeMalformed, "", "the answer broke off: %v", err)
	case int64(len(body)) > limit:
		return s.fail(marchwarden.CodeMalformed, "", "the answer is over the limit of %d bytes", limit)
	case len(bytes.TrimSpace(body)) == 0:
		return s.fail(marchwarden.CodeMalformed, "", "the answer is empty")
	case wantJSON && (mediaType == "text/html" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))):
		return s.fail(marchwarden.CodeMalformed, "check the address of the service: a login or error page may stand in its place", "the answer is a web page, not JSON")
	}
	return nil
}

func (s *Service) callJSON(ctx context.Context, r request, into any) error {
	body, err := s.call(ctx, r)
	if err != nil {
		return err
	}
	if err = json.Unmarshal(body, into); err == nil {
		return nil
	}
	if shape, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text names types of ours
		err = fmt.Errorf("%q holds a JSON %s", shape.Field, shape.Value)
	}
	return s.fail(marchwarden.CodeMalformed, "", "the answer is not the JSON it should be: %v", err)
}

// Items decodes the items of a list each for itself, so that bad ones are left out. A list that is
// missing, or has bad items only, is CodeMalformed; service names it in the error.
func Items[T any](service string, list []json.RawMessage) ([]T, error) {
	if list == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer has no list of results", service)
	}
	items := make([]T, 0, len(list))
	for _, raw := range list {
		var item T
		if json.Unmarshal(raw, &item) == nil {
			items = append(items, item)
		}
	}
	if len(items) == 0 && len(list) > 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: none of its %d results can be read", service, len(list))
	}
	return items, nil
}
