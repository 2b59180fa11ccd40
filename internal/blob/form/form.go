// Package form owns how a blob lies on a medium: a header that is tied to the blob's
// reference, and the content, compressed where that helps. It is the same in a file, in
// an object and in messages, so that bytes can be moved between stores as they are.
//
// It does not know the media, and it does not check the digest: package blob does.
package form

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// The form of a blob, numbers big-endian:
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
// The content's digest is the blob's name. The checksums add what it cannot
// give: they find damage that would still decode to the right content (a zstd
// frame has bits without meaning), they keep damaged bytes away from the
// decoder, and they let Stat trust the length without reading the body.
//
// A change to this layout takes a new magic; "MWB1" blobs stay readable.
const (
	magic = "MWB1"

	// Raw and Zstd are the kinds of body.
	Raw  = 'r'
	Zstd = 'z'

	// HeaderLen is how many bytes come before the body, and all that Size needs.
	HeaderLen = 24
	// MaxLen is the most bytes that the form of a blob has.
	MaxLen = HeaderLen + blob.MaxSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Codec turns content into its form and back. It is safe for concurrent use and holds
// nothing that needs closing.
type Codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// New returns a codec.
func New() (*Codec, error) {
	// zstd's own checksum would only repeat ours. The window is what a page
	// needs; a larger one costs memory for every writer.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("zstd encoder: %w", err)
	}
	dec, err := decoder()
	if err != nil {
		return nil, fmt.Errorf("zstd decoder: %w", err)
	}
	return &Codec{enc: enc, dec: dec}, nil
}

func decoder(more ...zstd.DOption) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, append(more, zstd.WithDecoderMaxMemory(blob.MaxSize), zstd.WithDecodeAllCapLimit(true))...)
}

// decode is what a compressed body holds. A decoder keeps hold of the last content that it
// gave, so a large one has a decoder of its own.
func (c *Codec) decode(body []byte, size int) ([]byte, error) {
	if size < 1<<20 {
		return c.dec.DecodeAll(body, make([]byte, 0, size))
	}
	own, err := decoder(zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer own.Close()
	return own.DecodeAll(body, make([]byte, 0, size))
}

// Encode returns the form of content, compressed if that makes it shorter.
func (c *Codec) Encode(ref blob.Ref, content []byte) []byte {
	file := make([]byte, HeaderLen, HeaderLen+len(content)/2+64)
	file = c.enc.EncodeAll(content, file)
	kind := byte(Zstd)
	if len(file)-HeaderLen >= len(content) {
		kind = Raw
		file = append(file[:HeaderLen], content...)
	}
	Seal(file, ref, kind, len(content))
	return file
}

// Seal fills in the header of file, whose body is already in place. It vouches for
// whatever it is told, which is what tests of damage need.
func Seal(file []byte, ref blob.Ref, kind byte, size int) {
	copy(file, magic)
	file[4] = kind
	binary.BigEndian.PutUint64(file[8:], uint64(size))
	binary.BigEndian.PutUint32(file[16:], crc32.Checksum(file[HeaderLen:], castagnoli))
	binary.BigEndian.PutUint32(file[20:], headerSum(ref, file))
}

func headerSum(ref blob.Ref, file []byte) uint32 {
	var digest [32]byte
	// unreachable error: Hex of a valid Ref is 64 hex digits
	_, _ = hex.Decode(digest[:], []byte(ref.Hex()))
	return crc32.Update(crc32.Checksum(digest[:], castagnoli), castagnoli, file[:20])
}

// Size checks the header at the start of file and returns the length of the content.
// Its error is always blob.ErrCorrupt.
func Size(ref blob.Ref, file []byte) (int, error) {
	if len(file) < HeaderLen {
		return 0, fmt.Errorf("%w: it has %d bytes, fewer than its header", blob.ErrCorrupt, len(file))
	}
	if got := string(file[:4]); got != magic {
		return 0, fmt.Errorf("%w: it begins with %q, want %q", blob.ErrCorrupt, got, magic)
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

// Decode returns the content of file. Its error is always blob.ErrCorrupt. The
// content may lie in file's memory.
func (c *Codec) Decode(ref blob.Ref, file []byte) ([]byte, error) {
	size, err := Size(ref, file)
	if err != nil {
		return nil, err
	}
	kind, body := file[4], file[HeaderLen:]
	if binary.BigEndian.Uint32(file[16:]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: the body's checksum differs", blob.ErrCorrupt)
	}
	switch kind {
	case Raw:
	case Zstd:
		if body, err = c.decode(body, size); err != nil {
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
