package embedded

import (
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/mailbox"
)

// Status describes the replicas of an actor (messages.Auctioneer or
// messages.Bank) that run in this process, in the order of their names.
func (s *Site) Status(actor string) []mailbox.Status {
	if g := s.group(actor); g != nil {
		return g.statuses()
	}
	return nil
}

// Leader is the replica that leads an actor's group, as far as is known here;
// "" if none is.
func (s *Site) Leader(actor string) string {
	if g := s.group(actor); g != nil {
		return g.leader()
	}
	return ""
}

// StopReplica stops one replica of an actor; its group goes on if a majority
// is left.
func (s *Site) StopReplica(actor, replica string) error {
	g := s.group(actor)
	if g == nil {
		return unknownActor(actor)
	}
	return g.stop1(replica)
}

// StartReplica starts a replica again from what it kept.
func (s *Site) StartReplica(actor, replica string) error {
	g := s.group(actor)
	if g == nil {
		return unknownActor(actor)
	}
	return g.start1(replica)
}

// StopNode stops a node's agent.
func (s *Site) StopNode(node messages.Name) error { return s.nodes.stop1(node) }

// StartNode starts the agent of a configured node again.
func (s *Site) StartNode(node messages.Name) error { return s.nodes.start1(node) }

func (s *Site) group(actor string) *group {
	switch actor {
	case messages.Auctioneer:
		return s.auctioneers
	case messages.Bank:
		return s.banks
	}
	return nil
}

func unknownActor(actor string) error {
	return messages.Errorf(messages.NotFound, "actor %q: has no replicas; use %q or %q", actor, messages.Auctioneer, messages.Bank)
}
