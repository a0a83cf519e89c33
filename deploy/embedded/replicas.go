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

func (s *Site) group(actor string) *group {
	switch actor {
	case messages.Auctioneer:
		return s.auctioneers
	case messages.Bank:
		return s.banks
	}
	return nil
}
