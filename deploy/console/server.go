package console

import (
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// MostConnections is how many connections a server of pages has at the same time. Each connection takes a file
// descriptor of the process. The process needs its other file descriptors for its log. Everybody on the machine can
// open connections, also tasks.
const MostConnections = 1024

// Server returns a server of pages or metrics. Its connections end if they are idle, or if they read too slowly. If
// there are too many connections, a new connection takes the place of an old one. This is the connection that has been
// idle for longest, or else the connection with the oldest request.
func Server(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{Handler: h, ErrorLog: errors, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 10 * time.Minute, IdleTimeout: 2 * time.Minute, ConnState: (&connections{open: map[net.Conn]since{}}).changed}
}

// connections has the open connections of a server.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]since
}

// since says in which state a connection is, and since when.
type since struct {
	at    time.Time
	state http.ConnState
}

// rank orders connections that can be closed in favour of a new one; the lowest rank is closed first. 0: nobody waits for
// the connection, because it is idle, or because it is new and no request came for a second; the handshake of TLS takes
// less. 1: it is new. 2: a request is in progress.
func (s since) rank() int {
	switch {
	case s.state == http.StateIdle, s.state == http.StateNew && time.Since(s.at) > time.Second:
		return 0
	case s.state == http.StateNew:
		return 1
	}
	return 2
}

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.open, conn)
		return
	}
	if _, known := c.open[conn]; known || state == http.StateNew {
		c.open[conn] = since{time.Now(), state}
	}
	if len(c.open) <= MostConnections {
		return
	}
	var first net.Conn
	for other, s := range c.open {
		if o := c.open[first]; other != conn && (first == nil || s.rank() < o.rank() || s.rank() == o.rank() && s.at.Before(o.at)) {
			first = other
		}
	}
	delete(c.open, first)
	go first.Close() // without the lock: the end of a connection with TLS can take seconds
}
