package core

import (
	"cmp"
	"fmt"

	"github.com/candor-grid/candor/auctioneer/market"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/proportional"
	"github.com/candor-grid/candor/messages"
	jobmsg "github.com/candor-grid/candor/messages/job"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

const class = "cpu"

// pool runs proportional shares among jobs that each demand a minimum utility. The mechanism chooses which jobs are
// served at the same time. All other jobs wait.
type pool struct {
	*shares
	market    *market.Market
	publisher *market.Publisher
	prompt    int // number of jobs that were complete at their submission
}

// runPool does the same as runProportional, for a market with an slo (a minimum utility). A job whose utility at its
// received share is below the slo pays nothing.
func runPool(p *Problem) (*Outcome, error) {
	config := marketmsg.Market{Name: p.Market.Name, Mechanism: p.Market.Mechanism, Classes: []messages.Name{class}, Alpha: p.Market.Alpha,
		Settle: p.Market.Settle}
	mech, err := proportional.New(config)
	if err != nil {
		return nil, err
	}
	l := &pool{shares: newShares(p, 0x706f6f6c), market: market.New(mechanism.Manner{}, config, mech)}
	l.publisher = market.NewPublisher(1, l.market)
	if _, err := l.run(l.end, l.arrive, l.share); err != nil {
		return nil, err
	}
	if l.prompt > 0 {
		l.out.Notes = append(l.out.Notes, fmt.Sprintf("jobs that got all of their slots at once: %d; they never waited for a share, and owe nothing", l.prompt))
	}
	return l.out, nil
}

func (l *pool) arrive(now messages.Time, i int) error {
	l.enter(now, i)
	l.put(now, i)
	return nil
}

func (l *pool) end(now messages.Time, i int) error {
	over := l.over(now, i)
	if l.put(now, i); over {
		l.settle(now, i)
	}
	return nil
}

// put tells the market how many tasks of a job have started and ended.
func (l *pool) put(now messages.Time, i int) {
	t := &l.jobs[i]
	l.market.Put(now, func() *mechanism.Bid {
		return &mechanism.Bid{Account: l.account(i), Job: messages.JobID(i + 1), Arrived: now, Budget: Money(l.Bids[i].Budget), Form: jobmsg.Linear,
			Weights: []float64{1}, MinUtility: cmp.Or(l.Bids[i].Minimum, l.Market.SLO)}
	}, messages.JobID(i+1), market.Progress{Started: now, Pending: []int{t.pending}, Running: []int{t.left - t.pending}})
}

func (l *pool) share(now messages.Time) error {
	defer l.pass(now)
	for {
		l.market.SetSlots(now, []int{l.Work.Nodes}, []int{l.free})
		if l.market.Stale(now) {
			l.market.Allocate(now)
		}
		if v, ok := l.publisher.Next(l.market, now, l.rng, false); ok {
			update := l.draw.Update
			if v.Base == 0 {
				update = l.draw.Replace
			}
			if err := update(v.Classes[0].Jobs); err != nil {
				return err
			}
		}
		if l.free == 0 || l.draw.Len() == 0 {
			return nil
		}
		i := l.choose(now)
		if l.jobs[i].pending == 0 { // a weight that changed very little is not announced by the mechanism
			if err := l.weigh(i, 0); err != nil {
				return err
			}
			continue
		}
		l.begin(now, i)
		l.put(now, i)
	}
}

// settle records the payment of an ended job, as the mechanism computes it.
func (l *pool) settle(now messages.Time, i int) {
	job, got := l.market.Remove(now, messages.JobID(i+1))
	had := l.had(i)
	job.Received, job.Accrued = had.Time, Money(had.Contended.Seconds())
	end := mechanism.End{State: jobmsg.Completed, Tasks: l.Work.Jobs[i].Width, Done: l.Work.Jobs[i].Width, Began: l.Work.Jobs[i].Width}
	if len(got) > 0 && got[0].Over == 0 {
		l.prompt++
	}
	for _, c := range got {
		end.Shares = append(end.Shares, mechanism.Share{Allocated: c.Allocated, Received: c.Received})
	}
	for _, p := range l.market.Settle(now, job, end) {
		l.out.Jobs[i].Paid += p.Amount
	}
}
