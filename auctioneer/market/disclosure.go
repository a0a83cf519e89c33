package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

// Seen is the part of a market that one account may see.
type Seen struct {
	*Market
	account messages.Name
	tells   mechanism.Disclosure
	all     bool
}

// SeenBy returns the part of the market that an account may see.
func (m *Market) SeenBy(account messages.Name, operator bool) Seen {
	return Seen{Market: m, account: account, tells: registry.Of(&m.Config).Tells, all: operator}
}

// The method `own` reports whether the account may see everything about a job.
func (s Seen) own(e *entry) bool { return s.all || e.job.Account == s.account }

// listed reports whether the account may see that a job exists.
func (s Seen) listed(e *entry) bool { return s.tells == mechanism.Queue || s.own(e) }

// Prices returns the price and the demand of each class.
func (s Seen) Prices() []market.ClassPrice {
	out := make([]market.ClassPrice, len(s.view.Classes))
	for k, c := range s.view.Classes {
		out[k] = market.ClassPrice{Class: c.Name, Slots: c.Slots, Idle: c.Idle, Sealed: s.sealed(k), PerSecond: s.perSecond(k)}
		if !out[k].Sealed {
			out[k].Price = s.prices[k]
		}
	}
	for _, e := range s.members() {
		for k, n := range e.pending() {
			if n > 0 {
				out[k].Bidders++
			}
			if !out[k].Sealed {
				out[k].Pending += n
			}
		}
	}
	return out
}

// perSecond reports whether the price of a class is the price of a slot-second for every job. In some markets a longer
// job pays more for a slot-second; the result is then false.
func (m *Market) perSecond(k int) bool {
	t := m.orders.Tariffs
	return registry.Of(&m.Config).Owes == mechanism.ForTime && (k >= len(t) || t[k].Length == 0)
}

// sealed reports whether the published price or demand of a class would reveal the bid of one other account. It would,
// if only one other account has bids that determine the price. The bids of the waiting jobs determine the price. If
// each job pays its own bid, the bids of the running jobs also determine it.
func (s Seen) sealed(k int) bool {
	if s.all || s.tells == mechanism.Queue {
		return false
	}
	waiting, running := s.others(k)
	ownBid := k < len(s.orders.Tariffs) && s.orders.Tariffs[k].Basis == mechanism.OwnBid
	return s.tells == mechanism.Secret || waiting == 1 || ownBid && running == 1
}

// Told reports whether every account may see the price and the demand of a class. If the result is false, even an
// account with jobs in the class may not see them. All users of another site count as one account.
func (m *Market) Told(k int) bool {
	switch registry.Of(&m.Config).Tells {
	case mechanism.Queue:
		return true
	case mechanism.Secret:
		return false
	}
	var waits, runs []messages.Name // at most three accounts each
	note := func(in *[]messages.Name, who messages.Name) {
		if len(*in) < 3 && !slices.Contains(*in, who) {
			*in = append(*in, who)
		}
	}
	for _, e := range m.members() {
		if e.pending()[k]+suspended(e, k) > 0 {
			note(&waits, messages.Participant(e.job.Account))
		}
		if e.running()[k] > 0 {
			note(&runs, messages.Participant(e.job.Account))
		}
	}
	// If only one account bids, its bid is the price, so the price would disclose the bid. If two accounts bid, each
	// could compute the bid of the other from the price.
	few := func(accounts []messages.Name) bool { return len(accounts) == 1 || len(accounts) == 2 }
	ownBid := k < len(m.orders.Tariffs) && m.orders.Tariffs[k].Basis == mechanism.OwnBid
	return !few(waits) && !(ownBid && few(runs))
}

// UsedBy returns, for each account, on how many slots its jobs run. An account gets 0 slots if all its jobs wait.
func (m *Market) UsedBy() map[messages.Name]int {
	used := map[messages.Name]int{}
	for _, e := range m.members() {
		for _, n := range e.running() {
			used[e.job.Account] += n
		}
	}
	return used
}

// others returns how many other accounts have waiting and running tasks in a class. It counts only up to two.
func (s Seen) others(k int) (waiting, running int) {
	waits, runs := mechanism.Rivals{Of: s.account}, mechanism.Rivals{Of: s.account}
	for _, e := range s.members() {
		if e.pending()[k]+suspended(e, k) > 0 {
			waits.Note(e.job.Account)
		}
		if e.running()[k] > 0 {
			runs.Note(e.job.Account)
		}
	}
	return waits.Count(), runs.Count()
}

func suspended(e *entry, k int) int {
	if e.Suspended == nil {
		return 0
	}
	return e.Suspended[k]
}

// Top returns the jobs with the largest budgets, and their shares. It returns at most `limit` jobs. If budgets are not
// disclosed, it returns the jobs that came first.
func (s Seen) Top(now messages.Time, limit int) []market.JobShare {
	listed := slices.DeleteFunc(slices.Clone(s.members()), func(e *entry) bool { return !s.listed(e) })
	if s.all || s.tells != mechanism.Queue {
		slices.SortStableFunc(listed, func(a, b *entry) int { return cmp.Compare(b.job.Budget, a.job.Budget) })
	}
	out := []market.JobShare{}
	for _, e := range listed[:min(limit, len(listed))] {
		s.integrate(e, now)
		one := market.JobShare{Job: e.job.Job, Account: e.job.Account, Shares: s.shares(e)}
		if s.own(e) {
			one.Budget = e.job.Budget
		}
		for k := range e.job.Pending {
			one.Pending += e.pending()[k]
			one.Running += e.running()[k]
			if e.Suspended != nil {
				one.Suspended += e.Suspended[k]
			}
		}
		out = append(out, one)
	}
	return out
}

// Next returns, for each class, the job that would get the next free slot. This is the job with the largest weight
// among the jobs with waiting tasks.
func (s Seen) Next() (out []market.NextJob) {
	for k, c := range s.classes {
		var best *entry
		for _, e := range s.members() {
			if e.pending()[k] > 0 && (best == nil || e.ledger[k].share > best.ledger[k].share) {
				best = e
			}
		}
		if best == nil || best.ledger[k].share <= 0 || !s.listed(best) {
			continue
		}
		next := market.NextJob{Class: c, Job: best.job.Job, Account: best.job.Account}
		if s.own(best) {
			next.Rate = best.job.Rate
		}
		out = append(out, next)
	}
	return out
}

// SealTariffs removes the tariffs of classes whose prices the market does not disclose.
func SealTariffs(tariffs []market.SlotTariff, prices []market.ClassPrice) []market.SlotTariff {
	for i, t := range tariffs {
		if !t.OwnBid && slices.ContainsFunc(prices, func(p market.ClassPrice) bool { return p.Class == t.Class && p.Sealed }) {
			tariffs[i] = market.SlotTariff{Class: t.Class, Sealed: true}
		}
	}
	return tariffs
}
