package embedded

import (
	"errors"
	"fmt"

	"github.com/candor-grid/candor/messages/bus"
)

// mostBehind is the maximum number of committed entries that a replica has not applied yet, if it counts as caught up.
// In a busy group, there are always some such entries.
const mostBehind = 1000

// Ready returns an error that says why the parts in this process cannot serve, or nil. Each replica must know a leader
// and have caught up, and each part must be connected to the bus.
func (s *Site) Ready() error {
	return errors.Join(s.auctioneers.ready(), s.banks.ready(), s.nodes.connected())
}

// Ready returns an error that says why the sites cannot serve, or nil.
func (s Sites) Ready() error {
	var problems []error
	for _, site := range s {
		if err := site.Ready(); err != nil {
			problems = append(problems, fmt.Errorf("site %s: %w", site.config.Site, err))
		}
	}
	return errors.Join(problems...)
}

func (g *group) ready() error {
	var problems []error
	for _, s := range g.statuses() {
		switch {
		case s.Leader == "":
			problems = append(problems, fmt.Errorf("replica %s of the %s knows no leader", s.ID, g.actor))
		case s.Committed > s.Applied+mostBehind:
			problems = append(problems, fmt.Errorf("replica %s of the %s is %d entries behind", s.ID, g.actor, s.Committed-s.Applied))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, r := range g.running {
		if !connected(r.bus) {
			problems = append(problems, fmt.Errorf("replica %s of the %s is not connected to NATS", id, g.actor))
		}
	}
	return errors.Join(problems...)
}

func (n *nodes) connected() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var problems []error
	for name, a := range n.running {
		if !connected(a.bus) {
			problems = append(problems, fmt.Errorf("the agent of node %s is not connected to NATS", name))
		}
	}
	return errors.Join(problems...)
}

// connected reports whether a bus is connected. A bus that cannot lose its connection counts as connected.
func connected(b bus.Bus) bool {
	c, ok := b.(interface{ Connected() bool })
	return !ok || c.Connected()
}
