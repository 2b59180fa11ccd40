package anthropic

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

var (
	errTooLarge = errors.New("the reply is too large")
	errRedirect = errors.New("the answer is a redirect")
	errNoStream = errors.New("the answer is no event stream")
)

// maxErrorBody is how much of the body of an error is read.
const maxErrorBody = 64 << 10

// doer sends requests and lets pass only what can be a reply, up to a size.
type doer struct {
	client http.Client
	max    int64
}

func newDoer(client *http.Client, maxReply int64) *doer {
	d := &doer{max: maxReply}
	if client != nil {
		d.client = *client
	} else {
		d.client.Transport = &http.Transport{
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		}
	}
	d.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return d
}

// Do sends a request without what the SDK tells about the machine.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	for name := range req.Header {
		if strings.HasPrefix(strings.ToLower(name), "x-stainless-") {
			req.Header.Del(name)
		}
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // unreadable is not text/event-stream
	switch {
	case resp.StatusCode >= 400:
		resp.Body = readCloser{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
		return resp, nil
	case resp.StatusCode >= 300:
		err = errRedirect
	case media != "text/event-stream":
		err = errNoStream
	default:
		resp.Body = httpapi.Limit(resp.Body, d.max, errTooLarge)
		return resp, nil
	}
	return nil, errors.Join(err, resp.Body.Close())
}

type readCloser struct {
	io.Reader
	io.Closer
}
