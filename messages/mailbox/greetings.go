package mailbox

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	handshakeTimeout = 5 * time.Second
	// maxGreetings bounds the connections that have not yet said who they are, and
	// maxGreetingsFrom those of one address. A handshake between replicas takes
	// milliseconds, so whoever is the oldest of too many is not a replica.
	maxGreetings     = 64
	maxGreetingsFrom = 16
)

// handshake proves both ends of a connection to one another.
func handshake(c *tls.Conn, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// greetings are the connections whose handshake is under way. A new one is always
// let begin: the oldest of its address, or of all, makes room. So connections that
// say nothing keep nobody out.
type greetings struct {
	mu   sync.Mutex
	open []greeting // in the order in which they came
}

type greeting struct {
	conn net.Conn
	from string // address without port
}

func newGreetings() *greetings { return &greetings{} }

// begin adds a connection, and closes the one that makes room for it, if any must.
func (g *greetings) begin(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := hostOf(c.RemoteAddr())
	same, first := 0, -1
	for i, other := range g.open {
		if other.from == from {
			if same++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case same >= maxGreetingsFrom:
		g.drop(first)
	case len(g.open) >= maxGreetings:
		g.drop(0)
	}
	g.open = append(g.open, greeting{c, from})
}

// drop closes a connection; who reads from it sees that.
func (g *greetings) drop(i int) {
	_ = g.open[i].conn.Close()
	g.open = slices.Delete(g.open, i, i+1)
}

// end forgets a connection whose handshake is over.
func (g *greetings) end(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = slices.DeleteFunc(g.open, func(other greeting) bool { return other.conn == c })
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// refusals bounds what is logged of refused connections to a line a second: who is
// refused must not fill the disk.
type refusals struct {
	mu     sync.Mutex
	logged time.Time
	silent int // refusals since
}

// next reports whether a refusal is to be logged, and how many were not since the last.
func (r *refusals) next(now time.Time) (silent int, log bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.logged) < time.Second {
		r.silent++
		return 0, false
	}
	silent, r.silent, r.logged = r.silent, 0, now
	return silent, true
}

// refused counts a connection that was not let in, and logs it.
func (s *stream) refused(from net.Addr, err error) {
	s.refusedTotal.Add(1)
	if silent, log := s.refusals.next(time.Now()); log {
		s.config.Log.Warn("refused a connection to the group", zap.Stringer("from", from), zap.Error(err), zap.Int("others_since_last", silent))
	}
}
