package ledger

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"

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

//go:embed prices.json
var pricesJSON []byte

// prices is the table of prices.json, in USD per million tokens.
type prices struct {
	AsOf   string  `json:"as_of"`
	Models []price `json:"models"`
}

type price struct {
	// ID is a model, whose dated releases cost the same ("gpt-4.1" speaks for
	// "gpt-4.1-2025-04-14" and not for "gpt-4.1-mini"), or, with a slash at its
	// end, a family of which every member costs the same.
	ID     string  `json:"id"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// CacheRead and CacheWrite are for input that a provider's cache held or took
	// in; without them it costs what other input costs.
	CacheRead  *float64 `json:"cache_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
}

// Tokens is what model calls consumed, by what it costs.
type Tokens struct {
	In, Out               int // all input, and all output
	CacheRead, CacheWrite int // of In, read from and written to a cache
}

// Plus is the sum of both.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{t.In + o.In, t.Out + o.Out, t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite}
}

// table is read on first use: most commands need no price.
var table = sync.OnceValue(func() prices {
	var t prices
	if err := json.Unmarshal(pricesJSON, &t); err != nil {
		panic(fmt.Sprintf("ledger: the price table in the program: %v", err)) // unreachable: a test reads it
	}
	return t
})

// PricesAsOf is the date of the price table, as 2006-01-02.
func PricesAsOf() string { return table().AsOf }

// Estimate is what tokens cost by the price table. A model that the table does
// not name has no known cost; it is never guessed from a similar name.
func Estimate(model string, t Tokens) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || t.In < 0 || t.Out < 0 {
		return 0, false
	}
	read, write := clamp(t.CacheRead, t.In), clamp(t.CacheWrite, t.In)
	plain := max(0, t.In-read-write)
	cost := float64(plain)*p.Input + float64(t.Out)*p.Output + float64(read)*orInput(p.CacheRead, p) + float64(write)*orInput(p.CacheWrite, p)
	return cost / 1e6, true
}

func clamp(n, most int) int { return max(0, min(n, most)) }

func orInput(special *float64, p price) float64 {
	if special == nil {
		return p.Input
	}
	return *special
}

// EstimateTotal is Estimate for a call of which only the sum of its tokens is
// known. That tells the cost only where input and output cost the same.
func EstimateTotal(model string, tokens int) (usd float64, known bool) {
	p, ok := find(model)
	if !ok || p.Input != p.Output {
		return 0, false
	}
	return Estimate(model, Tokens{In: tokens})
}

// find looks a model up, without the name of its provider where that makes it.
func find(model string) (price, bool) {
	for _, maker := range []string{"anthropic/", "openai/"} {
		model = strings.TrimPrefix(model, maker)
	}
	for _, p := range table().Models {
		if p.speaksFor(model) {
			return p, true
		}
	}
	return price{}, false
}

func (p price) speaksFor(model string) bool {
	rest, ok := strings.CutPrefix(model, p.ID)
	if !ok {
		return false
	}
	return rest == "" || strings.HasSuffix(p.ID, "/") || isRelease(rest)
}

// isRelease recognises what follows the name of a model in its dated releases:
// "-20250514" or "-2025-04-14".
func isRelease(s string) bool {
	digits := strings.ReplaceAll(s, "-", "")
	if !strings.HasPrefix(s, "-20") || len(digits) != 8 || len(s) != 9 && len(s) != 11 {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}
