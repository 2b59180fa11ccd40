package watch

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Runner asks what is due. All fields are needed.
type Runner struct {
	Book  Book
	Store run.Store
	Now   func() time.Time
	NewID func() marchwarden.TraceID
	// Ask has a question answered by the run with an id, which it records; again resumes that run.
	Ask func(ctx context.Context, q Question, id marchwarden.TraceID, again bool) error
	// Drift fetches the sources of an answer again.
	Drift func(ctx context.Context, q Question, id marchwarden.TraceID) (drift.Report, error)
	// Retracted are those of the locators that name papers which were taken back, each with
	// what is known of it.
	Retracted func(ctx context.Context, locators []string) map[string]string
	// Notify runs a program with a report on its standard input.
	Notify func(ctx context.Context, program []string, report []byte) error
	// Told hears of each question that was asked, when all is kept.
	Told func(Question, Report)
}

const (
	// retry is how long after a failure a question is asked again, unless it is due earlier.
	retry = time.Hour
	// lookEvery is how often a loop looks for questions that were added.
	lookEvery = time.Minute
)

// Run asks every question that is due, one after the other, and one that was begun before
// and not reported on. A question that fails does not stop the others: the error says how many
// did. While another process asks, nothing is done, and the error is durable.ErrLocked; when ctx
// ends it is CodeCanceled, and the next call resumes.
func (r *Runner) Run(ctx context.Context) (err error) {
	if _, err := os.Stat(r.Book.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was ever watched
	}
	lock, err := durable.Own(filepath.Join(r.Book.Dir, runLock), func(f *os.File) error { return durable.Lock(f, false) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, durable.Release(lock)) }()
	all, unread := r.Book.List("")
	failed, now := 0, r.Now()
	for _, q := range all {
		if q.Due.After(now) && !q.Under.Valid() {
			continue
		}
		switch err := r.step(ctx, q); {
		case ctx.Err() != nil:
			return marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "ask the watched questions")
		case errors.Is(err, marchwarden.CodeNotFound): // it was removed meanwhile
		case err != nil:
			failed++
		}
	}
	if failed > 0 {
		return errors.Join(unread, marchwarden.Errorf(marchwarden.CodeUnavailable, "%s failed; 'marchwarden watch show ID' says why", term.Plural(failed, "watched question")))
	}
	return unread
}

// Loop runs until ctx ends, and tells of every error but that another process asks.
func (r *Runner) Loop(ctx context.Context, sleep func(context.Context, time.Duration) error, tell func(error)) error {
	for {
		if err := r.Run(ctx); ctx.Err() != nil {
			return err
		} else if err != nil && !errors.Is(err, durable.ErrLocked) {
			tell(err)
		}
		if err := sleep(ctx, lookEvery); err != nil {
			return marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the next question")
		}
	}
}

// step has one question answered, compared and told. Before the report is kept, a question that was interrupted
// is compared and told again.
func (r *Runner) step(ctx context.Context, q Question) error {
	if !q.Under.Valid() {
		id := q.ID
		if q.Last.Valid() || len(q.Reports) > 0 {
			id = r.NewID()
		}
		var err error
		if q, err = r.Book.edit(q.ID, func(q *Question) { q.Under = id }); err != nil {
			return err
		}
	}
	var rep Report
	res, failed := r.answer(ctx, q)
	if failed == nil {
		rep, failed = r.compare(ctx, q, res)
	}
	if failed != nil {
		rep = Report{Failed: plaintext.Line(failed.Error(), 500), TraceID: q.Under}
	}
	rep.ID, rep.Question, rep.At = q.ID, q.Request.Question, r.Now().UTC().Truncate(time.Second)
	var untold error
	if ctx.Err() == nil && rep.News() && len(q.Notify) > 0 {
		untold = r.notify(ctx, q, &rep)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q, err := r.Book.edit(q.ID, func(q *Question) {
		q.Due = rep.At.Add(q.Every)
		if q.Under = (marchwarden.TraceID{}); failed != nil {
			q.Due = rep.At.Add(min(q.Every, retry))
		} else {
			q.Last = res.TraceID
		}
		q.Reports = append(q.Reports, rep)
		for _, s := range rep.Sources {
			if s.State == Retracted {
				q.Retracted = append(q.Retracted, s.Locator)
			}
		}
	})
	if err != nil {
		return err
	}
	r.Told(q, rep)
	return errors.Join(failed, untold)
}

// notify runs the program for notice. That it fails stands in the report; it is not tried again.
func (r *Runner) notify(ctx context.Context, q Question, rep *Report) error {
	text, err := json.Marshal(rep)
	if err == nil {
		err = r.Notify(ctx, q.Notify, append(text, '\n'))
	}
	if err = marchwarden.Wrap(err, marchwarden.CodeUnavailable, "tell %s", q.Notify[0]); err != nil {
		rep.Notice = plaintext.Line(err.Error(), 500)
	}
	return err
}

// answer is the result of the run under way: of its record if it has ended, and else it is asked
// for, or resumed. One without a claim, because what it needed failed, is an error: it would make
// all that the answer before says look gone.
func (r *Runner) answer(ctx context.Context, q Question) (*marchwarden.Result, error) {
	ended := func() (res *marchwarden.Result, begun bool, err error) {
		log, err := r.Store.Traces.Load(q.Under)
		if err != nil {
			return nil, !errors.Is(err, marchwarden.CodeNotFound), err
		}
		if done := log.Complete(); done == nil || done.Interrupted {
			return nil, len(log.Steps) > 0, marchwarden.Errorf(marchwarden.CodeCanceled, "the run %s was stopped; 'marchwarden resume' resumes it", q.Under)
		}
		res, err = run.Recorded(ctx, r.Store.Blobs, log)
		return res, true, err
	}
	res, begun, err := ended()
	if res == nil {
		if err := r.Ask(ctx, q, q.Under, begun); err != nil {
			return nil, err
		}
		res, _, err = ended()
	}
	if err != nil {
		return nil, err
	}
	for _, g := range res.Gaps {
		if len(res.Claims) == 0 && g.Category == marchwarden.AccessDenied {
			return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the answer says nothing: %s", g.Detail)
		}
	}
	return res, nil
}

// compare holds an answer against the one before. Where that one cannot be read any more, the
// answer is a first one.
func (r *Runner) compare(ctx context.Context, q Question, res *marchwarden.Result) (Report, error) {
	c := comparison{before: &marchwarden.Result{}, after: res, retracted: map[string]string{}}
	first := !q.Last.Valid()
	if !first {
		err := r.before(ctx, q, &c)
		if first = errors.Is(err, marchwarden.CodeNotFound); err != nil && !first {
			return Report{}, err
		}
	}
	asked := map[string]bool{}
	for _, s := range c.drifted.Sources { // of these it is known
		asked[s.Locator] = true
		if s.Retracted != "" {
			c.retracted[s.Locator] = s.Retracted
		}
	}
	var papers []string
	for _, by := range slices.Concat(res.Citations, c.before.Citations) {
		if (by.Source == "arxiv" || by.Source == "web") && !asked[by.Locator] { // what went over the network before
			asked[by.Locator] = true
			papers = append(papers, by.Locator)
		}
	}
	if len(papers) > 0 {
		maps.Copy(c.retracted, r.Retracted(ctx, papers))
	}
	for _, told := range q.Retracted {
		delete(c.retracted, told)
	}
	rep := Report{Claims: []Claim{}, Sources: c.sources()}
	if !first {
		rep = c.report(ctx)
		rep.Before = q.Last
	}
	rep.TraceID = res.TraceID
	return rep, ctx.Err()
}

// before reads the answer before with what it had read, and looks at its sources again.
func (r *Runner) before(ctx context.Context, q Question, c *comparison) error {
	was, err := r.Store.Load(q.Last)
	if err != nil {
		return err
	}
	_, res, err := r.Store.Result(ctx, was)
	if err != nil {
		return err
	}
	docs, err := r.Store.Documents(ctx, was)
	if err != nil {
		return err
	}
	for _, d := range docs {
		if !d.Text.Valid() {
			continue
		}
		text, err := r.Store.Blobs.Get(ctx, d.Text)
		if err != nil {
			return err
		}
		c.texts = append(c.texts, string(text))
	}
	c.before = res
	c.drifted, err = r.Drift(ctx, q, q.Last)
	return err
}
