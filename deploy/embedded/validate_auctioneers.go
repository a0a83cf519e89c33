package embedded

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// checkAuctioneers wants each market, each class and each node on exactly one auctioneer.
func (c *Config) checkAuctioneers(ps *Problems) {
	if len(c.Auctioneers) == 0 {
		return
	}
	if n := len(c.Auctioneers); n > messages.MaxAuctioneers {
		ps.addf("auctioneers", "%d are more than the limit of %d", n, messages.MaxAuctioneers)
	}
	markets := map[messages.Name]bool{}
	for i := range c.Markets {
		markets[c.Markets[i].Name] = true
	}
	names, numbers, of := map[messages.Name]bool{}, map[int]messages.Name{}, map[messages.Name]*messages.AuctioneerMarkets{}
	for i := range c.Auctioneers {
		a, path := &c.Auctioneers[i], at("auctioneers", i)
		ps.name(path+".name", a.Name)
		ps.unique(path+".name", a.Name, names)
		if a.Number < 0 || a.Number >= messages.MaxAuctioneers {
			ps.addf(path+".number", "%d is out of range; use 0 to %d", a.Number, messages.MaxAuctioneers-1)
		} else if other, taken := numbers[a.Number]; taken {
			ps.addf(path+".number", "%d is the number of %s already; give each auctioneer a number of its own, which never changes: its jobs have it in their numbers", a.Number, clip(other))
		}
		numbers[a.Number] = a.Name
		if len(a.Markets) == 0 {
			ps.addf(path+".markets", "is empty; name the markets of the auctioneer")
		}
		for k, m := range a.Markets {
			switch {
			case !markets[m]:
				ps.addf(at(path+".markets", k), "%q is not among markets%s", clip(m), didYouMean(m, sorted(markets)))
			case of[m] != nil:
				ps.addf(at(path+".markets", k), "%q is of auctioneer %s already; a market has one auctioneer", clip(m), clip(of[m].Name))
			default:
				of[m] = a
			}
		}
	}
	if _, first := numbers[0]; !first {
		ps.addf("auctioneers", "none has number 0; the first auctioneer has it, with the jobs from before there were others")
	}
	c.checkMarketsHave(ps, of)
}

func (c *Config) checkMarketsHave(ps *Problems, of map[messages.Name]*messages.AuctioneerMarkets) {
	classes := map[messages.Name]*messages.AuctioneerMarkets{}
	for i := range c.Markets {
		m := &c.Markets[i]
		a := of[m.Name]
		switch {
		case a == nil:
			ps.addf(at("markets", i), "%q has no auctioneer; name the market under auctioneers", clip(m.Name))
			continue
		case i == 0 && a.Number != 0:
			ps.addf(at("markets", i), "%q is the first market, to which jobs go that name none, and must be of the auctioneer with number 0", clip(m.Name))
		}
		for k, class := range m.Classes {
			if other := classes[class]; other != nil && other != a {
				ps.addf(at(at("markets", i)+".classes", k), "%q is a class of auctioneer %s already; use other classes in the markets of another auctioneer", clip(class), clip(other.Name))
			}
			classes[class] = a
		}
	}
	for i, n := range c.Nodes {
		var serves *messages.AuctioneerMarkets
		for _, s := range n.Slots {
			switch a := classes[s.Class]; {
			case a == nil || a == serves:
			case serves == nil:
				serves = a
			default:
				ps.addf(at("nodes", i)+".slots", "a node serves one auctioneer, and the classes of this node are of %s and of %s; make two nodes of it", clip(serves.Name), clip(a.Name))
			}
		}
	}
}

// address is one in a configuration, and where.
type address struct{ field, address string }

// auctioneerAddresses are those of the replicas of the other auctioneers than the first.
func (h *Host) auctioneerAddresses(others []messages.AuctioneerMarkets) (list []address) {
	for i := range others {
		name := others[i].Name
		list = append(list, address{"auctioneers." + name, h.Auctioneers[name]})
	}
	return list
}

// checkOthers wants no address of an auctioneer that the site does not have.
func (h *Host) checkOthers(ps *Problems, path string, others []messages.AuctioneerMarkets) {
	for _, name := range slices.Sorted(maps.Keys(h.Auctioneers)) {
		if !slices.ContainsFunc(others, func(a messages.AuctioneerMarkets) bool { return a.Name == name }) {
			ps.addf(path+".auctioneers."+clip(name), "is none of the auctioneers with a number above 0; the address of the one with number 0 is under auctioneer")
		}
	}
}
