package backfill

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// conservative is the variant that promises every job a start when it arrives.
type conservative struct {
	plan    *profile.Profile // the use of nodes over time, by running jobs and by promised jobs
	waiting []promise        // in the order of arrival
	soonest float64          // the earliest promised start
	freed   bool             // some nodes are free earlier than planned
	late    bool             // a job has run longer than its estimate, so nodes become free later
}

// promise is a waiting job and its promised start. The job starts at this time or earlier, unless a running job takes
// longer than its estimate.
type promise struct {
	job   int
	start float64
}

func newConservative(in *rigid.Instance) *conservative {
	return &conservative{plan: profile.New(in.Nodes), soonest: math.Inf(1)}
}

func (c *conservative) Arrive(m *rigid.Machine, job int) {
	c.replan(m) // first give the freed nodes to jobs that came earlier
	c.waiting = append(c.waiting, promise{job, c.place(m, job)})
}

// place finds the earliest window of the plan into which a job fits, and puts the job there. It returns the start of
// the window.
func (c *conservative) place(m *rigid.Machine, job int) float64 {
	j := m.Jobs[job]
	start := c.plan.Soonest(m.Now, j.Estimate, j.Width)
	c.plan.Insert(start, j.Estimate, j.Width)
	c.soonest = min(c.soonest, start)
	return start
}

func (c *conservative) End(m *rigid.Machine, job int) {
	if until := m.Until(job); until > m.Now {
		c.plan.Take(m.Now, until, -m.Jobs[job].Width)
		c.freed = true
	}
}

func (c *conservative) Outlive(m *rigid.Machine, job int, until float64) {
	c.plan.Take(m.Now, until, m.Jobs[job].Width)
	c.late = true
}

func (c *conservative) Decide(m *rigid.Machine) {
	c.plan.Forget(m.Now)
	c.replan(m)
	if c.soonest > m.Now {
		return
	}
	c.soonest = math.Inf(1)
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if w.start <= m.Now && m.Jobs[w.job].Width <= m.Free {
			m.Start(w.job)
			continue
		}
		rest = append(rest, w)
		c.soonest = min(c.soonest, w.start)
	}
	c.waiting = rest
}

// Next returns the earliest start that was promised to a waiting job. The policy must decide again at this time,
// because perhaps no other event would start the job.
func (c *conservative) Next() float64 { return c.soonest }

// replan gives the waiting jobs new promises, in the order of arrival. Each job is placed again while all others keep
// their promises. Its old window is then free again, so no promised start becomes later. If a job runs longer than its
// estimate, all promises are dropped first.
func (c *conservative) replan(m *rigid.Machine) {
	if !c.freed && !c.late {
		return
	}
	if c.late {
		for _, w := range c.waiting {
			c.unplace(m, w)
		}
	}
	c.soonest = math.Inf(1)
	for i, w := range c.waiting {
		if !c.late {
			c.unplace(m, w)
		}
		c.waiting[i].start = c.place(m, w.job)
	}
	c.freed, c.late = false, false
}

func (c *conservative) unplace(m *rigid.Machine, w promise) {
	j := m.Jobs[w.job]
	c.plan.Insert(w.start, j.Estimate, -j.Width)
}
