package web

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
)

// maxWindow is the most memory that a zstd stream over HTTP may ask for
// (RFC 9659). The other decoders are bound by their formats: gzip to 32 KiB,
// brotli to 16 MiB.
const maxWindow = 8 << 20

// maxCodings bounds how many compressions lie over each other.
const maxCodings = 2

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
	codings := codings(resp.Header)
	if len(codings) == 0 && resp.ContentLength > b.limit && !b.cut {
		return nil, b.tooLarge()
	}
	if len(codings) > maxCodings {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "it is compressed %d times over", len(codings))
	}
	for _, coding := range slices.Backward(codings) {
		decoded, err := decompress(coding, r)
		if err != nil {
			return nil, b.explain(err)
		}
		defer decoded.Close()
		r = decoded
	}
	pieces, err := gather(httpapi.Limit(r, b.limit, errTooLarge))
	if err != nil && !(b.cut && errors.Is(err, errTooLarge)) {
		return nil, b.explain(err)
	}
	return slices.Concat(pieces...), nil
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

// codings lists the compressions of a body in the order they were applied.
func codings(header http.Header) []string {
	var list []string
	for _, value := range header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(value, ",") {
			if coding = strings.ToLower(strings.TrimSpace(coding)); coding != "" && coding != "identity" {
				list = append(list, coding)
			}
		}
	}
	return list
}

// decompress undoes one compression. The caller closes the reader.
func decompress(coding string, r io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(r)
		if errors.Is(err, io.EOF) { // no body at all
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return zr, nil
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		zr, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return zr.IOReadCloser(), nil
	}
	return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "content encoding %.40q is not one that was asked for", coding)
}

// gather reads to the end. It grows by pieces that are joined last, so that a
// large body costs twice its size at most; io.ReadAll would cost more (TestBombs). On an error what was read comes with
// it, in pieces.
func gather(r io.Reader) ([][]byte, error) {
	const smallest, largest = 32 << 10, 1 << 20
	var pieces [][]byte
	for size := smallest; ; size = min(2*size, largest) {
		piece, filled := make([]byte, size), 0
		var err error
		for filled < size && err == nil {
			var n int
			n, err = r.Read(piece[filled:])
			filled += n
		}
		pieces = append(pieces, piece[:filled])
		if err == io.EOF { // as it is, never wrapped: that is how a reader says that it ended well
			return pieces, nil
		}
		if err != nil {
			return pieces, err
		}
	}
}
