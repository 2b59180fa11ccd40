package hub

import (
	"net"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// InProcessConn is a connection from within this process. It needs a key as others do; Seed has
// one. The caller closes it; it ends with the hub at the latest. CodeUnavailable when the hub has
// begun to end.
func (h *Hub) InProcessConn() (net.Conn, error) { return h.inside.add(h.server.InProcessConn) }

// inside are the connections from within the process. A server that ends may leave one
// open that it will never read from, and the client would wait a minute before it noticed.
// The zero value has none.
type inside struct {
	mu    sync.Mutex // guards what follows
	over  bool       // there shall be no more
	conns map[*insideConn]struct{}
}

type insideConn struct {
	net.Conn
	of *inside
}

func (i *inside) add(open func() (net.Conn, error)) (net.Conn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the hub ends")
	}
	conn, err := open()
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "connect to the hub of this process")
	}
	if i.conns == nil {
		i.conns = map[*insideConn]struct{}{}
	}
	c := &insideConn{conn, i}
	i.conns[c] = struct{}{}
	return c, nil
}

// Close closes the connection.
func (c *insideConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// refuse takes no more connections.
func (i *inside) refuse() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
}

// end closes those that are left.
func (i *inside) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	for c := range i.conns {
		_ = c.Conn.Close() // a pipe; there is nothing to lose
	}
	clear(i.conns)
}
