package desk

import (
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/spelling"
)

// Markets are the markets of a site. A Markets value is never changed: a change of the markets makes a new one.
type Markets struct {
	// Configs are the configurations of the markets. The first market is the default for submissions.
	Configs []marketmsg.Market
	// Version says how often markets have been applied.
	Version uint64

	live    []*market.Market // the running markets, in the order of Configs
	applied bool             // an operator applied these markets: they replace the markets of the configuration
}

// Market returns a market by name, or nil if there is none. The desk must make no step while the caller uses it.
func (m *Markets) Market(name messages.Name) *market.Market {
	for _, live := range m.live {
		if live.Config.Name == name {
			return live
		}
	}
	return nil
}

// Find returns the configuration of a market by name, or nil if there is none.
func (m *Markets) Find(name messages.Name) *marketmsg.Market {
	for i := range m.Configs {
		if m.Configs[i].Name == name {
			return &m.Configs[i]
		}
	}
	return nil
}

// Missing returns the error for a field that names no market of the site.
func (m *Markets) Missing(field string, name messages.Name) error {
	names := make([]messages.Name, len(m.Configs))
	for i := range m.Configs {
		names[i] = m.Configs[i].Name
	}
	return messages.Errorf(messages.NotFound, "%sthere is no market %q; the site has %s", field, name, spelling.List(names))
}

// Running lists the markets whose mechanism satisfies the condition, such as "a (fifo) or b (karma)". It returns "" if
// there are none.
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
func (m *Markets) serving(node messages.Name, slots []job.ClassSlots) (out []agent.NodeMarket) {
	for _, config := range m.Configs {
		if Serves(&config, node) && slices.ContainsFunc(slots, func(s job.ClassSlots) bool { return slices.Contains(config.Classes, s.Class) }) {
			out = append(out, agent.NodeMarket{Name: config.Name, Classes: config.Classes, Ordered: !registry.Of(&config).Shares})
		}
	}
	return out
}

// units returns the resources of one slot of each class on the node, from the first market that sells the class there.
// The result is nil if no market defines the size of a slot.
func (m *Markets) units(node messages.Name, slots []job.ClassSlots) (units []job.Resources) {
	for i, s := range slots {
		at := slices.IndexFunc(m.Configs, func(c marketmsg.Market) bool { return Serves(&c, node) && slices.Contains(c.Classes, s.Class) })
		if at < 0 || m.Configs[at].UnitOf(s.Class) == (job.Resources{}) {
			continue
		}
		if units == nil {
			units = make([]job.Resources, len(slots))
		}
		units[i] = m.Configs[at].UnitOf(s.Class)
	}
	return units
}

// Serves reports whether a market uses slots of this node. It does not check the classes.
func Serves(m *marketmsg.Market, node messages.Name) bool {
	return len(m.Nodes) == 0 || slices.Contains(m.Nodes, node)
}
