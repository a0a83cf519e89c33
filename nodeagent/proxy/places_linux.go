package proxy

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/candor-grid/candor/messages"
)

// Places are the connections of tasks that a socket of the node serves at the same time. Every process of the machine
// can connect, and can then be silent. So if no place is free, a new connection takes a place from the user with the
// most places. There is one exception: the connection is refused if its own user would then have at least as many
// places as the other user had. So a user who opens many connections cannot keep another user out.
type Places struct {
	most int

	mu   sync.Mutex
	all  int
	of   map[string][]*place // by user, in the order of arrival
	read map[string]int      // by user: bytes of requests that are being read or answered
}

// mostRead bounds the bytes of one user's requests that a socket holds at the same time. These bytes take memory of the
// agent, so the task's memory limit does not count them.
const mostRead = 32 << 20

// place stands for a connection that is served. The function in the field `end` makes the connection's server stop.
type place struct{ end func() }

// NewPlaces returns places for at most the given number of connections.
func NewPlaces(most int) *Places {
	return &Places{most: most, of: map[string][]*place{}, read: map[string]int{}}
}

// Take takes a place for a connection. The caller serves the returned connection until ctx ends, and then calls
// `leave`. The connection is closed when the caller calls `leave`, or when another connection gets the place. If Take
// returns an error, the connection has no place.
func (p *Places) Take(life context.Context, conn net.Conn) (ctx context.Context, served net.Conn, leave func(), err error) {
	user, err := roomOf(conn)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithCancel(life)
	mine := p.take(user, cancel)
	if mine == nil {
		cancel()
		return nil, nil, nil, messages.Errorf(messages.NotLeader, "the node carries out %d requests of tasks at the same time, which is the limit; the node did not carry out this request: ask again later", p.most)
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	counts := &counted{Conn: conn, places: p, user: user}
	return ctx, counts, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.remove(user, mine)
		if p.read[user] -= counts.read; p.read[user] == 0 {
			delete(p.read, user)
		}
		cancel()
	}, nil
}

// counted is a connection that counts what is read from it.
type counted struct {
	net.Conn
	places *Places
	user   string
	read   int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	c.read += n
	if c.places.read[c.user] += n; c.places.read[c.user] > mostRead {
		return 0, messages.Errorf(messages.NotLeader, "the requests of this user's tasks take more than %d MiB at the same time; the node did not carry out this request, ask again later", mostRead>>20)
	}
	return n, err
}

// take gives a user a place, or returns nil if the user gets none. If the place is given to another user later, `end`
// is called.
func (p *Places) take(user string, end func()) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all >= p.most && !p.free(user) {
		return nil
	}
	mine := &place{end}
	p.of[user] = append(p.of[user], mine)
	p.all++
	return mine
}

// free is called when all places are taken. It takes the latest place from the user who has the most places. The caller
// holds p.mu.
func (p *Places) free(newcomer string) bool {
	most := newcomer
	for user, places := range p.of {
		if len(places) > len(p.of[most]) {
			most = user
		}
	}
	if len(p.of[most]) <= len(p.of[newcomer])+1 {
		return false
	}
	last := p.of[most][len(p.of[most])-1]
	p.remove(most, last)
	last.end()
	return true
}

// remove makes a place free, unless it is free already. The caller holds p.mu.
func (p *Places) remove(user string, one *place) {
	i := slices.Index(p.of[user], one)
	if i < 0 {
		return
	}
	p.all--
	if p.of[user] = slices.Delete(p.of[user], i, i+1); len(p.of[user]) == 0 {
		delete(p.of, user)
	}
}

// roomOf identifies the room (the namespaces of an account's tasks) at the other end of a connection. It returns the
// user of the process there. If this is the agent's own user, all rooms have the same user. Then the result also has
// the process's namespace of process numbers, which differs between rooms.
func roomOf(conn net.Conn) (string, error) {
	peer, err := peerOf(conn)
	if err != nil {
		return "", err
	}
	room := fmt.Sprint(peer.Uid)
	if int(peer.Uid) == os.Geteuid() {
		inside, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", peer.Pid))
		room += " " + inside
	}
	return room, nil
}
