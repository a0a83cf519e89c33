package auctioneer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/messages"
)

// way is how a mechanism is made and dealt with.
type way struct {
	make   func(messages.Market) (mechanism.Mechanism, error)
	manner market.Manner
	gangs  bool // it keeps the tasks of a gang together
	spans  bool // a job has its slots for its declared length and no longer
}

// ways are the mechanisms that a market can name.
var ways = map[messages.Name]way{
	messages.Proportional: {make: proportional.New},
	messages.FIFO: {manner: market.Manner{Attentive: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(fifo.NewMechanism(postedPrice(m)))
	}},
	messages.FairShare: {manner: market.Manner{Attentive: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(fairshare.NewMechanism(fairshare.Config{Config: postedPrice(m), HalfLife: m.HalfLife}))
	}},
	messages.Backfill: {gangs: true, manner: market.Manner{Attentive: true, Directs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(backfill.NewMechanism(backfill.Config{Config: postedPrice(m), Variant: backfill.Variant(m.Mode)}))
	}},
	messages.HighestBid: {manner: market.Manner{Attentive: true, Directs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(highestbid.NewMechanism(highestbid.Config{Market: m, Rule: rule(&m), Reserve: m.ReservePrice()}))
	}},
	messages.DeadlineBid: {manner: market.Manner{Attentive: true, Directs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(deadline.NewMechanism(deadline.Config{Market: m, Slot: m.Slot, Lambda: m.Lambda, Scale: m.Scale}))
	}},
	messages.ContractMenu: {manner: market.Manner{Attentive: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(contract.NewMechanism(contract.Config{Market: m, M: m.Replicas, LateOnly: m.LateOnly}))
	}},
	messages.BatchQueue: {gangs: true, spans: true, manner: market.Manner{Attentive: true, Directs: true, Commits: true},
		make: func(m messages.Market) (mechanism.Mechanism, error) {
			return made(batchqueue.NewMechanism(batchqueue.Config{Market: m, Draws: m.Draws}))
		}},
	messages.Reservation: {gangs: true, spans: true, manner: market.Manner{Attentive: true, Directs: true, Commits: true},
		make: func(m messages.Market) (mechanism.Mechanism, error) {
			return made(reservation.NewMechanism(reservation.Config{Market: m, Period: m.Cycle, Granule: m.Granule, Candidates: m.Orders}))
		}},
}

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []messages.Name { return slices.Sorted(maps.Keys(ways)) }

// made makes an interface of a mechanism, nil where there is an error.
func made[M mechanism.Mechanism](m M, err error) (mechanism.Mechanism, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func postedPrice(m messages.Market) posted.Config {
	return posted.Config{Market: m, Price: m.ReservePrice()}
}

func rule(m *messages.Market) highestbid.Rule {
	return highestbid.Rule{Algorithm: cmp.Or(highestbid.Algorithm(m.Algorithm), highestbid.HB),
		Price: cmp.Or(highestbid.Price(m.Price), highestbid.Kth), Capped: m.Capped}
}

func newMechanism(m messages.Market) (mechanism.Mechanism, error) {
	w, ok := ways[m.Mechanism]
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "mechanism: %q is not one that a live market can run; it can name one of %v", m.Mechanism, Mechanisms())
	}
	mech, err := w.make(m)
	if err != nil {
		text := strings.TrimPrefix(messages.AsError("", err).Message, "market "+m.Name+": ")
		return nil, messages.Errorf(messages.KindOf(err), "%s", text)
	}
	return mech, nil
}

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
		if _, err := newMechanism(*m); err != nil {
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
	if !ways[m.Mechanism].manner.Directs && !ways[o.Mechanism].manner.Directs {
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
