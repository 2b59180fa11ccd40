package eval

import (
	"context"
	"io/fs"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// Desk opens libraries. It is safe for concurrent use.
type Desk interface {
	// Open indexes the documents of a file system in memory. Their locators are the
	// library's name, a colon and their name in the file system. The library is the
	// caller's to close.
	Open(ctx context.Context, name string, fsys fs.FS) (Library, error)
}

// Library is documents that can be asked. It is safe for concurrent use.
type Library interface {
	// Ask runs one question with the mind and the depth that the user chose; a depth
	// that the request names goes before. Every answer has been checked against the
	// documents.
	Ask(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error)
	// Engine is the search of the library, for suites that measure it alone.
	Engine() search.Engine
	Close() error
}

// Folders keeps folders on disk and asks them as 'marchwarden ask --library' does. It is
// safe for concurrent use.
type Folders interface {
	// Write puts documents into a folder whose path ends in the name, and indexes it.
	Write(ctx context.Context, name string, docs Docs) (dir string, err error)
	// Ask asks a folder, and gives the result in the form of 'ask --json'.
	Ask(ctx context.Context, dir, question string) ([]byte, error)
}

// Spent is what one question cost.
type Spent struct {
	Tokens int
	USD    *float64 // nil is unknown
	Trace  string   // the run's id, if it was kept
}

// tab is what the questions of one case cost together.
type tab struct {
	mu     sync.Mutex
	asked  int
	tokens int
	usd    float64
	open   bool // some price is not known
	traces []string
}

type tabKey struct{}

// Charge puts what a question cost on the tab of the case that ctx belongs to, if it
// belongs to one. It is for a Desk's Ask, so that suites need not count.
func Charge(ctx context.Context, s Spent) {
	t, ok := ctx.Value(tabKey{}).(*tab)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	t.tokens += s.Tokens
	if s.USD == nil {
		t.open = true
	} else {
		t.usd += *s.USD
	}
	if s.Trace != "" {
		t.traces = append(t.traces, s.Trace)
	}
}

// settle writes what the case cost into its row.
func (t *tab) settle(r *Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == 0 {
		return
	}
	r.Tokens += t.tokens
	r.Traces = t.traces
	if !t.open {
		usd := t.usd
		r.USD = &usd
	}
}

// Idle opens a suite without its libraries: its cases can be counted and its rows be
// scored, and none can be run. The session is the caller's to close.
func Idle(ctx context.Context, s Suite, env Env) (Session, error) {
	env.Desk = idle{}
	env.Say = func(string) {}
	return open(ctx, s, env)
}

// Count is how many cases a suite has.
func Count(ctx context.Context, s Suite, env Env) (int, error) {
	sess, err := Idle(ctx, s, env)
	if err != nil {
		return 0, err
	}
	return len(sess.Cases()), sess.Close()
}

// idle opens libraries that cannot be asked.
type idle struct{}

func (idle) Open(context.Context, string, fs.FS) (Library, error) { return idle{}, nil }
func (idle) Engine() search.Engine                                { return idle{} }
func (idle) Close() error                                         { return nil }
func (idle) Name() string                                         { return "none" }

func (idle) Ask(context.Context, marchwarden.Request) (*marchwarden.Result, error) {
	return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the cases of a suite are only counted")
}

func (idle) Search(context.Context, search.Query) ([]search.Hit, error) {
	return nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "the cases of a suite are only counted")
}

type watchKey struct{}

// watch is what was read for the questions of one context.
type watch struct {
	mu   sync.Mutex // guards read
	read []string
}

// Watch is a context whose questions have noted what they read: the locators of all
// documents that were fetched, in order, with repetitions.
func Watch(ctx context.Context) (watched context.Context, read func() []string) {
	w := &watch{}
	return context.WithValue(ctx, watchKey{}, w), func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(w.read)
	}
}

// Fetched notes that a document was read, if a watcher is set. It is for a Desk.
func Fetched(ctx context.Context, locator string) {
	if w, ok := ctx.Value(watchKey{}).(*watch); ok {
		w.mu.Lock()
		w.read = append(w.read, locator)
		w.mu.Unlock()
	}
}
