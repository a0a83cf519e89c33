package mailbox

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
)

const (
	handshakeTimeout = 10 * time.Second
	// maxHandshakes bounds the connections that have not yet said who they are.
	maxHandshakes = 64
)

// stream carries Raft's connections. Addresses are replica IDs here, resolved
// when a connection is made; every connection is known, so that all can be cut.
type stream struct {
	config   *Config
	listener net.Listener
	accepted chan net.Conn
	greeting chan struct{} // a token for each handshake under way
	closed   chan struct{}

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // nil once closed
	member func(id string) bool  // of the group as Raft knows it; nil: not known yet
}

var _ raft.StreamLayer = (*stream)(nil)

func openStream(c *Config) (*stream, error) {
	listener := c.Listener
	if listener == nil {
		l, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return nil, fmt.Errorf("mailbox: cannot listen on %s: %w", c.Listen, err)
		}
		listener = l
	}
	s := &stream{config: c, listener: listener, accepted: make(chan net.Conn),
		greeting: make(chan struct{}, maxHandshakes), closed: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	go s.serve()
	return s, nil
}

// serve accepts until the stream is closed; an error in between, such as too
// many open files, is waited out.
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

// greet starts a connection's handshake, or drops it if too many are greeting.
func (s *stream) greet(c net.Conn) {
	select {
	case s.greeting <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		admitted, err := s.admit(c)
		<-s.greeting
		if err != nil {
			s.config.Log.Warn("refused a connection to the group", zap.Stringer("from", c.RemoteAddr()), zap.Error(err))
			_ = c.Close()
			return
		}
		select {
		case s.accepted <- admitted:
		case <-s.closed:
		}
	}()
}

// admit lets in, with TLS, only who holds a certificate of a replica.
func (s *stream) admit(c net.Conn) (net.Conn, error) {
	tracked, err := s.track(c)
	if err != nil || s.config.TLS == nil {
		return tracked, err
	}
	secure := tls.Server(tracked, s.config.TLS)
	if err := handshake(secure); err != nil {
		return nil, err
	}
	names := secure.ConnectionState().PeerCertificates[0].DNSNames
	for _, id := range names {
		if _, err := s.config.resolve(id); err == nil || s.isMember(id) {
			return secure, nil
		}
	}
	return nil, fmt.Errorf("certificate of %q names no replica of the group", names)
}

// know has the stream let in those replicas, too, that are added to the group.
func (s *stream) know(member func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.member = member
}

func (s *stream) isMember(id string) bool {
	s.mu.Lock()
	member := s.member
	s.mu.Unlock()
	return member != nil && member(id)
}

func handshake(c *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// Dial connects to the replica whose ID is the address, or begins it. Where the
// configuration knows the ID that holds, as addresses change; else the address that
// the replica was added with.
func (s *stream) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, added := splitAddress(to)
	address, err := s.config.resolve(id)
	if err != nil && added != "" {
		address, err = added, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", address, timeout)
	if err != nil {
		return nil, err
	}
	tracked, err := s.track(c)
	if err != nil || s.config.TLS == nil {
		return tracked, err
	}
	t := s.config.TLS.Clone()
	t.ServerName = id
	secure := tls.Client(tracked, t)
	if err := handshake(secure); err != nil {
		_ = tracked.Close()
		return nil, err
	}
	return secure, nil
}

// Accept returns the next connection that has proved who it is.
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
	return s.listener.Close()
}

// Addr is the replica's ID: Raft's configuration holds no addresses.
func (s *stream) Addr() net.Addr { return idAddr(s.config.ID) }

func (s *stream) track(c net.Conn) (net.Conn, error) {
	t := &trackedConn{Conn: c, stream: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	s.conns[c] = struct{}{}
	return t, nil
}

// trackedConn is forgotten by its stream when closed.
type trackedConn struct {
	net.Conn
	stream *stream
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
