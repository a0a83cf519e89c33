package contract

import (
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/valuation"
	"github.com/candor-grid/candor/messages"
)

// due is until when a job must complete for its promise to be kept: until the time promised and a second, or a
// hundredth of the time up to that; or as long as completion is worth nearly as much as was
// promised, and no less than the price. 0: nothing was promised.
func due(job *mechanism.Job) messages.Time {
	const nearly = 0.99
	c := job.Contract
	if c == nil || c.Promised <= 0 {
		return 0
	}
	by := c.Completion.Add(max(messages.Duration(1e9), c.Completion.Sub(job.Arrived)/100))
	if replica, err := valuation.New(c.Replica); err == nil {
		latest, _ := replica.Latest(max(nearly*c.Promised, c.Price.Float()))
		by = max(by, job.Arrived.Add(seconds(latest)))
	}
	return by
}

// Kept reports whether a job that has ended completed as its contract promised. The time of
// its tasks beyond what was planned makes nothing late. It is not known of a job that was ended
// before, and had not completed.
func (*Mechanism) Kept(job *mechanism.Job, end mechanism.End) (kept, known bool) {
	by := due(job)
	if by == 0 {
		return false, false
	}
	if end.Completed == 0 {
		return false, end.At > by
	}
	at, _ := charged(job, end)
	return at <= by, true
}
