package eval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
)

// Settings are what the rows of a run depend on besides the data.
type Settings struct {
	Researcher string `json:"researcher,omitempty"`
	Mind       string `json:"mind,omitempty"` // with its version, or the model's id
	Depth      string `json:"depth,omitempty"`
	Embedder   string `json:"embedder,omitempty"` // "" is without vectors
	// Part is what the run is about alone; "" is all.
	Part string `json:"part,omitempty"`
	// Limit is how many cases were sampled; 0 is all.
	Limit int    `json:"limit,omitempty"`
	Seed  uint64 `json:"seed"`
}

// Options say how to run a suite.
type Options struct {
	Settings
	// Parallel bounds the cases under way at once; less than one is one.
	Parallel int
	// Journal is the file that keeps the rows of a run until it is whole; "" keeps
	// none. The rows of a run with the same settings, data and build are taken over.
	Journal string
	// Fresh starts from nothing, whatever the journal holds.
	Fresh bool
	// Version is the program's, for the report. Build names the very program: rows of
	// another are not taken over.
	Version, Build string
	// Progress is told after every case; may be nil. It is called by one goroutine
	// at a time.
	Progress func(done, total int)
	// Now tells the time that a run takes.
	Now func() time.Time
}

// Sample picks so many of the ids, in their order: one from each of as many stretches of
// equal length, which the seed decides. A limit of 0, or one that is not below their
// number, is all of them.
func Sample(ids []string, limit int, seed uint64) []string {
	n := len(ids)
	if limit <= 0 || limit >= n {
		return ids
	}
	rng := rand.New(rand.NewPCG(seed, 0x73616d706c65))
	out := make([]string, limit)
	for i := range out {
		from, to := i*n/limit, (i+1)*n/limit
		out[i] = ids[from+rng.IntN(to-from)]
	}
	return out
}

// Run runs the cases of a suite and makes the report. When ctx ends, the error is
// CodeCanceled and tells how many cases are in the journal; so does that of a case
// that failed. The caller calls Forget when the report is safe.
func Run(ctx context.Context, s Suite, env Env, o Options) (report *Report, err error) {
	began := o.Now()
	if env.Say == nil {
		env.Say = func(string) {}
	}
	files, err := s.identify(env.Data)
	if err != nil {
		return nil, err
	}
	sess, err := open(ctx, s, env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sess.Close()) }()
	ids := Sample(sess.Cases(), o.Limit, o.Seed)
	if err := distinct(ids); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInvalid, "the data of suite %s", s.Name)
	}
	j, err := openJournal(o.Journal, key(s, o, files), o.Fresh)
	if err != nil {
		return nil, err
	}
	r := &running{Options: o, suite: s, session: sess, journal: j, ids: ids, rows: make([]Row, len(ids)), took: make([]float64, len(ids))}
	if err := errors.Join(r.cases(ctx), j.close()); err != nil {
		return nil, err
	}
	report = &Report{
		Format: reportFormat, Suite: s.Name, Title: s.Title, Settings: o.Settings, Version: o.Version, Data: files,
		Cases: len(sess.Cases()), Rows: r.rows, Metrics: spoken(sess.Score(r.rows)),
	}
	if n, ok := sess.(Noted); ok {
		report.Notes = n.Notes()
	}
	if err := report.finish(s.Bars); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeInternal, "suite %s", s.Name)
	}
	report.Took = r.times(began)
	return report, nil
}

// spoken leaves out metrics that no case of the sample speaks to: they would look like a
// score of zero.
func spoken(metrics []Metric) []Metric {
	return slices.DeleteFunc(metrics, func(m Metric) bool { return m.N == 0 })
}

func open(ctx context.Context, s Suite, env Env) (sess Session, err error) {
	defer panics.Caught(&err, "suite "+s.Name)
	sess, err = s.Open(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("open suite %s: %w", s.Name, err)
	}
	return sess, nil
}

func distinct(ids []string) error {
	if len(ids) == 0 {
		return errors.New("it has no cases")
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if id == "" || seen[id] {
			return fmt.Errorf("the case %q is there twice, or has no name", id)
		}
		seen[id] = true
	}
	return nil
}

// key names all that the rows of a run depend on.
func key(s Suite, o Options, files []File) string {
	h := sha256.New()
	add := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	add([]byte("marchwarden eval run/1"))
	for _, v := range []any{s.Name, o.Settings, o.Version, o.Build, files} {
		b, _ := json.Marshal(v) // plain values
		add(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// running is a run under way.
type running struct {
	Options
	suite   Suite
	session Session
	journal *journal
	ids     []string
	rows    []Row
	took    []float64
	resumed int
}

// cases runs what the journal does not hold.
func (r *running) cases(ctx context.Context) error {
	var todo []int
	for i, id := range r.ids {
		if kept, ok := r.journal.rows[id]; ok {
			r.rows[i], r.took[i] = kept.Row, kept.Sec
		} else {
			todo = append(todo, i)
		}
	}
	r.resumed = len(r.ids) - len(todo)
	finished := make(chan struct{}, max(1, r.Parallel))
	counted := make(chan int)
	go func() {
		done := r.resumed
		r.tell(done)
		for range finished {
			done++
			r.tell(done)
		}
		counted <- done
	}()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, r.Parallel))
	for _, i := range todo {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if gctx.Err() != nil {
				return gctx.Err()
			}
			if err := r.one(gctx, i); err != nil {
				return err
			}
			finished <- struct{}{}
			return nil
		})
	}
	err := g.Wait()
	close(finished)
	done := <-counted
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return r.broken(ctx, err, done)
}

func (r *running) tell(done int) {
	if r.Progress != nil {
		r.Progress(done, len(r.ids))
	}
}

// broken words why a run was broken off.
func (r *running) broken(ctx context.Context, err error, done int) error {
	if err == nil {
		return nil
	}
	code, what := marchwarden.CodeOf(err), fmt.Sprintf("%s: %d of %d cases are done", r.suite.Name, done, len(r.ids))
	if ctx.Err() != nil {
		code = marchwarden.CodeCanceled
	}
	e := &marchwarden.Error{Code: code, Message: what, Err: err}
	if r.Journal != "" && done > 0 {
		e.Hint = "they are kept: the same command goes on with the rest"
	}
	return e
}

// one runs one case and keeps its row.
func (r *running) one(ctx context.Context, i int) error {
	id := r.ids[i]
	began := r.Now()
	t := &tab{}
	row, err := r.caught(context.WithValue(ctx, tabKey{}, t), id)
	if err != nil {
		return fmt.Errorf("case %s: %w", id, err)
	}
	row.ID = id
	for name, v := range row.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return marchwarden.Errorf(marchwarden.CodeInternal, "case %s: %s is not a number", id, name)
		}
	}
	t.settle(&row)
	r.rows[i], r.took[i] = row, r.Now().Sub(began).Seconds()
	return r.journal.add(row, r.took[i])
}

func (r *running) caught(ctx context.Context, id string) (row Row, err error) {
	defer panics.Caught(&err, "a case")
	return r.session.Run(ctx, id)
}

// times sums up how long the run took.
func (r *running) times(began time.Time) *Took {
	t := &Took{Began: began.UTC(), WallSec: r.Now().Sub(began).Seconds(), Resumed: r.resumed, Parallel: max(1, r.Parallel)}
	t.count(r.took)
	return t
}
