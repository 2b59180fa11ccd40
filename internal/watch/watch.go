// Package watch keeps questions that are asked again on a schedule, and says what changed
// since the answer before: which claims are new, gone, changed or contradicted, and which
// sources drifted or were retracted.
//
// It owns the file of a watched question (watch.go), and the comparison of two answers (compare.go).
// Asking what is due (run.go) joins what others own: a run is asked for and resumed by whom the
// command names, package drift looks at the sources of the answer before. Each answer is an
// ordinary run; what is kept here are its id and the report.
package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// The bounds of how often a question is asked.
const (
	MinEvery = time.Hour
	MaxEvery = 366 * 24 * time.Hour
)

const (
	format     = 1
	suffix     = ".json"
	maxBytes   = 64 << 20
	maxReports = 200 // of a question; the oldest go
	what       = "watched question"

	runLock  = "run.lock"  // held while questions are asked
	editLock = "edit.lock" // held while a file is written
)

// Question is a question that is watched. It is the form of its file,
// watch/<id>.json in the home folder; fields are only ever added.
type Question struct {
	Format int `json:"format"`
	// ID is also the id of its first answer.
	ID marchwarden.TraceID `json:"id"`
	// Owner is the principal that watches it, and sees it with its answers.
	Owner   string              `json:"owner"`
	Request marchwarden.Request `json:"request"`
	Choice  *marchwarden.Choice `json:"choice,omitempty"`
	Timeout string              `json:"timeout,omitempty"` // of one answer
	Every   time.Duration       `json:"every_ns"`
	// Notify is the program that is told of news, with its arguments.
	Notify []string  `json:"notify,omitempty"`
	Added  time.Time `json:"added"`
	Due    time.Time `json:"due"` // when it is asked next
	// Under is the run that was begun and is not compared yet, Last the one that the next is compared with.
	Under     marchwarden.TraceID `json:"under,omitzero"`
	Last      marchwarden.TraceID `json:"last,omitzero"`
	Retracted []string            `json:"retracted,omitempty"` // locators that were reported as such
	Reports   []Report            `json:"reports,omitempty"`   // the newest last
}

// Of watches the question of a run that has ended, whose answer is the first: as it was
// understood, with the limits and the choice that it was asked with. The run must have
// recorded its choice.
func Of(r *run.Run, res *marchwarden.Result) (Question, error) {
	start := r.Start
	if start.Choice == nil || start.PartOf {
		return Question{}, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "the run does not say who may be asked", Hint: `ask anew, or: marchwarden watch add "…"`}
	}
	q := Question{ID: r.ID, Request: start.Request, Choice: start.Choice, Last: r.ID}
	if res.CompletedQuestion != "" {
		q.Request.Question = res.CompletedQuestion
	}
	q.Request.Follow, q.Request.Resume = "", ""
	return q, nil
}

// Book is the watched questions of a home folder. Several processes may use it.
type Book struct{ Dir string }

// In is the book of a home folder. It makes nothing.
func In(home string) Book { return Book{filepath.Join(home, "watch")} }

func (b Book) path(id marchwarden.TraceID) string { return filepath.Join(b.Dir, id.String()+suffix) }

// List are the watched questions, those of one owner or, with "", all; the first added first.
// One that cannot be read is left out and in the error.
func (b Book) List(owner string) (all []Question, err error) {
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the watched questions")
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if _, notID := marchwarden.ParseTraceID(name); !ok || notID != nil {
			continue
		}
		q, failed := Read(filepath.Join(b.Dir, e.Name()))
		switch {
		case errors.Is(failed, fs.ErrNotExist): // removed since
		case failed != nil:
			err = errors.Join(err, failed)
		case owner == "" || q.Owner == owner:
			all = append(all, q)
		}
	}
	slices.SortStableFunc(all, func(a, b Question) int { return a.Added.Compare(b.Added) })
	return all, err
}

// Read reads the file of a question. What is damaged is CodeCorrupt, what a later version
// wrote CodeUnsupported.
func Read(path string) (q Question, err error) {
	text, err := durable.ReadPrivate(path, what, maxBytes)
	if err != nil {
		return q, err
	}
	broken := json.Unmarshal(text, &q)
	switch {
	case q.Format > format:
		return q, marchwarden.Errorf(marchwarden.CodeUnsupported, "the %s %s has format %d; this program reads format %d", what, path, q.Format, format)
	case broken != nil || q.Format < 1 || q.ID.String()+suffix != filepath.Base(path) || q.Every < MinEvery || q.Request.Validate() != nil:
		return q, marchwarden.Errorf(marchwarden.CodeCorrupt, "the %s %s is damaged", what, path)
	}
	return q, nil
}

// Find is the question whose id begins with a prefix.
func (b Book) Find(prefix string) (Question, error) {
	all, err := b.List("")
	if len(all) == 0 && err != nil {
		return Question{}, err
	}
	id, err := run.OneID(prefix, "'marchwarden watch list' shows what is watched", fmt.Sprintf("no watched question has an id that begins with %q", prefix), func() (ids []marchwarden.TraceID, _ error) {
		for _, q := range all {
			ids = append(ids, q.ID)
		}
		return ids, nil
	})
	if err != nil {
		return Question{}, err
	}
	return all[slices.IndexFunc(all, func(q Question) bool { return q.ID == id })], nil
}

// Add keeps a new question. One that is watched already is CodeInvalid.
func (b Book) Add(q Question) error {
	if q.Every < MinEvery || q.Every > MaxEvery {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "every", Message: "must be from 1h to 366d", Hint: "for example 7d"}
	}
	if err := q.Request.Validate(); err != nil {
		return err
	}
	q.Format = format
	return b.locked(func() error {
		if _, err := os.Stat(b.path(q.ID)); err == nil {
			return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the question is watched already", Hint: "marchwarden watch show " + q.ID.String()}
		}
		return b.write(q)
	})
}

// Remove ends the watching. The answers stay. A question that is asked at that moment is not reported on.
func (b Book) Remove(id marchwarden.TraceID) error {
	return b.locked(func() error {
		err := os.Remove(b.path(id))
		if errors.Is(err, fs.ErrNotExist) {
			return marchwarden.Wrap(err, marchwarden.CodeNotFound, "the question is not watched")
		}
		return err
	})
}

// edit changes a question. One that was removed meanwhile is CodeNotFound.
func (b Book) edit(id marchwarden.TraceID, change func(*Question)) (q Question, err error) {
	err = b.locked(func() error {
		if q, err = Read(b.path(id)); errors.Is(err, fs.ErrNotExist) {
			return marchwarden.Wrap(err, marchwarden.CodeNotFound, "the question is not watched any more")
		}
		if err != nil {
			return err
		}
		change(&q)
		if n := len(q.Reports); n > maxReports {
			q.Reports = q.Reports[n-maxReports:]
		}
		return b.write(q)
	})
	return q, err
}

func (b Book) locked(work func() error) (err error) {
	unlock, err := durable.LockFile(filepath.Join(b.Dir, editLock))
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "lock the watched questions")
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return work()
}

// write writes a question. The caller has the lock.
func (b Book) write(q Question) error {
	text, err := json.MarshalIndent(q, "", " ")
	if err == nil {
		err = durable.ReplaceFile(b.path(q.ID), text)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the %s", what)
}

// Needed are the runs that the next answers are compared with, and those under way: they are
// not to be removed. Of a file that cannot be read it is not known.
func (b Book) Needed() (ids []marchwarden.TraceID, err error) {
	all, err := b.List("")
	for _, q := range all {
		ids = append(ids, q.Last, q.Under)
	}
	return ids, err
}

// Answers are the runs of the questions of an owner.
func (b Book) Answers(owner string) map[marchwarden.TraceID]bool {
	ids := map[marchwarden.TraceID]bool{}
	if owner == "" {
		return ids
	}
	all, _ := b.List(owner) // what cannot be read is not shown
	for _, q := range all {
		ids[q.Last], ids[q.Under] = true, true
		for _, r := range q.Reports {
			ids[r.TraceID] = true
		}
	}
	delete(ids, marchwarden.TraceID{})
	return ids
}

// Summary is a report in one line.
func (r Report) Summary() string {
	switch {
	case r.Failed != "":
		return "failed: " + term.CleanLine(r.Failed)
	case !r.Before.Valid() && !r.News():
		return "first answer"
	}
	claims, sources := map[State]int{}, map[State]int{}
	for _, c := range r.Claims {
		claims[c.State]++
	}
	for _, s := range r.Sources {
		sources[s.State]++
	}
	var parts []string
	count := func(are map[State]int, noun string) {
		for _, state := range news {
			if are[state] > 0 {
				parts = append(parts, term.Plural(are[state], noun)+" "+string(state))
			}
		}
	}
	count(claims, "claim")
	count(sources, "source")
	if len(parts) == 0 {
		parts = []string{"nothing changed"}
	}
	return strings.Join(append(parts, term.Plural(r.Unchanged, "claim")+" unchanged"), ", ")
}

// Text is a report for people.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", r.Summary())
	for _, c := range r.Claims {
		line("  %-12s %s", c.State, term.CleanLine(c.Text))
		if c.Now != "" {
			line("  %-12s now: %s", "", term.CleanLine(c.Now))
		}
		if c.Detail != "" {
			line("  %-12s against it: %s", "", term.CleanLine(c.Detail))
		}
	}
	for _, s := range r.Sources {
		line("  source %s: %s", s.State, term.CleanLine(strings.TrimSpace(s.Locator+" "+s.Detail)))
	}
	if r.Notice != "" {
		line("  the program for notice failed: %s", term.CleanLine(r.Notice))
	}
	return b.String()
}

// Text is a question with its reports for people; when words a time.
func (q Question) Text(when func(time.Time) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nevery %s, next at %s\n", term.CleanLine(q.Request.Question), q.Interval(), when(q.Due))
	for _, r := range q.Reports {
		fmt.Fprintf(&b, "\n%s  %s\n%s", when(r.At), r.TraceID, r.Text())
	}
	return b.String()
}

// Interval is how often the question is asked, in words such as 7d.
func (q Question) Interval() string {
	if days := q.Every / (24 * time.Hour); days*24*time.Hour == q.Every {
		return fmt.Sprintf("%dd", days)
	}
	return q.Every.String()
}

// Latest is the last report in one line.
func (q Question) Latest() string {
	if len(q.Reports) == 0 {
		return "not asked yet"
	}
	return q.Reports[len(q.Reports)-1].Summary()
}
