package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

var (
	errTooLarge = errors.New("the reply is too large")
	errRedirect = errors.New("the answer is a redirect")
	errNoStream = errors.New("the answer is no event stream")
)

// apiVersion is the version of the API that requests are written for.
const apiVersion = "2023-06-01"

// maxErrorBody is how much of the body of an error is read.
const maxErrorBody = 64 << 10

// refusal is an error that the provider reports, in place of a reply or inside one.
type refusal struct {
	status  int
	header  http.Header
	kind    string // such as "overloaded_error", or ""
	message string
	detail  string // a code of its details, or ""
}

func (r *refusal) Error() string { return r.message }

// newRefusal reads the body of an error. One of another form has no message for people.
func newRefusal(status int, header http.Header, body []byte) *refusal {
	var said struct {
		Error struct {
			Type    string
			Message string
			Details struct {
				Code string `json:"error_code"`
			}
		}
	}
	_ = json.Unmarshal(body, &said)
	return &refusal{status: status, header: header, kind: said.Error.Type, message: said.Error.Message, detail: said.Error.Details.Code}
}

// newClient is a client that follows no redirect; without one to start from, it uses no proxy.
func newClient(from *http.Client) *http.Client {
	c := http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}}
	if from != nil {
		c = *from
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// send posts a request and returns the event stream that answers it, bounded in size.
func (m *Model) send(ctx context.Context, body []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", apiVersion)
	req.Header.Set("User-Agent", "marchwarden")
	if m.key != "" {
		req.Header.Set("X-Api-Key", m.key)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // unreadable is not text/event-stream
	switch {
	case resp.StatusCode >= 400:
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // the status says enough
		err = newRefusal(resp.StatusCode, resp.Header, said)
	case resp.StatusCode >= 300:
		err = errRedirect
	case media != "text/event-stream":
		err = errNoStream
	default:
		return httpapi.Limit(resp.Body, m.maxReply, errTooLarge), nil
	}
	return nil, errors.Join(err, resp.Body.Close())
}
