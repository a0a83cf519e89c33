package grid

import (
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// live makes the market of a site from that of a study, and how it deals with
// its mechanism.
func live(m *rules.Market) (messages.Market, market.Manner, mechanism.Mechanism, error) {
	config := messages.Market{Name: m.Name, Mechanism: m.Mechanism, Classes: []messages.Name{class}}
	attentive := market.Manner{Attentive: true}
	switch m.Mechanism {
	case rules.Proportional:
		config.Alpha = m.Alpha
		mech, err := proportional.New(config)
		return config, market.Manner{}, mech, err
	case rules.HighestBid:
		reserve, _ := messages.RoundCredits(*m.Reserve)
		config.Reserve, config.Algorithm, config.Price, config.Capped = &reserve, m.Algorithm, m.Price.(string), m.Capped
		rule := highestbid.Rule{Algorithm: highestbid.Algorithm(config.Algorithm), Price: highestbid.Price(config.Price), Capped: config.Capped}
		mech, err := highestbid.NewMechanism(highestbid.Config{Market: config, Rule: rule, Reserve: reserve})
		return config, market.Manner{Attentive: true, Directs: true}, mech, err
	case rules.FIFO, rules.FairShare:
		price, _ := messages.RoundCredits(m.Price.(float64))
		config.Reserve = &price
		desk := posted.Config{Market: config, Price: price}
		if m.Mechanism == rules.FIFO {
			mech, err := fifo.NewMechanism(desk)
			return config, attentive, mech, err
		}
		mech, err := fairshare.NewMechanism(fairshare.Config{Config: desk, HalfLife: *m.HalfLife})
		return config, attentive, mech, err
	}
	return config, attentive, nil, messages.Errorf(messages.Invalid, "mechanism %s cannot be simulated with all actors: take %s, %s, %s or %s, or --actors core",
		m.Mechanism, rules.HighestBid, rules.Proportional, rules.FIFO, rules.FairShare)
}
