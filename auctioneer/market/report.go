package market

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
)

// Jobs is the number of jobs in the market.
func (m *Market) Jobs() int { return len(m.jobs) }

// Started is the number of jobs in the market that have had a task claimed.
func (m *Market) Started() int {
	n := 0
	for _, e := range m.jobs {
		if e.job.Started != 0 {
			n++
		}
	}
	return n
}

// Shares returns a job's shares by class up to now, nil if it is not there.
func (m *Market) Shares(now messages.Time, id messages.JobID) []messages.ClassShare {
	e := m.number[id]
	if e == nil {
		return nil
	}
	m.integrate(e, now)
	return m.shares(e)
}

// Prices says for each class what it costs and who is after it.
func (m *Market) Prices() []messages.ClassPrice {
	out := make([]messages.ClassPrice, len(m.view.Classes))
	for k, c := range m.view.Classes {
		out[k] = messages.ClassPrice{Class: c.Name, Price: m.prices[k], Slots: c.Slots, Idle: c.Idle}
	}
	for _, e := range m.jobs {
		for k, n := range e.Pending {
			out[k].Pending += n
			if n > 0 {
				out[k].Bidders++
			}
		}
	}
	return out
}

// Top returns the jobs with the largest budgets, at most limit.
func (m *Market) Top(now messages.Time, limit int) []messages.JobShare {
	largest := slices.Clone(m.jobs)
	slices.SortStableFunc(largest, func(a, b *entry) int { return cmp.Compare(b.job.Budget, a.job.Budget) })
	out := []messages.JobShare{}
	for _, e := range largest[:min(limit, len(largest))] {
		m.integrate(e, now)
		s := messages.JobShare{Job: e.job.Job, Account: e.job.Account, Budget: e.job.Budget, Shares: m.shares(e)}
		for k := range e.job.Pending {
			s.Pending += e.Pending[k]
			s.Running += e.Running[k]
		}
		out = append(out, s)
	}
	return out
}

// Explain asks the mechanism about a job; false if it is not in the market.
func (m *Market) Explain(now messages.Time, id messages.JobID) (mechanism.Explanation, bool) {
	e := m.number[id]
	if e == nil {
		return mechanism.Explanation{}, false
	}
	m.view.Now = now
	return m.mech.Explain(&m.view, e.job), true
}

// Claimable is the number of tasks pending in classes that have idle slots.
func (m *Market) Claimable() int {
	n := 0
	for k, open := range m.open {
		if m.view.Classes[k].Idle > 0 {
			n += open
		}
	}
	return n
}

// Next says for each class who would get the next slot that comes free: of
// those with tasks waiting, the one with the largest weight.
func (m *Market) Next() (out []messages.NextJob) {
	for k, c := range m.Config.Classes {
		var best *entry
		for _, e := range m.jobs {
			if e.Pending[k] > 0 && (best == nil || e.share[k] > best.share[k]) {
				best = e
			}
		}
		if best != nil && best.share[k] > 0 {
			out = append(out, messages.NextJob{Class: c, Job: best.job.Job, Account: best.job.Account, Rate: best.job.Rate})
		}
	}
	return out
}
