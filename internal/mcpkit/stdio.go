package mcpkit

import (
	"context"
	"io"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// ServeStdio serves one client, one JSON-RPC message a line, until in ends or
// ctx does. It writes nothing but protocol to out.
//
// When in ends, calls that run get the grace to finish, then they are stopped;
// it returns nil. When ctx ends, calls are stopped at once. A stopped call's
// partial result is still sent if it comes within the grace; then ServeStdio
// returns ctx's error, even if the client does not read or the researcher does
// not stop. It returns another error when in or out fails.
//
// The caller keeps in and out and closes them. A read of in that was waiting
// when ctx ended goes on waiting in the background until in gives something or
// is closed.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	calls, stopCalls := context.WithCancel(ctx)
	defer stopCalls()
	conn := newLineConn(in, out, s.cfg.Grace, stopCalls)
	defer conn.Close()
	session, err := s.mcp.Connect(context.WithValue(ctx, sessionKey{}, calls), conn, nil)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeInternal, "serve mcp over stdio")
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	select {
	case err := <-ended:
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "serve mcp over stdio")
	case <-ctx.Done():
	}
	// The SDK drops the answers of calls that are running when it is told to
	// close, so they are waited for first.
	conn.drain(handover(s.cfg.Grace))
	go session.Close()
	leave := time.NewTimer(s.cfg.Grace)
	defer leave.Stop()
	select {
	case <-ended:
	case <-leave.C:
		s.cfg.Log.Error("mcp session did not close in time", "grace", s.cfg.Grace)
	}
	return ctx.Err()
}

// handover is how long to wait for the answers of stopped calls: each of them
// ends within the grace, and then has to be written.
func handover(grace time.Duration) time.Duration { return grace + grace/4 }

// sessionKey finds, in the context of a request, the context under which the
// calls of its session run.
type sessionKey struct{}

// joinSession ends ctx when the session's calls are stopped too. The SDK shields
// requests from the context that the session was started with; only its values
// get through.
func joinSession(ctx context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	session, ok := ctx.Value(sessionKey{}).(context.Context)
	if !ok {
		return joined, func() { cancel(nil) }
	}
	release := context.AfterFunc(session, func() { cancel(context.Cause(session)) })
	return joined, func() {
		release()
		cancel(nil)
	}
}
