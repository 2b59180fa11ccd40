package blob

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"
)

// The form of a blob is how it lies in a file, an object or messages: a header that is
// tied to the blob's reference, and the content, compressed where that helps. So bytes can
// be moved between stores as they are. Numbers are big-endian:
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

	// RawBody and ZstdBody are the kinds of body.
	RawBody  = 'r'
	ZstdBody = 'z'

	// FormHeader is how many bytes come before the body, and all that FormSize needs.
	FormHeader = 24
	// MaxForm is the most bytes that the form of a blob has.
	MaxForm = FormHeader + MaxSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Codec turns content into its form and back. It is safe for concurrent use and holds
// nothing that needs closing.
type Codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// NewCodec returns a codec.
func NewCodec() (*Codec, error) {
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
	return zstd.NewReader(nil, append(more, zstd.WithDecoderMaxMemory(MaxSize), zstd.WithDecodeAllCapLimit(true))...)
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
func (c *Codec) Encode(ref Ref, content []byte) []byte {
	file := make([]byte, FormHeader, FormHeader+len(content)/2+64)
	file = c.enc.EncodeAll(content, file)
	kind := byte(ZstdBody)
	if len(file)-FormHeader >= len(content) {
		kind = RawBody
		file = append(file[:FormHeader], content...)
	}
	Seal(file, ref, kind, len(content))
	return file
}

// Seal fills in the header of file, whose body is already in place. It vouches for
// whatever it is told, which is what tests of damage need.
func Seal(file []byte, ref Ref, kind byte, size int) {
	copy(file, magic)
	file[4] = kind
	binary.BigEndian.PutUint64(file[8:], uint64(size))
	binary.BigEndian.PutUint32(file[16:], crc32.Checksum(file[FormHeader:], castagnoli))
	binary.BigEndian.PutUint32(file[20:], headerSum(ref, file))
}

func headerSum(ref Ref, file []byte) uint32 {
	return crc32.Update(crc32.Checksum(ref.sum[:], castagnoli), castagnoli, file[:20])
}

// FormSize checks the header at the start of file and returns the length of the content.
// Its error is always blob.ErrCorrupt.
func FormSize(ref Ref, file []byte) (int, error) {
	if len(file) < FormHeader {
		return 0, fmt.Errorf("%w: it has %d bytes, fewer than its header", ErrCorrupt, len(file))
	}
	if got := string(file[:4]); got != magic {
		return 0, fmt.Errorf("%w: it begins with %q, want %q", ErrCorrupt, got, magic)
	}
	if binary.BigEndian.Uint32(file[20:]) != headerSum(ref, file) {
		return 0, fmt.Errorf("%w: the header's checksum differs", ErrCorrupt)
	}
	size := binary.BigEndian.Uint64(file[8:])
	if size > MaxSize {
		return 0, fmt.Errorf("%w: the header says %d bytes, the limit is %d", ErrCorrupt, size, MaxSize)
	}
	return int(size), nil
}

// Decode returns the content of file. Its error is always blob.ErrCorrupt. The
// content may lie in file's memory.
func (c *Codec) Decode(ref Ref, file []byte) ([]byte, error) {
	size, err := FormSize(ref, file)
	if err != nil {
		return nil, err
	}
	kind, body := file[4], file[FormHeader:]
	if binary.BigEndian.Uint32(file[16:]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("%w: the body's checksum differs", ErrCorrupt)
	}
	switch kind {
	case RawBody:
	case ZstdBody:
		if body, err = c.decode(body, size); err != nil {
			return nil, fmt.Errorf("%w: zstd: %w", ErrCorrupt, err)
		}
	default:
		return nil, fmt.Errorf("%w: unknown kind of body %q", ErrCorrupt, kind)
	}
	if len(body) != size {
		return nil, fmt.Errorf("%w: %d bytes of content, the header says %d", ErrCorrupt, len(body), size)
	}
	return body, nil
}
