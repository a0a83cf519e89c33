package auctioneer

import (
	"slices"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []messages.Name { return market.Mechanisms() }

// CheckMarkets reports the first thing that is wrong with the markets of a
// site, and with which.
func CheckMarkets(markets []messages.Market) (int, error) {
	for i := range markets {
		m := &markets[i]
		if err := m.Validate(); err != nil {
			return i, err
		}
		if slices.ContainsFunc(markets[:i], func(o messages.Market) bool { return o.Name == m.Name }) {
			return i, messages.Errorf(messages.Invalid, "name: there are two markets named %q", m.Name)
		}
		if _, err := market.NewMechanism(*m); err != nil {
			return i, err
		}
		for k := range markets[:i] {
			if err := apart(m, &markets[k]); err != nil {
				return i, err
			}
		}
	}
	return 0, nil
}

// apart refuses two markets that allocate the same slots, where one of them
// promises slots.
func apart(m, o *messages.Market) error {
	if !market.MannerOf(m.Mechanism).Directs && !market.MannerOf(o.Mechanism).Directs {
		return nil
	}
	if len(m.Nodes) > 0 && len(o.Nodes) > 0 && !slices.ContainsFunc(m.Nodes, func(n messages.Name) bool { return slices.Contains(o.Nodes, n) }) {
		return nil
	}
	for i, c := range m.Classes {
		if slices.Contains(o.Classes, c) {
			return messages.Errorf(messages.Invalid, "classes[%d]: market %s allocates slots of class %q too, and %s and %s cannot share them; give each nodes or classes of its own",
				i, o.Name, c, m.Mechanism, o.Mechanism)
		}
	}
	return nil
}
