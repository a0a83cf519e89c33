package auctioneer

import (
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// feesInBatch is how many charges to other sites go with one batch.
const feesInBatch = 2 * feesAtOnce

// batch is effects to be carried out together: a round alone, or charges up to the
// next round, so that a charge comes after the rounds that took from its hold.
type batch struct {
	ids       []uint64 // of transfers
	transfers []messages.Transfer
	round     bool
	none      []book.Confirmation // of effects with nothing to do
	fees      []fee               // charges to other sites
	last      bool                // nothing comes after it
}

// nextBatch picks the effects at the bank to be carried out next, oldest first, but
// for charges to sites that wait. What is for other sites takes no place of the
// site's own charges.
func (l *leader) nextBatch(b *book.Book, wait map[messages.Name]bool) (w batch) {
	fees, whole := map[messages.Name][]fee{}, true
	defer func() {
		count := 0
		for _, f := range fees {
			count += len(f)
		}
		w.fees = fair(fees, feesInBatch)
		w.last = w.last && whole && len(w.fees) == count
	}()
	for e := range b.EachEffect {
		money := len(w.ids) + len(w.none)
		if e.Kind == book.Observe {
			continue
		}
		if money == transfersAtOnce || e.Kind == book.Round && money > 0 {
			return w
		}
		switch j := b.Job(e.Job); {
		case !b.Names(&e):
			l.Log.Error("an effect speaks of a job that is gone", zap.Uint64("effect", e.ID), zap.Stringer("job", e.Job))
			w.none = append(w.none, gone(e))
		case e.Kind == book.Round:
			w.ids, w.round = []uint64{e.ID}, true
			w.transfers = market.Round(b, &e, l.Clock().Add(l.HoldFor))
			return w
		case j.Visit != nil:
			switch home := j.Visit.Home; {
			case wait[home]:
			case len(fees[home]) < feesInBatch:
				fees[home] = append(fees[home], feeOf(e.ID, j))
			default:
				whole = false
			}
		case j.HoldID() == "":
			w.none = append(w.none, book.Confirmation{Effect: e.ID})
		default:
			w.ids, w.transfers = append(w.ids, e.ID), append(w.transfers, market.Charge(j))
		}
	}
	w.last = true
	return w
}

// fair picks up to n charges, one of each site in turn, the oldest first.
func fair(fees map[messages.Name][]fee, n int) (out []fee) {
	sites := slices.Sorted(maps.Keys(fees))
	for turn := 0; len(out) < n; turn++ {
		before := len(out)
		for _, site := range sites {
			if turn < len(fees[site]) && len(out) < n {
				out = append(out, fees[site][turn])
			}
		}
		if len(out) == before {
			break
		}
	}
	return out
}
