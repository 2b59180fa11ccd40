package secret

import (
	"bytes"
	"io"
	"net/http"
)

// Transport passes requests on to t and takes the secrets out of the answers, headers and bodies,
// before they are read, cut or remembered. Bodies are still read as they come.
func (r *Redactor) Transport(t http.RoundTripper) http.RoundTripper { return &transport{r, t} }

type transport struct {
	redactor *Redactor
	next     http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	for _, values := range resp.Header {
		for i, v := range values {
			values[i] = t.redactor.Text(v)
		}
	}
	resp.Body, resp.ContentLength = t.redactor.body(resp.Body), -1
	return resp, nil
}

// CloseIdleConnections is what http.Client calls.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (r *Redactor) body(rc io.ReadCloser) io.ReadCloser {
	b := &body{ReadCloser: rc}
	b.through = r.Writer(&b.clean)
	return b
}

type body struct {
	io.ReadCloser
	through *Writer
	clean   bytes.Buffer // to be read
	chunk   [16 << 10]byte
	err     error // how the body ended
}

func (b *body) Read(p []byte) (int, error) {
	for b.clean.Len() == 0 && b.err == nil {
		n, err := b.ReadCloser.Read(b.chunk[:])
		_, _ = b.through.Write(b.chunk[:n]) // a buffer takes everything
		if b.err = err; err != nil {
			_ = b.through.Flush()
		}
	}
	if b.clean.Len() > 0 {
		return b.clean.Read(p)
	}
	return 0, b.err
}
