package connections

import (
	"slices"
	"time"

	"github.com/candor-grid/candor/deploy/identity"
	"github.com/candor-grid/candor/messages"
)

// holder is who has connections.
type holder struct {
	role identity.Role
	name messages.Name
}

type connection struct {
	server string
	id     uint64
}

// census counts the connections of holders, by what the servers say of them. It has no
// clock and is not safe for concurrent use.
type census struct {
	servers map[string]*server
	open    map[holder]int
	// leaving are connections that are about to be cut.
	leaving map[connection]bool
	gone    map[holder]int // how many of a holder's connections are leaving
}

// server is a NATS server of the site.
type server struct {
	heard, listed time.Time
	connections   map[uint64]holder
	// changed are the connections that were opened or closed while the server was asked
	// for its list, which may say otherwise; nil: it is not being asked.
	changed map[uint64]bool
}

func newCensus() *census {
	return &census{servers: map[string]*server{}, open: map[holder]int{}, leaving: map[connection]bool{}, gone: map[holder]int{}}
}

// hear notes that a server is there.
func (c *census) hear(id string, now time.Time) *server {
	s := c.servers[id]
	if s == nil {
		s = &server{connections: map[uint64]holder{}}
		c.servers[id] = s
	}
	s.heard = now
	return s
}

func (c *census) opened(at connection, by holder, now time.Time) {
	s := c.hear(at.server, now)
	if s.changed != nil {
		s.changed[at.id] = true
	}
	c.enter(s, at.id, by)
}

func (c *census) enter(s *server, id uint64, by holder) {
	if _, known := s.connections[id]; !known {
		s.connections[id] = by
		c.open[by]++
	}
}

// closed takes a connection out.
func (c *census) closed(at connection, now time.Time) {
	s := c.hear(at.server, now)
	if s.changed != nil {
		s.changed[at.id] = true
	}
	c.remove(s, at)
}

func (c *census) remove(s *server, at connection) {
	by, known := s.connections[at.id]
	if !known {
		return
	}
	c.stays(at)
	delete(s.connections, at.id)
	if c.open[by]--; c.open[by] == 0 {
		delete(c.open, by)
	}
}

// asking begins what [census.list] ends.
func (c *census) asking(id string) {
	if s := c.servers[id]; s != nil {
		s.changed = map[uint64]bool{}
	}
}

// list makes a server's connections those of its list, where it has not said otherwise
// since it was asked. Without a list they stay.
func (c *census) list(id string, all map[uint64]holder, now time.Time) {
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
			c.remove(s, connection{id, n})
		}
	}
	for n, by := range all {
		if !changed[n] {
			c.enter(s, n, by)
		}
	}
}

// forget drops the servers that were silent since a time.
func (c *census) forget(since time.Time) {
	for id, s := range c.servers {
		if s.heard.Before(since) {
			for n := range s.connections {
				c.remove(s, connection{id, n})
			}
			delete(c.servers, id)
		}
	}
}

// due are the servers whose list is older than a time.
func (c *census) due(before time.Time) (ids []string) {
	for id, s := range c.servers {
		if s.listed.Before(before) {
			ids = append(ids, id)
		}
	}
	return ids
}

// excess is by how many a holder's connections that are not leaving are above a bound.
func (c *census) excess(by holder, most int) int { return c.open[by] - c.gone[by] - most }

// leaves says that a connection is about to be cut; false if it is not there, or is
// leaving already.
func (c *census) leaves(at connection) bool {
	s := c.servers[at.server]
	if s == nil || c.leaving[at] {
		return false
	}
	by, known := s.connections[at.id]
	if known {
		c.leaving[at] = true
		c.gone[by]++
	}
	return known
}

// stays takes that back; false if the connection was not about to be cut.
func (c *census) stays(at connection) bool {
	if !c.leaving[at] {
		return false
	}
	by := c.servers[at.server].connections[at.id]
	delete(c.leaving, at)
	if c.gone[by]--; c.gone[by] == 0 {
		delete(c.gone, by)
	}
	return true
}

// last is the newest connection of a holder to a server that is not leaving.
func (c *census) last(id string, by holder) connection {
	newest := connection{server: id}
	for n, of := range c.servers[id].connections {
		if at := (connection{id, n}); of == by && n >= newest.id && !c.leaving[at] {
			newest = at
		}
	}
	return newest
}

// newest are the connections of a server whose holders have too many, by what most
// says, as many as are too many, the newest of each holder first.
func (c *census) newest(id string, most func(holder) int) (all []connection) {
	s := c.servers[id]
	if s == nil {
		return nil
	}
	of := map[holder][]uint64{}
	for n, by := range s.connections {
		if m := most(by); m > 0 && !c.leaving[connection{id, n}] && c.excess(by, m) > 0 {
			of[by] = append(of[by], n)
		}
	}
	for by, ids := range of {
		slices.Sort(ids)
		slices.Reverse(ids)
		for _, n := range ids[:min(len(ids), c.excess(by, most(by)))] {
			all = append(all, connection{id, n})
		}
	}
	return all
}
