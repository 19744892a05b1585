package embedded

import (
	"net"
	"sync"
)

// gate holds the listening socket for as long as the Server lives, and hands connections to the API server of the day.
// While there is none, because one is replaced by a fresh one, connections wait instead of being refused.
type gate struct {
	socket net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newGate(socket net.Listener) *gate {
	g := &gate{socket: socket, conns: make(chan net.Conn), closed: make(chan struct{})}
	go g.accept()
	return g
}

func (g *gate) accept() {
	for {
		conn, err := g.socket.Accept()
		if err != nil {
			if temporary(err) {
				continue
			}
			return
		}
		select {
		case g.conns <- conn:
		case <-g.closed:
			conn.Close()
			return
		}
	}
}

// temporary tells an error of one connection, such as one that was given up while it waited, from the end of the socket.
func temporary(err error) bool {
	t, ok := err.(interface{ Temporary() bool })
	return ok && t.Temporary()
}

func (g *gate) close() {
	g.once.Do(func() {
		close(g.closed)
		g.socket.Close()
	})
}

// door is one API server's listener behind the gate. It knows the connections that came through it, so that they can be
// ended at once: a graceful shutdown waits for watches, and a second for each HTTP/2 client's farewell.
type door struct {
	gate   *gate
	mu     sync.Mutex
	open   map[*doorConn]struct{}
	shut   chan struct{} // no new connections
	closed chan struct{} // Accept returns
	once   sync.Once
}

func (g *gate) door() *door {
	return &door{gate: g, open: map[*doorConn]struct{}{}, shut: make(chan struct{}), closed: make(chan struct{})}
}

// Accept waits for a connection. After endAll it waits for Close: the API server panics when its listener fails before
// it was told to stop.
func (d *door) Accept() (net.Conn, error) {
	select {
	case <-d.shut:
		<-d.closed
		return nil, net.ErrClosed
	case <-d.closed:
		return nil, net.ErrClosed
	case conn := <-d.gate.conns:
		c := &doorConn{Conn: conn, door: d}
		d.mu.Lock()
		defer d.mu.Unlock()
		select {
		case <-d.shut:
			conn.Close()
		default:
			d.open[c] = struct{}{}
		}
		return c, nil
	}
}

// Addr is the address of the socket that is held.
func (d *door) Addr() net.Addr { return d.gate.socket.Addr() }

// Close makes Accept return; the socket stays open.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// endAll ends every connection and takes no new one.
func (d *door) endAll() {
	d.mu.Lock()
	close(d.shut)
	conns := d.open
	d.open = map[*doorConn]struct{}{}
	d.mu.Unlock()
	for c := range conns {
		c.Conn.Close()
	}
}

type doorConn struct {
	net.Conn
	door *door
}

func (c *doorConn) Close() error {
	c.door.mu.Lock()
	delete(c.door.open, c)
	c.door.mu.Unlock()
	return c.Conn.Close()
}
