package embedded

import (
	"errors"
	"fmt"

	"github.com/candor-grid/candor/messages/bus"
)

// mostBehind is how many committed entries a replica may still have to apply and count as
// caught up: a busy group always has some.
const mostBehind = 1000

// Ready says what keeps the parts in this process from serving; nil: nothing. Each replica
// knows a leader and has caught up, and each part is connected to the bus.
func (s *Site) Ready() error {
	return errors.Join(s.auctioneers.ready(), s.banks.ready(), s.nodes.connected())
}

// Ready says what keeps the sites from serving.
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

// connected reports whether a bus that can lose its connection has one.
func connected(b bus.Bus) bool {
	c, ok := b.(interface{ Connected() bool })
	return !ok || c.Connected()
}
