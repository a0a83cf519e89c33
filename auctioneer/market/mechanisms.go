package market

import (
	"maps"
	"slices"
	"strings"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/backfill"
	"github.com/candor-grid/candor/auctioneer/mechanism/batchqueue"
	"github.com/candor-grid/candor/auctioneer/mechanism/contract"
	"github.com/candor-grid/candor/auctioneer/mechanism/deadline"
	"github.com/candor-grid/candor/auctioneer/mechanism/fairshare"
	"github.com/candor-grid/candor/auctioneer/mechanism/fifo"
	"github.com/candor-grid/candor/auctioneer/mechanism/highestbid"
	"github.com/candor-grid/candor/auctioneer/mechanism/karma"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/spelling"
)

// kind is how the markets of a mechanism are made and dealt with.
type kind struct {
	make   func(messages.Market) (mechanism.Mechanism, error)
	manner Manner
	tells  Disclosure
}

// kinds are the mechanisms that a market can name.
var kinds = map[messages.Name]kind{
	messages.Proportional: {tells: Prices, manner: Manner{Raises: Terms{Budget: true}}, make: maker(proportional.New)},
	messages.FIFO:         {tells: Queue, manner: Manner{Attentive: true, Raises: Terms{Budget: true}}, make: always(fifo.New)},
	messages.FairShare:    {tells: Queue, manner: Manner{Attentive: true, Raises: Terms{Budget: true}}, make: always(fairshare.New)},
	messages.Karma:        {tells: Queue, manner: Manner{Attentive: true, Raises: Terms{Budget: true}}, make: maker(karma.New)},
	messages.Backfill:     {tells: Queue, manner: Manner{Attentive: true, Directs: true, Gangs: true, Raises: Terms{Budget: true}}, make: always(backfill.New)},
	messages.HighestBid:   {tells: Prices, manner: Manner{Attentive: true, Directs: true, Order: highestbid.Order, Raises: Terms{Budget: true, Rate: true}}, make: highestbid.NewMechanism},
	messages.DeadlineBid:  {manner: Manner{Attentive: true, Directs: true, Stays: true}, make: maker(deadline.NewMechanism)},
	messages.ContractMenu: {manner: Manner{Attentive: true, Plans: true, Stays: true}, make: maker(contract.NewMechanism)},
	messages.BatchQueue:   {manner: machine, make: maker(batchqueue.NewMechanism)},
	messages.Reservation:  {manner: machine, make: maker(reservation.NewMechanism)},
}

// machine is how markets are dealt with that sell one machine to jobs of any width.
var machine = Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Spans: true}

// maker has a constructor of a mechanism return an interface, nil where there is an error.
func maker[M mechanism.Mechanism](make func(messages.Market) (M, error)) func(messages.Market) (mechanism.Mechanism, error) {
	return func(m messages.Market) (mechanism.Mechanism, error) {
		made, err := make(m)
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}

// always is maker for a mechanism that can be made of each market.
func always[M mechanism.Mechanism](make func(messages.Market) M) func(messages.Market) (mechanism.Mechanism, error) {
	return func(m messages.Market) (mechanism.Mechanism, error) { return make(m), nil }
}

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []messages.Name { return slices.Sorted(maps.Keys(kinds)) }

// MannerOf is how a market deals with its mechanism.
func MannerOf(m *messages.Market) Manner {
	manner := kinds[m.Mechanism].manner
	if m.Price == messages.PricePivot { // what others owe depends on a bid and its rate
		manner.Stays, manner.Raises.Rate = true, false
	}
	return manner
}

// Open makes the market that a configuration describes, empty and without slots.
func Open(m messages.Market) (*Market, error) {
	mech, err := NewMechanism(m)
	if err != nil {
		return nil, err
	}
	return New(MannerOf(&m), m, mech), nil
}

// NewMechanism makes the mechanism that a market names, which is valid in itself. The
// error begins with the parameter that is wrong.
func NewMechanism(m messages.Market) (mechanism.Mechanism, error) {
	k, ok := kinds[m.Mechanism]
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "mechanism: %q is not one that a live market can run; it can name one of: %s", m.Mechanism, spelling.List(Mechanisms()))
	}
	if len(m.Classes) == 0 {
		return nil, messages.Errorf(messages.Invalid, "classes: name at least one")
	}
	mech, err := k.make(m)
	if err != nil {
		text := strings.TrimPrefix(messages.Detail(err), "market "+m.Name+": ")
		return nil, messages.Errorf(messages.KindOf(err), "%s", text)
	}
	return mech, nil
}
