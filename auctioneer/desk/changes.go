package desk

import (
	"maps"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// change is how far a job of a market has come, or that it has left the market,
// copied out of the book.
type change struct {
	id       messages.JobID
	job      *book.Job // its immutable parts only
	market   *traded
	active   bool
	blocked  bool // it waits for other jobs
	ending   *market.Ending
	progress market.Progress
	gangs    []market.Gathering
}

// follow brings the markets up to date with the book, and says whether the book
// has more effects.
func (d *Desk) follow() (effects bool) {
	var jobs []change
	var offered []market.NodeSlots
	d.book.Changes(func(b *book.Book, touched book.Changes) {
		effects = touched.Effects
		d.errands.federation.Changed(b, touched.Jobs)
		for id := range d.settlements.again {
			touched.Jobs[id] = true
		}
		clear(d.settlements.again)
		for _, id := range slices.Sorted(maps.Keys(touched.Jobs)) {
			if j := b.Job(id); j != nil {
				jobs = append(jobs, d.changeOf(b, j))
			}
		}
		for _, i := range slices.Sorted(maps.Keys(touched.Nodes)) {
			offered = append(offered, market.SlotsOf(i, b.Nodes()[i]))
			d.nodes.changed(i, b.Nodes()[i])
		}
	})
	d.trading.setSlots(offered)
	for i := range jobs {
		d.followJob(&jobs[i])
	}
	return effects
}

func (d *Desk) changeOf(b *book.Book, j *book.Job) change {
	c := change{id: j.ID, job: j, market: d.trading.market(j.Spec.Market), active: j.Active(), blocked: j.Blocked > 0}
	switch {
	case !c.active && j.State == messages.Settling && !j.Settled:
		c.ending = market.EndingOf(b, j)
	case c.active && c.market != nil:
		c.progress, c.gangs = c.market.ProgressOf(j), c.market.GatheringOf(j)
	}
	return c
}

func (d *Desk) followJob(c *change) {
	d.trading.gangs.Put(c.job.Spec, c.id, c.gangs)
	if c.ending == nil {
		d.settlements.settled(c.id)
	}
	switch {
	case c.ending != nil && d.settlements.begin(c):
	case c.market == nil || c.blocked:
	case !c.active:
		c.market.Remove(d.now.Wall, c.id)
	default:
		if c.market.Plans() && c.market.Job(c.id) == nil {
			d.lessons.newcomers = true
		}
		c.market.Put(d.now.Wall, func() *mechanism.Bid { return c.market.BidOf(c.job) }, c.id, c.progress)
	}
}
