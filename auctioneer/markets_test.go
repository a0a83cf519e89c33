package auctioneer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/await"
	"github.com/candor-grid/candor/messages/bus"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/mailbox"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

func spot(change func(*market.Market)) market.Market {
	m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}, Reserve: new(messages.Price(messages.Credit))}
	change(&m)
	return m
}

func rate(c messages.Credits) func(*job.JobSpec) {
	return func(s *job.JobSpec) { s.Rate = c * messages.Credit }
}

// A market with one slot charges the k-th price, and has a reserve price of 1. Alice bids 2. She runs alone for 10 s at
// a price of 1. Then Bob's bid takes her slot for 5 s. Alice's waiting bid now sets the price, so Bob pays 2. Then she
// continues for 3 s at a price of 1. Both must pay the sum over these periods.
func TestSpotSuspendsResumesAndChargesTheIntegral(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	alice := g.enter("alice", "a", 1, rate(2))
	g.until(alice)
	g.pass(10 * second)
	bob := g.enter("bob", "b", 1, rate(5))
	g.until(bob)
	first := g.node.running[0]
	if w := g.reason(alice, "Outbid"); len(w.Change) == 0 || !strings.Contains(w.Message, "1 task is suspended") {
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

// In a market with the setting PreemptRequeue, a task that loses its slot must start again later as a new attempt. It
// must not be suspended.
func TestSpotRequeues(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) { m.Preemption = market.PreemptRequeue }))
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
	if a := g.final(alice); a.State != job.Completed {
		t.Errorf("%+v", a.JobSummary)
	}
	g.says(alice, "Completed", "the price of the slots", "because its market gave the slot to others")
}

// In a market that requeues displaced tasks, alice's job runs for 6 s at a price of 1 credit per second. The task
// prints its result. Then alice submits a second job with a higher bid, which displaces the first job. The first job
// must pay for the time that it ran.
func TestWhoDisplacesItselfOwesForItsTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) { m.Preemption = market.PreemptRequeue }))
	first := g.enter("alice", "a", 1, rate(2))
	g.until(first)
	g.pass(6 * second)
	better := g.enter("alice", "b", 1, rate(5))
	g.until(better)
	for _, id := range []messages.JobID{better, first} {
		must[job.CancelReply](g.fixture, "alice", messages.VerbCancel, job.CancelRequest{Job: id})
	}
	if j := g.final(first); j.Charged != 6*messages.Credit {
		t.Errorf("charged %v, want 6", j.Charged)
	}
}

// says asks the site why a job is in its state, and checks the reason and the text of the answer. It also checks the
// text of the job's first attempt.
func (g *grid) says(id messages.JobID, reason, why, task string) {
	g.t.Helper()
	w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if w.Reason != reason || !strings.Contains(w.Message, why) {
		g.t.Errorf("why: %s: %s", w.Reason, w.Message)
	}
	list := must[job.TasksReply](g.fixture, "alice", messages.VerbTasks, job.TasksRequest{Job: id, Attempts: true}).Tasks
	if len(list) == 0 || !strings.Contains(list[0].Message, task) {
		g.t.Errorf("tasks: %+v", list)
	}
}

// A job that loses its slot is ended, and the reason says so.
func TestSpotCancels(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) { m.Preemption, m.Price = market.PreemptCancel, "first" }))
	alice := g.enter("alice", "a", 1, rate(2))
	g.until(alice)
	g.pass(4 * second)
	bob := g.enter("bob", "b", 1, rate(5))
	g.until(bob)
	if a := g.final(alice); a.State != job.Discarded || a.Reason != "Preempted" {
		t.Errorf("%+v", a.JobSummary)
	}
	g.says(alice, "Preempted", "", "because its job had ended: its slots went to others")
}

// A job with a budget of 5 must end after 5 s at a price of 1 a second.
func TestSpotEndsWhoHasSpentTheBudget(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	alice := g.enter("alice", "a", 1, func(s *job.JobSpec) { s.Rate, s.Budget = 2*messages.Credit, 5*messages.Credit })
	g.until(alice)
	g.pass(6 * second)
	if a := g.final(alice); a.State != job.Discarded || a.Reason != "BudgetSpent" || a.Charged != 5*messages.Credit || !strings.Contains(a.Message, "its budget is 5 credits") {
		t.Errorf("%+v", a.JobSummary)
	}
	g.says(alice, "BudgetSpent", "its slots cost its whole budget", "")
}

// The mechanisms fifo, fair share and backfill have a posted price. Each must charge a job for its slot-seconds,
// multiplied by the price.
func TestPostedPrices(t *testing.T) {
	half := messages.Price(messages.Credit / 2)
	for _, mechanism := range []string{market.FIFO, market.FairShare, market.Backfill} {
		t.Run(mechanism, func(t *testing.T) {
			g := newGrid(t, 2, market.Market{Name: "main", Mechanism: mechanism, Classes: []messages.Name{"cpu"}, Reserve: &half})
			first := g.enter("alice", "a", 2, func(s *job.JobSpec) { s.Length = 10 * second })
			g.until(first, first)
			second1 := g.enter("bob", "b", 1, func(s *job.JobSpec) { s.Length = 10 * second })
			g.pass(10 * second)
			g.complete(first)
			g.until(second1)
			g.pass(4 * second)
			g.complete(second1)
			if a, b := g.final(first), g.final(second1); a.Charged != 10*messages.Credit || b.Charged != 2*messages.Credit {
				t.Errorf("charged %v and %v, want 10 and 2", a.Charged, b.Charged)
			} else if len(a.Used) != 1 || a.Used[0].Class != "cpu" || math.Abs(a.Used[0].SlotHours-20./3600) > 1e-6 || a.Used[0].CPUHours != 0 {
				t.Errorf("used %+v, want 20 slot-seconds", a.Used)
			}
		})
	}
}

func deadlines(change func(*market.Market)) market.Market {
	m := market.Market{Name: "due", Mechanism: market.DeadlineBid, Classes: []messages.Name{"cpu"}, Slot: 10 * second}
	change(&m)
	return m
}

// due makes a job need one slot for `slots` units of time, and end within `within` units.
func due(value messages.Credits, slots, within int) func(*job.JobSpec) {
	return func(s *job.JobSpec) {
		s.Value, s.Length, s.Deadline = value*messages.Credit, messages.Duration(slots)*10*second, epoch.Add(messages.Duration(within+1)*10*second)
	}
}

// Two jobs compete for one slot. Each needs two units of time, and must end within three. The job with the better bid
// must run. At its deadline, it must pay the bid of the other job. The other job must learn that it cannot meet its
// deadline as soon as this is certain. The price must be the same whenever another replica takes over.
func TestDeadlineChargesTheCriticalValue(t *testing.T) {
	for _, change := range []string{"never", "while it runs", "as it ends", "before its deadline"} {
		t.Run(change, func(t *testing.T) {
			g := newGrid(t, 1, deadlines(func(*market.Market) {}))
			at := func(moment string) {
				if change == moment {
					g.log.Depose()
					g.log.Elect()
					must[market.MarketsReply](g.fixture, "n1", messages.VerbMarkets, messages.Empty{}) // a replica must become leader before the clock moves on
				}
			}
			g.pass(second) // enter both jobs in the middle of a unit; a job that comes at the start of a unit may miss this unit
			better, worse := g.enter("alice", "a", 1, due(20, 2, 3)), g.enter("bob", "b", 1, due(12, 2, 3))
			g.pass(10 * second)
			g.until(better)
			g.reason(worse, "Outranked")
			at("while it runs")
			g.pass(20 * second)
			g.final(worse) // this job ends: the leader has seen that it cannot meet its deadline
			at("as it ends")
			g.complete(better)
			if b := g.final(worse); b.State != job.Discarded || b.Reason != "CannotMakeDeadline" || b.Charged != 0 {
				t.Errorf("%+v", b.JobSummary)
			}
			if a := g.job(better); a.State != job.Settling {
				t.Errorf("settled before its price is known: %+v", a.JobSummary)
			}
			if w := g.why(better); !strings.Contains(w.Message, "the price is known at the deadline") {
				t.Errorf("it is not said what it waits for: %q", w.Message)
			}
			at("before its deadline")
			g.pass(10 * second)
			if a := g.final(better); a.Charged != 12*messages.Credit {
				t.Errorf("charged %v, want 12: %s", a.Charged, g.why(better).Message)
			}
		})
	}
}

// A job runs without ever delaying another job. It must owe nothing, and its charge must be known when it ends.
func TestDeadlineThatNobodyMetIsSettledAtOnce(t *testing.T) {
	g := newGrid(t, 1, deadlines(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, due(20, 2, 9))
	g.pass(10 * second)
	g.until(id)
	g.pass(20 * second)
	g.complete(id)
	if j := g.final(id); j.Charged != 0 || j.Ended >= epoch.Add(100*second) {
		t.Errorf("charged %v at %v", j.Charged, j.Ended)
	}
}

func TestDeadlineThatHasPassedIsRefused(t *testing.T) {
	g := newGrid(t, 1, deadlines(func(*market.Market) {}))
	for within, kind := range map[int]messages.Kind{-5: messages.Expired, 0: messages.Expired} {
		_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "k", Spec: bids(1, due(20, 2, within))})
		wantKind(t, err, kind)
	}
	if n := g.books.holds(); n != 0 {
		t.Errorf("%d holds were made", n)
	}
}

// A job waits until other jobs have ended. It may wait for another job to be completed. If the other job ends without
// being completed, the waiting job must end too.
func TestDependencies(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	first := g.enter("alice", "a", 1, rate(2))
	after := g.enter("alice", "b", 1, func(s *job.JobSpec) { s.Rate, s.AfterJobs = 9*messages.Credit, []messages.JobID{first} })
	ok := g.enter("alice", "c", 1, func(s *job.JobSpec) { s.Rate, s.AfterOK = 9*messages.Credit, []messages.JobID{first} })
	g.until(first)
	if w, want := g.reason(after, "WaitingForJobs"), fmt.Sprintf("the job waits for the end of job %d", first); w.Message != want {
		t.Errorf("got %q, want %q", w.Message, want)
	}
	must[job.CancelReply](g.fixture, "alice", messages.VerbCancel, job.CancelRequest{Job: first})
	if j := g.final(ok); j.State != job.Cancelled || j.Reason != "DependencyFailed" || j.Charged != 0 {
		t.Errorf("%+v", j.JobSummary)
	}
	g.until(after)
	for id, kind := range map[messages.JobID]messages.Kind{99: messages.NotFound, first: messages.Ended} {
		spec := bids(1, func(s *job.JobSpec) { s.Rate, s.AfterOK = messages.Credit, []messages.JobID{id} })
		_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "x", Spec: spec})
		wantKind(t, err, kind)
	}
	spec := bids(1, func(s *job.JobSpec) { s.Rate, s.AfterJobs = messages.Credit, []messages.JobID{after} })
	_, err := call[job.SubmitReply](g.fixture, "bob", messages.VerbSubmit, job.SubmitRequest{Key: "x", Spec: spec})
	wantKind(t, err, messages.NotFound)
}

func sold(change func(*market.Market)) market.Market {
	m := market.Market{Name: "sold", Mechanism: market.ContractMenu, Classes: []messages.Name{"cpu"}}
	change(&m)
	return m
}

// valued makes a job take 10 s and be worth 20 credits if it completes within a minute.
func valued(s *job.JobSpec) {
	s.Length, s.Valuation = 10*second, &job.Valuation{Class: job.LinearDecay, Max: 20, Mu: 60, Delta: 60}
}

// The menu must have a contract at price 0, and the contract that is best for the declared valuation. A job that
// accepted a contract and takes far longer than declared must still pay the price of the contract.
func TestContractIsQuotedTakenAndAdjusted(t *testing.T) {
	g := newGrid(t, 1, sold(func(*market.Market) {}))
	spec := bids(1, valued)
	menu := must[market.QuoteReply](g.fixture, "alice", market.VerbQuote, market.QuoteRequest{Spec: spec})
	free := slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Free && c.Price == 0 })
	declared := slices.IndexFunc(menu.Contracts, func(c market.QuotedContract) bool { return c.Declared })
	if free < 0 || declared < 0 || menu.Expires <= epoch {
		t.Fatalf("menu %+v", menu)
	}
	chosen := menu.Contracts[declared]
	spec.Contract, spec.Budget = chosen.ID, chosen.Budget
	_, err := call[job.SubmitReply](g.fixture, "bob", messages.VerbSubmit, job.SubmitRequest{Key: "b", Spec: spec})
	wantKind(t, err, messages.Expired)
	other := spec
	other.Length = 20 * second
	_, err = call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "o", Spec: other})
	wantKind(t, err, messages.Invalid)
	id := g.submit("alice", "a", spec).Job
	_, err = call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "again", Spec: spec})
	wantKind(t, err, messages.Conflict)
	g.until(id)
	g.pass(1000 * second) // the job caused this delay itself; its value is now 0
	g.complete(id)
	if j := g.final(id); j.Charged != chosen.Price {
		t.Errorf("charged %v of a price of %v", j.Charged, chosen.Price)
	}
	told := must[market.MarketsReply](g.fixture, "bob", messages.VerbMarkets, messages.Empty{}).Markets[0].Promises
	if told == nil || *told != (market.Promises{Kept: 1}) { // the job was late through its own fault, so the market kept the contract
		t.Errorf("promises: %+v", told)
	}
	g.pass(minute * 10)
	spec.Contract = menu.Contracts[free].ID
	_, err = call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: "late", Spec: spec})
	wantKind(t, err, messages.Expired)
}

// A job is started in time for its contract. Its owner then lets it run until its valuation is 0. The job must owe the
// agreed price, because it is late by the owner's choice.
func TestFinishingLateByChoiceCostsThePrice(t *testing.T) {
	falls := func(worth, within float64) job.Valuation {
		return job.Valuation{Class: job.LinearDecay, Max: worth, Mu: 10, Delta: within}
	}
	// The contracts of a menu are made for types that are drawn at random and kept secret. Here a type is rich, poor,
	// or the type that all other jobs have. If all types wait equally long, the rich type loses the most, the other
	// jobs lose less, and the poor type loses the least. So Alice's job comes after the other jobs if it has the poor
	// type, and before them if it has the rich type. Both types lose by being late, so an early completion has a price.
	// The contracts of the other jobs promise completion after the expected end of Dan's job. Dan's job ends early, so
	// Alice's job can run before the other jobs are late.
	other := job.Valuation{Class: job.Sigmoidal, Max: 20, Mu: 100, Delta: 300}
	g := newGrid(t, 1, sold(func(m *market.Market) {
		m.Prior = []job.Valuation{falls(90, 60), falls(5, 60), other}
	}))
	g.unlearned()
	take := func(who messages.Name, length messages.Duration, declared job.Valuation) (messages.JobID, messages.Credits) {
		spec := bids(1, func(s *job.JobSpec) { s.Length, s.Valuation = length, &declared })
		menu := must[market.QuoteReply](g.fixture, who, market.VerbQuote, market.QuoteRequest{Spec: spec})
		dearest := slices.MaxFunc(menu.Contracts, func(a, b market.QuotedContract) int { return cmp.Compare(a.Price, b.Price) })
		spec.Contract, spec.Budget = dearest.ID, dearest.Budget
		return g.submit(who, "k", spec).Job, dearest.Price
	}
	waiting := func(n int) {
		await.Until(t, fmt.Sprintf("the market knows that %d wait", n), func() bool {
			return must[market.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == n
		})
	}
	holder, _ := take("dan", 100*second, other)
	g.until(holder)
	waiting(0)
	bob, _ := take("bob", 10*second, other)
	waiting(1)
	take("carol", 10*second, other)
	waiting(2)
	g.complete(holder)
	g.until(bob)
	waiting(1)
	id, price := take("alice", 10*second, falls(60, 70))
	if price == 0 {
		t.Fatal("no contract of the menu has a price")
	}
	await.Until(t, "alice's job runs", func() bool {
		g.look(g.node)
		going := g.node.going()
		if len(going) == 1 && going[0] != id { // an earlier job still runs, or the leader has not ordered the jobs again yet
			g.complete(going[0])
		}
		return slices.Equal(going, []messages.JobID{id})
	})
	g.pass(1000 * second)
	g.complete(id)
	if j := g.final(id); j.Charged != price {
		t.Errorf("charged %v of a price of %v: %s", j.Charged, price, g.why(id).Message)
	}
}

// A node drains with a notice period. Its tasks must run until this period is over, the owner must be told, and then
// the tasks run elsewhere.
func TestDrainedNodeIsEmptiedByItsTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	g.until(id)
	_, err := call[market.DrainReply](g.fixture, "alice", market.VerbDrain, market.DrainRequest{Node: "n1"})
	wantKind(t, err, messages.PermissionDenied)
	r := must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n1", Notice: new(20 * second)})
	if r.Tasks != 1 || r.Until != epoch.Add(20*second) {
		t.Fatalf("%+v", r)
	}
	if w := g.why(id); !strings.Contains(w.Message, "drain") {
		t.Errorf("the owner is not told: %+v", w)
	}
	second1 := g.enter("bob", "b", 1, rate(1))
	other := &node{name: "n2", slots: 1}
	g.enroll(other)
	await.Until(t, "the other job runs on the other node", func() bool { g.look(other); return slices.Equal(other.going(), []messages.JobID{second1}) })
	g.report(other, agent.Finished{Attempt: other.running[0]})
	g.pass(20 * second)
	await.Until(t, "the first is moved", func() bool {
		g.look(g.node)
		g.look(other)
		return slices.Equal(other.going(), []messages.JobID{id}) && len(g.node.running) == 0
	})
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n1", Undo: true})
	third := g.enter("bob", "c", 1, rate(1))
	g.until(third)
}

// A node drains without a time limit. Its tasks must run to their end, and no other task may be claimed there.
func TestTasksOfADrainedNodeRunToTheirEnd(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) { s.Rate, s.Budget = 2*messages.Credit, 10_000*messages.Credit })
	g.until(id)
	if r := must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n1"}); !r.Draining || r.Tasks != 1 || r.Until != 0 {
		t.Fatalf("%+v", r)
	}
	if w := g.why(id); strings.Contains(w.Message, "drain") {
		t.Errorf("the owner is told that the job is moved: %+v", w)
	}
	next := g.enter("bob", "b", 1, rate(1))
	g.pass(3600 * second)
	g.look(g.node)
	if len(g.node.running) != 1 || g.node.going()[0] != id {
		t.Fatalf("after an hour %v runs", g.node.going())
	}
	g.report(g.node, agent.Finished{Attempt: g.node.running[0]})
	if g.look(g.node); len(g.node.running) != 0 {
		t.Errorf("%v runs on a node that drains", g.node.going())
	}
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n1", Undo: true})
	g.until(next)
}

// Everybody can read why a node takes no new tasks, even if a task still runs there.
func TestANodeSaysWhyItTakesNoTasks(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	g.until(id)
	for able, want := range map[messages.Name]string{
		agent.AbilityFull: "takes no tasks: its disk is almost full", agent.AbilityStalled: "takes no tasks: its executor does not answer; the node's log says what to do", agent.AbilityFreeze: "",
	} {
		g.can("n1", g.node.session(), able)
		if n := must[market.NodesReply](g.fixture, "alice", messages.VerbNodes, messages.Empty{}).Nodes[0]; n.State != "Up" || n.Reason != want || n.Used[0].Slots != 1 {
			t.Errorf("%s: %+v", able, n)
		}
	}
	g.look(g.node)
	if !slices.Equal(g.node.going(), []messages.JobID{id}) {
		t.Errorf("it runs %v", g.node.going())
	}
}

func (g *grid) can(node messages.Name, session uint64, abilities ...messages.Name) {
	must[agent.RegisterReply](g.fixture, node, messages.VerbRegister, agent.RegisterRequest{Session: session, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}, Abilities: abilities})
}

// The explanation of a waiting job names the nodes that take no tasks although they offer slots of its classes.
func TestWhyNamesNodesThatTakeNoTasks(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	g.can("n1", g.node.session(), agent.AbilityFull)
	id := g.enter("alice", "a", 1, rate(2))
	why := func() market.WhyReply {
		return must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	}
	if w := why(); w.Reason != "NodesPaused" || w.Message != "node n1 takes no tasks: its disk is almost full" || !slices.Equal(w.Change, []string{"a node that takes tasks again"}) {
		t.Errorf("%+v", w)
	}
	g.can("n2", 7)
	if w := why(); w.Reason == "NodesPaused" || !strings.HasSuffix(w.Message, "; node n1 takes no tasks: its disk is almost full") {
		t.Errorf("with a node that takes tasks: %+v", w)
	}
	for i := range 5 {
		g.can(fmt.Sprint("m", i), 7, agent.AbilityStalled)
	}
	if w := why(); !strings.HasSuffix(w.Message, "; node m1 takes no tasks: its executor does not answer; the node's log says what to do; 3 other nodes take no tasks either") {
		t.Errorf("with many: %+v", w)
	}
	g.can("n1", g.node.session())
	g.until(id)
	if w := why(); strings.Contains(w.Message, "takes no tasks") {
		t.Errorf("while it runs: %+v", w)
	}
}

// A job needs two nodes of two slots, and names these nodes. Then one of these nodes comes back with one slot. A node
// of two slots that the job does not name is of no use.
func TestWhyCountsTheNodesOfAnAllocation(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) {
		m.Units = []job.ClassUnit{{Class: "cpu", Unit: job.Resources{CPUs: 1, Memory: 1 << 30}}}
	}))
	register := func(node messages.Name, session uint64, slots int) {
		must[agent.RegisterReply](g.fixture, node, messages.VerbRegister, agent.RegisterRequest{Session: session, Slots: []job.ClassSlots{{Class: "cpu", Slots: slots}}})
	}
	register("n2", 7, 2)
	register("n3", 7, 2)
	id := g.enter("alice", "a", 2, func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].CPUs, s.Stages[0].Gang, s.Stages[0].Allocation, s.Stages[0].Nodes = 2, true, true, []messages.Name{"n2", "n3"}
	})
	register("n3", 8, 1)
	register("n4", 7, 2)
	w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if w.Reason != "WaitingForSlots" || !strings.HasPrefix(w.Message, "the job takes 2 nodes with 2 slots of cpu each, and 1 node that it may use is that large and takes tasks") ||
		!slices.Equal(w.Change, []string{"1 more such node that the job may use: it may use only 2 nodes, such as n2"}) {
		t.Errorf("%+v", w)
	}
	register("n3", 9, 2)
	seq := uint64(0)
	if w := g.why(id); strings.Contains(w.Message, "the job takes") {
		t.Errorf("with both nodes: %+v", w)
	}
	await.Until(t, "n2 claims its member", func() bool {
		seq++
		return len(must[agent.ExchangeReply](g.fixture, "n2", messages.VerbExchange, agent.Exchange{Session: 7, Seq: seq, Claims: []agent.Claim{{Market: "spot", Class: "cpu", Slots: 2}}}).Grants) == 1
	})
	for _, change := range []func(){
		func() { register("n3", 10, 1) },
		func() {
			register("n3", 11, 2)
			must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n3"})
		},
	} {
		change()
		if w := g.why(id); w.Reason != "WaitingForSlots" || !strings.HasPrefix(w.Message, "the job takes 2 nodes with 2 slots of cpu each, and 1 node that") {
			t.Errorf("n2 waits for n3: %+v", w)
		}
	}
}

// A maintenance window keeps a node of another market free. The explanation of a job must not name this node.
func TestWhyNamesMaintenanceOfItsOwnMarket(t *testing.T) {
	g := newGrid(t, 2, spot(func(m *market.Market) { m.Nodes = []messages.Name{"n1"} }), spot(func(m *market.Market) { m.Name, m.Nodes = "other", []messages.Name{"n2"} }))
	must[agent.RegisterReply](g.fixture, "n2", messages.VerbRegister, agent.RegisterRequest{Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}})
	limited := func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].TimeLimit = 720 * minute
	}
	first := g.enter("bob", "b", 2, limited)
	g.until(first, first)
	id := g.enter("alice", "a", 1, limited)
	must[market.Window](g.fixture, "operator", market.VerbWindow, market.WindowRequest{Add: &market.Window{Nodes: []messages.Name{"n2"}, From: epoch.Add(120 * minute), To: epoch.Add(180 * minute)}})
	if w := g.why(id); strings.Contains(w.Message, "n2") {
		t.Errorf("%s: %s", w.Reason, w.Message)
	}
}

// A task needs two slots of one node. Then the node comes back with one slot, because a GPU is broken. The explanation
// must name the largest node.
func TestWhyNamesTheLargestNode(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) {
		m.Units = []job.ClassUnit{{Class: "cpu", Unit: job.Resources{CPUs: 1, Memory: 1 << 30}}}
	}))
	register := func(session uint64, slots int) {
		must[agent.RegisterReply](g.fixture, "n2", messages.VerbRegister, agent.RegisterRequest{Session: session, Slots: []job.ClassSlots{{Class: "cpu", Slots: slots}}})
	}
	register(7, 2)
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].CPUs, s.Stages[0].Width = 2, 2
	})
	register(8, 1)
	w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if w.Reason != "WaitingForSlots" || !strings.HasPrefix(w.Message, "a task takes 2 slots of cpu on one node, and the largest node that takes tasks, n1, has 1") || !slices.Equal(w.Change, []string{"a node with 2 slots of cpu that takes tasks"}) {
		t.Errorf("%+v", w)
	}
}

// The disk of the largest node is almost full. The explanation must not say that this node takes tasks.
func TestWhyCountsNoNodeThatIsPaused(t *testing.T) {
	g := newGrid(t, 1, spot(func(m *market.Market) {
		m.Units = []job.ClassUnit{{Class: "cpu", Unit: job.Resources{CPUs: 1, Memory: 1 << 30}}}
	}))
	must[agent.RegisterReply](g.fixture, "n2", messages.VerbRegister, agent.RegisterRequest{Session: 7, Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}, Abilities: []messages.Name{agent.AbilityFull}})
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].CPUs, s.Stages[0].Width = 2, 2
	})
	w := g.why(id)
	if w.Reason != "WaitingForSlots" || !strings.HasPrefix(w.Message, "a task takes 2 slots of cpu on one node, and the largest node that takes tasks, n1, has 1") || !strings.Contains(w.Message, "node n2 takes no tasks: its disk is almost full") {
		t.Errorf("%+v", w)
	}
}

// The tasks of a job may run on only one node. The explanation must say why this node takes no tasks.
func TestWhyNamesClosedNodes(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	g.can("n2", 7)
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n2"})
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].Nodes = []messages.Name{"n2"}
	})
	w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id})
	if w.Reason != "NodesPaused" || w.Message != "tasks may run only on nodes that take no tasks now: n2 is draining" || !slices.Equal(w.Change, []string{"a node that takes tasks again"}) {
		t.Errorf("%+v", w)
	}
}

// A probe runs on the only node of a job. The explanation must say so, and must not count the node as one that takes
// tasks.
func TestWhyNamesAProbedNode(t *testing.T) {
	f := start(t)
	f.register("n1", 1)
	failing := oneStage(1)
	failing.Stages[0].Attempts = 1
	id := f.submit("alice", "k1", failing).Job
	got := f.claim("n1", 1, id, 1)
	must[agent.ExchangeReply](f, "n1", messages.VerbExchange, agent.Exchange{Session: 7, Seq: 2, Finished: []agent.Finished{{Attempt: got.Grants[0].Attempt, Outcome: agent.Unstartable}}})
	must[agent.ExchangeReply](f, "n1", messages.VerbExchange, agent.Exchange{Session: 7, Seq: 3})
	named := oneStage(1)
	named.Stages[0].Nodes = []messages.Name{"n1"}
	says := func(id messages.JobID, want string) {
		t.Helper()
		if w := must[market.WhyReply](f, "alice", messages.VerbWhy, job.JobRequest{Job: id}); w.Reason != "NodesPaused" || w.Message != want {
			t.Errorf("%+v, want %q", w, want)
		}
	}
	only, any := f.submit("alice", "k2", named).Job, f.submit("alice", "k3", oneStage(1)).Job
	says(any, "node n1 takes no tasks while a probe runs on it")
	f.register("n2", 1)
	says(only, "tasks may run only on nodes that take no tasks now: n1 takes no tasks while a probe runs on it")
}

// A job has a budget of 100 credits and pays 1 credit per second. Its task must get the early signal once, 30 s before
// the budget is used up. Then the budget is raised. The task must get the signal again, before the larger budget is
// used up.
func TestABudgetThatEndsIsToldInTime(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	var mu sync.Mutex
	var warned []agent.Warning
	sub, err := g.net.Connect("n1").Subscribe(messages.DirectiveSubject("west", "n1"), func(_ string, data []byte) {
		var d agent.Directive
		if err := wire.Unmarshal(data, wire.Detect(data, ""), &d); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		warned = append(warned, d.Warn...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Stop() }()
	told := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(warned)
	}
	signal := job.EarlySignal{Name: "USR1", Before: 30 * second, First: true}
	id := g.enter("alice", "a", 1, func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].Signal = &signal
	})
	g.until(id)
	pass := func(seconds int) {
		for range seconds {
			g.pass(second)
			g.reason(id, "Running")
		}
	}
	pass(65)
	if n := told(); n != 0 {
		t.Fatalf("told %d times after 65 s", n)
	}
	pass(10)
	await.Until(t, "the task is told", func() bool { return told() == 1 })
	if w := must[market.WhyReply](g.fixture, "alice", messages.VerbWhy, job.JobRequest{Job: id}); !strings.Contains(w.Message, fmt.Sprintf("at present prices its budget is spent at %v, and the job ends then; `candor change %v --budget` raises the budget", epoch.Add(100*second), id)) {
		t.Errorf("%s", w.Message)
	}
	if w := warned[0]; w.Attempt != g.node.running[0] || w.Signal != signal {
		t.Errorf("%+v", w)
	}
	pass(5)
	must[job.ChangeReply](g.fixture, "alice", job.VerbChange, job.ChangeRequest{Key: "c", Job: id, Budget: 200 * messages.Credit})
	pass(80)
	if n := told(); n != 1 {
		t.Fatalf("told %d times after 160 s", n)
	}
	pass(20)
	await.Until(t, "the task is told again", func() bool { return told() == 2 })
	g.pass(30 * second)
	if j := g.final(id); j.Reason != "BudgetSpent" || j.Charged != 200*messages.Credit {
		t.Errorf("%+v", j.JobSummary)
	}
}

// The running tasks of an owner reach a bound, and many jobs of this owner wait. After the end of a task, only some of
// the jobs compete for its slot. The explanation of the other jobs must say that they wait for their turn.
func TestAJobWaitsForItsTurnAtABound(t *testing.T) {
	g := newGrid(t, 2, market.Market{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}, AtOnce: market.AtOnce{Account: market.Bound{Slots: 1}}})
	first := g.enter("alice", "a", 1, func(*job.JobSpec) {})
	g.until(first)
	var last messages.JobID
	for i := range 300 {
		last = g.enter("alice", fmt.Sprint(i), 1, func(*job.JobSpec) {})
	}
	g.reason(last, "AccountSlotsBound")
	await.Until(t, "the market has all jobs", func() bool {
		return must[market.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Waiting == 300
	})
	g.complete(first)
	if w := g.reason(last, "WaitingForTurn"); !strings.Contains(w.Message, "other jobs of the owner go first") {
		t.Errorf("%+v", w)
	}
}

// The only node has a maintenance window. A job that would not end before this window must wait, and its owner must be
// told which time limit lets tasks start now. A shorter job must run. After the window the first job must run.
func TestAMaintenanceWindow(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	hour := 60 * minute
	limited := func(limit messages.Duration) func(*job.JobSpec) {
		return func(s *job.JobSpec) {
			rate(2)(s)
			s.Stages[0].TimeLimit = limit
		}
	}
	add := market.WindowRequest{Add: &market.Window{Nodes: []messages.Name{"n1"}, From: epoch.Add(2 * hour), To: epoch.Add(3 * hour), Reason: "new disks"}}
	_, err := call[market.Window](g.fixture, "alice", market.VerbWindow, add)
	wantKind(t, err, messages.PermissionDenied)
	_, err = call[market.Window](g.fixture, "operator", market.VerbWindow, market.WindowRequest{})
	wantKind(t, err, messages.Invalid)
	for _, years := range []messages.Duration{2, 100} {
		_, err = call[market.Window](g.fixture, "operator", market.VerbWindow, market.WindowRequest{Add: &market.Window{Nodes: []messages.Name{"n1"}, From: add.Add.From, To: epoch.Add(years * 366 * 24 * hour)}})
		if wantKind(t, err, messages.Invalid); !strings.Contains(messages.Detail(err), "within a year") {
			t.Errorf("a window of %d years: %v", years, err)
		}
	}
	w := must[market.Window](g.fixture, "operator", market.VerbWindow, add)
	if again := must[market.Window](g.fixture, "operator", market.VerbWindow, add); again.ID != w.ID {
		t.Errorf("the same window again is window %d", again.ID)
	}
	other := *add.Add
	other.Notice = new(minute)
	_, err = call[market.Window](g.fixture, "operator", market.VerbWindow, market.WindowRequest{Add: &other})
	wantKind(t, err, messages.Conflict)
	nodes := func() market.NodesReply {
		return must[market.NodesReply](g.fixture, "alice", messages.VerbNodes, messages.Empty{})
	}
	if r := nodes(); len(r.Windows) != 1 || r.Windows[0].From != w.From || r.Nodes[0].State != "Up" || r.Nodes[0].Window != 0 {
		t.Errorf("before: %+v", r)
	}
	long := g.enter("alice", "a", 1, limited(12*hour))
	want := fmt.Sprintf("node n1 is kept free for maintenance from %v on (new disks), and the time limit of a task is 12h0m0s; tasks with a time limit of 2h0m0s may start now", w.From)
	if e := g.reason(long, "Maintenance"); e.Message != want || len(e.Change) != 2 {
		t.Errorf("%q, want %q; %q", e.Message, want, e.Change)
	}
	short := g.enter("bob", "b", 1, limited(hour))
	g.until(short)
	g.pass(2 * hour)
	await.Until(t, "the window begins", func() bool { return nodes().Nodes[0].State == "Draining" })
	if n := nodes().Nodes[0]; n.Window != w.ID || n.Reason != "new disks" || n.Used[0].Slots != 1 {
		t.Errorf("in the window: %+v", n)
	}
	g.complete(short)
	if e := g.reason(long, "Maintenance"); e.Message != fmt.Sprintf("node n1 is in maintenance until %v (new disks)", w.To) || len(e.Change) != 1 { // no time limit helps now
		t.Errorf("in the window: %q, %q", e.Message, e.Change)
	}
	g.pass(hour)
	g.until(long)
	if r := nodes(); len(r.Windows) != 0 || r.Nodes[0].State != "Up" {
		t.Errorf("after: %+v", r)
	}
}

// A task of a job runs on a node that has a free slot and a maintenance window. The owner must be told why the job's
// second task waits.
func TestAMaintenanceWindowIsToldWhileATaskRuns(t *testing.T) {
	g := newGrid(t, 2, spot(func(*market.Market) {}))
	hour := 60 * minute
	limited := func(s *job.JobSpec) {
		rate(2)(s)
		s.Stages[0].TimeLimit = 12 * hour
	}
	short := g.enter("bob", "b", 1, limited)
	g.until(short)
	long := g.enter("alice", "a", 2, limited)
	g.until(short, long)
	must[market.Window](g.fixture, "operator", market.VerbWindow, market.WindowRequest{Add: &market.Window{Nodes: []messages.Name{"n1"}, From: epoch.Add(2 * hour), To: epoch.Add(3 * hour)}})
	g.complete(short)
	await.Until(t, "the window is told", func() bool { return strings.Contains(g.why(long).Message, "node n1 is kept free for maintenance from") })
}

// The agent of a node stops. The node must be shown as stopped at once, its task must run elsewhere, and an operator
// must be able to remove the node.
func TestANodeSaysGoodbye(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	g.until(id)
	remove := market.DrainRequest{Node: "n1", Remove: true}
	_, err := call[market.DrainReply](g.fixture, "operator", market.VerbDrain, remove)
	wantKind(t, err, messages.Conflict)
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, market.DrainRequest{Node: "n1", Notice: new(second), Reason: "new disk"})
	if n := must[market.NodesReply](g.fixture, "alice", messages.VerbNodes, messages.Empty{}).Nodes[0]; n.Reason != "new disk" || n.State != "Draining" {
		t.Errorf("%+v", n)
	}
	must[agent.RegisterReply](g.fixture, "n1", messages.VerbRegister, agent.RegisterRequest{Session: g.node.session(), Leaving: true})
	if n := must[market.NodesReply](g.fixture, "alice", messages.VerbNodes, messages.Empty{}).Nodes[0]; n.State != "Stopped" {
		t.Errorf("%+v", n)
	}
	if j := must[job.JobDetail](g.fixture, "alice", messages.VerbJob, job.JobRequest{Job: id}); j.Running != 0 || j.Stages[0].Pending != 1 {
		t.Errorf("%+v", j)
	}
	must[market.DrainReply](g.fixture, "operator", market.VerbDrain, remove)
	if r := must[market.NodesReply](g.fixture, "alice", messages.VerbNodes, messages.Empty{}); len(r.Nodes) != 0 {
		t.Errorf("%+v", r)
	}
}

// The test repeats a change of markets with the same key, while other changes may have been applied in between. The
// repetition must change nothing. A change that was made for another version of the markets must also change nothing.
func TestMarketsAppliedOnce(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	apply := func(key string, version uint64, limit messages.Duration) (market.ApplyReply, error) {
		return call[market.ApplyReply](g.fixture, "operator", market.VerbApply, market.ApplyRequest{Key: key, Version: version,
			Markets: []market.Market{spot(func(m *market.Market) { m.TimeLimit = limit })}})
	}
	is := func(version uint64, limit messages.Duration) {
		t.Helper()
		await.Until(t, "the markets are in force", func() bool {
			m, err := call[market.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{})
			return err == nil && m.Version == version && m.Markets[0].Market.TimeLimit == limit
		})
	}
	is(1, 0)
	first, err := apply("a", 1, 5*3600*messages.Duration(second))
	if err != nil || first.Version != 2 || len(first.Changed) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	if r, err := apply("b", 0, 6*3600*messages.Duration(second)); err != nil || r.Version != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if again, err := apply("a", 1, 5*3600*messages.Duration(second)); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("repeated: %+v, %v", again, err)
	}
	_, err = apply("a", 1, 7*3600*messages.Duration(second))
	wantKind(t, err, messages.Conflict)
	_, err = apply("c", 2, 7*3600*messages.Duration(second))
	wantKind(t, err, messages.Conflict)
	if r, err := apply("d", 3, 6*3600*messages.Duration(second)); err != nil || r.Version != 3 || len(r.Changed) > 0 {
		t.Errorf("nothing to change: %+v, %v", r, err)
	}
	if r, err := apply("e", 0, 0); err != nil || r.Version != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := apply("d", 3, 6*3600*messages.Duration(second)); err != nil || r.Version != 3 {
		t.Errorf("repeated: %+v, %v", r, err)
	}
	is(4, 0)
}

// One market is added and another is changed. The jobs of the changed market must stay and run. A market with jobs
// cannot be removed.
func TestMarketsAreAppliedToARunningSite(t *testing.T) {
	g := newGrid(t, 1, spot(func(*market.Market) {}))
	id := g.enter("alice", "a", 1, rate(2))
	limit := messages.Price(3 * messages.Credit / 2)
	changed := spot(func(m *market.Market) { m.Reserve = &limit })
	added := market.Market{Name: "gpus", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}}
	apply := func(markets ...market.Market) (market.ApplyReply, error) {
		return call[market.ApplyReply](g.fixture, "operator", market.VerbApply, market.ApplyRequest{Markets: markets})
	}
	_, err := apply(added)
	wantKind(t, err, messages.Conflict)
	_, err = apply(changed, market.Market{Name: "x", Mechanism: "lottery", Classes: []messages.Name{"gpu"}})
	wantKind(t, err, messages.Invalid)
	_, err = call[market.ApplyReply](g.fixture, "alice", market.VerbApply, market.ApplyRequest{Markets: []market.Market{added}})
	wantKind(t, err, messages.PermissionDenied)
	r, err := apply(changed, added)
	if err != nil || !slices.Equal(r.Added, []messages.Name{"gpus"}) || !slices.Equal(r.Changed, []messages.Name{"spot"}) || len(r.Removed) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	g.until(id)
	await.Until(t, "there are two markets, and the new reserve is the price", func() bool {
		m, err := call[market.MarketsReply](g.fixture, "alice", messages.VerbMarkets, messages.Empty{})
		return err == nil && len(m.Markets) == 2 && len(m.Markets[0].Tariffs) == 1 && m.Markets[0].Tariffs[0].Price == messages.Credits(limit)
	})
	g.pass(10 * second)
	g.complete(id)
	if j := g.final(id); j.Charged != 15*messages.Credit {
		t.Errorf("charged %v at the new reserve, want 15", j.Charged)
	}
	told := must[agent.ExchangeReply](g.fixture, "n1", messages.VerbExchange, agent.Exchange{Session: 7, Seq: g.node.seq + 1})
	if told.Markets != nil {
		t.Errorf("told of its markets twice: %+v", told.Markets)
	}
}

// A user requeues a job, and cancels it before it has another slot. The job must owe for the slot time that it had
// while other jobs waited.
func TestRequeuedAndCancelledOwesForItsTime(t *testing.T) {
	g := newGrid(t, 1, market.Market{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}})
	same := func(*job.JobSpec) {}
	alice := g.enter("alice", "a", 1, same)
	g.until(alice)
	g.reason(g.enter("bob", "b", 1, same), "WaitingForShare")
	await.Until(t, "alice owes something", func() bool { // when the leader has noticed that bob waits
		g.pass(10 * second)
		return !strings.Contains(g.why(alice).Message, "no other account waited")
	})
	must[job.HoldReply](g.fixture, "alice", job.VerbHold, job.JobRequest{Job: alice})
	must[job.RequeueReply](g.fixture, "alice", job.VerbRequeue, job.RequeueRequest{Job: alice})
	await.Until(t, "the task ends", func() bool { g.look(g.node); return g.job(alice).Running == 0 })
	must[job.CancelReply](g.fixture, "alice", messages.VerbCancel, job.CancelRequest{Job: alice})
	if j := g.final(alice); j.Charged == 0 {
		t.Errorf("charged %v: %s", j.Charged, g.why(alice).Message)
	}
}

// returned is a mailbox for tests. Its replica has lost leadership and got it back, and has noticed neither of these
// changes. Only the number of the term is higher than before.
type returned struct {
	mailbox.Mailbox
	later atomic.Uint64 // number of terms to add
}

func (m *returned) Status() mailbox.Status {
	s := m.Mailbox.Status()
	s.Term += m.later.Load()
	return s
}

// A replica leads, loses leadership and leads again. In between, another leader may have changed the markets. So the
// desk from the first term must no longer answer in the second term.
func TestTheLeaderOfAnEarlierTermAnswersNothing(t *testing.T) {
	box := new(returned)
	f := startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox {
		box.Mailbox = ordinary
		return box
	}))
	must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{})
	box.later.Store(2)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	reply, err := bus.Call[market.MarketsReply](ctx, f.net.Connect("alice"), messages.Subject("west", messages.Auctioneer, messages.VerbMarkets, "alice"), messages.Empty{})
	if err == nil {
		t.Errorf("%+v", reply)
	}
}

// afterApply is a mailbox that calls a function after each command ApplyMarkets. It calls the function after the
// command was applied, and before the leader gets the command's result.
type afterApply struct {
	mailbox.Mailbox
	do func()
}

func (m *afterApply) Propose(ctx context.Context, data []byte) (any, error) {
	result, err := m.Mailbox.Propose(ctx, data)
	if c, bad := book.Decode(data); bad == nil && c.ApplyMarkets != nil {
		m.do()
	}
	return result, err
}

// The leader ends after the markets were applied to the book, but before it uses them. The answer must be an error that
// asks to try again, and the next leader must use the markets.
func TestMarketsAreInForceWhenTheyAreAcknowledged(t *testing.T) {
	var f *fixture
	box := &afterApply{do: func() {
		f.log.Depose()
		await.Until(t, "the term ends", func() bool {
			var now dto.Metric
			return f.metrics.leading.Write(&now) == nil && now.GetGauge().GetValue() == 0
		})
	}}
	f = startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox {
		box.Mailbox = ordinary
		return box
	}))
	must[market.MarketsReply](f, "operator", messages.VerbMarkets, messages.Empty{})
	limited := f.Markets[0]
	limited.TimeLimit = messages.Duration(time.Hour)
	request := market.ApplyRequest{Markets: []market.Market{limited}, Key: "once"}
	once, err := wire.Marshal(request, wire.Msgpack)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.net.Connect("operator").Request(t.Context(), messages.Subject("west", messages.Auctioneer, market.VerbApply, "operator"), once); err != nil && messages.KindOf(err) != messages.Unavailable {
		t.Error(err)
	}
	f.log.Elect()
	if now := must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}); now.Version != 2 || now.Markets[0].Market.TimeLimit != limited.TimeLimit {
		t.Errorf("version %d is in force with a limit of %v", now.Version, now.Markets[0].Market.TimeLimit)
	}
	if reply := must[market.ApplyReply](f, "operator", market.VerbApply, request); reply.Version != 2 {
		t.Errorf("%+v", reply)
	}
}

// unheard is a log that carries out a request to apply markets, but answers that the outcome is unknown.
type unheard struct{ mailbox.Mailbox }

func (m *unheard) Propose(ctx context.Context, data []byte) (any, error) {
	result, err := m.Mailbox.Propose(ctx, data)
	if c, bad := book.Decode(data); bad == nil && c.ApplyMarkets != nil {
		return nil, mailbox.ErrUnknown
	}
	return result, err
}

// Somebody applies markets, and the answer is lost. The markets must come into force even if nobody repeats the
// request.
func TestMarketsOfALostRequestAreInForce(t *testing.T) {
	f := startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox { return &unheard{ordinary} }))
	version := func() uint64 {
		return must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Version
	}
	version() // wait until a replica leads
	limited := f.Markets[0]
	limited.TimeLimit = messages.Duration(time.Hour)
	request, err := wire.Marshal(market.ApplyRequest{Markets: []market.Market{limited}}, wire.Msgpack)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.net.Connect("operator").Request(t.Context(), messages.Subject("west", messages.Auctioneer, market.VerbApply, "operator"), request); err == nil {
		t.Fatal("the request was answered")
	}
	await.Until(t, "the markets are in force", func() bool { return version() == 2 })
}

// Requests come while a change of markets is committed but not yet in force. No answer may have the old markets.
func TestMarketsOfBeforeAreNotTold(t *testing.T) {
	box, asked := &afterApply{}, 0
	f := startWith(t, behind(func(ordinary mailbox.Mailbox) mailbox.Mailbox {
		box.Mailbox = ordinary
		return box
	}))
	box.do = func() {
		asked++
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		old, err := bus.Call[market.MarketsReply](ctx, f.net.Connect("alice"), messages.Subject("west", messages.Auctioneer, messages.VerbMarkets, "alice"), messages.Empty{})
		if err == nil && old.Version == 1 {
			t.Errorf("markets that were replaced are told: %+v", old)
		}
	}
	limited := must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}).Markets[0].Market
	limited.TimeLimit = messages.Duration(time.Hour)
	must[market.ApplyReply](f, "operator", market.VerbApply, market.ApplyRequest{Markets: []market.Market{limited}})
	if now := must[market.MarketsReply](f, "alice", messages.VerbMarkets, messages.Empty{}); asked != 1 || now.Version != 2 {
		t.Errorf("asked %d times, and then version %d", asked, now.Version)
	}
}

// A job that may run at any site has a rate. Here the rate is far below the market's posted price. The market does not
// read the rate, but no job pays more than its rate. So the job would run for nearly nothing, and the market must
// refuse it.
func TestARateBelowThePostedPriceIsRefused(t *testing.T) {
	for _, mechanism := range []messages.Name{market.FIFO, market.FairShare, market.Backfill, market.Karma} {
		g := newGrid(t, 1, market.Market{Name: "m", Mechanism: mechanism, Classes: []messages.Name{"cpu"}, Reserve: new(messages.Price(messages.Credit))})
		submit := func(key string, rate messages.Credits) error {
			_, err := call[job.SubmitReply](g.fixture, "alice", messages.VerbSubmit, job.SubmitRequest{Key: key, Site: clearing.AnySite,
				Spec: bids(1, func(s *job.JobSpec) { s.Rate = rate })})
			return err
		}
		if err := submit("a", 1); messages.KindOf(err) != messages.NotFound {
			t.Errorf("%s: a microcredit a second: %v", mechanism, err)
		}
		if err := submit("b", messages.Credit); err != nil {
			t.Errorf("%s: at the price: %v", mechanism, err)
		}
	}
}
