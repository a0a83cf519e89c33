package connections

import (
	"cmp"
	"slices"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// holder is a user, node or service that has connections. Its role and its name identify it.
type holder struct {
	role identity.Role
	name messages.Name
}

type place struct {
	server string
	id     uint64
}

type connection struct {
	place
	by    holder
	start time.Time // by the server's clock
	// The field `told` is the time at which the holder was told that the connection will be closed. The field `cut` is
	// the time at which the server was last asked to close the connection. The zero time means that this did not happen
	// yet.
	told, cut time.Time
}

// census counts the connections of each holder from the servers' reports. It has no clock and is not safe for
// concurrent use.
type census struct {
	servers map[string]*server
	open    map[holder]int
}

type server struct {
	heard, listed time.Time
	connections   map[uint64]*connection
	// After the guard asks the server for a list of its connections, `changed` has the connections that were opened or
	// closed since then. The list may be too old to show these changes. `changed` is nil if the guard waits for no
	// list.
	changed map[uint64]bool
}

func newCensus() *census {
	return &census{servers: map[string]*server{}, open: map[holder]int{}}
}

func (c *census) hear(id string, now time.Time) *server {
	s := c.servers[id]
	if s == nil {
		s = &server{connections: map[uint64]*connection{}}
		c.servers[id] = s
	}
	s.heard = now
	return s
}

func (c *census) opened(n connection, now time.Time) {
	s := c.hear(n.server, now)
	if s.changed != nil {
		s.changed[n.id] = true
	}
	c.enter(s, n)
}

func (c *census) enter(s *server, n connection) {
	if s.connections[n.id] == nil {
		s.connections[n.id] = &n
		c.open[n.by]++
	}
}

// This method removes a closed connection.
func (c *census) closed(at place, now time.Time) {
	s := c.hear(at.server, now)
	if s.changed != nil {
		s.changed[at.id] = true
	}
	c.remove(s, at.id)
}

func (c *census) remove(s *server, id uint64) {
	n := s.connections[id]
	if n == nil {
		return
	}
	delete(s.connections, id)
	if c.open[n.by]--; c.open[n.by] == 0 {
		delete(c.open, n.by)
	}
}

// asking returns the IDs of the servers that must be asked for a list of their connections. These are the servers whose
// last list is older than the given time, if no earlier request to them still waits for its answer. [census.list] takes
// the answers.
func (c *census) asking(before time.Time) (ids []string) {
	for id, s := range c.servers {
		if s.changed == nil && s.listed.Before(before) {
			s.changed = map[uint64]bool{}
			ids = append(ids, id)
		}
	}
	return ids
}

// The method list replaces the known connections of a server by a list that the server has sent. If a connection
// changed after the server was asked, its newer state stays. If the list is nil, nothing changes.
func (c *census) list(id string, all map[uint64]connection, now time.Time) {
	s := c.servers[id]
	if s == nil {
		return
	}
	changed := s.changed
	if s.changed = nil; all == nil {
		return
	}
	s.listed = now
	for n := range s.connections {
		if _, there := all[n]; !there && !changed[n] {
			c.remove(s, n)
		}
	}
	for n, open := range all {
		if !changed[n] {
			c.enter(s, open)
		}
	}
}

// forget removes the servers that have not reported since a time, with their connections.
func (c *census) forget(since time.Time) {
	for id, s := range c.servers {
		if s.heard.Before(since) {
			for n := range s.connections {
				c.remove(s, n)
			}
			delete(c.servers, id)
		}
	}
}

// excess returns the connections above the limits. A holder is a user, node or service that has connections. If a
// holder has more connections than `most` returns for it, excess returns this holder's newest connections. All servers
// that count the same connections choose the same connections.
func (c *census) excess(most func(holder) int) (all []*connection) {
	over := map[holder][]*connection{}
	for by, n := range c.open {
		if m := most(by); m > 0 && n > m {
			over[by] = nil
		}
	}
	if len(over) == 0 {
		return nil
	}
	for _, s := range c.servers {
		for _, n := range s.connections {
			if of, too := over[n.by]; too {
				over[n.by] = append(of, n)
			}
		}
	}
	for by, of := range over {
		slices.SortFunc(of, func(a, b *connection) int {
			return cmp.Or(b.start.Compare(a.start), cmp.Compare(b.server, a.server), cmp.Compare(b.id, a.id))
		})
		all = append(all, of[:len(of)-most(by)]...)
	}
	return all
}
