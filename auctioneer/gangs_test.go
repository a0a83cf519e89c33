package auctioneer

import (
	"testing"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// likelyJobs are the jobs that the operator of a batch queue expects.
var likelyJobs = []market.QueuedType{{Value: 20 * messages.Credit, Delay: messages.Credit / 20, Length: 50 * second},
	{Value: 90 * messages.Credit, Delay: messages.Credit / 2, Length: 100 * second}}

func queued(change func(*market.Market)) market.Market {
	m := market.Market{Name: "batch", Mechanism: market.BatchQueue, Classes: []messages.Name{"cpu"}, GangTimeout: 10 * second, PriorJobs: likelyJobs}
	change(&m)
	return m
}

// ganged makes a job a gang that is worth `value` credits, and loses `delay` hundredths of a credit per second of
// waiting.
func ganged(value, delay messages.Credits, length messages.Duration) func(*job.JobSpec) {
	return func(s *job.JobSpec) {
		s.Value, s.Delay, s.Length, s.Stages[0].Gang = value*messages.Credit, delay*messages.Credit/100, length, true
		s.Stages[0].Attempts = 3
	}
}

// A gang of two runs on two nodes at once. The first job of the queue must be discarded if it is worth less than the
// delay that it causes. The payments of each decision must sum to zero.
func TestBatchQueueRunsOrDiscards(t *testing.T) {
	g := newGrid(t, 1, queued(func(*market.Market) {}))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	first := g.enter("alice", "a", 2, ganged(50, 10, 100*second))
	await.Until(t, "the gang runs", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 1 && len(other.going()) == 1
	})
	poor := g.enter("bob", "b", 2, ganged(1, 10, 100*second))
	rich := g.enter("carol", "c", 2, ganged(80, 50, 100*second))
	g.reason(poor, "WaitingForSlots")
	g.pass(50 * second)
	a := other.running[0]
	g.report(other, agent.Finished{Attempt: a})
	g.complete(first)
	if p := g.final(poor); p.State != job.Discarded || p.Reason != "Discarded" || g.why(poor).Change == nil {
		t.Errorf("%+v", p.JobSummary)
	}
	await.Until(t, "the last gang runs", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 1 && len(other.going()) == 1
	})
	g.report(other, agent.Finished{Attempt: other.running[0]})
	g.complete(rich)
	g.final(rich)
	g.final(first)
	await.Until(t, "every hold is resolved", func() bool { return g.books.holds() == 0 })
	sum := g.books.balance("alice") + g.books.balance("bob") + g.books.balance("carol")
	if sum != 3000*messages.Credit || g.books.balance(money.SiteAccount) != 0 {
		t.Errorf("balances sum to %v, the site has %v", sum, g.books.balance(money.SiteAccount))
	}
	if p, r := g.job(poor), g.job(rich); p.Charged == 0 || p.Charged != -r.Charged {
		t.Errorf("the one paid %v, the other %v: %s", p.Charged, r.Charged, g.why(poor).Message)
	}
}

// A gang needs two nodes, and the site has one. The claimed task must wait, and be given back when it has waited too
// long. With another node, both tasks must start.
func TestGangsStartTogetherOrNotAtAll(t *testing.T) {
	g := newGrid(t, 2, queued(func(*market.Market) {}))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	id := g.enter("alice", "a", 3, ganged(50, 0, 100*second))
	await.Until(t, "two tasks gather", func() bool { g.look(g.node); return len(g.node.held) == 2 })
	if going := g.node.going(); len(going) != 0 {
		t.Fatalf("%v run before their gang is complete", going)
	}
	g.pass(11 * second)
	await.Until(t, "they are given back", func() bool {
		g.exchange(g.node, agent.Exchange{Session: 7, Seq: g.node.seq + 1})
		return len(g.node.running) == 0
	})
	await.Until(t, "all start", func() bool {
		g.look(g.node)
		g.look(other)
		return len(g.node.going()) == 2 && len(other.going()) == 1
	})
	if j := g.job(id); j.Stages[0].Retried < 2 {
		t.Errorf("retried %d", j.Stages[0].Retried)
	}
}

func TestOneFailureEndsTheGang(t *testing.T) {
	g := newGrid(t, 2, queued(func(*market.Market) {}))
	id := g.enter("alice", "a", 2, ganged(50, 0, 100*second))
	g.until(id, id)
	g.report(g.node, agent.Finished{Attempt: g.node.running[0], ExitCode: 1})
	await.Until(t, "the other is stopped", func() bool {
		g.exchange(g.node, agent.Exchange{Session: 7, Seq: g.node.seq + 1})
		return len(g.node.running) == 0
	})
	g.until(id, id)
	for _, a := range g.node.running {
		if a.Number != 2 {
			t.Errorf("attempt %v, want the second of both", a)
		}
	}
	g.complete(id)
	if j := g.final(id); j.State != job.Completed {
		t.Errorf("%+v", j.JobSummary)
	}
}

func night(change func(*market.Market)) market.Market {
	m := market.Market{Name: "night", Mechanism: market.Reservation, Classes: []messages.Name{"cpu"}, Cycle: 10 * minute, Granule: minute}
	change(&m)
	return m
}

// The market sells periods of ten minutes. Two gangs each need all slots for six minutes. The gang with the better bid
// must win, and pay the other gang's bid. A third gang needs all slots for four minutes. It fits into the same period
// after the winner, and must pay nothing.
func TestReservationsStartAtTheirTime(t *testing.T) {
	g := newGrid(t, 2, night(func(*market.Market) {}))
	g.pass(minute)
	better, worse := g.enter("alice", "a", 2, ganged(40, 0, 6*minute)), g.enter("bob", "b", 2, ganged(30, 0, 6*minute))
	small := g.enter("carol", "c", 2, ganged(5, 0, 4*minute))
	g.reason(better, "WaitingForAuction")
	g.pass(9 * minute)
	if b := g.final(worse); b.State != job.Discarded || b.Reason != "Outbid" || b.Charged != 0 {
		t.Errorf("%+v", b.JobSummary)
	}
	await.Until(t, "the timetable is known", func() bool { return g.why(better).Reason == "Reserved" || g.why(small).Reason == "Reserved" })
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

func TestReservationsOutliveTheLeader(t *testing.T) {
	g := newGrid(t, 2, night(func(*market.Market) {}))
	id := g.enter("alice", "a", 2, ganged(40, 0, 10*minute))
	rival := g.enter("bob", "b", 2, ganged(30, 0, 10*minute))
	g.pass(10 * minute)
	g.final(rival)
	g.log.Depose()
	g.log.Elect()
	late := g.enter("carol", "c", 2, ganged(90, 0, 10*minute))
	g.until(id, id)
	g.complete(id)
	if a, c := g.final(id), g.job(late); a.Charged != 30*messages.Credit || c.State != job.Waiting {
		t.Errorf("charged %v; the later bid is %v", a.Charged, c.State)
	}
}

func TestGangsThatCannotBeAreRefused(t *testing.T) {
	g := newGrid(t, 2, queued(func(*market.Market) {}))
	wide := bids(3, ganged(50, 0, 100*second))
	_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "k", Spec: wide})
	wantKind(t, err, messages.Invalid)
	one := newGrid(t, 2, spot(func(*market.Market) {}))
	_, err = call[job.SubmitReply](one.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "k", Spec: bids(2, func(s *job.JobSpec) {
		s.Rate, s.Stages[0].Gang = 2*messages.Credit, true
	})})
	wantKind(t, err, messages.Invalid)
	if n := g.books.holds() + one.books.holds(); n != 0 {
		t.Errorf("%d holds were made", n)
	}
}

// A job pays in several decisions, one after another. It must never pay more than its budget in total. The unspent part
// of the budget must go back to the job's account.
func TestBatchQueuePaysWithinWhatIsLeft(t *testing.T) {
	g := newGrid(t, 1, queued(func(*market.Market) {}))
	holder := g.enter("dan", "hold", 1, ganged(50, 0, 100*second))
	g.until(holder)
	names := []messages.Name{"alice", "bob", "carol"}
	var jobs []messages.JobID
	for i := range 12 {
		jobs = append(jobs, g.enter(names[i%3], "j"+messages.JobID(i+1).String(), 1, func(s *job.JobSpec) {
			ganged(messages.Credits(1+i*7%19), messages.Credits(1+i*5%11), 20*second)(s)
			s.Budget = 20 * messages.Credit
		}))
	}
	g.complete(holder)
	await.Until(t, "all have run or been discarded", func() bool {
		g.look(g.node)
		for _, a := range g.node.running {
			g.report(g.node, agent.Finished{Attempt: a})
		}
		for _, id := range jobs {
			if !g.job(id).State.Final() {
				return false
			}
		}
		return true
	})
	await.Until(t, "every hold is resolved", func() bool { return g.books.holds() == 0 })
	sum := messages.Credits(0)
	for _, n := range append(names, "dan") {
		sum += g.books.balance(n)
	}
	if sum != 4000*messages.Credit {
		t.Errorf("the four have %v together, had 4000", sum)
	}
	for _, id := range jobs {
		if j := g.job(id); j.Charged > j.Budget {
			t.Errorf("job %d paid %v of %v", id, j.Charged, j.Budget)
		}
	}
}

// A job begins to run and delays a waiting job, so it pays the waiting job. The bank keeps this payment back until the
// market has considered the waiting job. The waiting job is cancelled before that. The job that paid must then get its
// credits back.
func TestAGhostThatIsCancelledKeepsNothing(t *testing.T) {
	for _, pricing := range []string{"externality", "pivot"} {
		g := newGrid(t, 1, queued(func(m *market.Market) {
			if m.Pricing = pricing; pricing == "pivot" {
				m.PriorJobs = nil
			}
		}))
		holder := g.enter("dan", "hold", 1, ganged(50, 0, 100*second))
		g.until(holder)
		payer := g.enter("bob", "b", 1, ganged(90, 1, 100*second))
		ghost := g.enter("alice", "a", 1, ganged(90, 20, 100*second))
		patient := g.enter("carol", "c", 1, ganged(90, 20, 100*second))
		g.complete(holder)
		g.until(payer)
		if b, a := g.job(payer).Charged, g.job(ghost).Charged; b <= 0 || a != 0 {
			t.Errorf("%s: once his job runs, bob has paid %v, and alice, whose job waits, got %v", pricing, b, -a)
		}
		must[job.CancelReply](g.fixture, "alice", messages.VerbCancel, job.CancelRequest{Job: ghost})
		g.final(ghost)
		g.complete(payer)
		g.until(patient)
		g.complete(patient)
		g.final(patient)
		await.Until(t, "every hold is resolved", func() bool { return g.books.holds() == 0 })
		if a := g.books.balance("alice"); a != 1000*messages.Credit {
			t.Errorf("%s: the ghost has brought alice %v", pricing, a-1000*messages.Credit)
		}
		sum := g.books.balance("alice") + g.books.balance("bob") + g.books.balance("carol") + g.books.balance("dan")
		if site := g.books.balance(money.SiteAccount); sum+site != 4000*messages.Credit || pricing == "externality" && site != 0 || site < 0 {
			t.Errorf("%s: the four have %v together, and the site %v", pricing, sum, site)
		}
		if paid, got := g.job(payer).Charged, g.job(patient).Charged; paid <= 0 || got >= 0 {
			t.Errorf("%s: bob paid %v, carol %v", pricing, paid, got)
		}
	}
}

// A waiting job would run with a value of 20 credits, and also with a value of 900. So it must pay the same in both
// cases.
func TestALargerValueIsPaidNoMore(t *testing.T) {
	end := func(value messages.Credits) messages.Credits {
		g := newGrid(t, 1, queued(func(m *market.Market) {
			m.PriorJobs = []market.QueuedType{{Value: 10 * messages.Credit, Delay: messages.Credit / 100, Length: 10 * second}}
		}))
		first := g.enter("dan", "hold", 1, ganged(50, 0, 10*second))
		g.until(first)
		jobs := []messages.JobID{first}
		for i, name := range []messages.Name{"bob", "carol", "alice", "dan"} {
			worth := messages.Credits(20)
			if name == "alice" {
				worth = value
			}
			jobs = append(jobs, g.enter(name, "j"+messages.JobID(i+1).String(), 1, func(s *job.JobSpec) {
				ganged(worth, 1, 10*second)(s)
				s.Budget = max(s.Budget, worth*messages.Credit)
			}))
		}
		for _, id := range jobs {
			g.until(id)
			g.complete(id)
			g.final(id)
		}
		await.Until(t, "every hold is resolved", func() bool { return g.books.holds() == 0 })
		return g.books.balance("alice")
	}
	if honest, lying := end(20), end(900); honest != lying {
		t.Errorf("by announcing 900 in place of 20, alice has %v in place of %v", lying, honest)
	}
}
