package investigate

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// Researcher is one member of the network. Exactly one of Value, Command and URL
// is given.
type Researcher struct {
	// Name is 1 to 40 of a-z, 0-9, _ and -, and begins with a letter. Required, and
	// not that of a built-in researcher, nor "pi".
	Name string
	// Scope is one sentence on what it covers. The investigator chooses by it.
	// Required.
	Scope string
	// Private says that what it reports comes from sources of the user's own: it is
	// told to no other researcher unless Config.AllowEgress names this one.
	Private bool
	// Trust is how far its stored documents count; "" is Known.
	Trust Trust
	// Share is its weight when the budget is split; 0 is 1.
	Share float64
	// Timeout bounds one call; 0 is no bound but the investigation's own.
	Timeout time.Duration

	// Value is a researcher inside this process. A panic of its own goroutine ends
	// one call; what else it breaks, it breaks here.
	Value marchwarden.Researcher
	// Evidence hands over what Value stored, by a citation's ContentHash;
	// CodeNotFound says that there is none. Without it the citations of Value are
	// marked as unchecked.
	Evidence func(ctx context.Context, hash string) ([]byte, error)
	// OpenWorld says that what Value is asked leaves this machine. Of a Command and a
	// URL that is taken for granted.
	OpenWorld bool

	// Command is a program and its arguments, run without a shell, that serves MCP on
	// its standard input and output. It is started when it is first asked, and again
	// after a crash.
	Command []string
	// Env is its whole environment, such as os.Environ(): nothing of this process is
	// handed on that does not stand here.
	Env []string
	// Dir is its working directory; "" is that of this process.
	Dir string
	// Stderr gets what it writes to standard error; nil discards it. It must be safe
	// for use by several goroutines.
	Stderr io.Writer

	// URL is the address of a server that speaks MCP over HTTP, Token its bearer
	// token or "".
	URL   string
	Token string
}

// Trust is how far a researcher's own word on its sources goes.
type Trust string

// The degrees of trust.
const (
	// Known takes the documents that a researcher hands over by their hash for what
	// it says they are. The excerpts are checked against them all the same.
	Known Trust = "known"
	// Unknown takes its word for nothing: its citations are marked as unchecked and
	// count for less.
	Unknown Trust = "unknown"
)

// check says what is wrong with a researcher.
func (r Researcher) check() error {
	ways := 0
	for _, given := range []bool{r.Value != nil, len(r.Command) > 0, r.URL != ""} {
		if given {
			ways++
		}
	}
	switch {
	case settings.IsBuiltin(r.Name):
		return invalid("Researchers", "choose another name", "%q is a researcher of the library or of this module", r.Name)
	case r.Name == "pi":
		return invalid("Researchers", "choose another name", "%q is the investigator itself", r.Name)
	case strings.TrimSpace(r.Scope) == "":
		return invalid("Researchers", "say in a sentence what it covers: the investigator chooses by it", "%q has no Scope", r.Name)
	case ways != 1:
		return invalid("Researchers", "", "%q must have exactly one of Value, Command and URL, has %d", r.Name, ways)
	case r.Evidence != nil && r.Value == nil:
		return invalid("Researchers", "", "%q has Evidence, which is for a Value: a server hands over its own", r.Name)
	case r.Timeout < 0:
		return invalid("timeout", "", "%s of %s is less than 0", r.Timeout, r.Name)
	case r.Trust != "" && r.Trust != Known && r.Trust != Unknown:
		return invalid("Researchers", "", "Trust of %q must be %s or %s, not %q", r.Name, Known, Unknown, r.Trust)
	}
	return nil
}

// names are those of all researchers that the Config means.
func (c *Config) names() []string {
	var names []string
	for name, meant := range map[string]bool{researcher.FilesName: c.Embedded || len(c.Library) > 0, database.Name: c.DB != "", researcher.WebName: c.Online, researcher.ArxivName: c.Online} {
		if meant {
			names = append(names, name)
		}
	}
	for _, r := range c.Researchers {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// invalid is the error of a field of the Config.
func invalid(field, hint, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// seats are the researchers that the program brings along. The network itself refuses
// names that are wrong or taken.
func (c *Config) seats() []pool.Seat {
	var out []pool.Seat
	for _, r := range c.Researchers {
		m := dispatch.Member{Name: r.Name, Scope: r.Scope, Share: r.Share, Trust: dispatch.Trust(r.Trust), Private: r.Private, OpenWorld: true}
		s := pool.Seat{Member: m, Timeout: r.Timeout}
		if r.Value != nil {
			s.Transport, s.OpenWorld = "in process", r.OpenWorld
			s.Open = func(context.Context) (pool.Session, pool.Card, error) {
				return pool.InProcess(r.Value, r.Evidence, nil), pool.Card{Contract: marchwarden.ContractVersion, Description: r.Scope}, nil
			}
		} else {
			d := client.Dialer{Version: c.Version, Now: c.Now, HTTP: c.HTTP, Log: c.Log}
			t := client.Target{Command: r.Command, Env: r.Env, Dir: r.Dir, Stderr: r.Stderr, URL: r.URL, Token: r.Token}
			s.Transport, s.Pinned, s.Open = strings.Join(append(slices.Clone(r.Command), r.URL), " "), true, network.Dial(d, func() client.Target { return t })
		}
		out = append(out, s)
	}
	return out
}
