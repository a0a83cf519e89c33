package auctioneer

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/messages"
)

// feesInBatch is how many charges to other sites go with one batch.
const feesInBatch = 2 * feesAtOnce

// batch is effects to be carried out together: a round alone, or charges and
// observations up to the next round, so that a charge comes after the rounds
// that took from its hold.
type batch struct {
	ids, seen    []uint64 // of transfers, of observations
	transfers    []messages.Transfer
	observations []messages.Observation
	round        bool
	none         []uint64 // charges with nothing to do
	fees         []fee    // charges to other sites
}

// nextBatch picks the effects to be carried out next, oldest first. Neither what
// waits for other sites nor observations take a place of the site's own charges.
func (l *leader) nextBatch(b *book.Book, observe bool) (w batch) {
	fees := map[messages.Name][]fee{}
	defer func() { w.fees = fair(fees, feesInBatch) }()
	for e := range b.EachEffect {
		money := len(w.ids) + len(w.none)
		if money == transfersAtOnce {
			return w
		}
		switch j := b.Job(e.Job); {
		case e.Kind == book.Round && money == 0:
			w.ids, w.round = []uint64{e.ID}, true
			w.transfers = market.Round(b, &e, l.Clock().Add(l.HoldFor))
			return w
		case e.Kind == book.Round:
			return w
		case e.Kind == book.Observe && (!observe || len(w.observations) == transfersAtOnce):
		case e.Kind == book.Observe:
			w.seen, w.observations = append(w.seen, e.ID), append(w.observations, l.observation(j))
		case j.Visit != nil:
			if home := j.Visit.Home; len(fees[home]) < feesInBatch {
				fees[home] = append(fees[home], feeOf(e.ID, j))
			}
		case j.HoldID() == "":
			w.none = append(w.none, e.ID)
		default:
			w.ids, w.transfers = append(w.ids, e.ID), append(w.transfers, market.Charge(j))
		}
	}
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

// more says whether to carry out another batch at once: where all of one was
// done, and another effect needs the bank. What could not be charged to another
// site waits, and keeps no charge of this one from being next.
func (l *leader) more(w *batch, done *book.Confirm) (more bool) {
	confirmed := map[uint64]bool{}
	for _, c := range done.Effects {
		confirmed[c.Effect] = true
	}
	all := func(ids []uint64) bool {
		return !slices.ContainsFunc(ids, func(id uint64) bool { return !confirmed[id] })
	}
	if !all(w.ids) || !all(w.none) || !all(w.seen) {
		return false
	}
	charged := !slices.ContainsFunc(w.fees, func(f fee) bool { return !confirmed[f.effect] })
	l.replica.read(func(b *book.Book) {
		for e := range b.EachEffect {
			j := b.Job(e.Job)
			if e.Kind == book.Observe {
				more = len(w.observations) == transfersAtOnce
			} else {
				more = e.Kind == book.Round || j.Visit == nil || charged
			}
			if more {
				return
			}
		}
	})
	return more
}
