package desk

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// Markets are the markets of a site. They do not change: after markets are applied, the desk has a
// new value.
type Markets struct {
	// Configs are the markets; the first is the default of submissions.
	Configs []messages.Market
	// Version is how often markets had been applied.
	Version uint64

	live    []*market.Market // in the order of Configs
	applied bool             // they are not the markets of the configuration
}

// Market returns the market of a name; nil: there is none. The caller must prevent a
// step during its use.
func (m *Markets) Market(name messages.Name) *market.Market {
	for _, live := range m.live {
		if live.Config.Name == name {
			return live
		}
	}
	return nil
}

// Find returns the configuration of the market of a name, nil if there is none.
func (m *Markets) Find(name messages.Name) *messages.Market {
	for i := range m.Configs {
		if m.Configs[i].Name == name {
			return &m.Configs[i]
		}
	}
	return nil
}

// Missing says that there is no market of a name that a field has, and which there are.
func (m *Markets) Missing(field string, name messages.Name) error {
	names := make([]messages.Name, len(m.Configs))
	for i := range m.Configs {
		names[i] = m.Configs[i].Name
	}
	return messages.Errorf(messages.NotFound, "%sthere is no market %q; the site has %s", field, name, spelling.List(names))
}

// Running names the markets whose mechanism satisfies is; "": none does.
func (m *Markets) Running(is func(*mechanism.Traits) bool) string {
	var names []string
	for i := range m.Configs {
		if t := registry.Of(&m.Configs[i]); is(&t) {
			names = append(names, m.Configs[i].Name+" ("+m.Configs[i].Mechanism+")")
		}
	}
	return strings.Join(names, " or ")
}

// serving returns the markets that allocate slots of a node.
func (m *Markets) serving(node messages.Name, slots []messages.ClassSlots) (out []messages.NodeMarket) {
	for _, config := range m.Configs {
		if Serves(&config, node) && slices.ContainsFunc(slots, func(s messages.ClassSlots) bool { return slices.Contains(config.Classes, s.Class) }) {
			out = append(out, messages.NodeMarket{Name: config.Name, Classes: config.Classes, Ordered: !registry.Of(&config).Shares})
		}
	}
	return out
}

// units returns the resources of the node's slots, as the first market that sells each class there
// defines them; nil: none.
func (m *Markets) units(node messages.Name, slots []messages.ClassSlots) (units []messages.Resources) {
	for i, s := range slots {
		at := slices.IndexFunc(m.Configs, func(c messages.Market) bool { return Serves(&c, node) && slices.Contains(c.Classes, s.Class) })
		if at < 0 || m.Configs[at].UnitOf(s.Class) == (messages.Resources{}) {
			continue
		}
		if units == nil {
			units = make([]messages.Resources, len(slots))
		}
		units[i] = m.Configs[at].UnitOf(s.Class)
	}
	return units
}

// Serves reports whether a market uses a node's slots, apart from their classes.
func Serves(m *messages.Market, node messages.Name) bool {
	return len(m.Nodes) == 0 || slices.Contains(m.Nodes, node)
}
