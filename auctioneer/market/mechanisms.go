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
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/auctioneer/mechanism/reservation"
	"github.com/candor-grid/candor/messages"
)

// way is how a mechanism is made and dealt with.
type way struct {
	make   func(messages.Market) (mechanism.Mechanism, error)
	manner Manner
}

// ways are the mechanisms that a market can name.
var ways = map[messages.Name]way{
	messages.Proportional: {make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(proportional.New(m))
	}},
	messages.FIFO: {manner: Manner{Attentive: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return fifo.New(m), nil
	}},
	messages.FairShare: {manner: Manner{Attentive: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return fairshare.New(m), nil
	}},
	messages.Backfill: {manner: Manner{Attentive: true, Directs: true, Gangs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return backfill.New(m), nil
	}},
	messages.HighestBid: {manner: Manner{Attentive: true, Directs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(highestbid.New(m))
	}},
	messages.DeadlineBid: {manner: Manner{Attentive: true, Directs: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(deadline.NewMechanism(deadline.Config{Market: m, Slot: m.Slot, Lambda: m.Lambda, Scale: m.Scale}))
	}},
	messages.ContractMenu: {manner: Manner{Attentive: true, Plans: true}, make: func(m messages.Market) (mechanism.Mechanism, error) {
		return made(contract.NewMechanism(contract.Config{Market: m, M: m.Replicas, LateOnly: m.LateOnly, Prior: m.Prior}))
	}},
	messages.BatchQueue: {manner: Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Spans: true},
		make: func(m messages.Market) (mechanism.Mechanism, error) {
			return made(batchqueue.NewMechanism(batchqueue.Config{Market: m, Draws: m.Draws}))
		}},
	messages.Reservation: {manner: Manner{Attentive: true, Directs: true, Commits: true, Gangs: true, Spans: true},
		make: func(m messages.Market) (mechanism.Mechanism, error) {
			return made(reservation.NewMechanism(reservation.Config{Market: m, Period: m.Cycle, Granule: m.Granule, Candidates: m.Orders}))
		}},
}

// Mechanisms lists the mechanisms that a market can name.
func Mechanisms() []messages.Name { return slices.Sorted(maps.Keys(ways)) }

// MannerOf is how a market deals with a mechanism.
func MannerOf(mechanism messages.Name) Manner { return ways[mechanism].manner }

// Open makes the market that a configuration describes, empty and without slots.
func Open(m messages.Market) (*Market, error) {
	mech, err := NewMechanism(m)
	if err != nil {
		return nil, err
	}
	return NewIn(MannerOf(m.Mechanism), m, mech), nil
}

// made makes an interface of a mechanism, nil where there is an error.
func made[M mechanism.Mechanism](m M, err error) (mechanism.Mechanism, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

// NewMechanism makes the mechanism that a market names. The error begins with
// the parameter that is wrong.
func NewMechanism(m messages.Market) (mechanism.Mechanism, error) {
	w, ok := ways[m.Mechanism]
	if !ok {
		return nil, messages.Errorf(messages.Invalid, "mechanism: %q is not one that a live market can run; it can name one of %v", m.Mechanism, Mechanisms())
	}
	if len(m.Classes) == 0 {
		return nil, messages.Errorf(messages.Invalid, "classes: name at least one")
	}
	mech, err := w.make(m)
	if err != nil {
		text := strings.TrimPrefix(messages.AsError("", err).Message, "market "+m.Name+": ")
		return nil, messages.Errorf(messages.KindOf(err), "%s", text)
	}
	return mech, nil
}
