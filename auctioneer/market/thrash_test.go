package market

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// floor is a simulated site: a book, a market, and nodes that claim as many tasks as they may.
type floor struct {
	*rapid.T
	book  *book.Book
	t     *Market
	nodes []messages.Name
	seq   map[messages.Name]uint64
	now   messages.Time
	keys  int
	width int        // width of the tasks of the next jobs; 0 means 1
	gang  bool       // the next jobs are allocations: each task is on a different node
	rng   *rand.Rand // random numbers to resolve claims as a leader does; if it is nil, each node claims all that it may

	asked       int // number of slots that jobs have asked for
	suspensions int
	suspended   map[messages.JobID]int
}

func newFloor(t *rapid.T, m market.Market, nodes, slots int) *floor {
	live, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	f := &floor{T: t, book: book.New(), seq: map[messages.Name]uint64{}, suspended: map[messages.JobID]int{}, t: live, now: 1_700_000_000_000_000}
	for i := range nodes {
		name := "n" + messages.JobID(i+1).String()
		f.register(name, slots)
	}
	f.t.SetSlots(f.now, []int{nodes * slots}, []int{nodes * slots})
	return f
}

func (f *floor) apply(c book.Command) any {
	c.At = f.now
	result := f.book.Apply(&c)
	if err, refused := result.(error); refused {
		f.Fatal(err)
	}
	return result
}

func (f *floor) submit(rate messages.Credits, tasks int) {
	f.keys++
	f.asked += tasks
	spec := job.JobSpec{Market: "spot", Rate: rate * messages.Credit, Budget: messages.MaxCredits,
		Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: tasks, Width: f.width, Gang: f.gang, Allocation: f.gang, Command: []string{"true"}}}}
	f.apply(book.Command{Submit: &book.Submit{Account: "alice", Key: messages.JobID(f.keys).String(), Payer: "alice", Spec: &spec, Hold: "h", Held: spec.Budget}})
}

func (f *floor) look() {
	idle := 0
	for i, n := range f.book.Nodes() {
		idle += n.Idle("cpu")
		f.t.Visit(f.book, uint32(i))
	}
	slots := 0
	for _, n := range f.book.Nodes() {
		if n.Up {
			slots += n.Slots[0].Slots
		}
	}
	f.t.SetSlots(f.now, []int{slots}, []int{idle})
	for j := range f.book.Jobs {
		if !j.Active() {
			f.t.Remove(f.now, j.ID)
			continue
		}
		f.t.Put(f.now, func() *mechanism.Bid { return f.t.BidOf(j) }, j.ID, f.t.ProgressOf(f.book, j, f.now))
	}
	f.read()
}

// settle lets the market decide and the nodes claim until nothing changes.
func (f *floor) settle() {
	for round := 0; ; round++ {
		f.look()
		d := f.t.Decide(f.now, func(read func(*book.Book)) { read(f.book) })
		if d != nil {
			lost := f.losing(d)
			f.suspensions += len(lost)
			for _, a := range lost {
				f.suspended[a.Task.Job]++
			}
			f.apply(book.Command{Decide: d})
			f.check(lost)
			f.look() // plans must be right also while claims are about to end
		}
		obeyed := f.obey()
		f.look()
		if !f.claim() && !obeyed && d == nil {
			return
		}
		if round > 20 {
			f.Fatalf("the market does not come to rest: %+v", d)
		}
	}
}

func (f *floor) losing(d *book.Decide) []messages.Attempt {
	lost := slices.Clone(d.Suspend)
	for _, c := range f.claims(book.Goes) {
		if slices.Contains(d.Requeue, c.Attempt) {
			lost = append(lost, c.Attempt)
		}
	}
	return lost
}

// obey lets every node end the tasks that it must end, and reports whether there were any.
func (f *floor) obey() (any bool) {
	for _, name := range f.nodes {
		var ended []agentmsg.Finished
		for _, a := range f.book.Node(name).Stop {
			ended = append(ended, agentmsg.Finished{Attempt: a, Outcome: agentmsg.Stopped})
		}
		if len(ended) > 0 {
			f.seq[name]++
			f.apply(book.Command{Exchange: &book.Exchange{Node: name, Session: f.book.Node(name).Session, Seq: f.seq[name], Finished: ended}})
			any = true
		}
	}
	return any
}

// claim makes every node with free slots claim as much as it may. It reports whether any node got a task.
func (f *floor) claim() (any bool) {
	for _, name := range f.nodes {
		free := f.book.Node(name).Idle("cpu")
		if free == 0 {
			continue
		}
		var jobs []messages.JobID
		for j := range f.book.Jobs {
			if j.Active() && f.t.Pending(j.ID, 0) > 0 {
				jobs = append(jobs, j.ID)
			}
		}
		if len(jobs) == 0 {
			return any
		}
		slices.Sort(jobs)
		var most []int
		if f.t.manner.Directs {
			for _, id := range jobs {
				most = append(most, f.t.most(id, 0))
			}
		}
		claim := book.Claim{Class: "cpu", Slots: free, Jobs: jobs, Most: most}
		if f.rng != nil {
			claim = f.t.ReserveClaim(f.book, name, &agentmsg.Claim{Class: "cpu", Job: jobs[f.rng.IntN(len(jobs))], Slots: free}, 0, f.rng)
		}
		f.seq[name]++
		grants := f.apply(book.Command{Exchange: &book.Exchange{Node: name, Session: f.book.Node(name).Session, Seq: f.seq[name], Claims: []book.Claim{claim}}}).([]agentmsg.Grant)
		for _, id := range jobs {
			f.t.Unreserve(id)
		}
		any = any || len(grants) > 0
		f.look()
	}
	return any
}

// claims returns the claims of a job whose Halt equals `halt` and that are not about to end, ordered by stage and
// index. A plan for the job must find the same claims.
func claims(b *book.Book, j *book.Job, halt book.Halt) (out []claim) {
	for i := range j.Stages {
		for k := 0; k < len(j.Stages[i].Tasks) && !j.Finishing(i); k++ {
			t, r := &j.Stages[i].Tasks[k], messages.TaskRef{Job: j.ID, Stage: uint32(i), Index: uint32(k)}
			if h := b.Nodes()[t.Node].Claims[r]; t.Phase == book.Claimed && h.Attempt == t.Attempt && h.Halt == halt && !h.Leaving {
				out = append(out, claim{Attempt: messages.Attempt{Task: r, Number: t.Attempt}, node: t.Node, since: h.Since, claimed: t.Claimed})
			}
		}
	}
	return out
}

// read compares two lists of claims for each job: the claims that the market's plan finds, and the running claims in
// the book. They must be equal.
func (f *floor) read() {
	p := &f.t.plan
	p.begin(f.t, f.book, f.now)
	defer p.end()
	for _, e := range f.t.members() {
		got, want := p.claimed(e, 0), claims(f.book, f.book.Job(e.job.Job), book.Goes)
		slices.SortFunc(want, latest)
		if !slices.EqualFunc(got, want, func(x, y claim) bool { return x.Attempt == y.Attempt && x.node == y.node }) {
			f.Fatalf("job %d: reads %v as the claims that run, not %v", e.job.Job, got, want)
		}
	}
}

func (f *floor) claims(halt book.Halt) (out []claim) {
	for j := range f.book.Jobs {
		if j.Active() {
			out = append(out, claims(f.book, j, halt)...)
		}
	}
	slices.SortFunc(out, func(a, b claim) int { return int(a.Task.Job) - int(b.Task.Job) })
	return out
}

// check is called after a job took slots from other jobs. It checks that the price of a slot is at least the bid of
// each job that lost a slot.
func (f *floor) check(lost []messages.Attempt) {
	if len(lost) == 0 || f.width > 0 { // a job of several slots may take slots of better tasks than necessary, because it needs them together
		return
	}
	price := f.book.Tariffs("spot")[0].Price
	for _, a := range lost {
		if bid := f.book.Job(a.Task.Job).Spec.Rate; price < bid {
			f.Fatalf("a slot-second costs %v, and task %v lost its slot that bids %v", price, a, bid)
		}
	}
}

func (f *floor) finish(c claim) {
	name := f.book.Nodes()[c.node].Name
	f.seq[name]++
	f.apply(book.Command{Exchange: &book.Exchange{Node: name, Session: f.book.Node(name).Session, Seq: f.seq[name], Finished: []agentmsg.Finished{{Attempt: c.Attempt}}}})
}

// Random bids come and random tasks end. After each event, the market must stop changing. All suspensions together must
// be at most as many as the slots that jobs asked for. For one job, the suspensions must be at most as many as the
// slots that better bids asked for. A job that takes a slot must pay at least the bid of the job that loses it.
func TestNoThrash(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}
		f := newFloor(rt, m, rapid.IntRange(1, 3).Draw(rt, "nodes"), rapid.IntRange(1, 2).Draw(rt, "slots"))
		better := map[messages.JobID]int{} // by job: number of slots that better bids asked for while the job was in the market
		for range rapid.IntRange(1, 25).Draw(rt, "events") {
			f.now = f.now.Add(messages.Duration(1e9))
			running := f.claims(book.Goes)
			if len(running) > 0 && rapid.Bool().Draw(rt, "end") {
				f.finish(running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")])
			} else {
				rate, tasks := messages.Credits(rapid.IntRange(1, 6).Draw(rt, "rate")), rapid.IntRange(1, 4).Draw(rt, "tasks")
				for j := range f.book.Jobs {
					if j.Active() && j.Spec.Rate < rate*messages.Credit {
						better[j.ID] += tasks
					}
				}
				f.submit(rate, tasks)
			}
			f.settle()
		}
		if f.suspensions > f.asked {
			rt.Fatalf("%d suspensions for %d slots asked for", f.suspensions, f.asked)
		}
		for id, n := range f.suspended {
			if n > better[id] {
				rt.Fatalf("job %d was suspended %d times, and better bids asked for %d slots", id, n, better[id])
			}
		}
	})
}
