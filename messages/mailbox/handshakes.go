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
	// maxHandshakes bounds the connections that have not proved who they are. maxHandshakesFrom bounds such connections
	// from one address. If there are too many, the oldest connection is closed. A replica's handshake takes
	// milliseconds, so the oldest connection is not a replica's.
	maxHandshakes     = 64
	maxHandshakesFrom = 16
)

// handshake makes both ends of a connection prove who they are.
func handshake(c *tls.Conn, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.HandshakeContext(ctx)
}

// handshakes has the connections whose handshake has begun and not ended. If there are too many of them, the oldest is
// closed. Otherwise, connections that send nothing could use up the places, and a replica could not connect.
type handshakes struct {
	mu   sync.Mutex
	open []net.Conn // oldest first
}

func (g *handshakes) begin(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var same []int
	for i, other := range g.open {
		if hostOf(other.RemoteAddr()) == hostOf(c.RemoteAddr()) {
			same = append(same, i)
		}
	}
	switch {
	case len(same) >= maxHandshakesFrom:
		g.drop(same[0])
	case len(g.open) >= maxHandshakes:
		g.drop(0)
	}
	g.open = append(g.open, c)
}

// drop closes a connection, which makes its handshake fail.
func (g *handshakes) drop(i int) {
	_ = g.open[i].Close()
	g.open = slices.Delete(g.open, i, i+1)
}

func (g *handshakes) end(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = slices.DeleteFunc(g.open, func(other net.Conn) bool { return other == c })
}

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

// refusals limits the log of refused connections to one line a second. Strangers could otherwise fill the disk.
type refusals struct {
	mu     sync.Mutex
	logged time.Time
	silent int // refusals that were not logged since the last log line
}

// next reports whether to log this refusal: at most one is logged in a second. The result `silent` is the number of
// refusals since the last log line that were not logged.
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

func (s *stream) refused(from net.Addr, err error) {
	s.refusedTotal.Add(1)
	if silent, log := s.refusals.next(time.Now()); log {
		s.config.Log.Warn("refused a connection to the group", zap.Stringer("from", from), zap.Error(err), zap.Int("others_since_last", silent))
	}
}
