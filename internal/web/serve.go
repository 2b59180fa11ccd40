package web

import (
	"context"
	"net"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
)

// serveGrace is how long requests in flight have to end.
const serveGrace = 3 * time.Second

// Serve answers at a listener until ctx ends, by TLS if there is a certificate. It closes
// the listener and the server.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert, key string) error {
	srv := httpdoor.NewServer(s.Handler(), s.Log)
	srv.RegisterOnShutdown(s.Close)
	return httpdoor.Run(ctx, srv, l, cert, key, func() {
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), serveGrace)
		defer stop()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close() // what was left is closed
		}
	})
}
