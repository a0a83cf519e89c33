package auctioneer

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/messages"
)

// mechanisms makes the mechanism that a market names.
var mechanisms = map[messages.Name]func(messages.Market) (mechanism.Mechanism, error){
	"proportional": proportional.New,
}

func newMechanism(m messages.Market) (mechanism.Mechanism, error) {
	make, ok := mechanisms[m.Mechanism]
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "mechanism %q is not one that a live market can run", m.Mechanism)
	}
	return make(m)
}
