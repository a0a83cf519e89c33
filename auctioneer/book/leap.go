package book

import (
	"slices"

	"github.com/candor-grid/candor/messages"
)

// leap is called after the clock has jumped ahead and no task ran in the skipped time. It moves the start of each
// claim's counted time ahead by the length of the jump. So no job pays for the jump.
func (c *claims) leap(by messages.Duration) {
	running := map[*Job]bool{}
	for _, n := range c.nodes.inOrder {
		n.Exchanged = n.Exchanged.Add(by)
		for r, h := range n.Claims {
			if h.Halt == Ahead {
				continue
			}
			if h.Since != 0 {
				h.Since = h.Since.Add(by)
				n.Claims[r] = h
			}
			j := c.jobs.own(r.Job)
			if j == nil {
				continue
			}
			if t := &j.Stages[r.Stage].Tasks[r.Index]; t.Phase == Claimed && t.Attempt == h.Attempt {
				t.Claimed = t.Claimed.Add(by)
				running[j] = true
			}
		}
	}
	for j := range running { // jobs are independent here, so the order does not matter
		for i := range j.Stages {
			if s := &j.Stages[i]; j.going(i) > 0 {
				s.Meter.Since = s.Meter.Since.Add(by)
			}
		}
		c.watch.touch(j.ID)
	}
	for market, spells := range c.meters.spells {
		moved := slices.Clone(spells)
		for i := range moved {
			moved[i].Until = moved[i].Until.Add(by)
		}
		c.meters.spells[market] = moved
	}
}
