package mailbox

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

// stream makes and accepts Raft's connections: pipes between replicas of one process, and TLS otherwise. An address is
// a replica's ID, resolved when a connection is made. The stream lists its open connections, to close them all.
type stream struct {
	config       *Config
	listener     net.Listener // nil for replicas of one process
	accepted     chan net.Conn
	handshakes   handshakes
	refusals     refusals
	refusedTotal atomic.Uint64
	closed       chan struct{}

	// member points to a function that reports whether a replica is in Raft's group. The configuration is not enough to
	// know this, because replicas can be added later. The pointer is nil until Raft runs.
	member atomic.Pointer[func(id string) bool]
	// asked serves, in a separate goroutine, a connection on which another replica asks questions. It is nil until Raft
	// runs.
	asked atomic.Pointer[func(from string, c net.Conn)]

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil after Close
}

var _ raft.StreamLayer = (*stream)(nil)

func openStream(c *Config) (*stream, error) {
	s := &stream{config: c, listener: c.faults.listener, accepted: make(chan net.Conn),
		closed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	if c.Local != nil {
		if err := c.Local.join(s); err != nil {
			return nil, err
		}
		return s, nil
	}
	if s.listener == nil {
		l, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return nil, fmt.Errorf("mailbox: cannot listen on %s: %w", c.Listen, err)
		}
		s.listener = l
	}
	go s.serve()
	return s, nil
}

// serve accepts connections until the stream is closed. After an error, such as too many open files, it waits and tries
// again.
func (s *stream) serve() {
	for {
		c, err := s.listener.Accept()
		if err == nil {
			s.greet(c)
			continue
		}
		select {
		case <-s.closed:
			return
		case <-time.After(50 * time.Millisecond):
			s.config.Log.Warn("cannot accept a connection of the group", zap.Error(err))
		}
	}
}

func (s *stream) greet(c net.Conn) {
	tracked, err := s.track(c, "")
	if err != nil {
		return // the stream was closed meanwhile
	}
	s.handshakes.begin(tracked)
	go func() {
		admitted, err := s.admit(tracked)
		s.handshakes.end(tracked)
		if err != nil {
			_ = tracked.Close()
			s.refused(c.RemoteAddr(), err)
			return
		}
		if exchanges(admitted) {
			s.serveAsked(tracked.from, admitted)
			return
		}
		select {
		case s.accepted <- admitted:
		case <-s.closed:
		}
	}()
}

func (s *stream) serveAsked(from string, c net.Conn) {
	if serve := s.asked.Load(); serve != nil {
		(*serve)(from, c)
	}
	_ = c.Close()
}

// admit accepts a connection if its certificate names a replica of this group.
func (s *stream) admit(c *trackedConn) (*tls.Conn, error) {
	t := s.config.TLS.Clone()
	t.NextProtos = []string{exchangeProtocol}
	secure := tls.Server(c, t)
	if err := handshake(secure, handshakeTimeout); err != nil {
		return nil, err
	}
	cert := secure.ConnectionState().PeerCertificates[0]
	id, ok := s.config.replicaOf(cert.DNSNames)
	if !ok {
		return nil, fmt.Errorf("the certificate for %q names no replica of this kind of group", cert.DNSNames)
	}
	if _, err := s.config.resolve(id); err != nil && !s.isMember(id) {
		return nil, fmt.Errorf("the certificate for %q names no replica of this group", cert.DNSNames)
	}
	s.mu.Lock()
	c.from = id
	s.mu.Unlock()
	return secure, nil
}

func (s *stream) isMember(id string) bool {
	member := s.member.Load()
	return member != nil && (*member)(id)
}

// Dial connects to a replica. The argument `to` is the replica's ID. If the replica was added with an address, an @ and
// this address may follow the ID.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.dial(to, timeout, false)
}

// dial connects to a replica. If `own` is true, the connection is for questions of this package, otherwise for Raft.
func (s *stream) dial(to raft.ServerAddress, timeout time.Duration, own bool) (net.Conn, error) {
	id, added := splitAddress(to)
	if s.config.Local == nil {
		return s.dialSecure(id, added, timeout, own)
	}
	c, err := s.config.Local.connect(s.config.ID, id, timeout, own)
	if err != nil {
		return nil, err
	}
	return s.track(c, "")
}

// With this keep-alive setting a replica finds within 15 s that a peer is cut off, even while it waits for an answer.
var alive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

// dialSecure connects to the replica with this ID. It uses the address in the configuration, because a replica may have
// moved since it was added to the group. If the configuration has none, dialSecure uses the argument `added`: the
// address with which the replica was added.
func (s *stream) dialSecure(id, added string, timeout time.Duration, own bool) (net.Conn, error) {
	address, err := s.config.resolve(id)
	if err != nil && added != "" {
		address, err = added, nil
	}
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: timeout, KeepAliveConfig: alive}
	c, err := d.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	tracked, err := s.track(c, "")
	if err != nil {
		return nil, err
	}
	t := s.config.TLS.Clone()
	t.ServerName = id + "." + s.config.Group
	if own {
		t.NextProtos = []string{exchangeProtocol}
	}
	secure := tls.Client(tracked, t)
	if err := handshake(secure, min(timeout, handshakeTimeout)); err != nil {
		_ = tracked.Close()
		return nil, err
	}
	return secure, nil
}

// Accept returns the next connection whose other end has proved that it is a replica.
func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close cuts every connection and stops listening; closing again does nothing.
func (s *stream) Close() error {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	if conns == nil {
		return nil
	}
	close(s.closed)
	for c := range conns {
		_ = c.Close()
	}
	if s.config.Local != nil {
		s.config.Local.leave(s)
		return nil
	}
	return s.listener.Close()
}

// Addr returns the replica's ID in place of an address, because Raft's configuration has no addresses.
func (s *stream) Addr() net.Addr { return idAddr(s.config.ID) }

// track keeps a connection in the list until the connection is closed. The argument `from` is the replica that opened
// the connection, or "". If the stream is already closed, track closes the connection.
func (s *stream) track(c net.Conn, from string) (*trackedConn, error) {
	t := &trackedConn{Conn: c, stream: s, from: from}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.conns[c] = struct{}{}
	return t, nil
}

type trackedConn struct {
	net.Conn
	stream *stream
	from   string // the replica that opened it, proven by its certificate; "" means this replica
}

func (t *trackedConn) Close() error {
	t.stream.mu.Lock()
	delete(t.stream.conns, t.Conn)
	t.stream.mu.Unlock()
	return t.Conn.Close()
}

type idAddr string

func (idAddr) Network() string  { return "tcp" }
func (a idAddr) String() string { return string(a) }
