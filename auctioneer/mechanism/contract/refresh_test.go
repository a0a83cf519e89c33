package contract

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	marketmsg "github.com/candor-grid/candor/messages/market"
)

// The mechanism plans with the times when slots become free. If no slot is free now, it must order the waiting jobs
// again after some time. This time is a tenth of the time until the next slot becomes free, but at least ten seconds.
func TestWhoWaitsIsOrderedAnewWhenASlotIsNear(t *testing.T) {
	for _, c := range []struct {
		idle int
		ran  []messages.Time // how long each running job has run; each is planned for an hour
		want messages.Time
	}{
		{0, []messages.Time{0, 600 * second}, 300 * second},
		{0, []messages.Time{0, 3590 * second}, 10 * second},
		// the second job is late: it counts as if a new task had begun after an hour
		{0, []messages.Time{0, 3660 * second}, 354 * second},
		{1, []messages.Time{0}, 10 * second},
	} {
		m, view := market(t, marketmsg.Market{}), grid(2, c.idle)
		view.Now = 10_000 * second
		add := func(ran messages.Time, running int) {
			bid := bidOf(messages.JobID(len(view.Jobs)+1), view.Now, 1)
			bid.Length = 3600e9
			job := take(t, quote(t, m, view, bid, 1), bid)
			job.Pending[0], job.Running[0] = 1-running, running
			if bid.Arrived = view.Now - ran; running > 0 {
				job.Started = bid.Arrived
			}
			view.Jobs = append(view.Jobs, job)
		}
		for _, ran := range c.ran {
			add(ran, 1)
		}
		add(0, 0)
		add(0, 0)
		if wake := m.Allocate(view).Wake; wake != view.Now+c.want {
			t.Errorf("%+v: ordered anew after %v", c, wake.Sub(view.Now))
		}
	}
	if wake := market(t, marketmsg.Market{}).Allocate(grid(2, 2)).Wake; wake != 0 {
		t.Errorf("without jobs it is ordered anew at %v", wake)
	}
}
