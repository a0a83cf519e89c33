package grid

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/messages"
)

// quoteHolds is how long a menu holds: users answer at once.
const quoteHolds = messages.Duration(60e9)

// menu is what a user is quoted.
type menu struct {
	quote     uint64
	contracts []messages.Contract
	err       error
}

// askQuote is what a user does in a market that sells contracts: it asks for a menu,
// and chooses the best contract. Where the site has too many quotes, the user asks
// again once some have expired.
func (g *Grid) askQuote(i int) {
	g.traffic.Quotes++
	g.call(userActor, auctioneerActor, func() any { return g.leader.quote(i) }, func(reply any) {
		m := reply.(*menu)
		if messages.KindOf(m.err) == messages.Exhausted {
			g.queue.Push(g.now.Add(quoteHolds), func() { g.askQuote(i) })
			return
		}
		if contract := g.choose(i, m); contract != "" {
			g.sendJob(part{i, 0}, contract)
			return
		}
		why := core.NoOffer
		if m.err != nil {
			why = messages.AsError("", m.err).Message
		}
		g.leader.refuse(i, why)
	})
}

// quote makes the menu of a job, and commits it. Types, which a site asks the
// estimator for, are drawn from the jobs of the workload.
func (l *leader) quote(i int) *menu {
	const types = 256
	who := account(l.Work.Jobs[i].User)
	spec, err := l.spec(i)
	if err != nil {
		return &menu{err: err}
	}
	q, err := l.market.Quote(l.now, l.market.Bid(0, who, l.now, spec, nil), l.Types(i, types), l.DrawSeed()+uint64(l.Work.Jobs[i].Number))
	if err != nil {
		return &menu{err: err}
	}
	result := l.propose(&book.Command{Quote: &book.Quote{Account: who, Market: spec.Market, Work: intake.WorkOf(spec), Contracts: q.Contracts, Expires: l.now.Add(quoteHolds)}})
	if err, refused := result.(error); refused {
		return &menu{err: err}
	}
	return &menu{quote: result.(uint64), contracts: q.Contracts}
}

// choose takes what is worth most to the user, less the price; "": everything is a
// loss, or more than the user's budget.
func (g *Grid) choose(i int, m *menu) (contract string) {
	offers := make([]core.Offer, 0, len(m.contracts))
	var of []int
	budget, _ := messages.RoundCredits(g.Bids[i].Budget)
	for k := range m.contracts {
		if c := &m.contracts[k]; core.MostOf(c, g.Market.LateOnly) <= budget {
			offers = append(offers, core.Offer{Completion: g.seconds(c.Completion), Price: c.Price.Float()})
			of = append(of, k)
		}
	}
	best := core.Choose(&g.Work.Jobs[i], &g.Bids[i], offers)
	if best < 0 {
		return ""
	}
	return fmt.Sprintf("q%d-%d", m.quote, of[best]+1)
}
