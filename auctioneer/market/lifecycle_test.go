package market

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

// stall is a book and a market with one node.
type stall struct {
	testing.TB
	book      *book.Book
	market    *Market
	publisher *Publisher
	dues      Dues
	rng       *rand.Rand
	now       messages.Time
	seq       uint64
	vectors   int
	charges   map[messages.JobID]money.Transfer
	rounds    int
}

func newStall(t testing.TB, m market.Market, slots int) *stall {
	m.Name, m.Classes = "main", []messages.Name{"cpu"}
	live, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	s := &stall{TB: t, book: book.New(), market: live, publisher: NewPublisher(1, live), rng: rand.New(rand.NewPCG(1, 1)),
		now: 1_700_000_000_000_000, charges: map[messages.JobID]money.Transfer{}}
	s.apply(book.Command{Register: &book.Register{Node: "n1", Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: slots}}}})
	return s
}

func (s *stall) apply(c book.Command) any {
	s.Helper()
	c.At = s.now
	result := s.book.Apply(&c)
	if err, refused := result.(error); refused {
		s.Fatal(err)
	}
	return result
}

func (s *stall) submit(spec job.JobSpec) messages.JobID {
	spec.Market = "main"
	spec.Stages = []job.Stage{{Name: "main", Class: "cpu", Tasks: 2, Command: []string{"true"}}}
	bid := s.market.Bid(s.book.LastJob()+1, "alice", s.now, &spec, nil)
	if err := s.market.Admit(s.now, bid); err != nil {
		s.Fatal(err)
	}
	key := fmt.Sprint("k", s.book.LastJob())
	return s.apply(book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "purse", Spec: &spec, Hold: key, Held: spec.Budget}}).(book.Receipt).Job
}

// follow updates the market from the book, and settles the ended jobs.
func (s *stall) follow() {
	slots := NewSlots([]market.Market{s.market.Config})
	for i, n := range s.book.Nodes() {
		slots.Set(uint32(i), n)
	}
	all, idle := slots.Of(0)
	s.market.SetSlots(s.now, all, idle)
	var settled []*book.Settle
	for id := range s.book.Listed("").All() {
		switch j := s.book.Job(id); {
		case j.Active():
			s.market.Put(s.now, func() *mechanism.Bid { return s.market.BidOf(j) }, id, s.market.ProgressOf(s.book, j, s.now))
		case s.market.Job(id) != nil:
			if d := s.dues.Settle(s.now, s.market.Settlement(s.now, s.book, j)); d != nil {
				settled = append(settled, d)
			}
		}
	}
	for _, d := range append(settled, s.dues.Due(s.now)...) {
		s.apply(book.Command{Settle: d})
	}
	s.confirm()
}

func (s *stall) confirm() {
	done := &book.Confirm{}
	for e := range s.book.EachEffect {
		c := book.Confirmation{Effect: e.ID}
		switch e.Kind {
		case book.Charge:
			t := Charge(s.book.Job(e.Job))
			s.charges[e.Job], c.Amount = t, t.Amount
		case book.Round:
			s.balanced(Round(s.book, &e, s.now.Add(1e9)), e.Legs)
		}
		done.Effects = append(done.Effects, c)
	}
	s.apply(book.Command{Confirm: done})
}

// balanced checks a round of payments. The round must be one chain of linked transfers, and its payments to jobs must
// have the same sum as its payments from jobs. Payments from and to the site do not count.
func (s *stall) balanced(round []money.Transfer, legs []book.Leg) {
	s.Helper()
	sum := messages.Credits(0)
	for _, l := range legs {
		if l.From == 0 {
			sum += l.Amount
		}
		if l.Later || l.To == 0 {
			sum -= l.Amount
		}
	}
	for i, t := range round {
		switch t.Kind {
		case money.Post:
			sum += t.Amount
		case money.Posted:
			sum -= t.Amount
		}
		if t.Linked != (i < len(round)-1) {
			s.Errorf("transfer %d of %d: linked is %v", i+1, len(round), t.Linked)
		}
	}
	if sum != 0 {
		s.Errorf("a round takes %v more than it pays", sum)
	}
	s.rounds++
}

// turn lets the market decide and publish, and lets the node end its tasks and claim new ones.
func (s *stall) turn() {
	s.follow()
	if s.market.Stale(s.now) {
		if d := s.market.Decide(s.now, func(read func(*book.Book)) { read(s.book) }); d != nil {
			s.apply(book.Command{Decide: d})
			s.market.Committed()
		}
		s.publisher.Reallocated()
		s.follow()
	}
	if _, ok := s.publisher.Due(s.market, s.now, 1, s.rng); ok {
		s.vectors++
	}
	s.seq++
	x := &book.Exchange{Node: "n1", Session: 1, Seq: s.seq}
	node := s.book.Node("n1")
	for r, c := range node.Claims {
		a := messages.Attempt{Task: r, Number: c.Attempt}
		switch {
		case slices.Contains(node.Stop, a):
			x.Finished = append(x.Finished, agentmsg.Finished{Attempt: a, Outcome: agentmsg.Stopped})
		case c.Halt == book.Goes && s.now.Sub(s.book.Job(r.Job).Stages[0].Tasks[r.Index].Claimed) >= 2e9:
			x.Finished = append(x.Finished, agentmsg.Finished{Attempt: a, CPU: 1e9, MaxRSS: 3 << 20})
		}
	}
	if id := s.market.Substitute(0, s.rng); id != 0 && node.Idle("cpu") > 0 {
		x.Claims = CutToReply(s.book, "n1", []book.Claim{s.market.ReserveClaim(s.book, "n1", &agentmsg.Claim{Class: "cpu", Job: id, Slots: node.Idle("cpu")}, 0, s.rng)})
	}
	s.apply(book.Command{Exchange: x})
	s.follow()
	s.now = s.now.Add(1e9)
}

// With every mechanism, admitted jobs must end and be settled within their budgets, and the bank must be asked for what
// they owe. In the middle, a new leader opens the market from the book.
func TestEveryMechanismTakesJobsToTheirEnd(t *testing.T) {
	for _, name := range registry.Names(nil) {
		if name == market.ContractMenu {
			continue // jobs of this market need a quote: see TestQuotes
		}
		t.Run(name, func(t *testing.T) {
			config := market.Market{Name: "main", Classes: []messages.Name{"cpu"}, Mechanism: name,
				Weights: job.Weights{{Class: "alice", Weight: 2}}}
			if name == market.BatchQueue {
				config.PriorJobs = []market.QueuedType{{Value: 50 * messages.Credit, Delay: messages.Credit, Length: 3e9}}
			}
			if name == market.Reservation {
				config.Cycle, config.Granule = 10e9, 1e9
			}
			s := newStall(t, config, 3)
			for i := range 4 {
				id := s.submit(job.JobSpec{Name: "j", Budget: 500 * messages.Credit, Rate: messages.Credits(i+1) * messages.Credit, Value: 50 * messages.Credit,
					Delay: messages.Credit / 100, Length: 3e9, Deadline: s.now.Add(200e9), Utility: &job.Utility{Weights: job.Weights{{Class: "cpu", Weight: 1}}}})
				if id != messages.JobID(i+1) {
					t.Fatalf("job %d", id)
				}
			}
			for k := range 300 {
				if k == 3 { // another leader takes over
					next := newStall(t, config, 3).market
					next.Recall(s.book)
					s.market, s.publisher = next, NewPublisher(2, next)
				}
				if s.turn(); s.book.Active() == 0 {
					break
				}
			}
			if s.book.Active() != 0 || s.market.Jobs() != 0 || s.dues.Next() != 0 || s.vectors == 0 {
				t.Fatalf("%d jobs are left, %d in the market; %d vectors", s.book.Active(), s.market.Jobs(), s.vectors)
			}
			if pays := name == market.BatchQueue; pays && s.rounds == 0 {
				t.Error("jobs paid one another nothing")
			}
			for j := range s.book.Jobs {
				c := s.charges[j.ID]
				if j.Owed > j.Held-j.Paid || c.Amount != j.Owed || (c.Kind == money.Void) != (j.Owed == 0) || c.Pending != j.HoldID() && j.Owed > 0 {
					t.Errorf("job %d owes %v of %v: %+v", j.ID, j.Owed, j.Held, c)
				}
				if done := j.Outcome == job.Completed; done && !strings.Contains(c.Reason, "processor time and 3 MiB") {
					t.Errorf("job %d: the statement says %q", j.ID, c.Reason)
				}
			}
		})
	}
}

func TestReports(t *testing.T) {
	m := newMarket()
	put(m, 0, 1, 30, 2, 0)
	put(m, 0, 2, 10, 1, 0)
	if m.Jobs() != 2 || m.Started() != 0 || m.Claimable() != 3 {
		t.Errorf("%d jobs, %d have begun, %d tasks can be claimed", m.Jobs(), m.Started(), m.Claimable())
	}
	m.Allocate(0)
	if p := m.SeenBy("", true).Prices(); len(p) != 1 || p[0] != (market.ClassPrice{Class: "cpu", Price: 40, Slots: 10, Idle: 10, Pending: 3, Bidders: 2}) {
		t.Errorf("prices %+v", p)
	}
	if next := m.SeenBy("", true).Next(); len(next) != 1 || next[0].Job != 1 {
		t.Errorf("the next slot goes to %+v", next)
	}
	put(m, 1e6, 1, 30, 1, 5) // job 1 has half of the slots, and bids three quarters of the budgets
	top := m.SeenBy("", true).Top(2e6, 1)
	if len(top) != 1 || top[0].Job != 1 || top[0].Running != 5 || top[0].Pending != 1 {
		t.Errorf("the largest budget has %+v", top)
	}
	if s := m.Shares(2e6, 1); len(s) != 1 || s[0].Allocated != 0.75 || s[0].Received != 0.25 || s[0].Over != 2e9 {
		t.Errorf("shares %+v", s)
	}
	if m.Shares(2e6, 9) != nil {
		t.Error("a job that is not there has shares")
	}
	if _, known := m.Explain(0, 9); known {
		t.Error("a job that is not there is explained")
	}
	if x, known := m.Explain(0, 1); !known || x.Reason != "Test" {
		t.Errorf("explained as %+v", x)
	}
	m.SetSlots(3e6, []int{10}, []int{0})
	if m.Claimable() != 0 {
		t.Error("tasks can be claimed without a slot that is idle")
	}
}

// A market with contracts returns a menu for a bid. Other markets refuse the request.
func TestQuotes(t *testing.T) {
	declared := job.Valuation{Class: job.Sigmoidal, Max: 40, Mu: 60, Delta: 30}
	s := newStall(t, market.Market{Mechanism: market.ContractMenu, Prior: []job.Valuation{declared}}, 4)
	s.follow()
	spec := &job.JobSpec{Market: "main", Budget: 50 * messages.Credit, Length: 3e9, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 2}},
		Valuation: &declared}
	bid := s.market.Bid(1, "alice", s.now, spec, nil)
	bid.Runtimes = &mechanism.Runtimes{Seconds: []float64{2, 3, 4}, Runs: 10}
	q, err := s.market.Quote(s.now, bid, s.market.Config.Prior, 7)
	if err != nil || len(q.Contracts) == 0 {
		t.Fatalf("quoted %+v, %v", q, err)
	}
	if _, err := newMarket().Quote(0, bid, nil, 7); messages.KindOf(err) != messages.Invalid {
		t.Errorf("a market without contracts quotes: %v", err)
	}
}

// An unknown mechanism, or a parameter that the mechanism refuses, must give an error that names the field.
func TestMechanismsOfMarkets(t *testing.T) {
	for text, m := range map[string]market.Market{
		`mechanism: "lottery" cannot run in a live market`: {Mechanism: "lottery"},
		"classes: ": {Mechanism: market.FIFO},
	} {
		if _, err := Open(m); messages.KindOf(err) != messages.Invalid || !strings.HasPrefix(messages.Detail(err), text) {
			t.Errorf("%s: %v", m.Mechanism, err)
		}
	}
	m, none := registry.Of(&market.Market{Mechanism: market.Reservation}).Manner, registry.Of(&market.Market{Mechanism: "lottery"}).Manner
	if !m.Commits || !m.Directs || !reflect.DeepEqual(none, mechanism.Manner{}) {
		t.Errorf("manners %+v, %+v", m, none)
	}
}

func TestRunTimesAreAskedForAgain(t *testing.T) {
	m := New(mechanism.Manner{Plans: true}, market.Market{Name: "main", Classes: []messages.Name{"cpu"}}, new(byBudget))
	put(m, 1, 1, 30, 2, 0)
	put(m, 1, 2, 30, 2, 0)
	m.Allocate(1)
	if ids := m.Unknown(1, 1); !slices.Equal(ids, []messages.JobID{1}) {
		t.Errorf("first %v is asked for", ids)
	}
	if ids := m.Unknown(2, 9); !slices.Equal(ids, []messages.JobID{2}) {
		t.Errorf("then %v", ids)
	}
	if ids := m.Unknown(3, 9); len(ids) != 0 || m.Stale(3) {
		t.Errorf("%v is asked for though all is known", ids)
	}
	m.Learn(1, &mechanism.Runtimes{Seconds: []float64{3}})
	m.Learn(9, &mechanism.Runtimes{})
	if !m.Stale(3) || m.Job(1).Runtimes == nil || m.Job(9) != nil {
		t.Error("what was learned changes nothing")
	}
	if ids := m.Unknown(messages.Time(0).Add(2*relearn), 9); len(ids) != 2 {
		t.Errorf("a while later %v", ids)
	}
	if newMarket().Plans() || newMarket().Unknown(1, 9) != nil {
		t.Error("a market that does not plan asks for run times")
	}
}

// A vector is published when weights have changed or there is new work. It is also repeated as a reminder. If a new
// publisher continues the numbers of an earlier publisher, its first vector must be complete.
func TestVectorsGoOut(t *testing.T) {
	m, rng := newMarket(), rand.New(rand.NewPCG(1, 2))
	p, now := NewPublisher(3, m), messages.Time(1e9)
	if _, ok := p.Due(m, now, 1, rng); ok || p.Wake() != 0 {
		t.Error("an empty market has a vector")
	}
	put(m, now, 1, 30, 2, 0)
	m.Allocate(now)
	p.Reallocated()
	if v, ok := p.Due(m, now, 1, rng); !ok || v.Base != 0 || p.Seq() != 1 {
		t.Errorf("the first vector is %+v", v)
	}
	if _, ok := p.Due(m, now, 1, rng); ok {
		t.Error("nothing changed, and a vector goes out")
	}
	now = p.Wake()
	if v, ok := p.Due(m, now, 1, rng); !ok || v.Base != 1 {
		t.Errorf("the reminder is %+v, %v", v, ok)
	}
	p.Continue(7)
	if v, ok := p.Next(m, now, rng, false); !ok || v.Seq != 8 || v.Base != 0 {
		t.Errorf("after one that is of no use comes %+v", v)
	}
}

// If a slot-second has the same price for jobs of every length, PerSecond must be true, so that commands show the price
// for an hour. Otherwise PerSecond must be false.
func TestPricesForAnHour(t *testing.T) {
	m := newMarket()
	m.Config.Mechanism = market.HighestBid
	for length, hourly := range map[messages.Duration]bool{0: true, 60e9: false} {
		m.orders.Tariffs = []mechanism.Tariff{{Basis: mechanism.AtLevel, Rate: 31, Length: length}}
		if p := m.SeenBy("eve", false).Prices()[0]; p.PerSecond != hourly {
			t.Errorf("for jobs of %v the price is %+v", length, p)
		}
	}
}

// The price of a single bid must be shown only to operators and to its bidder. With two or more bidders, other accounts
// must see the price, but no names.
func TestAPriceOfOneBidIsSealed(t *testing.T) {
	m := newMarket()
	m.Config.Mechanism = market.Proportional
	bid := func(id messages.JobID, account messages.Name, budget messages.Credits) {
		put(m, 0, id, budget, 1, 0)
		m.Job(id).Account = account
		m.Allocate(0)
	}
	bid(1, "alice", 31)
	for account, sealed := range map[messages.Name]bool{"alice": false, "bob": true, "eve": true} {
		s := m.SeenBy(account, false)
		p := s.Prices()[0]
		if p.Sealed != sealed || sealed && (p.Price != 0 || p.Pending != 0) || !sealed && p.Price != 31 {
			t.Errorf("%s sees %+v", account, p)
		}
		if own := account == "alice"; len(s.Top(0, 9)) == 1 != own || len(s.Next()) == 1 != own {
			t.Errorf("%s sees %+v, %+v", account, s.Top(0, 9), s.Next())
		}
		tariffs := SealTariffs([]market.SlotTariff{{Class: "cpu", Price: 31}}, s.Prices())
		if tariffs[0].Sealed != sealed || (tariffs[0].Price == 31) == sealed {
			t.Errorf("%s is charged %+v", account, tariffs)
		}
	}
	if p := m.SeenBy("ops", true).Prices()[0]; p.Price != 31 || p.Sealed {
		t.Errorf("an operator sees %+v", p)
	}
	bid(2, "bob", 10)
	if p := m.SeenBy("alice", false).Prices()[0]; !p.Sealed {
		t.Errorf("the only rival's bid is the price less one's own: %+v", p)
	}
	if s := m.SeenBy("eve", false); s.Prices()[0].Price != 41 || len(s.Top(0, 9))+len(s.Next()) != 0 {
		t.Errorf("Eve sees %+v %+v %+v", s.Prices(), s.Top(0, 9), s.Next())
	}
}
