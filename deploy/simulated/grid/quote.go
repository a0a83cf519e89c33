package grid

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// QuoteHolds is the longest time for which a menu is valid. A menu ends at the next multiple of QuoteHolds, which may
// be soon. This is no problem, because simulated users answer at once.
const QuoteHolds = messages.Duration(60e9)

// menu is a quote that a user has got.
type menu struct {
	quote     uint64
	contracts []job.Contract
	err       error
}

// askQuote asks for one or several menus, and chooses the best contract. If the site has too many quotes, it asks again
// after some have expired.
func (g *Grid) askQuote(i int) {
	menus, asks, pause := []*menu{}, 1, 0.0
	if o := g.owners[i]; o != nil {
		asks, pause = max(asks, o.Quotes), o.Pause
	}
	var ask func()
	ask = func() {
		g.traffic.Quotes++
		g.call(userActor, auctioneerActor, func() any { return g.leader.quote(i) }, func(reply any) {
			m := reply.(*menu)
			if messages.KindOf(m.err) == messages.Exhausted {
				g.queue.Push(g.now.Add(QuoteHolds), ask)
				return
			}
			if menus = append(menus, m); len(menus) < asks {
				g.queue.Push(g.now.Add(messages.Duration(pause*1e9)), ask)
				return
			}
			g.take(i, menus)
		})
	}
	ask()
}

// take chooses the best contract in all menus of a job, and submits the job under it.
func (g *Grid) take(i int, menus []*menu) {
	why := core.NoOffer
	for _, m := range menus {
		if m.err != nil {
			why = messages.AsError("", m.err).Message
		}
	}
	if contract := g.choose(i, menus); contract != "" {
		g.sendJob(part{i, 0}, contract)
		return
	}
	g.leader.refuse(i, why)
}

// quote makes the menu of a job, and commits it. A site asks the estimator for the types of jobs; here they are drawn
// from the workload.
func (l *leader) quote(i int) *menu {
	const types = 256
	who := l.submitter(i)
	spec, err := l.spec(i)
	if err != nil {
		return &menu{err: err}
	}
	seed := l.menus.Seed(&l.market.Config, spec, l.now)
	if l.config.Shopping {
		seed += uint64(l.traffic.Quotes)
	}
	q, err := l.market.Quote(l.now, l.market.Bid(0, who, l.now, spec, nil), l.Types(i, types, seed), seed)
	if err != nil {
		return &menu{err: err}
	}
	result := l.propose(&book.Command{Quote: &book.Quote{Account: who, Market: spec.Market, Work: intake.WorkOf(spec), Contracts: q.Contracts, Expires: l.now.Add(QuoteHolds)}})
	if err, refused := result.(error); refused {
		return &menu{err: err}
	}
	return &menu{quote: result.(uint64), contracts: q.Contracts}
}

// choose returns the contract that is best for the user: the contract with the largest worth minus price. If every
// contract is a loss, or costs more than the user's budget, it returns "".
func (g *Grid) choose(i int, menus []*menu) (contract string) {
	var offers []core.Offer
	var of []string
	budget, _ := messages.RoundCredits(g.Bids[i].Budget)
	for _, m := range menus {
		for k := range m.contracts {
			if c := &m.contracts[k]; core.MostOf(c, g.Market.LateOnly) <= budget {
				offers = append(offers, core.Offer{Completion: g.seconds(c.Completion), Price: c.Price.Float()})
				of = append(of, fmt.Sprintf("q%d-%d", m.quote, k+1))
			}
		}
	}
	best := core.Choose(g.Market.Worth, &g.Work.Jobs[i], &g.Bids[i], offers)
	if best < 0 {
		return ""
	}
	return of[best]
}
