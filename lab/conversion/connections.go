package conversion

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// noticeTimeout is how long a client may take to notice that its connection has been ended.
const noticeTimeout = time.Second

// connections is a listener that knows what it has accepted, and can end it all. While it is shut, whoever connects is cut
// off at once: to close the socket would be nearer to nobody listening, but it could not be opened again.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
	shut bool
}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: map[*connection]struct{}{}}
}

// Accept returns the next connection.
func (c *connections) Accept() (net.Conn, error) {
	for {
		accepted, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn := c.admit(accepted); conn != nil {
			return conn, nil
		}
		reset(accepted)
	}
}

func (c *connections) admit(accepted net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return nil
	}
	conn := &connection{Conn: accepted, of: c, closed: make(chan struct{})}
	c.open[conn] = struct{}{}
	return conn
}

// shutOff says whether the connections to come are to be cut off.
func (c *connections) shutOff(shut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = shut
}

// end ends every connection that is open. It returns when all clients know, so that none sends a request into a connection
// that has ended, or after noticeTimeout.
func (c *connections) end() {
	c.mu.Lock()
	var ending []*connection
	for conn := range c.open {
		ending = append(ending, conn)
	}
	c.mu.Unlock()
	deadline := time.NewTimer(noticeTimeout)
	defer deadline.Stop()
	for _, conn := range ending {
		conn.endWriting()
	}
	for _, conn := range ending {
		select {
		case <-conn.closed:
		case <-deadline.C:
			deadline.Reset(0)
			conn.Close()
		}
	}
}

// connection is one client's.
type connection struct {
	net.Conn
	of     *connections
	shown  *tls.Certificate // in its handshake; the Server's lock guards it
	once   sync.Once
	closed chan struct{}
	err    error
}

// Close closes the connection, and forgets it.
func (c *connection) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		delete(c.of.open, c)
		c.of.mu.Unlock()
		c.err = c.Conn.Close()
		close(c.closed)
	})
	return c.err
}

// endWriting tells the client that no more will come; it closes its side when it has noticed, and then so does the server.
func (c *connection) endWriting() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	c.Close()
}

// reset cuts a connection off, so that its client sees what it would see of a process that has gone.
func reset(c net.Conn) {
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	c.Close()
}

type connectionKey struct{}

// rememberConnection lets a request know its connection.
func rememberConnection(ctx context.Context, c net.Conn) context.Context {
	if encrypted, ok := c.(*tls.Conn); ok {
		return context.WithValue(ctx, connectionKey{}, encrypted.NetConn())
	}
	return ctx
}

// connectionOf is the connection that a request came by; nil where it came otherwise.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
