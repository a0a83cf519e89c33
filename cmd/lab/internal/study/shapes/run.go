package shapes

import (
	"slices"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/messages"
)

// result is what a market did with the jobs of a machine. Times are in seconds.
type result struct {
	Sold   float64    `json:"sold"`          // slot time until the horizon, as a part of the machine's slot time
	Mean   float64    `json:"mean_wait"`     // of the jobs that completed
	Median float64    `json:"median_wait"`   // see waits
	P95    float64    `json:"p95_wait"`      // see waits
	Shares [3]float64 `json:"shares"`        // parts of the sold slot time: tasks of one slot, of two to seven, of a whole node
	Lost   int        `json:"not_completed"` // number of jobs that did not complete
}

// run runs the jobs of a machine through a market with all actors, until all have ended. The argument `perNode` is the
// slots of a node.
func (m *machine) run(mechanism string, seed uint64, perNode int) (*result, error) {
	r, err := rules.Decode("market", []byte("mechanism: "+mechanism+"\nbids: {value: {distribution: uniform}}"))
	if err != nil {
		return nil, err
	}
	of := *m.work
	of.Jobs = slices.Clone(of.Jobs)
	for i := range of.Jobs {
		of.Jobs[i].Width = m.slots(i) // budgets are for slots, not for tasks
	}
	const ms = messages.Duration(1e6)
	p := &core.Problem{Market: r, Work: m.work, Bids: r.Bids.Draw(&of, seed), Seed: seed}
	out, _, err := grid.Run(p, grid.Config{Network: network.Config{Delay: ms / 2, Jitter: ms}, Slots: perNode, Shapes: m.shapes, Unit: unit, Until: m.until})
	if err != nil {
		return nil, err
	}
	return m.measure(out), nil
}

// measure computes the results of an outcome. The time in the system of a job is the time from its submission to the
// end of its last task. The job's wait is this time minus the job's run time.
func (m *machine) measure(out *core.Outcome) *result {
	r, sold, waits := &result{}, 0.0, []float64(nil)
	for i := range out.Jobs {
		j, o := &m.work.Jobs[i], &out.Jobs[i]
		sold += out.Sold[i]
		r.Shares[min(m.widths[i]/2, 1)+m.widths[i]/nodeSlots] += out.Sold[i]
		if o.Fate != core.Completed {
			r.Lost++
			continue
		}
		waits = append(waits, o.Finish-j.Submit-j.Runtime)
	}
	for k := range r.Shares {
		r.Shares[k] /= sold
	}
	slices.Sort(waits)
	for _, w := range waits {
		r.Mean += w / float64(len(waits))
	}
	r.Sold, r.Median, r.P95 = sold/m.capacity(), waits[len(waits)/2], waits[len(waits)*95/100]
	return r
}
