// Package serve makes a researcher that is written in Go a member of any network of
// Marchwarden: an MCP server with one tool, research, on standard input and output or over
// HTTP.
//
// It owns the door to the outside: the tool and its schemas, the check of requests,
// progress, cancellation, the limit on calls that run at once, and the barrier that
// keeps a panic in one call from ending the process. Research, evidence and
// budgets are the researcher's own; a result passes through unchanged.
//
//	func main() {
//		err := serve.Stdio(ctx, serve.Config{
//			Name: "plants", Scope: "native plants of Utah", Researcher: r, Evidence: r.Evidence,
//		}, os.Stdin, os.Stdout)
//		…
//	}
package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/google/uuid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
)

// Config describes one researcher as a server.
type Config struct {
	// Name is what kind of researcher it is, such as "plants". Required.
	Name string
	// Scope is one sentence on what it covers, by which callers choose. Required.
	Scope string
	// Version is the program's version; "" means "dev".
	Version string
	// Researcher answers the calls, several at once. Required.
	Researcher marchwarden.Researcher
	// Evidence gives the stored document that a citation's content_hash names
	// ("sha256:" and 64 hex digits), byte for byte; CodeNotFound says that there is
	// none. It is called from several goroutines. Without it the citations cannot be checked, and
	// they count for less.
	Evidence func(ctx context.Context, hash string) ([]byte, error)
	// Private says that what it reports comes from sources of the user's own, so
	// that a caller keeps it from others.
	Private bool
	// OpenWorld says that what it is asked leaves this machine.
	OpenWorld bool
	// Log gets faults, and a debug line a call; nil discards them. It must not
	// write to the stream that is served.
	Log *slog.Logger
}

// Stdio serves one client, one message a line, until in ends or ctx does; both are
// how a server ends, and no error. Calls that run then have two seconds to hand
// over what they have. Nothing but protocol is written to out. The error says that
// the configuration lacks something (CodeInvalid), or that in or out failed.
//
// The caller closes in and out. A read of in that was waiting when ctx ended goes
// on waiting until in gives something or is closed.
func Stdio(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	server, err := cfg.server()
	if err != nil {
		return err
	}
	defer server.Close() // what does not stop has been logged
	err = server.ServeStdio(ctx, in, out)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// HTTPConfig says where a researcher is served over HTTP, and to whom.
type HTTPConfig struct {
	// Listener is where it listens; HTTP closes it. Required.
	Listener net.Listener
	// Token is what callers send as a bearer token, 16 characters or more. Without one the
	// Listener must be on a loopback address.
	Token string
	// Hosts are the names that requests may be for, beside loopback and the address that
	// they come to. Others are refused, so that no page in a browser reaches the server.
	Hosts []string
	// CertFile and KeyFile are for TLS.
	CertFile, KeyFile string
}

// HTTP serves any number of clients at /mcp until ctx ends, which is no error. Calls that
// run then have two seconds to hand over what they have. The error says what is wrong with
// the configuration (CodeInvalid), or that the Listener failed.
func HTTP(ctx context.Context, cfg Config, how HTTPConfig) error {
	if how.Listener == nil {
		return marchwarden.Errorf(marchwarden.CodeInvalid, "HTTP: a Listener is needed")
	}
	d, stop, err := cfg.door(how)
	if err != nil {
		return errors.Join(err, how.Listener.Close())
	}
	defer stop()
	return d.Serve(ctx, how.Listener)
}

// door is the way in over HTTP.
func (cfg Config) door(how HTTPConfig) (*httpdoor.Door, func() error, error) {
	var auth access.Authenticator
	var err error
	switch {
	case how.Token != "":
		if auth, err = access.Fixed("caller", how.Token); err != nil {
			return nil, nil, err
		}
	case !httpdoor.Loopback(how.Listener.Addr().String()):
		return nil, nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "Token", Message: "is needed at an address that others can reach"}
	}
	server, err := cfg.server()
	if err != nil {
		return nil, nil, err
	}
	d, err := server.Door(httpdoor.Config{Auth: auth, Scope: access.ScopeResearch, Hosts: how.Hosts, Now: time.Now, Log: cfg.Log, CertFile: how.CertFile, KeyFile: how.KeyFile})
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return d, server.Close, nil
}

func (cfg Config) server() (*mcpkit.Server, error) {
	return mcpkit.NewServer(mcpkit.Config{
		Name: cfg.Name, Scope: cfg.Scope, Version: cfg.Version, Researcher: cfg.Researcher, Evidence: cfg.Evidence,
		Private: cfg.Private, OpenWorld: cfg.OpenWorld, Log: cfg.Log, Now: time.Now,
	})
}

// NewTraceID makes an id for one research call, which every result needs. Ids
// differ from each other and sort by the time they were made. It is safe for
// concurrent use.
func NewTraceID() marchwarden.TraceID {
	u, err := uuid.NewV7()
	if err != nil {
		u = uuid.New()
	}
	id, err := marchwarden.ParseTraceID(u.String())
	if err != nil {
		panic(err) // unreachable: a UUID in its canonical form
	}
	return id
}
