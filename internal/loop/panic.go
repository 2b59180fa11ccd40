package loop

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// caught turns a panic into an error with CodeInternal. It must be deferred
// itself. A goroutine that panics takes the process with it, and every other run:
// each goroutine of this package, and each effect, defers it. A panic in an effect
// is an outcome like any failure, recorded and a gap; anywhere else it ends its
// run. Of the panic's value only a fault of the Go runtime is told: whatever else
// may hold what a page said.
func caught(err *error, what string) {
	p := recover()
	if p == nil {
		return
	}
	why := fmt.Sprintf("a %T", p)
	if fault, ok := p.(runtime.Error); ok {
		why = fault.Error()
	}
	*err = marchwarden.Errorf(marchwarden.CodeInternal, "a bug in this program: %s panicked at %s: %s", what, culprit(), why)
}

// culprit is the file and line that panicked, seen from a deferred function.
func culprit() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// The doors to the world, each with its panics turned into failures.
type (
	safeEngine  struct{ search.Engine }
	safeFetcher struct{ fetch.Fetcher }
	safeModel   struct{ llm.Model }
)

func (e safeEngine) Search(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	defer caught(&err, "a search")
	return e.Engine.Search(ctx, q)
}

func (f safeFetcher) Fetch(ctx context.Context, locator string) (page fetch.Page, err error) {
	defer caught(&err, "a fetch")
	return f.Fetcher.Fetch(ctx, locator)
}

func (m safeModel) Generate(ctx context.Context, c llm.Call) (reply llm.Reply, err error) {
	defer caught(&err, "a model call")
	return m.Model.Generate(ctx, c)
}

// safe guards the doors that are there.
func safe(cfg Config) Config {
	if cfg.Engine != nil {
		cfg.Engine = safeEngine{cfg.Engine}
	}
	if cfg.Fetcher != nil {
		cfg.Fetcher = safeFetcher{cfg.Fetcher}
	}
	if cfg.Model != nil {
		cfg.Model = safeModel{cfg.Model}
	}
	return cfg
}
