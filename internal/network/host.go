// Package network opens researchers as the settings and the options of a question say: the
// built-in ones inside the program or in processes of their own, external ones by MCP, and
// the investigator over them, with their models, engines, vectors, records and ledger. It
// also has them work for the tasks of an engine. What a research does is in the packages
// that it opens; which flags there are, and what is printed, is the command's.
package network

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Host is the world outside, as researchers see it.
type Host struct {
	Env      func(string) (string, bool)
	Environ  func() []string
	Self     func() (string, error) // the path of this program
	Dir      string                 // the working directory, where .env is
	UserHome func() (string, error) // the home folder of the user
	Now      func() time.Time
	NewID    func() marchwarden.TraceID
	Stderr   io.Writer
	Version  string
	// Say tells people what did not stop the work; note tells what a child logs.
	Say, Note func(string)
	// Log is the log of a command.
	Log func(*settings.Settings) *slog.Logger
	// Hide knows the secrets of the settings, and takes them out of what is printed
	// and stored. Nil knows none.
	Hide *secret.Redactor
	// Limits are what this process shares of providers with the others that work for its
	// engine; nil where there is none.
	Limits func(key string) dispatch.Limiter
}

// Source is where the settings of this program are read from.
func (h *Host) Source() settings.Source {
	return settings.Source{Env: h.Env, Dir: h.Dir, UserHome: h.UserHome, Warn: h.Say}
}

// allowed is what calls of this process that are under way have set aside of what their callers
// may spend in a day. Servers in one process share what is in one ledger.
var allowed = struct {
	sync.Mutex
	open map[[2]string]float64 // USD by ledger and caller
}{open: map[[2]string]float64{}}

// quarter is the part of a day's money that a call gets which names no cap of its own, so that
// a caller can ask several questions at once.
const quarter = 0.25

// allow gives a call its part of what its caller may spend in a day, as the cap of its cost. What
// is spent is in the ledger, and what others under way may spend is set aside until they call done.
// A run that is resumed has its cap. With less than a hundredth left the call is refused: CodeExhausted.
func (h *Host) allow(ctx context.Context, c *settings.Settings, req *marchwarden.Request) (done func(), err error) {
	who := access.From(ctx)
	if who.MaxCostDay <= 0 {
		return func() {}, nil
	}
	allowed.Lock()
	defer allowed.Unlock()
	today := h.Now().UTC().Truncate(24 * time.Hour)
	key := [2]string{c.Text(settings.Ledger), who.ID}
	entries, _, err := ledger.Read(key[0])
	if err != nil {
		return nil, err
	}
	left := who.MaxCostDay - ledger.SpentBy(entries, who.ID, today) - allowed.open[key]
	if left < who.MaxCostDay/100 {
		return nil, &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: fmt.Sprintf("the $%v that %s may spend in a day are spent, or set aside for calls under way", who.MaxCostDay, who.ID),
			Hint: "there is more from " + today.AddDate(0, 0, 1).Format(time.RFC3339) + "; a call under way returns what it does not need"}
	}
	share := min(left, who.MaxCostDay*quarter)
	if req.Resume == "" {
		var cons marchwarden.Constraints
		if req.Constraints != nil {
			cons = *req.Constraints
		}
		if cons.MaxCostUSD != nil {
			share = min(left, *cons.MaxCostUSD)
		}
		cons.MaxCostUSD, req.Constraints = &share, &cons
	}
	allowed.open[key] += share
	return func() {
		allowed.Lock()
		defer allowed.Unlock()
		if allowed.open[key] -= share; allowed.open[key] < 1e-9 {
			delete(allowed.open, key)
		}
	}, nil
}
