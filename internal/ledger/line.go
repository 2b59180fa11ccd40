package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
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

const lineTag = "marchwarden/ledger-line/v2"

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
	line, _ := durable.SealLine(buf.Bytes(), lineTag)
	return line, nil
}

var errLater = errors.New("made by a later version")

func decodeLine(text []byte) (Entry, error) {
	_, sum, err := durable.CheckLine(text, lineTag)
	if err != nil {
		return Entry{}, err
	}
	var line lineForm
	if err := json.Unmarshal(text, &line); err != nil {
		return Entry{}, errors.New("it is torn, or no entry")
	}
	switch {
	case line.Format > Format:
		return Entry{}, fmt.Errorf("%w: it has format %d; this program reads formats 1 to %d", errLater, line.Format, Format)
	case line.Format >= 2 && sum == "":
		return Entry{}, errors.New("its checksum is missing")
	case line.Time.IsZero():
		return Entry{}, errors.New("it is no entry")
	}
	return line.Entry, nil
}

// Read reads a ledger in the order of its lines. Lines that are torn, damaged, of a
// later format or no entry are counted in skipped and left out. A ledger that does
// not exist is empty.
func Read(path string) (entries []Entry, skipped int, err error) {
	err = scan(path, func(_ durable.Line, e Entry, bad error) {
		if bad != nil {
			skipped++
			return
		}
		entries = append(entries, e)
	})
	if err != nil {
		return nil, 0, err
	}
	return entries, skipped, nil
}

// Check reads a ledger and names its bad lines; good counts the others. A flipped
// bit in a line of format 1 is found only if the line is no longer an entry.
func Check(path string) (good int, bad []durable.BadLine, err error) {
	err = scan(path, func(line durable.Line, _ Entry, problem error) {
		if problem == nil {
			good++
			return
		}
		bad = append(bad, durable.BadLine{Line: line, Problem: problem.Error(), Later: errors.Is(problem, errLater)})
	})
	return good, bad, err
}

func scan(path string, fn func(durable.Line, Entry, error)) error {
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

func scanLines(r io.Reader, fn func(durable.Line, Entry, error)) error {
	return durable.ScanLines(r, maxLine, func(line durable.Line) {
		e, bad := decodeLine(bytes.TrimSpace(line.Text))
		fn(line, e, bad)
	})
}
