package auctioneer

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/mailbox"
)

const (
	second = messages.Duration(time.Second)
	minute = 60 * second
)

// grid is an auctioneer with markets, a clock that the test moves, a bank that
// keeps balances, and one node.
type grid struct {
	*fixture
	now   atomic.Int64
	books *books
	node  *node
	slots int
}

// node is an agent that does as it is told, when it is told to look.
type node struct {
	name    messages.Name
	slots   int
	seq     uint64
	running []messages.Attempt // in hand, in the order of their grants
	held    []messages.Attempt
	version uint64
}

const epoch = messages.Time(1_700_000_000_000_000 - 1_700_000_000_000_000%3_600_000_000)

func newGrid(t *testing.T, slots int, markets ...messages.Market) *grid {
	t.Helper()
	g := &grid{books: newBooks(), node: &node{name: "n1", slots: slots}}
	g.now.Store(int64(epoch))
	f := &fixture{t: t, net: bus.NewMemory()}
	g.fixture = f
	sub, err := f.net.Connect("$bank").Serve(bus.Service{Name: "bank", Version: "1.0.0", Endpoints: []bus.Endpoint{
		{Name: "transfer", Subject: messages.Subject("west", messages.Bank, messages.VerbTransfer, "*"), Handle: bus.Handle("transfer", g.books.transfer)}}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Start(t.Context(), Config{
		Site: "west", Replica: "a1", Bus: f.net.Connect("$auctioneer"), Operators: []messages.Name{"operator"}, Markets: markets,
		HoldFor: messages.Duration(1000 * time.Hour), Lease: messages.Duration(time.Hour),
		Clock: func() messages.Time { return messages.Time(g.now.Load()) },
		Open: func(m mailbox.Machine) (mailbox.Mailbox, error) {
			f.log = mailbox.NewMemory(m)
			return f.log, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Auctioneer = a
	t.Cleanup(func() { _ = a.Close(); _ = sub.Stop() })
	g.enroll(g.node)
	return g
}

func (g *grid) enroll(n *node) {
	must[messages.RegisterReply](g.fixture, n.name, messages.VerbRegister,
		messages.RegisterRequest{Session: 7, Slots: []messages.ClassSlots{{Class: "cpu", Slots: n.slots}}})
	g.slots += n.slots
	eventually(g.t, "the markets know the node", func() bool {
		m := must[messages.MarketsReply](g.fixture, n.name, messages.VerbMarkets, messages.Empty{}).Markets[0]
		return m.Prices[0].Slots == g.slots
	})
}

// pass lets time pass and the leader notice.
func (g *grid) pass(d messages.Duration) {
	g.now.Add(int64(d / 1000))
	g.replica.wake()
}

// look has a node claim what it can, and obey.
func (g *grid) look(n *node) {
	g.t.Helper()
	free := n.slots - (len(n.running) - len(n.held))
	x := messages.Exchange{Session: 7, Seq: n.seq + 1}
	if free > 0 { // the leader knows better than a vector which job is to have the slots
		for _, m := range g.Markets {
			x.Claims = append(x.Claims, messages.Claim{Market: m.Name, Class: "cpu", Slots: free})
		}
	}
	g.exchange(n, x)
}

func (g *grid) exchange(n *node, x messages.Exchange) {
	g.t.Helper()
	n.seq = x.Seq
	r := must[messages.ExchangeReply](g.fixture, n.name, messages.VerbExchange, x)
	for _, grant := range r.Grants {
		n.running = append(n.running, grant.Attempt)
	}
	var stopped []messages.Finished
	for _, a := range r.Stop {
		if slices.Contains(n.running, a) {
			stopped = append(stopped, messages.Finished{Attempt: a, Outcome: messages.Stopped, ExitCode: 143})
		}
	}
	if r.Version >= n.version {
		n.held, n.version = r.Held, r.Version
	}
	if len(stopped) > 0 {
		g.report(n, stopped...)
	}
}

// report tells the leader of attempts that ended.
func (g *grid) report(n *node, finished ...messages.Finished) {
	g.t.Helper()
	for _, f := range finished {
		n.running = slices.DeleteFunc(n.running, func(a messages.Attempt) bool { return a == f.Attempt })
	}
	g.exchange(n, messages.Exchange{Session: 7, Seq: n.seq + 1, Finished: finished})
}

// going lists the jobs whose tasks run on a node.
func (n *node) going() (out []messages.JobID) {
	for _, a := range n.running {
		if !slices.Contains(n.held, a) {
			out = append(out, a.Task.Job)
		}
	}
	return out
}

// until has the node look until exactly these jobs run on it.
func (g *grid) until(jobs ...messages.JobID) {
	g.t.Helper()
	slices.Sort(jobs)
	eventually(g.t, "the right jobs run", func() bool {
		g.look(g.node)
		going := g.node.going()
		slices.Sort(going)
		return slices.Equal(going, jobs)
	})
}

// complete ends a job's tasks well.
func (g *grid) complete(id messages.JobID) {
	g.t.Helper()
	var done []messages.Finished
	for _, a := range g.node.running {
		if a.Task.Job == id {
			done = append(done, messages.Finished{Attempt: a})
		}
	}
	g.report(g.node, done...)
}

func (g *grid) job(id messages.JobID) messages.JobDetail {
	g.t.Helper()
	return must[messages.JobDetail](g.fixture, "operator", messages.VerbJob, messages.JobRequest{Job: id})
}

// final waits for a job to be settled.
func (g *grid) final(id messages.JobID) (j messages.JobDetail) {
	g.t.Helper()
	eventually(g.t, "the job is settled", func() bool { j = g.job(id); return j.State.Final() })
	return j
}

func (g *grid) why(id messages.JobID) messages.WhyReply {
	g.t.Helper()
	return must[messages.WhyReply](g.fixture, "operator", messages.VerbWhy, messages.JobRequest{Job: id})
}

// reason waits until a job has been explained so.
func (g *grid) reason(id messages.JobID, want string) (w messages.WhyReply) {
	g.t.Helper()
	eventually(g.t, "the reason is "+want, func() bool { w = g.why(id); return w.Reason == want })
	if w.Message == "" {
		g.t.Errorf("no message: %+v", w)
	}
	return w
}

// bids is a job of one stage of tasks.
func bids(tasks int, change func(*messages.JobSpec)) messages.JobSpec {
	spec := messages.JobSpec{Name: "job", Budget: 100 * messages.Credit,
		Stages: []messages.Stage{{Name: "main", Class: "cpu", Tasks: tasks, Command: []string{"true"}}}}
	change(&spec)
	return spec
}

func (g *grid) enter(who messages.Name, key string, tasks int, change func(*messages.JobSpec)) messages.JobID {
	g.t.Helper()
	return g.submit(who, key, bids(tasks, change)).Job
}

// books is a bank of accounts with 1,000 credits each.
type books struct {
	fakeBank
	balances map[messages.Name]messages.Credits
	held     map[string]messages.Transfer
	done     map[string]messages.TransferResult
}

func newBooks() *books {
	return &books{balances: map[messages.Name]messages.Credits{messages.SiteAccount: 0}, held: map[string]messages.Transfer{}, done: map[string]messages.TransferResult{}}
}

func (b *books) transfer(_ context.Context, _ messages.Name, r messages.TransferRequest) (reply messages.TransferReply, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range r.Transfers {
		result, known := b.done[t.ID]
		if !known {
			result = b.do(&t)
			b.done[t.ID] = result
		}
		reply.Results = append(reply.Results, result)
	}
	return reply, nil
}

func (b *books) do(t *messages.Transfer) (r messages.TransferResult) {
	r.Amount = t.Amount
	switch t.Kind {
	case messages.Hold:
		b.open(t.Debit)
		b.held[t.ID] = *t
	case messages.Post, messages.Void:
		h, ok := b.held[t.Pending]
		if !ok || t.Amount > h.Amount {
			return messages.TransferResult{Error: messages.Errorf(messages.NotFound, "no hold %q of %v", t.Pending, t.Amount)}
		}
		delete(b.held, t.Pending)
		if t.Kind == messages.Post {
			b.balances[h.Debit] -= t.Amount
			b.balances[t.Credit] += t.Amount
		}
	case messages.Posted:
		b.open(t.Credit)
		b.balances[t.Debit] -= t.Amount
		b.balances[t.Credit] += t.Amount
	}
	return r
}

func (b *books) open(name messages.Name) {
	if _, known := b.balances[name]; !known {
		b.balances[name] = 1000 * messages.Credit
	}
}

func (b *books) balance(name messages.Name) messages.Credits {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open(name)
	return b.balances[name]
}

func (b *books) holds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.held)
}

func spot(change func(*messages.Market)) messages.Market {
	m := messages.Market{Name: "spot", Mechanism: messages.HighestBid, Classes: []messages.Name{"cpu"}}
	change(&m)
	return m
}

func rate(c messages.Credits) func(*messages.JobSpec) {
	return func(s *messages.JobSpec) { s.Rate = c * messages.Credit }
}

// TestSpotSuspendsResumesAndChargesTheIntegral: one slot, the k-th price, a
// reserve of 1. Alice runs alone for 10 s at 1; Bob's bid takes her slot for
// 5 s at her bid of 2; she goes on where she was for 3 s at 1.
func TestSpotSuspendsResumesAndChargesTheIntegral(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	alice := g.enter("alice", "a", 1, rate(2))
	g.until(alice)
	g.pass(10 * second)
	bob := g.enter("bob", "b", 1, rate(5))
	g.until(bob)
	first := g.node.running[0]
	if w := g.reason(alice, "Outbid"); len(w.Change) == 0 {
		t.Errorf("why Alice waits: %+v", w)
	}
	g.pass(5 * second)
	g.complete(bob)
	g.until(alice)
	if g.node.running[0] != first {
		t.Errorf("Alice's task was run anew: %v, then %v", first, g.node.running[0])
	}
	g.pass(3 * second)
	g.complete(alice)
	if a, b := g.final(alice), g.final(bob); a.Charged != 13*messages.Credit || b.Charged != 10*messages.Credit {
		t.Errorf("charged %v and %v, want 13 and 10", a.Charged, b.Charged)
	}
}

// TestSpotRequeues: the same with tasks that are run again.
func TestSpotRequeues(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *messages.Market) { m.Preemption = messages.PreemptRequeue }))
	alice := g.enter("alice", "a", 1, rate(2))
	g.until(alice)
	first := g.node.running[0]
	bob := g.enter("bob", "b", 1, rate(5))
	g.until(bob)
	g.complete(bob)
	g.until(alice)
	if again := g.node.running[0]; again.Task != first.Task || again.Number != first.Number+1 {
		t.Errorf("attempt %v, then %v", first, again)
	}
	g.complete(alice)
	if a := g.final(alice); a.State != messages.Completed {
		t.Errorf("%+v", a.JobSummary)
	}
}

// TestSpotCancels: what loses its slot is ended, and says why.
func TestSpotCancels(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *messages.Market) { m.Preemption, m.Price = messages.PreemptCancel, "first" }))
	alice := g.enter("alice", "a", 1, rate(2))
	g.until(alice)
	g.pass(4 * second)
	bob := g.enter("bob", "b", 1, rate(5))
	g.until(bob)
	if a := g.final(alice); a.State != messages.Discarded || a.Reason != "Preempted" {
		t.Errorf("%+v", a.JobSummary)
	}
}

// TestSpotEndsWhoHasSpentTheBudget: at 1 a second, a budget of 5 is gone after 5 s.
func TestSpotEndsWhoHasSpentTheBudget(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	alice := g.enter("alice", "a", 1, func(s *messages.JobSpec) { s.Rate, s.Budget = 2*messages.Credit, 5*messages.Credit })
	g.until(alice)
	g.pass(6 * second)
	if a := g.final(alice); a.State != messages.Discarded || a.Reason != "BudgetSpent" || a.Charged != 5*messages.Credit {
		t.Errorf("%+v", a.JobSummary)
	}
}

// TestPostedPrices: the slot-seconds at the posted price, in each of the three.
func TestPostedPrices(t *testing.T) {
	half := messages.Credit / 2
	for _, mechanism := range []string{messages.FIFO, messages.FairShare, messages.Backfill} {
		t.Run(mechanism, func(t *testing.T) {
			g := newGrid(t, 2, messages.Market{Name: "main", Mechanism: mechanism, Classes: []messages.Name{"cpu"}, Reserve: &half})
			first := g.enter("alice", "a", 2, func(s *messages.JobSpec) { s.Length = 10 * second })
			g.until(first, first)
			second1 := g.enter("bob", "b", 1, func(s *messages.JobSpec) { s.Length = 10 * second })
			g.pass(10 * second)
			g.complete(first)
			g.until(second1)
			g.pass(4 * second)
			g.complete(second1)
			if a, b := g.final(first), g.final(second1); a.Charged != 10*messages.Credit || b.Charged != 2*messages.Credit {
				t.Errorf("charged %v and %v, want 10 and 2", a.Charged, b.Charged)
			}
		})
	}
}

func deadlines(change func(*messages.Market)) messages.Market {
	m := messages.Market{Name: "due", Mechanism: messages.DeadlineBid, Classes: []messages.Name{"cpu"}, Slot: 10 * second}
	change(&m)
	return m
}

// due is a job of so many slots' length, due so many after the first.
func due(value messages.Credits, slots, within int) func(*messages.JobSpec) {
	return func(s *messages.JobSpec) {
		s.Value, s.Length, s.Deadline = value*messages.Credit, messages.Duration(slots)*10*second, epoch.Add(messages.Duration(within+1)*10*second)
	}
}

// TestDeadlineChargesTheCriticalValue: one slot and two jobs of two units, due
// within three: the better one runs and pays, at its deadline, what the other
// bid; the other learns that it cannot make it as soon as that is so.
func TestDeadlineChargesTheCriticalValue(t *testing.T) {
	g := newGrid(t, 1, deadlines(func(*messages.Market) {}))
	better, worse := g.enter("alice", "a", 1, due(20, 2, 3)), g.enter("bob", "b", 1, due(12, 2, 3))
	g.pass(10 * second)
	g.until(better)
	g.reason(worse, "Outranked")
	g.pass(20 * second)
	g.complete(better)
	if b := g.final(worse); b.State != messages.Discarded || b.Reason != "CannotMakeDeadline" || b.Charged != 0 {
		t.Errorf("%+v", b.JobSummary)
	}
	if a := g.job(better); a.State != messages.Settling {
		t.Errorf("settled before its price is known: %+v", a.JobSummary)
	}
	g.pass(10 * second)
	if a := g.final(better); a.Charged != 12*messages.Credit {
		t.Errorf("charged %v, want 12", a.Charged)
	}
}

func TestDeadlineThatHasPassedIsRefused(t *testing.T) {
	g := newGrid(t, 1, deadlines(func(*messages.Market) {}))
	for within, kind := range map[int]messages.Kind{-5: messages.Expired, 0: messages.Expired} {
		_, err := call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "k", Spec: bids(1, due(20, 2, within))})
		wantKind(t, err, kind)
	}
	if n := g.books.holds(); n != 0 {
		t.Errorf("%d holds were made", n)
	}
}

func queued(change func(*messages.Market)) messages.Market {
	m := messages.Market{Name: "batch", Mechanism: messages.BatchQueue, Classes: []messages.Name{"cpu"}, GangTimeout: 10 * second}
	change(&m)
	return m
}

// ganged is a gang that is worth so much, and loses delay for a second of waiting.
func ganged(value, delay messages.Credits, length messages.Duration) func(*messages.JobSpec) {
	return func(s *messages.JobSpec) {
		s.Value, s.Delay, s.Length, s.Stages[0].Gang = value*messages.Credit, delay*messages.Credit/100, length, true
	}
}

// TestBatchQueueRunsOrDiscards: a gang of two runs on two nodes at once; the
// front job that is worth less than the delay it causes is discarded; and the
// payments of each decision sum to zero.
func TestBatchQueueRunsOrDiscards(t *testing.T) {
	g := newGrid(t, 1, queued(func(*messages.Market) {}))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	first := g.enter("alice", "a", 2, ganged(50, 10, 100*second))
	eventually(t, "the gang runs", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 1 && len(other.going()) == 1
	})
	poor := g.enter("bob", "b", 2, ganged(1, 10, 100*second))
	rich := g.enter("carol", "c", 2, ganged(80, 50, 100*second))
	g.reason(poor, "WaitingForSlots")
	g.pass(50 * second)
	a := other.running[0]
	g.report(other, messages.Finished{Attempt: a})
	g.complete(first)
	if p := g.final(poor); p.State != messages.Discarded || p.Reason != "Discarded" || g.why(poor).Change == nil {
		t.Errorf("%+v", p.JobSummary)
	}
	eventually(t, "the last gang runs", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 1 && len(other.going()) == 1
	})
	g.report(other, messages.Finished{Attempt: other.running[0]})
	g.complete(rich)
	g.final(rich)
	g.final(first)
	eventually(t, "every hold is resolved", func() bool { return g.books.holds() == 0 })
	sum := g.books.balance("alice") + g.books.balance("bob") + g.books.balance("carol")
	if sum != 3000*messages.Credit || g.books.balance(messages.SiteAccount) != 0 {
		t.Errorf("balances sum to %v, the site has %v", sum, g.books.balance(messages.SiteAccount))
	}
	if p, r := g.job(poor), g.job(rich); p.Charged == 0 || p.Charged != -r.Charged {
		t.Errorf("the one paid %v, the other %v", p.Charged, r.Charged)
	}
}

// TestGangsStartTogetherOrNotAtAll: with one node where two are needed, the task
// that was claimed waits; it is given back when that takes too long; and once
// there is another node, both start.
func TestGangsStartTogetherOrNotAtAll(t *testing.T) {
	g := newGrid(t, 2, queued(func(*messages.Market) {}))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	id := g.enter("alice", "a", 3, ganged(50, 0, 100*second))
	eventually(t, "two tasks gather", func() bool { g.look(g.node); return len(g.node.held) == 2 })
	if going := g.node.going(); len(going) != 0 {
		t.Fatalf("%v run before their gang is complete", going)
	}
	g.pass(11 * second)
	eventually(t, "they are given back", func() bool {
		g.exchange(g.node, messages.Exchange{Session: 7, Seq: g.node.seq + 1})
		return len(g.node.running) == 0
	})
	eventually(t, "all start", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 2 && len(other.going()) == 1
	})
	if j := g.job(id); j.Stages[0].Retried < 2 {
		t.Errorf("retried %d", j.Stages[0].Retried)
	}
}

// TestOneFailureEndsTheGang: and the whole of it is tried again.
func TestOneFailureEndsTheGang(t *testing.T) {
	g := newGrid(t, 2, queued(func(*messages.Market) {}))
	id := g.enter("alice", "a", 2, ganged(50, 0, 100*second))
	g.until(id, id)
	g.report(g.node, messages.Finished{Attempt: g.node.running[0], ExitCode: 1})
	eventually(t, "the other is stopped", func() bool {
		g.exchange(g.node, messages.Exchange{Session: 7, Seq: g.node.seq + 1})
		return len(g.node.running) == 0
	})
	g.until(id, id)
	for _, a := range g.node.running {
		if a.Number != 2 {
			t.Errorf("attempt %v, want the second of both", a)
		}
	}
	g.complete(id)
	if j := g.final(id); j.State != messages.Completed {
		t.Errorf("%+v", j.JobSummary)
	}
}

func night(change func(*messages.Market)) messages.Market {
	m := messages.Market{Name: "night", Mechanism: messages.Reservation, Classes: []messages.Name{"cpu"}, Cycle: 10 * minute, Granule: minute}
	change(&m)
	return m
}

// TestReservationsStartAtTheirTime: two gangs that each take the machine for six
// of ten minutes: the better one wins and pays what the other bid; a third of
// four minutes fits after it, for nothing.
func TestReservationsStartAtTheirTime(t *testing.T) {
	g := newGrid(t, 2, night(func(*messages.Market) {}))
	g.pass(minute)
	better, worse := g.enter("alice", "a", 2, ganged(40, 0, 6*minute)), g.enter("bob", "b", 2, ganged(30, 0, 6*minute))
	small := g.enter("carol", "c", 2, ganged(5, 0, 4*minute))
	g.reason(better, "WaitingForAuction")
	g.pass(9 * minute)
	if b := g.final(worse); b.State != messages.Discarded || b.Reason != "Outbid" || b.Charged != 0 {
		t.Errorf("%+v", b.JobSummary)
	}
	eventually(t, "the timetable is known", func() bool { return g.why(better).Reason == "Reserved" || g.why(small).Reason == "Reserved" })
	first, last := better, small
	if g.why(better).Reason == "Reserved" {
		first, last = small, better
	}
	g.until(first, first)
	g.pass(2 * minute)
	g.complete(first)
	g.look(g.node)
	if len(g.node.running) != 0 {
		t.Fatal("a reservation began before its time")
	}
	g.pass(4 * minute)
	g.until(last, last)
	g.complete(last)
	if a, c := g.final(better), g.final(small); a.Charged != 30*messages.Credit || c.Charged != 0 {
		t.Errorf("charged %v and %v, want 30 and 0", a.Charged, c.Charged)
	}
}

// TestReservationsOutliveTheLeader: what was sold stays sold.
func TestReservationsOutliveTheLeader(t *testing.T) {
	g := newGrid(t, 2, night(func(*messages.Market) {}))
	id := g.enter("alice", "a", 2, ganged(40, 0, 10*minute))
	rival := g.enter("bob", "b", 2, ganged(30, 0, 10*minute))
	g.pass(10 * minute)
	g.final(rival)
	g.log.Depose()
	g.log.Elect()
	late := g.enter("carol", "c", 2, ganged(90, 0, 10*minute))
	g.until(id, id)
	g.complete(id)
	if a, c := g.final(id), g.job(late); a.Charged != 30*messages.Credit || c.State != messages.Waiting {
		t.Errorf("charged %v; the later bid is %v", a.Charged, c.State)
	}
}

// TestDependencies: a job waits for others, and ends with one that had to complete.
func TestDependencies(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	first := g.enter("alice", "a", 1, rate(2))
	after := g.enter("alice", "b", 1, func(s *messages.JobSpec) { s.Rate, s.AfterJobs = 9*messages.Credit, []messages.JobID{first} })
	ok := g.enter("alice", "c", 1, func(s *messages.JobSpec) { s.Rate, s.AfterOK = 9*messages.Credit, []messages.JobID{first} })
	g.until(first)
	g.reason(after, "WaitingForJobs")
	must[messages.CancelReply](g.fixture, "alice", messages.VerbCancel, messages.JobRequest{Job: first})
	if j := g.final(ok); j.State != messages.Cancelled || j.Reason != "DependencyFailed" || j.Charged != 0 {
		t.Errorf("%+v", j.JobSummary)
	}
	g.until(after)
	for id, kind := range map[messages.JobID]messages.Kind{99: messages.NotFound, first: messages.Ended} {
		spec := bids(1, func(s *messages.JobSpec) { s.Rate, s.AfterOK = messages.Credit, []messages.JobID{id} })
		_, err := call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "x", Spec: spec})
		wantKind(t, err, kind)
	}
	spec := bids(1, func(s *messages.JobSpec) { s.Rate, s.AfterJobs = messages.Credit, []messages.JobID{after} })
	_, err := call[messages.SubmitReply](g.fixture, "bob", messages.VerbSubmit, messages.SubmitRequest{Key: "x", Spec: spec})
	wantKind(t, err, messages.PermissionDenied)
}

func sold(change func(*messages.Market)) messages.Market {
	m := messages.Market{Name: "sold", Mechanism: messages.ContractMenu, Classes: []messages.Name{"cpu"}}
	change(&m)
	return m
}

// valued is a job of 10 s that is worth 20 credits if it completes within a minute.
func valued(s *messages.JobSpec) {
	s.Length, s.Valuation = 10*second, &messages.Valuation{Class: messages.LinearDecay, Max: 20, Mu: 60, Delta: 60}
}

// TestContractIsQuotedTakenAndAdjusted: a menu with a free contract and the
// declared one; the job that took a contract pays its price times the value
// received over the value promised.
func TestContractIsQuotedTakenAndAdjusted(t *testing.T) {
	g := newGrid(t, 1, sold(func(*messages.Market) {}))
	spec := bids(1, valued)
	menu := must[messages.QuoteReply](g.fixture, "alice", messages.VerbQuote, messages.QuoteRequest{Spec: spec})
	free := slices.IndexFunc(menu.Contracts, func(c messages.QuotedContract) bool { return c.Free && c.Price == 0 })
	declared := slices.IndexFunc(menu.Contracts, func(c messages.QuotedContract) bool { return c.Declared })
	if free < 0 || declared < 0 || menu.Expires <= epoch {
		t.Fatalf("menu %+v", menu)
	}
	chosen := menu.Contracts[declared]
	spec.Contract, spec.Budget = chosen.ID, chosen.Budget
	_, err := call[messages.SubmitReply](g.fixture, "bob", messages.VerbSubmit, messages.SubmitRequest{Key: "b", Spec: spec})
	wantKind(t, err, messages.PermissionDenied)
	other := spec
	other.Length = 20 * second
	_, err = call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "o", Spec: other})
	wantKind(t, err, messages.Invalid)
	id := g.submit("alice", "a", spec).Job
	_, err = call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "again", Spec: spec})
	wantKind(t, err, messages.Conflict)
	g.until(id)
	g.pass(1000 * second) // far too late to be worth anything
	g.complete(id)
	if j := g.final(id); j.Charged != 0 && chosen.Price > 0 {
		t.Errorf("charged %v of a price of %v", j.Charged, chosen.Price)
	}
	g.pass(minute * 10)
	spec.Contract = menu.Contracts[free].ID
	_, err = call[messages.SubmitReply](g.fixture, "alice", messages.VerbSubmit, messages.SubmitRequest{Key: "late", Spec: spec})
	wantKind(t, err, messages.Expired)
}

// TestDrainedNodeIsEmptiedByItsTime: what runs there goes on until the notice is
// over, its owner is told, and then it is run elsewhere.
func TestDrainedNodeIsEmptiedByItsTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	g.until(id)
	_, err := call[messages.DrainReply](g.fixture, "alice", messages.VerbDrain, messages.DrainRequest{Node: "n1"})
	wantKind(t, err, messages.PermissionDenied)
	r := must[messages.DrainReply](g.fixture, "operator", messages.VerbDrain, messages.DrainRequest{Node: "n1", Notice: 20 * second})
	if r.Tasks != 1 || r.Until != epoch.Add(20*second) {
		t.Fatalf("%+v", r)
	}
	if w := g.why(id); !strings.Contains(w.Message, "drain") {
		t.Errorf("the owner is not told: %+v", w)
	}
	second1 := g.enter("bob", "b", 1, rate(1))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	eventually(t, "the other job runs on the other node", func() bool { g.look(other); return slices.Equal(other.going(), []messages.JobID{second1}) })
	g.report(other, messages.Finished{Attempt: other.running[0]})
	g.pass(20 * second)
	eventually(t, "the first is moved", func() bool {
		g.look(g.node)
		g.look(other)
		return slices.Equal(other.going(), []messages.JobID{id}) && len(g.node.running) == 0
	})
	must[messages.DrainReply](g.fixture, "operator", messages.VerbDrain, messages.DrainRequest{Node: "n1", Undo: true})
	third := g.enter("bob", "c", 1, rate(1))
	g.until(third)
}

// TestMarketsAreAppliedToARunningSite: a market comes, another changes; the jobs
// there stay and run; one with jobs cannot go.
func TestMarketsAreAppliedToARunningSite(t *testing.T) {
	g := newGrid(t, 1, spot(func(*messages.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	limit := 3 * messages.Credit / 2
	changed := spot(func(m *messages.Market) { m.Reserve = &limit })
	added := messages.Market{Name: "gpus", Mechanism: messages.FIFO, Classes: []messages.Name{"gpu"}}
	apply := func(markets ...messages.Market) (messages.ApplyReply, error) {
		return call[messages.ApplyReply](g.fixture, "operator", messages.VerbApply, messages.ApplyRequest{Markets: markets})
	}
	_, err := apply(added)
	wantKind(t, err, messages.Conflict)
	_, err = apply(changed, messages.Market{Name: "x", Mechanism: "lottery", Classes: []messages.Name{"gpu"}})
	wantKind(t, err, messages.Invalid)
	_, err = call[messages.ApplyReply](g.fixture, "alice", messages.VerbApply, messages.ApplyRequest{Markets: []messages.Market{added}})
	wantKind(t, err, messages.PermissionDenied)
	r, err := apply(changed, added)
	if err != nil || !slices.Equal(r.Added, []messages.Name{"gpus"}) || !slices.Equal(r.Changed, []messages.Name{"spot"}) || len(r.Removed) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	eventually(t, "there are two markets", func() bool {
		m, err := call[messages.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{})
		return err == nil && len(m.Markets) == 2
	})
	g.until(id)
	g.pass(10 * second)
	g.complete(id)
	if j := g.final(id); j.Charged != 15*messages.Credit {
		t.Errorf("charged %v at the new reserve, want 15", j.Charged)
	}
	told := must[messages.ExchangeReply](g.fixture, "n1", messages.VerbExchange, messages.Exchange{Session: 7, Seq: g.node.seq + 1})
	if told.Markets != nil {
		t.Errorf("told of its markets twice: %+v", told.Markets)
	}
}
