package embedded

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// Status returns the state of an actor's replicas in this process, in the order of their names. The actor is
// messages.Auctioneer or messages.Bank.
func (s *Site) Status(actor string) []mailbox.Status {
	if g := s.group(actor); g != nil {
		return g.statuses()
	}
	return nil
}

// Leader returns the ID of the replica that leads an actor's group, as far as this process knows. It returns "" if none
// leads.
func (s *Site) Leader(actor string) string {
	if g := s.group(actor); g != nil {
		return g.leader()
	}
	return ""
}

func (s *Site) group(actor string) *group {
	switch actor {
	case messages.Auctioneer:
		return s.auctioneers
	case messages.Bank:
		return s.banks
	}
	return nil
}

// StopReplica stops a replica of this process, to measure how the other replicas continue.
func (s *Site) StopReplica(actor, id string) error {
	if g := s.group(actor); g != nil {
		return g.stop1(id)
	}
	return messages.Errorf(messages.NotFound, "actor %q: has no replicas", actor)
}

// StartReplica starts a replica that was stopped.
func (s *Site) StartReplica(actor, id string) error {
	if g := s.group(actor); g != nil {
		return g.start1(id)
	}
	return messages.Errorf(messages.NotFound, "actor %q: has no replicas", actor)
}
