package ledger

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

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Format is the version of the lines that are written. Each line carries its own:
//
//	1  the entry alone, with neither format nor sum
//	2  the entry, "format":2, and at the end "sum": 16 hex digits over all before it
//
// Every earlier version is read. A line of a later one is left out and left alone.
const Format = 2

// maxLine bounds one line; the program writes far shorter ones.
const maxLine = 1 << 20

const (
	sumBytes = 8 // finds damage; it is no proof against forgery
	sumKey   = `,"sum":"`
	sumEnd   = `"}`
	sumLen   = len(sumKey) + 2*sumBytes + len(sumEnd)
)

// lineForm is a line without its sum.
type lineForm struct {
	Entry
	Format int `json:"format"`
}

func encodeLine(e Entry) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(lineForm{Entry: e, Format: Format}); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(buf.Bytes(), []byte("}\n"))
	return fmt.Appendf(nil, "%s%s%s%s\n", body, sumKey, sumOf(body), sumEnd), nil
}

func sumOf(body []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte("marchwarden/ledger-line/v2"), body} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil)[:sumBytes])
}

var errLater = errors.New("made by a later version")

// decodeLine reads a line without its newline.
func decodeLine(text []byte) (Entry, error) {
	tail := text[max(0, len(text)-sumLen):]
	summed := bytes.HasPrefix(tail, []byte(sumKey)) && bytes.HasSuffix(tail, []byte(sumEnd))
	if body := text[:len(text)-len(tail)]; summed && string(tail[len(sumKey):len(tail)-len(sumEnd)]) != sumOf(body) {
		return Entry{}, errors.New("its checksum does not fit")
	}
	var line lineForm
	if err := json.Unmarshal(text, &line); err != nil {
		return Entry{}, errors.New("it is torn, or no entry")
	}
	switch {
	case line.Format > Format:
		return Entry{}, fmt.Errorf("%w: it has format %d; this program reads formats 1 to %d", errLater, line.Format, Format)
	case line.Format >= 2 && !summed:
		return Entry{}, errors.New("its checksum is missing")
	case line.Time.IsZero():
		return Entry{}, errors.New("it is no entry")
	}
	return line.Entry, nil
}

// Bad is a line that cannot be used.
type Bad struct {
	Line    int // from one
	Problem string
	Later   bool // it was made by a later version, and is sound as far as can be told

	at   int64
	text []byte
}

// Read reads a ledger in the order of its lines. Lines that are torn, damaged, of a
// later format or no entry are counted in skipped and left out. A ledger that does
// not exist is empty.
func Read(path string) (entries []Entry, skipped int, err error) {
	err = scan(path, func(l scanned) {
		if l.bad != nil {
			skipped++
			return
		}
		entries = append(entries, l.entry)
	})
	if err != nil {
		return nil, 0, err
	}
	return entries, skipped, nil
}

// Check reads a ledger and names its bad lines; good counts the others. A flipped
// bit in a line of format 1 is found only if the line is no longer an entry.
func Check(path string) (good int, bad []Bad, err error) {
	err = scan(path, func(l scanned) {
		if l.bad == nil {
			good++
			return
		}
		bad = append(bad, Bad{Line: l.n, Problem: l.bad.Error(), Later: errors.Is(l.bad, errLater), at: l.at, text: l.text})
	})
	return good, bad, err
}

// Strike overwrites a bad line that Check found with blanks, which readers pass
// over, and returns what it said; nothing, if it is no longer there. The file keeps
// its length, so that others may append meanwhile.
func Strike(path string, bad Bad) (text []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open ledger %s", path)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now := make([]byte, len(bad.text))
	if _, err := f.ReadAt(now, bad.at); err != nil || !bytes.Equal(now, bad.text) {
		return nil, nil
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{' '}, len(now)), bad.at)
	if err = errors.Join(err, f.Sync()); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "strike line %d of ledger %s", bad.Line, path)
	}
	return now, nil
}

// scanned is a line as it was read.
type scanned struct {
	entry Entry
	bad   error  // why it is no entry
	n     int    // from one
	at    int64  // where its text begins
	text  []byte // as far as it was read
}

// scan calls fn for every line that is not blank.
func scan(path string, fn func(scanned)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open ledger %s", path)
	}
	defer f.Close()
	return marchwarden.Wrap(scanLines(f, fn), marchwarden.CodeUnavailable, "read ledger %s", path)
}

func scanLines(r io.Reader, fn func(scanned)) error {
	br := bufio.NewReaderSize(r, 64<<10)
	at := int64(0)
	for n := 1; ; n++ {
		line, length, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			l := scanned{n: n, at: at, text: bytes.TrimSuffix(line, []byte("\n"))}
			l.entry, l.bad = decodeLine(text)
			fn(l)
		}
		if at += length; err != nil {
			return nil
		}
	}
}

// readLine returns a line, of which it keeps about maxLine bytes, and its length.
func readLine(br *bufio.Reader) (line []byte, length int64, err error) {
	for {
		part, err := br.ReadSlice('\n')
		length += int64(len(part))
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}
