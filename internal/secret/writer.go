package secret

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// Writer passes on what is written to it without the secrets that its redactor knows at that time.
// Where a write ends in what may be the beginning of a secret, the word that it stands in waits for
// the next write, or for Flush; the end of a line never waits. It is safe for concurrent use.
type Writer struct {
	redactor *Redactor
	to       io.Writer

	mu   sync.Mutex // guards held, and the order of writes
	held []byte
}

// Writer makes a writer before w. Call its Flush at the end; closing w stays the caller's.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{redactor: r, to: w} }

// Unwrap is where the writer writes to.
func (w *Writer) Unwrap() io.Writer { return w.to }

// Write takes p. It reports all of p as written unless writing fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.redactor.spellings()
	if known == nil {
		return w.to.Write(p)
	}
	b := p
	if len(w.held) > 0 {
		b = append(w.held, p...)
	}
	w.held = nil
	ready, rest := known.split(b)
	if len(rest) > 0 {
		w.held = append([]byte(nil), rest...) // p is the caller's
	}
	if len(ready) == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(ready); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on what waits: it was no secret after all.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return nil
	}
	b := w.redactor.Bytes(w.held)
	w.held = nil
	_, err := w.to.Write(b)
	return err
}

// maxWord bounds what waits: a longer text without a space is no address.
const maxWord = 64 << 10

// split takes the secrets out of b, but for its end that may be the beginning of one.
func (k *spellings) split(b []byte) (ready, rest []byte) {
	word := 1 + bytes.LastIndexFunc(b, func(r rune) bool { return r == '\n' || r < 0x20 || r == ' ' && !k.spaces })
	word = max(word, len(b)-maxWord)
	if !k.begun(b[word:]) {
		word = len(b)
	}
	return k.replace(b[:word]), b[word:]
}

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
