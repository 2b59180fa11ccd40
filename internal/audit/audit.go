// Package audit checks a result as anybody could: against the stored bytes, against its
// record and those of its rihlas, against a rerun, and, if it is told to, against the
// database, the web servers and the registries of papers. It prints every check as it is
// made. What makes a citation stand is package verify's to say, and what became of the text
// of its source is package drift's.
//
//	audit.go     checks, printed and counted
//	result.go    a result and its record
//	bundle.go    a bundle: its bytes, its signature, its reruns
//	online.go    the locators of a result
//	live.go      the rows of a database
//	registry.go  who is asked about locators, and many questions at once
//	papers.go    DOIs, arXiv ids and retractions
//	service.go   a service that is asked one question at a time
//	locators.go  what a locator names
package audit

import (
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Config is what an audit works with. Print, Note and Warn are required.
type Config struct {
	Print func(line string) error          // a check
	Note  func(format string, args ...any) // what a person should know besides
	Warn  func(message string)

	// Version is that of this program, and Rerun executes a run again on its record. Only
	// bundles need them.
	Version string
	Rerun   func(context.Context, *trace.Log, blob.Store) (want, got []byte, err error)

	// Database opens the database whose queries are run again; nil: none is.
	Database func(context.Context) (*database.DB, error)
	// Registry opens what asks about locators, and what closes it; nil: none is asked about.
	Registry func() (*Registry, func() error, error)
}

// Records are where runs are looked up: a home or a bundle.
type Records struct {
	Load  func(marchwarden.TraceID) (*trace.Log, error)
	Blobs blob.Store
}

// Audit prints checks as they are made and counts them. It is for one result.
type Audit struct {
	cfg    Config
	stood  int
	failed []string // the problems, in order
	err    error    // the first failure to print
}

// New makes an audit that has checked nothing.
func New(cfg Config) *Audit { return &Audit{cfg: cfg} }

func (a *Audit) check(what, problem string) {
	mark := "✓"
	if problem == "" {
		a.stood++
	} else {
		mark = "✗"
		what += ": " + problem
		a.failed = append(a.failed, problem)
	}
	a.print("%s %s", mark, what)
}

func (a *Audit) print(format string, args ...any) {
	if a.err == nil {
		a.err = a.cfg.Print(term.CleanLine(fmt.Sprintf(format, args...)))
	}
}

// close says what it comes to, and fails if anything did not stand.
func (a *Audit) close(ctx context.Context, id marchwarden.TraceID) error {
	if err := ctx.Err(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify")
	}
	if len(a.failed) > 0 {
		const most = 3
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "%d of %d checks failed: %s",
			len(a.failed), len(a.failed)+a.stood, strings.Join(a.failed[:min(most, len(a.failed))], "; "))
	}
	a.print("everything stands: %s of %s", term.Plural(a.stood, "check"), id)
	return marchwarden.Wrap(a.err, marchwarden.CodeUnavailable, "print the verdicts")
}
