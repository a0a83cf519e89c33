package market

import (
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
)

// Resolve gives a claim of a class of the market its jobs in order of
// preference: the one the agent sampled and, where that has too little work left,
// others drawn by their shares.
func (m *Market) Resolve(b *book.Book, c *messages.Claim, rng *rand.Rand) book.Claim {
	const mostSubstitutes = 16
	k := m.Class(c.Class)
	var jobs []messages.JobID
	if j := b.Job(c.Job); j != nil && j.Spec.Market == m.Config.Name { // another market may have the class too
		jobs = append(jobs, c.Job)
	}
	for missing := c.Slots - m.Pending(c.Job, k); missing > 0 && len(jobs) <= mostSubstitutes; {
		id := m.Substitute(k, rng)
		if id == 0 {
			break
		}
		if !slices.Contains(jobs, id) {
			missing -= m.Pending(id, k)
		}
		jobs = append(jobs, id)
	}
	return book.Claim{Class: c.Class, Slots: c.Slots, Jobs: jobs, Most: m.mosts(jobs, k)}
}

// mosts is how many claims each of some jobs may come to have; nil: no bound.
func (m *Market) mosts(jobs []messages.JobID, k int) []int {
	if !m.Directs() {
		return nil
	}
	out := make([]int, len(jobs))
	for i, id := range jobs {
		out[i] = m.Most(id, k)
	}
	return out
}
