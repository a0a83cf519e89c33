package market

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// Random bids come and random tasks end. No node may have more suspended tasks than its limit allows. If a node would
// have more, the suspended tasks that have run least must be ended. The slots must still go to the best bids.
func TestNodesKeepNoMoreThanTheirBound(t *testing.T) {
	requeued := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}
		nodes, slots := rapid.IntRange(1, 3).Draw(rt, "nodes"), rapid.IntRange(1, 2).Draw(rt, "slots")
		f := newFloor(rt, m, nodes, slots)
		for _, n := range f.book.Nodes() {
			n.MostSuspended = rapid.IntRange(1, 3).Draw(rt, "most")
		}
		for range rapid.IntRange(1, 25).Draw(rt, "events") {
			f.now = f.now.Add(messages.Duration(1e9))
			running := f.claims(book.Goes)
			if len(running) > 0 && rapid.IntRange(0, 3).Draw(rt, "end") == 0 {
				f.finish(running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")])
			} else {
				f.submit(messages.Credits(rapid.IntRange(1, 9).Draw(rt, "rate")), rapid.IntRange(1, 3).Draw(rt, "tasks"))
			}
			f.settle()
			f.checkSuspended(rt)
		}
		for j := range f.book.Jobs {
			for i := range j.Stages {
				requeued += j.Stages[i].Retried
			}
		}
	})
	if requeued == 0 {
		t.Error("no task was ever too many: this shows nothing")
	}
}

func (f *floor) checkSuspended(rt *rapid.T) {
	for _, n := range f.book.Nodes() {
		if n.Suspended() > n.SuspendedLimit() {
			rt.Fatalf("node %s keeps %d suspended tasks, of at most %d", n.Name, n.Suspended(), n.SuspendedLimit())
		}
	}
	for _, c := range f.claims(book.Goes) {
		worst := f.book.Job(c.Task.Job).Spec.Rate
		for j := range f.book.Jobs {
			if j.Active() && f.t.Pending(j.ID, 0) > 0 && j.Spec.Rate > worst {
				rt.Fatalf("job %d runs for %v, and job %d waits that bids %v", c.Task.Job, worst, j.ID, j.Spec.Rate)
			}
		}
	}
}

// Bids come and tasks end at random. The market decides again and again, until a decision changes nothing more. Then no
// slot may be free that a waiting task could use. A node with a suspended task may not run a task with a lower bid. An
// earlier version stopped a decision after four rounds, and left slots idle.
func TestNoSlotIsIdleForSuspendedTasks(t *testing.T) {
	full := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}
		f := newFloor(rt, m, rapid.IntRange(2, 4).Draw(rt, "nodes"), rapid.IntRange(1, 3).Draw(rt, "slots"))
		for range rapid.IntRange(5, 60).Draw(rt, "events") {
			f.now = f.now.Add(messages.Duration(1e9))
			running := f.claims(book.Goes)
			if len(running) > 0 && rapid.Bool().Draw(rt, "end") {
				f.finish(running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")])
			} else {
				f.submit(messages.Credits(rapid.IntRange(1, 30).Draw(rt, "rate")), rapid.IntRange(1, 4).Draw(rt, "tasks"))
			}
			f.settle()
			full += f.checkIdle(rt)
		}
	})
	if full == 0 {
		t.Error("no task ever waited for a slot of its node while another had one free: this shows nothing")
	}
}

// checkIdle returns how many suspended tasks wait while a slot on another node is free.
func (f *floor) checkIdle(rt *rapid.T) (wait int) {
	rate := func(c claim) messages.Credits { return f.book.Job(c.Task.Job).Spec.Rate }
	for _, n := range f.book.Nodes() {
		idle := n.Idle("cpu")
		for j := range f.book.Jobs {
			if idle > 0 && j.Active() && j.Claimable(0) > 0 {
				rt.Fatalf("node %s has %d slots free, and a task of job %d is pending", n.Name, idle, j.ID)
			}
		}
		for _, s := range f.claims(book.Suspended) {
			if f.book.Nodes()[s.node] != n {
				wait += min(idle, 1)
				continue
			}
			if idle > 0 {
				rt.Fatalf("node %s has %d slots free, and a task of job %d is suspended there", n.Name, idle, s.Task.Job)
			}
			for _, g := range f.claims(book.Goes) {
				if f.book.Nodes()[g.node] == n && rate(g) < rate(s) {
					rt.Fatalf("on node %s job %d runs for %v, and job %d is suspended that bids %v", n.Name, g.Task.Job, rate(g), s.Task.Job, rate(s))
				}
			}
		}
	}
	return wait
}

// A decision may suspend more tasks than a node can keep suspended. Then some suspended tasks lose their work and must
// begin again. These must be the tasks that have run for the shortest time, whether they were suspended before or in
// this decision.
func TestWhatRanLeastBeginsAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFloor(rt, market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}, 1, 1)
		f.book.Nodes()[0].MostSuspended = 1
		times := [2]int{}
		for i := range times {
			f.submit(messages.Credits(2+i), 1)
			f.settle()
			times[i] = rapid.IntRange(1, 9).Draw(rt, "seconds")
			f.now = f.now.Add(messages.Duration(times[i]) * 1e9)
		}
		f.submit(5, 1)
		f.settle()
		for i, seconds := range times {
			if again := f.book.Job(messages.JobID(i + 1)).Stages[0].Retried > 0; seconds != times[1-i] && again != (seconds < times[1-i]) {
				rt.Fatalf("tasks have run for %v s, and the first begins again: %v", times, again == (i == 0))
			}
		}
	})
}

// The bid of a job changes while its tasks are suspended. The market then enters the job again. The mechanism must see
// the job only once, with its new bid.
func TestAJobTakenInAnewIsSeenAsItIs(t *testing.T) {
	m, err := Open(market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}})
	if err != nil {
		t.Fatal(err)
	}
	now := messages.Time(1_700_000_000_000_000)
	put := func(changes int, rate messages.Credits) {
		m.Put(now, func() *mechanism.Bid {
			return &mechanism.Bid{Job: 1, Rate: rate, Budget: 9 * messages.Credit, Width: 1}
		}, 1, Progress{Pending: []int{0}, Running: []int{0}, Suspended: []int{2}, Changes: changes})
	}
	m.SetSlots(now, []int{2}, []int{2})
	put(0, 1)
	m.Allocate(now)
	put(1, 2)
	if len(m.changed) != 1 || m.changed[0] != m.Job(1) || m.changed[0].Rate != 2 {
		t.Errorf("the mechanism is told of %d jobs", len(m.changed))
	}
}

// A task ends and frees a slot of its class. A suspended task of another class on the same node must not resume on this
// slot.
func TestASlotThatIsFreedIsOfItsClass(t *testing.T) {
	m, err := Open(market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu", "gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	b, now := book.New(), messages.Time(1_700_000_000_000_000)
	apply := func(c book.Command) any {
		c.At = now
		result := b.Apply(&c)
		if err, refused := result.(error); refused {
			t.Fatal(err)
		}
		return result
	}
	apply(book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}, {Class: "gpu", Slots: 1}}}})
	start := func(seq uint64, class messages.Name) messages.Attempt {
		spec := job.JobSpec{Market: "spot", Rate: messages.Credit, Budget: messages.Credit,
			Stages: []job.Stage{{Name: "main", Class: class, Tasks: 1, Command: []string{"true"}}}}
		id := apply(book.Command{Submit: &book.Submit{Account: "alice", Key: class + messages.JobID(seq).String(), Spec: &spec, Hold: "h", Held: spec.Budget}}).(book.Receipt).Job
		return apply(book.Command{Exchange: &book.Exchange{Node: "n1", Session: 1, Seq: seq,
			Claims: []book.Claim{{Class: class, Slots: 1, Jobs: []messages.JobID{id}}}}}).([]agentmsg.Grant)[0].Attempt
	}
	onCPU, waits := start(1, "cpu"), start(2, "gpu")
	apply(book.Command{Decide: &book.Decide{Market: "spot", Suspend: []messages.Attempt{waits}}})
	onGPU := start(3, "gpu")
	for j := range b.Jobs {
		m.Put(now, func() *mechanism.Bid { return m.BidOf(j) }, j.ID, m.ProgressOf(b, j, 1))
	}
	for _, c := range []struct {
		loses   messages.Attempt
		class   int
		resumes int
	}{{onCPU, 0, 0}, {onGPU, 1, 1}} {
		m.orders.Directives = []mechanism.Directive{{Job: c.loses.Task.Job, Action: mechanism.Suspend, Slots: 1, Class: c.class},
			{Job: waits.Task.Job, Action: mechanism.Resume, Slots: 1, Class: 1}}
		m.permit(now, 0, nil)
		p := &m.plan
		p.begin(m, b, now)
		m.Visit(b, 0)
		p.draw()
		if len(p.suspend) != 1 || len(p.resume) != c.resumes || p.again != (c.resumes == 0) {
			t.Errorf("a slot of class %d is freed: %d tasks suspended, %d resumed, to be decided again: %v", c.class, len(p.suspend), len(p.resume), p.again)
		}
		p.end()
	}
}
