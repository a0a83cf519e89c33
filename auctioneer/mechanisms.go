package auctioneer

import (
	"errors"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Mechanisms returns the names of the mechanisms that a market can use.
func Mechanisms() []messages.Name { return registry.Names(nil) }

// checkMarkets returns the error and the position of the first market that is wrong.
func checkMarkets(markets []market.Market) (int, error) {
	for i := range markets {
		if err := CheckMarket(markets, i); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// CheckMarket returns everything that is wrong with market i of a site's markets, as joined errors.
func CheckMarket(markets []market.Market, i int) error {
	m := &markets[i]
	found := []error{registry.Check(m), m.Validate()}
	if errors.Join(found...) == nil {
		_, err := registry.Make(*m)
		found = append(found, err)
	}
	for k := range markets[:i] {
		if markets[k].Name == m.Name {
			found = append(found, messages.Errorf(messages.Invalid, "name: there are two markets named %q", m.Name))
		}
		found = append(found, apart(m, &markets[k]), alike(m, &markets[k]))
	}
	return errors.Join(found...)
}

// alike returns an error if two markets sell slots of one class with different slot sizes.
func alike(m, o *market.Market) error {
	for _, class := range m.Classes {
		if slices.Contains(o.Classes, class) && m.UnitOf(class) != o.UnitOf(class) {
			return messages.Errorf(messages.Invalid, "units: a slot of class %s is %v here, and %v in market %s; give both markets the same unit", class, m.UnitOf(class), o.UnitOf(class), o.Name)
		}
	}
	return nil
}

// apart returns an error if two markets share slots, and the mechanism of one of them directs which jobs get slots.
func apart(m, o *market.Market) error {
	if !registry.Of(m).Directs && !registry.Of(o).Directs {
		return nil
	}
	if len(m.Nodes) > 0 && len(o.Nodes) > 0 && !slices.ContainsFunc(m.Nodes, func(n messages.Name) bool { return slices.Contains(o.Nodes, n) }) {
		return nil
	}
	for i, c := range m.Classes {
		if slices.Contains(o.Classes, c) {
			return messages.Errorf(messages.Invalid, "classes[%d]: market %s allocates slots of class %q too, and mechanisms %s and %s cannot share slots; give each market nodes or classes of its own",
				i, o.Name, c, m.Mechanism, o.Mechanism)
		}
	}
	return nil
}
