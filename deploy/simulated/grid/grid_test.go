package grid

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/market"
)

func study(t *rapid.T, mechanism string) *core.Problem {
	w := &workload.Workload{Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), Parallel: workload.Split, Users: []int64{1, 2}, Groups: []int64{1}}
	if Gangs(mechanism) && rapid.Bool().Draw(t, "gangs") {
		w.Parallel = workload.Gang
	}
	at := 0
	for i := range rapid.IntRange(1, 15).Draw(t, "jobs") {
		at += rapid.IntRange(0, 90).Draw(t, "gap")
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(at), Runtime: float64(rapid.IntRange(0, 300).Draw(t, "runtime")),
			Width: rapid.IntRange(1, min(3, w.Nodes)).Draw(t, "width"), User: i % 2})
	}
	m := byDefault(mechanism)
	switch mechanism {
	case rules.Proportional:
		m.Bids.Budget = 1
	case rules.Reservation:
		m.Granule, m.T, m.Search.Orders, m.Bids.Deadline.Slack = messages.Duration(60e9), 10, 20, "none"
	case rules.Deadline:
		m.Slot = messages.Duration(10e9)
	}
	p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, rapid.Uint64().Draw(t, "seed")), Seed: rapid.Uint64().Draw(t, "run"), Record: true}
	for i := range p.Bids { // the budget also pays for the time until the leader hears of a task's end
		p.Bids[i].Budget += 1e6
	}
	return p
}

const ms = messages.Duration(1e6)

// start is the earliest beginning of a log in these studies.
const start = messages.Time(1_000_000_000_000_000)

func after(seconds messages.Time) messages.Time { return start + seconds*1e6 }

// check checks the invariants that must hold whatever the network does. Other checks are in Run itself: the balance of
// the books, that no hold is left, and the site's receipts.
func check(t *rapid.T, p *core.Problem, o *core.Outcome) {
	used, last := 0.0, p.Work.Jobs[0].Submit
	total := messages.Credits(0)
	for i := range o.Jobs {
		r, j := &o.Jobs[i], &p.Work.Jobs[i]
		done := r.Fate == core.Completed && (r.Start < j.Submit || r.Finish < j.Submit+j.Runtime-1e-6 || math.Abs(r.Used-j.Work()) > 1e-6)
		if done || r.Finish < j.Submit || r.InTime < 0 || r.InTime > 1 || math.Abs(r.Paid.Float()) > p.Bids[i].Budget*float64(len(o.Jobs))+1e-6 {
			t.Fatalf("job %d: %+v of %+v with %+v; done: %v", i, r, j, p.Bids[i], done)
		}
		if r.Fate == core.Refused && (r.Paid != 0 || r.Used != 0 || !math.IsNaN(r.Start)) {
			t.Fatalf("job %d was refused: %+v", i, r)
		}
		if p.Market.Mechanism != rules.BatchQueue && (r.Paid < 0 || r.Paid.Float() > p.Bids[i].Budget+1e-6) {
			t.Fatalf("job %d pays %v of a budget of %v", i, r.Paid, p.Bids[i].Budget)
		}
		used, last, total = used+r.Used, max(last, r.Finish), total+r.Paid
	}
	if room := float64(p.Work.Nodes) * (last - p.Work.Jobs[0].Submit); used > room+1e-6 {
		t.Fatalf("%v slot-seconds were used, there were %v", used, room)
	}
	if p.Market.Mechanism == rules.BatchQueue && total != 0 {
		t.Fatalf("a budget-balanced market is left with %v", total)
	}
	checkChanges(t, p, o)
}

// Only suspended tasks may resume, and every preemption must be recorded.
func checkChanges(t *rapid.T, p *core.Problem, o *core.Outcome) {
	suspended, lost, last := make([]int, len(o.Jobs)), 0, 0.0
	for _, c := range o.Changes {
		if c.At < last || c.Slots < 1 || c.At < p.Work.Jobs[c.Job].Submit {
			t.Fatalf("%+v after %v", c, last)
		}
		last = c.At
		switch c.What {
		case core.Suspended:
			suspended[c.Job] += c.Slots
			lost += c.Slots
		case core.Resumed:
			suspended[c.Job] -= c.Slots
		case core.Requeued:
			if p.Market.Preemption == market.PreemptRequeue {
				lost += c.Slots
			}
		}
		if suspended[c.Job] < 0 {
			t.Fatalf("more tasks of job %d go on than were suspended: %+v", c.Job, o.Changes)
		}
	}
	if lost != o.Preemptions {
		t.Fatalf("%d preemptions, %d are told", o.Preemptions, lost)
	}
}

// A task must run again, but its node does not know this yet. If the task or its job ends before the node hears of it,
// the task must not count as preempted.
func TestRequeuesAreTold(t *testing.T) {
	for _, name := range []string{rules.HighestBid, rules.Deadline} {
		rapid.Check(t, func(t *rapid.T) {
			p := study(t, name)
			p.Market.Preemption = market.PreemptRequeue
			o, _, err := Run(p, Config{Network: network.Config{Delay: ms, Jitter: ms}})
			if err != nil {
				t.Fatal(err)
			}
			check(t, p, o)
		})
	}
}

// All actors together make a simulation slow. So even a short study must report progress after each job.
func TestProgressOfAShortStudy(t *testing.T) {
	for _, name := range rules.Mechanisms() {
		rapid.Check(t, func(t *rapid.T) {
			p := study(t, name)
			told := 0
			p.Progress = func(done, of int) { told = max(told, done+1) }
			if _, _, err := Run(p, Config{Network: network.Config{Delay: ms}}); err != nil || told != len(p.Work.Jobs) {
				t.Fatalf("%s: %d of %d jobs were told, %v", name, told, len(p.Work.Jobs), err)
			}
		})
	}
}

// On networks that lose, repeat and reorder messages, every job must end once and be charged once.
func TestAllGoesWellWhateverTheNetwork(t *testing.T) {
	for _, name := range rules.Mechanisms() {
		for kind, c := range map[string]network.Config{
			"good": {Delay: ms, Jitter: ms},
			"bad":  {Delay: ms, Jitter: 300 * ms, Loss: 0.15, Repeat: 0.15},
			"cut": {Delay: ms, Cuts: []network.Cut{{From: after(20), Until: after(50), Actors: []string{"n0"}},
				{From: after(60), Until: after(75), Actors: []string{bankActor}}}},
			"long cut": {Delay: ms, Cuts: []network.Cut{{From: after(10), Until: after(500), Actors: []string{"n0"}}}},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					p := study(t, name)
					config := Config{Network: c, Lease: messages.Duration(120e9), Slots: rapid.IntRange(1, 2).Draw(t, "slots")}
					o, traffic, err := Run(p, config)
					if err != nil {
						t.Fatal(err)
					}
					check(t, p, o)
					if rapid.IntRange(0, 3).Draw(t, "whether it runs again") > 0 {
						return
					}
					again, other, err := Run(p, config)
					if err != nil || fmt.Sprint(again) != fmt.Sprint(o) || *other != *traffic {
						t.Fatalf("another run has another outcome: %v", err)
					}
				})
			})
		}
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	w := &workload.Workload{Nodes: 2, Parallel: workload.Gang, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{{Number: 1, Runtime: 5, Width: 2}}}
	for _, name := range []string{rules.HighestBid, rules.FIFO, rules.FairShare, rules.Contract, rules.Deadline, rules.Proportional} {
		m := byDefault(name)
		if _, _, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Jobs[0].Width = 1
	m := byDefault(rules.FIFO)
	if _, _, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{Network: network.Config{Loss: 2}}); messages.KindOf(err) != messages.Invalid {
		t.Errorf("loss: %v", err)
	}
	for name, change := range map[string]func(*rules.Market){
		rules.Deadline: func(m *rules.Market) { m.Rule = "paper" }, rules.BatchQueue: func(m *rules.Market) { m.Mode = "full" },
		rules.Reservation: func(m *rules.Market) { m.Pricing = "thesis" },
	} {
		m := byDefault(name)
		change(m)
		if _, _, err := Run(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1)}, Config{}); messages.KindOf(err) != messages.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func byDefault(mechanism string) *rules.Market {
	m, err := rules.Decode("market", []byte("mechanism: "+mechanism))
	if err != nil {
		panic(err)
	}
	m.Bids = bids.Default()
	return m
}

// TestWideTasksTakeSlotsOfOneNode runs jobs of one task on two nodes of 8 slots. Six slots of each node are in use, so
// a task of 4 slots must wait. The slot time of such a task is the time of all its slots.
func TestWideTasksTakeSlotsOfOneNode(t *testing.T) {
	for _, mechanism := range []string{rules.FIFO, rules.FairShare, rules.Backfill, rules.Karma, rules.Proportional, rules.HighestBid, rules.BatchQueue} {
		w := &workload.Workload{Nodes: 16, Parallel: workload.Wide, Users: []int64{1}, Groups: []int64{1}}
		for i, width := range []int{6, 6, 4} {
			w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(10 * i), Runtime: 100, Width: width})
		}
		m := byDefault(mechanism)
		p := &core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, 1), Seed: 1}
		for i := range p.Bids {
			p.Bids[i].Budget, p.Bids[i].Rate, p.Bids[i].Length = 1e6, 10, 110
		}
		o, _, err := Run(p, Config{})
		if err != nil {
			t.Fatal(mechanism, err)
		}
		for i := range o.Jobs {
			r, start := &o.Jobs[i], []float64{0, 10, 100}[i]
			if r.Fate != core.Completed || math.Abs(r.Start-start) > 2 || math.Abs(r.Used-w.Jobs[i].Work()) > 1 || math.Abs(r.InTime-1) > 1e-9 {
				t.Errorf("%s: job %d: %+v; want a start at %v, and %v slot-seconds", mechanism, i+1, r, start, w.Jobs[i].Work())
			}
		}
	}
}
