package durable

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
// against a rewritten file; a signature is.
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

// EncodeJSON writes a value and a newline, with text as it is, for people and machines.
func EncodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Line is a line of a file to which AppendLine appends.
type Line struct {
	N    int    // from one
	Text []byte // without its newline, and as far as it was read
}

// ScanLines calls fn for every line that is not blank, in order. Of a line that is
// longer than most, about so many bytes are kept.
func ScanLines(r io.Reader, most int, fn func(Line)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := ReadLine(br, most)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			fn(Line{N: n, Text: bytes.TrimSuffix(line, []byte("\n"))})
		}
		if err != nil {
			return nil
		}
	}
}

// ReadLine returns a line with its newline, or what is left with io.EOF. Of one that is longer than
// most, more than that is kept, and not all of it.
func ReadLine(br *bufio.Reader, most int) (line []byte, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(line) <= most {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// BadLine is a line that cannot be used.
type BadLine struct {
	N       int // from one
	Problem string
	Later   bool // it was made by a later version, and is sound as far as can be told
}

// Journal is a file of entries, one JSON object a line, to which several processes append. A line
// of its first format has no checksum.
type Journal[T any] struct {
	Tag    string // the kind of line; see SealLine
	What   string // an entry, in a word
	Format int    // what is written, and the latest that is read
	Most   int    // bytes of a line that is read
	Sound  func(format int, entry T) bool
}

// Append adds an entry, which says its format itself, as AppendLine does.
func (j Journal[T]) Append(path string, entry any) error {
	line, err := EncodeJSON(entry, "")
	if err != nil {
		return err
	}
	sealed, _ := SealLine(line, j.Tag)
	return AppendLine(path, sealed)
}

// Read gives the entries in their order, and what is wrong with the other lines. A file that does not exist has none.
func (j Journal[T]) Read(path string) (entries []T, bad []BadLine, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return j.Scan(f)
}

// Scan is Read for what a file holds.
func (j Journal[T]) Scan(r io.Reader) (entries []T, bad []BadLine, err error) {
	err = ScanLines(r, j.Most, func(line Line) {
		entry, problem := j.decode(bytes.TrimSpace(line.Text))
		if problem == nil {
			entries = append(entries, entry)
			return
		}
		problem.N = line.N
		bad = append(bad, *problem)
	})
	return entries, bad, err
}

func (j Journal[T]) decode(text []byte) (entry T, bad *BadLine) {
	var head struct {
		Format int `json:"format"`
	}
	_, sum, err := CheckLine(text, j.Tag)
	switch {
	case err != nil:
		return entry, &BadLine{Problem: err.Error()}
	case json.Unmarshal(text, &head) != nil || json.Unmarshal(text, &entry) != nil:
		return entry, &BadLine{Problem: "it is torn, or no " + j.What}
	case head.Format > j.Format:
		return entry, &BadLine{Problem: fmt.Sprintf("made by a later version: it has format %d; this program reads formats 1 to %d", head.Format, j.Format), Later: true}
	case head.Format >= 2 && sum == "":
		return entry, &BadLine{Problem: "its checksum is missing"}
	case !j.Sound(head.Format, entry):
		return entry, &BadLine{Problem: "it is no " + j.What}
	}
	return entry, nil
}
