// Package metered is the budget and the record in front of an embedder, for one run.
// It owns the reservation of what a service charges for, and the gap when there are no
// vectors after all; what is embedded is decided by the reasoner and the engine.
//
// An embedder that gives the same bits everywhere needs neither and is used as it is.
// Any other is asked through the journal, so that a rerun hears what the run heard; it
// may use half of the tokens that are left and not held back, and a run in which it
// fails goes on without it.
package metered

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Describe writes down in the start of a run what makes its vectors; nil is nothing.
func Describe(start *trace.Start, e embed.Embedder) {
	start.Vectors, start.VectorsRecorded, start.Reader = "", false, ""
	if e == nil {
		return
	}
	_, pure := e.(embed.Pure)
	start.Vectors, start.VectorsRecorded = e.ID(), !pure
	if r, err := reader.New(); err == nil {
		start.Reader = r.ID()
	}
}

// Reader is what reads in a run that began so, with the store of the embedder, if it
// has one, in front of it: nil for a run without. A run whose reader this program does
// not have would go another way: that is CodeUnsupported.
func Reader(start *trace.Start, e embed.Embedder) (reader.Reader, error) {
	if start.Reader == "" {
		return nil, nil
	}
	r, err := reader.New()
	if err != nil || r.ID() != start.Reader {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Err: err,
			Message: "the run was made with the reader " + start.Reader + ", which this program does not have",
			Hint:    "use the version of the program that made it"}
	}
	if s, ok := e.(interface{ Store() embed.Store }); ok {
		return reader.Cached(r, s.Store()), nil
	}
	return r, nil
}

// Recall finds what makes the vectors of a recorded run: of is asked for the embedder
// of an id, and says why it has none. It is nil for a run without vectors, and may be
// for one whose vectors are recorded. A run whose vectors cannot be had would go
// another way: that is CodeUnsupported.
func Recall(start *trace.Start, of func(id string) (embed.Embedder, error)) (embed.Embedder, error) {
	if start.Vectors == "" {
		return nil, nil
	}
	var e embed.Embedder
	var err error
	if of != nil {
		e, err = of(start.Vectors)
	}
	if e != nil && e.ID() != start.Vectors {
		e = nil
	}
	if e == nil && !start.VectorsRecorded {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Err: err,
			Message: "the run was made with the sentence vectors of " + start.Vectors + ", which this program does not have",
			Hint:    "use the program that made it, or one with that model inside"}
	}
	return e, nil
}

// GoOn is Recall for a run that goes on, and may want vectors that are not recorded
// yet: what made the others must be there.
func GoOn(start *trace.Start, of func(id string) (embed.Embedder, error)) (embed.Embedder, error) {
	e, err := Recall(start, of)
	if err == nil && e == nil && start.Vectors != "" {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the run has its sentence vectors from " + start.Vectors + ", which is not set",
			Hint: "set MARCHWARDEN_EMBED and MARCHWARDEN_EMBED_MODEL to what they were"}
	}
	return e, err
}

// Vectors are the sentence vectors of one run. They are safe for concurrent use.
type Vectors struct {
	id       string
	recorded bool
	inner    embed.Embedder // nil in the rerun of a run whose vectors are recorded
	j        replay.Journal
	meter    *budget.Meter
	prices   ledger.Prices // nil counts no money

	mu     sync.Mutex // guards what follows
	failed error      // why there are no more
	bills  map[string]*bill
	paid   map[string]bool // an effect is recorded once, however often a run comes by it
}

// New makes the vectors of a run from its start, as Describe has written it or Recall
// has found it.
func New(j replay.Journal, start *trace.Start, inner embed.Embedder, meter *budget.Meter) *Vectors {
	return &Vectors{id: start.Vectors, recorded: start.VectorsRecorded, inner: inner, j: j, meter: meter, prices: start.Prices, bills: map[string]*bill{}, paid: map[string]bool{}}
}

// Embedder is what a reasoner may use, or nil if there is none.
func (v *Vectors) Embedder() embed.Embedder {
	switch {
	case v.id == "":
		return nil
	case v.recorded:
		return v
	}
	return v.inner
}

// ID is that of the model.
func (v *Vectors) ID() string { return v.id }

// Again lets a run that goes past its end try once more.
func (v *Vectors) Again() { v.fail(nil) }

// Gaps say that there were no vectors, and why.
func (v *Vectors) Gaps() []marchwarden.Gap {
	err := v.failure()
	if err == nil {
		return nil
	}
	gap := marchwarden.GapFor("sentence vectors of "+v.id, err)
	gap.Detail += "; texts were compared by their words alone"
	return []marchwarden.Gap{gap}
}

func (v *Vectors) failure() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *Vectors) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = err
}

// Embed asks for vectors through the journal. After a failure no further call is made.
func (v *Vectors) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	if err := v.failure(); err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, nil
	}
	b := &bill{v: v}
	e, err := replay.Embed(ctx, v.j, v.id, texts, func(ctx context.Context) (e replay.Embedded, err error) {
		defer func() { e.Tokens, _ = b.sum() }()
		defer panics.Caught(&err, "an embedder")
		if v.inner == nil {
			return e, marchwarden.Errorf(marchwarden.CodeNotRecorded, "there is no embedder in a rerun")
		}
		e.Vectors, err = v.inner.Embed(embed.WithAccount(ctx, b), texts)
		if err == nil && len(e.Vectors) != len(texts) {
			err = marchwarden.Errorf(marchwarden.CodeMalformed, "%s gave %d vectors for %d texts", v.id, len(e.Vectors), len(texts))
		}
		return e, err
	})
	if replay.Fatal(err) {
		return nil, err
	}
	b.pay(v.due(keyOf(append([]string{"marchwarden/texts/v1"}, texts...)...), e.Tokens, err))
	if err != nil {
		v.fail(err)
		return nil, err
	}
	return e.Vectors, nil
}

// Engine records searches of an engine, and what the vectors cost that it has made on
// the way by an embedder that Heard gave it. inner may be nil in a rerun.
func (v *Vectors) Engine(name string, inner search.Engine) search.Engine {
	if !v.recorded {
		return replay.Engine(v.j, name, inner)
	}
	if inner != nil {
		inner = &billed{inner, v}
	}
	return &engine{replay.Engine(v.j, name, inner), v}
}

// engine is outside the record: it pays what the record says.
type engine struct {
	search.Engine
	v *Vectors
}

func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := e.Engine.Search(ctx, q)
	if replay.Fatal(err) {
		return nil, err
	}
	b := e.v.billOf(q)
	tokens, failed := replay.SearchVectors(ctx, e.v.j, e.v.id, e.Name(), q, func() (int, error) {
		used, failed := b.sum()
		if marchwarden.CodeOf(err) == marchwarden.CodeCanceled { // it may be tried again, and paid for again
			failed = err
		}
		return used, failed
	})
	if replay.Fatal(failed) {
		return nil, failed
	}
	b.pay(e.v.due(searchKey(q), tokens, failed))
	if failed != nil && marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		e.v.fail(failed)
	}
	return hits, err
}

// billed is inside the record: the vectors that it makes are billed.
type billed struct {
	search.Engine
	v *Vectors
}

func (e *billed) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	return e.Engine.Search(embed.WithAccount(ctx, e.v.billOf(q)), q)
}

// billOf is the bill of a search; equal searches are one.
func (v *Vectors) billOf(q search.Query) *bill {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := searchKey(q)
	if v.bills[key] == nil {
		v.bills[key] = &bill{v: v}
	}
	return v.bills[key]
}

// due is what is to be paid for an effect: what it cost, the first time. One that was
// cut short may be made again, and is paid for again.
func (v *Vectors) due(key string, tokens int, err error) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paid[key] {
		return 0
	}
	v.paid[key] = marchwarden.CodeOf(err) != marchwarden.CodeCanceled
	return tokens
}

func searchKey(q search.Query) string {
	return keyOf("marchwarden/search/v1", q.Text, q.Since, q.Until)
}

// keyOf tells lists of texts apart.
func keyOf(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
	return string(h.Sum(nil))
}

// bill is what one effect has cost. What was set aside for it stays so until it is
// paid by what is recorded, so that a run and its rerun pay the same.
type bill struct {
	v *Vectors

	mu     sync.Mutex // guards what follows
	open   []*budget.Reservation
	used   int
	failed error // of the embedder
}

// Reserve sets tokens aside, unless the vectors of the run have failed.
func (b *bill) Reserve(tokens int) (settle func(used int), err error) {
	if err := b.v.failure(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, err := b.v.meter.Spare(tokens, b.v.cost(tokens))
	if err != nil {
		return nil, err
	}
	b.open = append(b.open, r)
	return func(used int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used += max(0, used)
	}, nil
}

// pay settles everything that was set aside with what the record says was used.
func (b *bill) pay(tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open) == 0 {
		r, err := b.v.meter.Spare(0, 0)
		if err != nil {
			return // nothing always fits
		}
		b.open = append(b.open, r)
	}
	for _, r := range b.open[1:] {
		r.Settle(0)
	}
	b.open[0].SettleCost(tokens, b.v.cost(tokens))
	if _, known := b.v.prices[b.v.id]; !known && tokens > 0 {
		b.v.meter.Unpriced()
	}
	b.open, b.used = nil, 0
}

// cost is what tokens of the service cost; one without a price is not counted.
func (v *Vectors) cost(tokens int) budget.Money {
	usd, _ := v.prices.Cost(v.id, ledger.Tokens{In: tokens})
	return budget.Dollars(usd)
}

// sum is what was used, and why there are no vectors.
func (b *bill) sum() (used int, failed error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.failed
}

// Heard is an embedder for an engine, which goes on without vectors when they fail and
// says nothing: the bill of the search hears of it. One that is nil or needs no bill
// is given back as it is.
func Heard(e embed.Embedder) embed.Embedder {
	if _, pure := e.(embed.Pure); e == nil || pure {
		return e
	}
	return heard{e}
}

type heard struct{ embed.Embedder }

func (h heard) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	vs, err := h.Embedder.Embed(ctx, texts)
	if b, ok := embed.AccountOf(ctx).(*bill); ok && err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.failed == nil {
			b.failed = err
		}
	}
	return vs, err
}
