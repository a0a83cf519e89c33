package grid

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// had describes what a job received: the slot time, the payment, and the start and the end of its task.
type had struct {
	time       messages.Duration
	paid       messages.Credits
	start, end float64
}

// worked runs three jobs of one task each on a node of two slots, and returns the results of the first two jobs. The
// third job waits. So the first two jobs have slots that another job needs, and must pay for their time.
func worked(t *testing.T, mechanism string, seconds float64, c Config) (jobs [2]had) {
	t.Helper()
	w := &workload.Workload{Nodes: 2, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{1}}
	m := byDefault(mechanism)
	p := &core.Problem{Market: m, Work: w, Seed: 1}
	for i, rate := range []float64{10, 10, 5} {
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(i / 2), Runtime: seconds, Width: 1, User: i})
		p.Bids = append(p.Bids, bids.Bid{Length: seconds, Value: rate, Rate: rate, Budget: 1e4 * rate, Deadline: 2000})
	}
	switch mechanism {
	case rules.Reservation:
		m.Granule, m.T, m.Search.Orders, m.Bids.Deadline.Slack = messages.Duration(seconds/4*1e9), 10, 20, "none"
	case rules.Deadline:
		m.Slot = messages.Duration(seconds / 24 * 1e9)
	}
	if price := 3.0; m.Reserve != nil {
		m.Reserve = &price
	} else if _, fixed := m.Price.(float64); fixed {
		m.Price = price
	}
	c.Network.Delay, c.Lease, c.Slots = ms/10, messages.Duration(120e9), 2
	market, err := live(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Network.Cuts { // cuts are given in times of the log; the grid uses times from its epoch on
		c.Network.Cuts[i].From += epochOf(&market)
		c.Network.Cuts[i].Until += epochOf(&market)
	}
	g, err := newGrid(p, c)
	if err != nil {
		t.Fatal(err)
	}
	o, _, err := g.run()
	if err != nil {
		t.Fatal(err)
	}
	for id := range g.leader.of {
		j := g.leader.book.Job(messages.JobID(id))
		i := g.leader.of[id]
		if j == nil || int(i) >= len(jobs) {
			continue
		}
		if j.Outcome != job.Completed || o.Jobs[i].Fate != core.Completed {
			t.Fatalf("job %d: %v: %s %s", id, j.Outcome, j.Reason, j.Cause)
		}
		_, time := g.leader.book.Used(j, g.now)
		task := &j.Stages[0].Tasks[0]
		jobs[i] = had{time, o.Jobs[i].Paid, g.seconds(task.Claimed), g.seconds(task.Ended)}
	}
	return jobs
}

// TestAChargeIsWhatWasWorked takes the site down, or cuts it off, for ten seconds, in the middle or at the end of a
// task. Under every mechanism, the job must have the same slot time and payment as without the fault. A second run
// inserts a bug: agents do not report when tasks began (Config.Mute). With this bug, the charge must differ.
func TestAChargeIsWhatWasWorked(t *testing.T) {
	if all := slices.Sorted(slices.Values(rules.Mechanisms())); !slices.Equal(all, slices.Sorted(slices.Values(registry.Names(nil)))) {
		t.Fatalf("only %v can be tried", all)
	}
	cut := func(from float64, actors ...string) network.Config {
		return network.Config{Cuts: []network.Cut{{From: messages.Time(from * 1e6), Until: messages.Time((from + 10) * 1e6), Actors: actors}}}
	}
	for _, mechanism := range rules.Mechanisms() {
		for _, seconds := range []float64{4, 240} {
			t.Run(fmt.Sprintf("%s/%v s", mechanism, seconds), func(t *testing.T) {
				well := worked(t, mechanism, seconds, Config{})
				if math.Abs(well[0].time.Seconds()-seconds) > 0.1 {
					t.Fatalf("with no fault it had %v", well[0].time)
				}
				late := well[0].end - min(5, seconds/4)
				for when, from := range map[string]float64{"in the middle": well[0].start + 0.4*seconds, "at the end": late} {
					for name, c := range map[string]Config{
						"an outage":   {Down: Span{from, from + 10}, Network: cut(from, auctioneerActor, bankActor)},
						"a full disk": {Full: Span{from, from + 10}, Network: cut(from, "nobody")},
						"a cut":       {Network: cut(from, "n0")},
					} {
						for i, got := range worked(t, mechanism, seconds, c) {
							time, paid := (got.time - well[i].time).Seconds(), (got.paid - well[i].paid).Float()
							if math.Abs(time) > 0.1 || math.Abs(paid) > 0.001*math.Abs(well[i].paid.Float()) {
								t.Errorf("%s %s: job %d had %v for %v, with no fault %v for %v", name, when, i, got.time, got.paid, well[i].time, well[i].paid)
							}
						}
					}
				}
				mute := worked(t, mechanism, seconds, Config{Mute: true, Network: cut(late, "n0")})
				if mute[0].time < well[0].time+4*messages.Duration(1e9) {
					t.Errorf("with no word of the agent it had %v", mute[0].time)
				}
			})
		}
	}
}
