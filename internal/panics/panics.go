// Package panics turns a panic into an error, so that one research that meets a
// bug does not take down the process and every other with it. It owns what is told
// of a panic, and what is not. It is small and a package of its own, since fetchers, models,
// the loop, engines of tasks and the page all need it, and none of them may import another.
package panics

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Caught turns a panic into an error with CodeInternal. It must be deferred
// itself, by every goroutine and around every call to a part that is not trusted.
// Of the panic's value only a fault of the Go runtime is told: whatever else may
// hold what a page said.
func Caught(err *error, what string) {
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
