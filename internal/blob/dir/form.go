package dir

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// The form of a blob's file, numbers big-endian:
//
//	offset  bytes  what
//	     0      4  "MWB1": a Marchwarden blob, form 1
//	     4      1  'r' if the body is the content, 'z' if it is one zstd frame of it
//	     5      3  zero
//	     8      8  length of the content
//	    16      4  CRC-32C of the body
//	    20      4  CRC-32C of the blob's 32 digest bytes followed by bytes 0 to 19
//	    24      …  body
//
// The content's digest is the file's name. The checksums add what it cannot
// give: they find damage that would still decode to the right content (a zstd
// frame has bits without meaning), they keep damaged bytes away from the
// decoder, and they let Stat trust the length without reading the body.
//
// A change to this layout takes a new magic; "MWB1" files stay readable.
const (
	magic     = "MWB1"
	bodyRaw   = 'r'
	bodyZstd  = 'z'
	headerLen = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A codec turns content into a file's bytes and back. It is safe for concurrent
// use.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec() (*codec, error) {
	// zstd's own checksum would only repeat ours. The window is what a page
	// needs; a larger one costs memory for every writer.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(blob.MaxSize), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	return &codec{enc: enc, dec: dec}, nil
}

// encode returns the bytes of the file for content, compressed if that makes
// them fewer.
func (c *codec) encode(ref blob.Ref, content []byte) []byte {
	file := make([]byte, headerLen, headerLen+len(content)/2+64)
	file = c.enc.EncodeAll(content, file)
	kind := byte(bodyZstd)
	if len(file)-headerLen >= len(content) {
		kind = bodyRaw
		file = append(file[:headerLen], content...)
	}
	putHeader(file, ref, kind, len(content))
	return file
}

// putHeader fills in the header of file, whose body is already in place.
func putHeader(file []byte, ref blob.Ref, kind byte, size int) {
	copy(file, magic)
	file[4] = kind
	binary.BigEndian.PutUint64(file[8:], uint64(size))
	binary.BigEndian.PutUint32(file[16:], crc32.Checksum(file[headerLen:], castagnoli))
	binary.BigEndian.PutUint32(file[20:], headerSum(ref, file))
}

func headerSum(ref blob.Ref, file []byte) uint32 {
	var digest [32]byte
	// unreachable error: Hex of a valid Ref is 64 hex digits
	_, _ = hex.Decode(digest[:], []byte(ref.Hex()))
	return crc32.Update(crc32.Checksum(digest[:], castagnoli), castagnoli, file[:20])
}

// contentSize checks the header at the start of file and returns the length of
// the content. Its error is always blob.ErrCorrupt.
func contentSize(ref blob.Ref, file []byte) (int, error) {
	if len(file) < headerLen {
		return 0, fmt.Errorf("%w: the file has %d bytes, fewer than its header", blob.ErrCorrupt, len(file))
	}
	if got := string(file[:4]); got != magic {
		return 0, fmt.Errorf("%w: the file begins with %q, want %q", blob.ErrCorrupt, got, magic)
	}
	if binary.BigEndian.Uint32(file[20:]) != headerSum(ref, file) {
		return 0, fmt.Errorf("%w: the header's checksum differs", blob.ErrCorrupt)
	}
	size := binary.BigEndian.Uint64(file[8:])
	if size > blob.MaxSize {
		return 0, fmt.Errorf("%w: the header says %d bytes, the limit is %d", blob.ErrCorrupt, size, blob.MaxSize)
	}
	return int(size), nil
}

// decode returns the content of file. Its error is always blob.ErrCorrupt. The
// content may lie in file's memory.
func (c *codec) decode(ref blob.Ref, file []byte) ([]byte, error) {
	size, err := contentSize(ref, file)
	if err != nil {
		return nil, err
	}
	kind, body := file[4], file[headerLen:]
	if binary.BigEndian.Uint32(file[16:]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: the body's checksum differs", blob.ErrCorrupt)
	}
	switch kind {
	case bodyRaw:
	case bodyZstd:
		if body, err = c.dec.DecodeAll(body, make([]byte, 0, size)); err != nil {
			return nil, fmt.Errorf("%w: zstd: %w", blob.ErrCorrupt, err)
		}
	default:
		return nil, fmt.Errorf("%w: unknown kind of body %q", blob.ErrCorrupt, kind)
	}
	if len(body) != size {
		return nil, fmt.Errorf("%w: %d bytes of content, the header says %d", blob.ErrCorrupt, len(body), size)
	}
	return body, nil
}
