package run

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// parallel is how many traces or results are read at the same time.
const parallel = 8

// History remembers what it read, by the size and time of the files: a trace is read
// again only when it was written. It is safe for concurrent use. What it holds of a run
// is bounded and does not include its answer, of which it knows the words.
type History struct {
	store   Store
	seed    maphash.Seed
	reading chan struct{} // holds one who reads traces, and guards known; the others wait for what it reads
	known   map[marchwarden.TraceID]*digest
}

// OpenHistory makes a History of a store, which the caller closes. Nothing is read before
// the first call.
func OpenHistory(store Store) *History {
	return &History{store: store, seed: maphash.MakeSeed(), reading: make(chan struct{}, 1)}
}

// recall gives all traces, the newest file first, having read those that changed, after any other caller who reads.
// Digests are replaced, never changed.
func (h *History) recall(ctx context.Context) (all []*digest, err error) {
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
	files, err := h.store.Traces.Files()
	if err != nil {
		return nil, err
	}
	found := make([]*digest, len(files))
	var g errgroup.Group
	g.SetLimit(parallel)
	for i, f := range files {
		if d := h.known[f.ID]; d != nil && d.same(f) && !d.failed {
			found[i] = d
			continue
		}
		if ctx.Err() != nil {
			continue // what stands is remembered all the same
		}
		g.Go(func() error {
			if d := h.read(ctx, f); ctx.Err() == nil { // else it may be half
				found[i] = d
			}
			return nil
		})
	}
	_ = g.Wait() // each says in its digest what went wrong
	h.known = make(map[marchwarden.TraceID]*digest, len(files))
	for _, d := range found {
		if d != nil && h.known[d.file.ID] == nil {
			all, h.known[d.file.ID] = append(all, d), d
		}
	}
	return all, canceled(ctx)
}

// latest looks once more at a run that may have gone on or ended: nil if it is gone.
func (h *History) latest(ctx context.Context, d *digest) *digest {
	if !d.open() {
		return d
	}
	now := *d
	if now.busy = busy(h.store.Traces, d.file.ID); now.busy {
		return &now
	}
	info, err := h.store.Traces.Stat(d.file.ID)
	switch {
	case marchwarden.CodeOf(err) == marchwarden.CodeNotFound:
		return nil
	case err == nil && (info.Size() != d.file.Size || !info.ModTime().Equal(d.file.Modified)):
		// Its writer may have ended the run after the lines were read: that is not to be called cut off.
		return h.read(ctx, d.file)
	}
	return &now
}

// told is the entry of a run with where it stands.
func (d *digest) told() Entry {
	e := d.entry
	if d.busy && !d.damaged {
		e.Standing = Standing{Status: Running, Imported: d.file.Foreign, Problem: d.unheard}
	}
	return e
}

// What is remembered of one run is bounded, whatever is in its record.
const (
	maxResult   = 32 << 20  // bytes of a result that is read
	maxSearched = 256 << 10 // bytes of an answer that are searched; what is behind them is not found
	maxShown    = 400       // characters of an answer in an entry
	maxName     = 200       // characters of a researcher or a problem
)

// digest is what is remembered of one trace. It is never changed.
type digest struct {
	file   trace.File
	failed bool // it is read again though nothing was written: its store may be back
	busy   bool // a process wrote it when it was read

	damaged bool   // it cannot be read, or begins with something else than a run
	ended   bool   // it has not gone on after its end
	entry   Entry  // as it is if no process writes it
	unheard string // why there is a result that cannot be read

	words index // of the question and of the answer
}

func (d *digest) same(f trace.File) bool {
	return d.file.Size == f.Size && d.file.Modified.Equal(f.Modified) && d.file.Foreign == f.Foreign
}

// open reports whether the standing of the run can change without a line: its writer can die.
func (d *digest) open() bool { return !d.damaged && (!d.ended || d.busy) }

func (d *digest) when() time.Time {
	if d.entry.Began.IsZero() {
		return d.file.Modified
	}
	return d.entry.Began
}

// read reads one trace and its result; nil if it is gone. What cannot be read says so.
func (h *History) read(ctx context.Context, f trace.File) *digest {
	d := &digest{file: f, busy: busy(h.store.Traces, f.ID)}
	e, log, err := look(h.store.Traces, f.ID, func() (bool, error) { return f.Foreign, nil }, false)
	code := marchwarden.CodeOf(err)
	if code == marchwarden.CodeNotFound {
		return nil
	}
	e.Problem = plaintext.Clip(e.Problem, maxName)
	e.Question, e.Researcher = strings.Clone(plaintext.Clip(e.Question, marchwarden.MaxQuestionChars)), plaintext.Clip(e.Researcher, maxName)
	d.entry, d.words = e, newIndex(h.seed, e.Question)
	d.damaged = err != nil
	d.failed = d.damaged && code != marchwarden.CodeCorrupt && code != marchwarden.CodeUnsupported // it is not the trace that is damaged
	if d.damaged || len(log.Steps) == 0 {
		return d
	}
	d.ended = log.Complete() != nil
	d.sent(FactsOf(log.Steps).Rihlas)
	if done := log.Latest(); done != nil && !e.Rihla { // the answer of a rihla is not listed
		h.answered(ctx, d, done)
	}
	return d
}

// maxNames is how many researchers are remembered; no investigation sends so many.
const maxNames = 100

// sent notes who worked for the run.
func (d *digest) sent(all []marchwarden.Rihla) {
	var names []string
	for _, r := range all {
		if name := plaintext.Clip(r.Researcher, maxName); !slices.Contains(names, name) && len(names) < maxNames {
			names = append(names, name)
		}
	}
	if len(all) == 0 {
		names = []string{d.entry.Researcher}
	}
	d.entry.Researchers = names
}

// answered adds what the last result of a run tells.
func (h *History) answered(ctx context.Context, d *digest, done *trace.Complete) {
	e := &d.entry
	res, err := h.resultOf(ctx, done.Result)
	if err != nil {
		d.unheard = plaintext.Clip("its result cannot be read: "+err.Error(), maxName)
		d.failed = true
		e.Problem, e.Citations, e.Confidence = cmp.Or(e.Problem, d.unheard), done.Citations, &done.Confidence
		return
	}
	if e.Status != Planned { // a plan has no answer that could be trusted or not
		confidence := res.Confidence // and nothing else of the result
		e.Citations, e.Confidence = len(res.Citations), &confidence
	}
	if d.ended { // else it went on: the trace knows more
		e.CostUSD = res.CostMetadata.CostUSD
		d.sent(res.Rihlas)
	}
	if res.CompletedQuestion != "" {
		e.Question = strings.Clone(plaintext.Clip(res.CompletedQuestion, marchwarden.MaxQuestionChars))
	}
	answer := Plain(res.Answer, len(res.Citations))
	e.Answer, d.words = strings.Clone(plaintext.Clip(answer, maxShown)), newIndex(h.seed, e.Question, answer) // the rest of it is not held
}

func (h *History) resultOf(ctx context.Context, ref blob.Ref) (*marchwarden.Result, error) {
	info, err := h.store.Blobs.Stat(ctx, ref)
	if err != nil {
		return nil, err
	}
	if info.Size > maxResult {
		return nil, fmt.Errorf("it has %d bytes", info.Size)
	}
	_, res, err := ResultOf(ctx, h.store.Blobs, ref)
	return res, err
}

// Plain is the beginning of an answer, which is Markdown, as text on one line: without
// the markers of its citations, marks of emphasis, headings and lists, and the targets
// of links. What looks like a marker and has no citation is text. It is for searching
// and for a glance; what an answer looks like is for those who show it.
func Plain(markdown string, citations int) string {
	if len(markdown) > maxSearched {
		markdown = strings.ToValidUTF8(markdown[:maxSearched], "")
	}
	var b strings.Builder
	from := 0
	for _, m := range markup.FindAllStringSubmatchIndex(markdown, -1) {
		group := func(i int) string { return markdown[max(0, m[2*i]):max(0, m[2*i+1])] }
		if n, err := strconv.Atoi(group(2)); err == nil && (n < 1 || n > citations) {
			continue
		}
		b.WriteString(markdown[from:m[0]])
		b.WriteString(group(1) + group(3))
		from = m[1]
	}
	b.WriteString(markdown[from:])
	return plaintext.Fold(b.String())
}

// markup is what is not said by an answer: the backslash before a character, a marker
// with the spaces before it, a link or a picture but for what is in its brackets, marks
// within a line, and marks that open one. Marks side by side are one match: each costs a start of the matcher.
var markup = regexp.MustCompile("\\\\([!-/:-@[-`{-~])|[ \t]*\\[(\\d{1,9})\\]|!?\\[([^\\[\\]\n]*)\\]\\((?:[^()\n]|\\([^()\n]*\\))*\\)|(?:[*`]|~~)+|(?m:^[ \t]*(?:#{1,6} |[>+-] ))")
