package run

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Entry is one run, and a row of 'traces --json'. Text in it is what a run recorded: the caller
// escapes it.
type Entry struct {
	ID       marchwarden.TraceID `json:"trace_id"`
	Question string              `json:"question"` // at most as long as a question may be
	// Answer is the beginning of the answer as plain text. A run that went on after an answer
	// and has no other yet has that one, with its figures.
	Answer     string `json:"answer,omitempty"`
	Researcher string `json:"researcher,omitempty"`
	// Researchers are those who did the work, each once: of an investigation the members
	// that it sent, of any other run its researcher.
	Researchers []string          `json:"researchers,omitempty"`
	Began       time.Time         `json:"started_at,omitzero"` // zero if no run was begun in its trace
	Confidence  *marchwarden.Unit `json:"confidence,omitempty"`
	Citations   int               `json:"citations,omitempty"`
	CostUSD     *float64          `json:"cost_usd,omitempty"` // as its result says; nil is unknown, which is not zero
	Rihla       bool              `json:"rihla,omitempty"`    // part of an investigation, which has a trace of its own
	// Standing is the status. Problem also says why a result cannot be read.
	Standing
}

// Query says which runs are meant. The zero Query means all.
type Query struct {
	// Words must all be in the question or the answer, in whatever form English gives
	// them. What has no word in it is nothing.
	Words      string
	Status     []State  // any of them; none is all
	Researcher []string // any of them made the run or worked for it; none is all
	Limit      int      // 0 is no limit
	Offset     int
}

func (q Query) means(e *Entry) bool {
	made := func(r string) bool { return e.Researcher == r || slices.Contains(e.Researchers, r) }
	return (len(q.Status) == 0 || slices.Contains(q.Status, e.Status)) && (len(q.Researcher) == 0 || slices.ContainsFunc(q.Researcher, made))
}

// Find gives the runs that a query means, newest first, and how many there are in all
// before Offset and Limit. The rihlas of investigations are runs of theirs and are not
// listed.
//
// visible is asked about every run that the filters let through, by the caller's
// goroutine; what it denies is in neither the list nor the number. nil shows all. It
// must not call Find.
//
// A trace or a result that cannot be read is an entry that says so; one that is removed
// meanwhile is none. Errors are CodeInvalid for too many words, CodeCanceled when ctx ends,
// and a folder of traces that cannot be listed.
func (h *History) Find(ctx context.Context, q Query, visible func(marchwarden.TraceID) bool) (entries []Entry, total int, err error) {
	if len(q.Words) > maxWordsBytes {
		return nil, 0, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "words", Message: fmt.Sprintf("must be at most %d bytes, has %d", maxWordsBytes, len(q.Words))}
	}
	all, err := h.recall(ctx)
	if err != nil {
		return nil, 0, err
	}
	words := parseWords(q.Words)
	var found []*digest
	told := map[*digest]Entry{}
	for _, d := range all {
		if d.entry.Rihla {
			continue
		}
		if d = h.latest(ctx, d); d == nil || !d.words.has(h.seed, words) {
			continue
		}
		if e := d.told(); q.means(&e) && (visible == nil || visible(e.ID)) {
			found, told[d] = append(found, d), e
		}
	}
	slices.SortFunc(found, func(a, b *digest) int {
		return cmp.Or(b.when().Compare(a.when()), strings.Compare(b.file.ID.String(), a.file.ID.String()))
	})
	total = len(found)
	found = found[min(max(0, q.Offset), total):]
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	entries = make([]Entry, len(found))
	for i, d := range found {
		entries[i] = told[d]
	}
	return entries, total, canceled(ctx)
}

func canceled(ctx context.Context) error {
	return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "look through past runs")
}

// Listing says which runs a list has.
type Listing struct {
	Rihlas bool    // those of investigations, too
	Limit  int     // 0 is no limit
	Status []State // any of them; none is all
}

// List gives the newest runs as Look tells them, and whether there are more.
func List(d *trace.Dir, l Listing) (entries []Entry, more bool, err error) {
	ids, err := d.List()
	for _, id := range ids {
		e := Look(d, id)
		switch {
		case e.Rihla && !l.Rihlas, len(l.Status) > 0 && !slices.Contains(l.Status, e.Status):
		case l.Limit > 0 && len(entries) == l.Limit:
			return entries, true, nil
		default:
			entries = append(entries, e)
		}
	}
	return entries, false, err
}

const minPrefix = 4

func badID(message, hint string) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "ID", Message: message, Hint: hint}
}

// FindID resolves an id, the beginning of one, or "last".
func FindID(d *trace.Dir, s string) (marchwarden.TraceID, error) {
	if id, err := marchwarden.ParseTraceID(s); err == nil {
		return id, nil
	}
	const hint = "run 'marchwarden traces' to list the ids there are"
	if s != "last" {
		return OneID(s, hint, fmt.Sprintf("no trace %q in %s", s, d.Path()), d.List)
	}
	ids, err := d.List()
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	for _, id := range ids {
		log, err := d.Skim(id, trace.ActionStart)
		if err == nil && len(log.Steps) == 0 && !log.Damaged || marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			continue // no run was begun in it
		}
		var start *trace.Start
		if log != nil { // of a damaged one what stands before the damage
			start, _ = log.Start() // nil with its error
		}
		if start == nil || !start.PartOf && (start.Investigation == nil || !start.Investigation.PlanOnly) {
			return id, nil
		}
	}
	return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("no run in %s has an answer or can be resumed", d.Path()), Hint: hint}
}

// OneID is the id of a list that begins with prefix; an id that is there twice is one.
// The error where there is none says what none and hint say.
func OneID(prefix, hint, none string, list func() ([]marchwarden.TraceID, error)) (marchwarden.TraceID, error) {
	begin := strings.ToLower(prefix)
	switch {
	case strings.Trim(begin, "0123456789abcdef-") != "" || len(begin) > 36:
		_, err := marchwarden.ParseTraceID(prefix)
		return marchwarden.TraceID{}, err
	case len(begin) < minPrefix:
		return marchwarden.TraceID{}, badID(fmt.Sprintf("%q is too short: give at least %d characters", prefix, minPrefix), hint)
	}
	ids, err := list()
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	var found []marchwarden.TraceID
	for _, id := range ids {
		if strings.HasPrefix(id.String(), begin) && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: none, Hint: hint}
	}
	return marchwarden.TraceID{}, badID(fmt.Sprintf("%q begins %d ids, %s and %s among them", prefix, len(found), found[0], found[1]), "give more characters")
}

const maxWordsBytes = 2000

// index is the words of texts, as hashes of their stems in ascending order.
type index []uint64

func newIndex(seed maphash.Seed, texts ...string) index {
	var x index
	for _, s := range texts {
		for _, t := range lexicon.Tokens(s) {
			x = append(x, maphash.String(seed, t.Stem))
		}
	}
	slices.Sort(x)
	return slices.Clip(slices.Compact(x))
}

// has reports whether all words are in the index.
func (x index) has(seed maphash.Seed, stems []string) bool {
	return !slices.ContainsFunc(stems, func(stem string) bool {
		_, found := slices.BinarySearch(x, maphash.String(seed, stem))
		return !found
	})
}

// parseWords are the stems of the words that are looked for. Words that are too common to
// tell anything count only if there is nothing else.
func parseWords(s string) (stems []string) {
	var common []string
	for _, t := range lexicon.Tokens(s) {
		if t.Stop {
			common = append(common, t.Stem)
		} else {
			stems = append(stems, t.Stem)
		}
	}
	if len(stems) == 0 {
		return common
	}
	return stems
}
