package durable

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
)

const (
	sumDigits = 16
	sumKey    = `,"sum":"`
	sumEnd    = `"}`
	sumLen    = len(sumKey) + sumDigits + len(sumEnd)
)

// ErrSum says that a line is not what was written.
var ErrSum = errors.New("its checksum does not fit")

// SealLine makes a line of a JSON object that has at least one field: it adds the
// field "sum" at the end, 16 hex digits over all before it, and a newline. The first of
// about names the kind of line: one of one kind is not sound as one of another. The
// rest is what the line depends on besides, such as the sum of the line before it.
func SealLine(object []byte, about ...string) (line []byte, sum string) {
	body := bytes.TrimSuffix(bytes.TrimSpace(object), []byte("}"))
	sum = sumOf(body, about)
	return slices.Concat(body, []byte(sumKey), []byte(sum), []byte(sumEnd+"\n")), sum
}

// CheckLine splits a line, without its newline, into what was sealed and the sum at its
// end, which is "" if there is none. One that does not fit is ErrSum.
func CheckLine(text []byte, about ...string) (body []byte, sum string, err error) {
	tail := text[max(0, len(text)-sumLen):]
	if !bytes.HasPrefix(tail, []byte(sumKey)) || !bytes.HasSuffix(tail, []byte(sumEnd)) {
		return text, "", nil
	}
	body, sum = text[:len(text)-len(tail)], string(tail[len(sumKey):len(tail)-len(sumEnd)])
	if sum != sumOf(body, about) {
		err = ErrSum
	}
	return body, sum, err
}

// sumOf is a checksum over parts, each framed by its length. It finds damage and is no proof
// against a rewritten file; a signed bundle is.
func sumOf(body []byte, about []string) string {
	h := sha256.New()
	add := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	for _, part := range about {
		add([]byte(part))
	}
	add(body)
	return hex.EncodeToString(h.Sum(nil)[:sumDigits/2])
}

// Line is a line of a file to which AppendLine appends.
type Line struct {
	N    int    // from one
	Text []byte // without its newline, and as far as it was read
	at   int64
}

// ScanLines calls fn for every line that is not blank, in order. Of a line that is
// longer than most, about so many bytes are kept.
func ScanLines(r io.Reader, most int, fn func(Line)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	at := int64(0)
	for n := 1; ; n++ {
		line, length, err := readLine(br, most)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			fn(Line{N: n, Text: bytes.TrimSuffix(line, []byte("\n")), at: at})
		}
		if at += length; err != nil {
			return nil
		}
	}
}

func readLine(br *bufio.Reader, most int) (line []byte, length int64, err error) {
	for {
		part, err := br.ReadSlice('\n')
		length += int64(len(part))
		if len(line) <= most {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}

// BadLine is a line that cannot be used.
type BadLine struct {
	Line
	Problem string
	Later   bool // it was made by a later version, and is sound as far as can be told
}

// Strike overwrites the line, in the file in which it was found, with blanks, which
// readers pass over. It reports whether it did: a line that is no longer there is
// left as it is. The file keeps its length, so that others may append meanwhile.
func (l Line) Strike(path string) (struck bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now := make([]byte, len(l.Text))
	if _, err := f.ReadAt(now, l.at); err != nil || !bytes.Equal(now, l.Text) {
		return false, nil
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{' '}, len(now)), l.at)
	return true, errors.Join(err, f.Sync())
}
