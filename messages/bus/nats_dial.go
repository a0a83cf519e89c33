package bus

import (
	"net"
	"sync/atomic"
)

// dialer makes connections that count received bytes. NATS itself counts only complete messages.
type dialer struct {
	net.Dialer
	received *atomic.Int64
}

// Dial implements [nats.CustomDialer].
func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return countingConn{conn, d.received}, nil
}

type countingConn struct {
	net.Conn
	received *atomic.Int64
}

// Read implements [net.Conn].
func (c countingConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.received.Add(int64(n))
	return n, err
}
