package market

import (
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages/market"
)

// Open returns the market that a configuration describes, without jobs and slots.
func Open(m market.Market) (*Market, error) {
	mech, err := registry.Make(m)
	if err != nil {
		return nil, err
	}
	return New(registry.Of(&m).Manner, m, mech), nil
}
