package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

var errTooLarge = errors.New("over the limit")

// body says how much of a body is read.
type body struct {
	limit int64 // bytes, counted after decompression; as many are read from the wire at most
	cut   bool  // a longer body is cut, not refused
}

// read reads a body and undoes its compression. A body that is shorter than
// announced, or whose compression breaks off, is CodeTruncated.
func (b body) read(resp *http.Response) ([]byte, error) {
	// Limiting the wire, too, ends streams that decompress to nothing for ever.
	r := httpapi.Limit(resp.Body, b.limit, errTooLarge)
	switch coding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ", ")); coding {
	case "", "identity":
		if resp.ContentLength > b.limit && !b.cut {
			return nil, b.tooLarge()
		}
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if errors.Is(err, io.EOF) { // no body at all
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, b.explain(fmt.Errorf("gzip: %w", err))
		}
		r = httpapi.Limit(zr, b.limit, errTooLarge)
	default:
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "content encoding %.40q is not one that was asked for", coding)
	}
	raw, err := io.ReadAll(r)
	if err != nil && !(b.cut && errors.Is(err, errTooLarge)) {
		return nil, b.explain(err)
	}
	return raw, nil
}

func (b body) tooLarge() error {
	return marchwarden.Errorf(marchwarden.CodeUnavailable, "the page is larger than the limit of %d bytes", b.limit)
}

func (b body) explain(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return b.tooLarge()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return marchwarden.Wrap(err, marchwarden.CodeTruncated, "the page broke off before its end")
	}
	return err
}
