package faults

import (
	"fmt"

	"github.com/candor-grid/candor/auctioneer/federation"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// offers asks all sites when they would complete a job, and at what price. It waits for clearing.QuoteWithin, and then
// answers with the site of the best offer. Without an offer it answers with the leader's own site.
func (l *leader) offers(spec *job.JobSpec, answer func(any)) {
	var all []clearing.Offer
	over := false
	for _, s := range l.sites {
		l.call(l.r.host.name, s.books, func() bool { return over || l.gone() }, func(r *replica, answer func(any)) {
			answer(r.shell.(*leader).visits.expect(spec))
		}, func(reply any) {
			all = append(all, federation.Screened(s.name, []clearing.Offer{reply.(clearing.Offer)}, l.r.clock())...)
		})
	}
	l.after(&l.r.host.host, clearing.QuoteWithin, func() {
		over = true
		best, _ := federation.Choose(spec, l.r.clock(), all)
		l.check(l.site, bestOf(spec, all, best))
		if best < 0 {
			answer(l.site)
		} else {
			answer(l.World.site(all[best].Site))
		}
	})
}

// bestOf returns an error if the chosen offer is wrong. The chosen offer must cost at most the budget. No other offer
// may be cheaper and end at the same time or earlier.
func bestOf(spec *job.JobSpec, all []clearing.Offer, best int) error {
	if best < 0 {
		return nil
	}
	b := &all[best]
	if b.Price > spec.Budget {
		return fmt.Errorf("invariant 6: the offer of %s costs %v, above the budget of %v", b.Site, b.Price, spec.Budget)
	}
	for i := range all {
		if o := &all[i]; o.Completion != 0 && o.Completion <= b.Completion && o.Price < b.Price && o.Budget <= b.Budget {
			return fmt.Errorf("invariant 6: the offer of %s is chosen, but the offer of %s is not later and costs less", b.Site, o.Site)
		}
	}
	return nil
}

// expect returns the site's offer for a job. At random, the estimator knows the run time, and the market knows the
// price of a slot.
func (v *visits) expect(spec *job.JobSpec) clearing.Offer {
	l := v.leader
	own := *spec
	own.Market = l.site.market.Name
	look := &federation.Outlook{Site: l.name, Market: l.desk.Find(own.Market), Now: l.r.clock(), Prices: l.desk.Market(own.Market).SeenBy("", true).Prices()}
	if n := l.rng.IntN(4); n > 0 {
		tariff := market.SlotTariff{Class: class, Price: messages.Credit / 20, OwnBid: n == 1, Length: messages.Duration(n-1) * second}
		look.Tariffs = []market.SlotTariff{tariff}
	}
	if n := l.rng.IntN(4); n > 0 {
		takes := market.Spread{Low: second, Median: messages.Duration(10*n) * second, High: 60 * second, Mean: 20 * second}
		look.Estimate = &market.EstimateReply{Wait: takes, Completion: takes, Source: []string{"", "declared", "declared"}[n-1],
			Stages: []market.RuntimeEstimate{{Spread: takes}}}
	}
	return federation.Expect(&own, look)
}
