package desk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/clearing"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/money"
)

const (
	second = messages.Duration(1e9)
	epoch  = messages.Time(1_000_000_000_000_000)
	lease  = 30 * second
)

// site is a desk with its book. Commands are committed at once.
type site struct {
	*testing.T
	*book.Book
	desk  *Desk
	now   Instant
	asked []Request // requests without an answer
	all   []Request
	told  []any
	lost  func(*book.Command) error // returns why a proposal is not committed; nil if all are committed
	ran   []*book.Command
	waits []messages.Duration // the patience of each command that ran
	next  messages.Duration
}

func newSite(t *testing.T, adjust func(*Config)) *site {
	t.Helper()
	s := &site{T: t, Book: book.New(), now: Instant{Wall: epoch, Mono: 1000 * second}}
	c := Config{Site: "west", Term: 1, Lease: lease, Level: messages.Level, Markets: []market.Market{{Name: "main", Mechanism: market.Proportional, Classes: []messages.Name{"cpu"}}}}
	adjust(&c)
	s.Watch(true)
	var faults []error
	if s.desk, faults = New(c, s, s.now); len(faults) > 0 {
		t.Fatal(faults)
	}
	s.step()
	return s
}

func (s *site) Read(f func(*book.Book)) { f(s.Book) }

func (s *site) Changes(f func(*book.Book, book.Changes)) { f(s.Book, s.TakeChanges()) }

func (s *site) apply(c *book.Command) any {
	s.Helper()
	c.At, c.Leap, s.now.Leap = s.now.Wall, s.now.Leap, 0
	data, err := c.Encode()
	if err != nil {
		s.Fatal(err)
	}
	if c, err = book.Decode(data); err != nil {
		s.Fatal(err)
	}
	return s.Book.Apply(c)
}

// must commits a command, and fails the test if it is refused.
func (s *site) must(c *book.Command) any {
	s.Helper()
	result := s.apply(c)
	if err, refused := result.(error); refused {
		s.Fatal(err)
	}
	return result
}

// step gives the desk the inputs, and lets it decide until it has nothing more to commit.
func (s *site) step(in ...Input) {
	s.Helper()
	for range 1000 {
		out := s.desk.Step(s.now, in...)
		in = nil
		s.asked, s.all, s.told, s.next = append(s.asked, out.Ask...), append(s.all, out.Ask...), append(s.told, out.Events...), out.Next
		for _, p := range out.Propose {
			var err error
			if s.lost != nil {
				err = s.lost(p.Command)
			}
			if err != nil {
				in = append(in, Done{p.ID, nil, err})
				continue
			}
			s.ran, s.waits = append(s.ran, p.Command), append(s.waits, p.Patience)
			result := s.apply(p.Command)
			if refusal, refused := result.(error); refused {
				in = append(in, Done{p.ID, nil, refusal})
				continue
			}
			in = append(in, Done{p.ID, result, nil})
		}
		if len(in) == 0 && s.next != 0 {
			return
		}
	}
	s.Fatal("the desk is never done")
}

// pass moves the clocks forward by d, and makes a step whenever the desk wants one.
func (s *site) pass(d messages.Duration) {
	s.Helper()
	for d > 0 {
		some := d
		if s.next >= 0 {
			some = min(d, max(s.next, 1000)) // a wall clock counts microseconds
		}
		s.now.Wall, s.now.Mono, d = s.now.Wall.Add(some), s.now.Mono+some, d-some
		s.step()
	}
}

func (s *site) answer(reply any, err error) {
	s.Helper()
	if len(s.asked) == 0 {
		s.Fatal("nothing is asked")
	}
	r := s.asked[0]
	s.asked = s.asked[1:]
	s.step(Done{r.ID, reply, err})
}

func (s *site) carriesOut() {
	s.Helper()
	for len(s.asked) > 0 {
		switch body := s.asked[0].Body.(type) {
		case money.TransferRequest:
			s.answer(moved(body), nil)
		case []job.Observation:
			s.answer(len(body), nil)
		default:
			s.answer(&clearing.ClearingReply{}, nil)
		}
	}
}

func moved(r money.TransferRequest) *money.TransferReply {
	reply := new(money.TransferReply)
	for _, t := range r.Transfers {
		reply.Results = append(reply.Results, money.TransferResult{Amount: t.Amount})
	}
	return reply
}

func (s *site) submit(key string, tasks int) messages.JobID {
	s.Helper()
	return s.enter(&book.Submit{Account: "alice", Key: key, Payer: "alice", Hold: "job/" + key}, tasks)
}

func (s *site) enter(c *book.Submit, tasks int) messages.JobID {
	s.Helper()
	c.Spec = &job.JobSpec{Market: "main", Budget: 10 * messages.Credit,
		Utility: &job.Utility{Form: job.Linear, Weights: job.Weights{{Class: "cpu", Weight: 1}}},
		Stages:  []job.Stage{{Name: "s", Class: "cpu", Tasks: tasks, Command: []string{"true"}}}}
	c.Held = c.Spec.Budget
	return s.must(&book.Command{Submit: c}).(book.Receipt).Job
}

func (s *site) visit(home messages.Name, n int) messages.JobID {
	s.Helper()
	v := job.Visit{Home: home, Job: messages.JobID(n)}
	return s.enter(&book.Submit{Account: messages.VisitorName("bob", home), Key: v.String(), Payer: messages.VisitorName("bob", home),
		Visit: &book.Visit{Visit: v, Authorisation: v.String(), Until: epoch.Add(clearing.MaxInterval)}}, 1)
}

func (s *site) end(id messages.JobID) {
	s.Helper()
	s.must(&book.Command{Cancel: &book.Cancel{Job: id, By: s.Job(id).Account}})
}

func (s *site) register(node messages.Name, session uint64) {
	s.Helper()
	r := &agent.RegisterRequest{Session: session, Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}}
	c, err := s.desk.Register(node, r)
	if err != nil {
		s.Fatal(err)
	}
	if reply := s.desk.Registered(s.now, node, r, s.must(c).([]messages.Attempt)); len(reply.Markets) != 1 || reply.Lease != lease {
		s.Fatalf("%+v", reply)
	}
	s.step()
}

func (s *site) claim(node messages.Name, session, seq uint64, id messages.JobID, slots int) []agent.Grant {
	s.Helper()
	x := &agent.Exchange{Session: session, Seq: seq, Claims: []agent.Claim{{Market: "main", Class: "cpu", Job: id, Slots: slots}}}
	grants := s.must(s.desk.Exchange(node, x)).([]agent.Grant)
	if reply, err := Answer(s.Book, node, x, grants); err != nil || len(reply.Programs) != 1 {
		s.Fatal(reply, err)
	}
	s.step(Heard{node, s.now.Mono})
	return grants
}

func usual(*Config) {}

// The agent of a silent node stops its tasks when its lease ends. Half a lease later, the leader must take back the
// claims of the node. Both times must be measured with the monotonic clock only.
func TestSilentNodesLoseTheirClaims(t *testing.T) {
	s := newSite(t, usual)
	id := s.submit("k", 4)
	s.register("n1", 7)
	s.register("n2", 7)
	s.claim("n1", 7, 1, id, 2)
	s.claim("n2", 7, 1, id, 2)
	for range 4 {
		s.pass(lease / 4)
		s.step(Heard{"n2", s.now.Mono})
	}
	s.now.Wall = s.now.Wall.Add(1000 * lease) // somebody sets the wall clock
	s.step()
	s.pass(lease/2 - second)
	if !s.Node("n1").Up {
		t.Fatal("a node is lost before one lease and a half")
	}
	s.pass(2 * second)
	if s.Node("n1").Up || !s.Node("n2").Up {
		t.Fatal("the silent node has its claims, or another has lost them")
	}
	s.pass(10 * lease)
	s.register("n1", 8)
	if s.pass(second); !s.Node("n1").Up {
		t.Error("a node that has just registered counts as silent")
	}
}

// A node may repeat its registration while it is up, or after it was lost. In both cases it must get a new lease. This
// must work even if the desk reads the book before the desk has answered the registration.
func TestARegistrationThatComesAgainIsHeard(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	s.pass(lease)
	s.register("n1", 7)
	if s.pass(lease); !s.Node("n1").Up {
		t.Error("a node that registered again one lease ago is lost")
	}
	s.pass(lease)
	if s.Node("n1").Up {
		t.Fatal("a silent node is not lost")
	}
	s.must(&book.Command{Register: &book.Register{Node: "n1", Session: 7, Slots: []job.ClassSlots{{Class: "cpu", Slots: 2}}}})
	if s.step(); !s.Node("n1").Up {
		t.Error("a node that registers again is lost at once")
	}
}

// A new desk gives each node a whole lease. A change of markets does not begin the leases again.
func TestANewDeskGivesNodesAWholeLease(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	s.pass(lease)
	s.must(&book.Command{ApplyMarkets: &book.ApplyMarkets{Markets: s.desk.Configs}})
	if s.step(); s.desk.Version != 1 {
		t.Errorf("the markets in force have version %d, want 1", s.desk.Version)
	}
	if s.pass(lease); s.Node("n1").Up {
		t.Error("with other markets the desk does not know when a node was heard")
	}
	s.register("n1", 8)
	s.pass(lease)
	s.desk, _ = New(s.desk.Config, s, s.now)
	s.Watch(true)
	s.step()
	if s.pass(lease); !s.Node("n1").Up {
		t.Error("a new desk counts what another heard")
	}
	if s.pass(lease); s.Node("n1").Up {
		t.Error("a new desk never takes claims back")
	}
}

// The clock was set far ahead. A new desk must first commit this leap, but the log has no room for a while. The desk
// counts how long a node has sent no message. It must count from the moment when the desk was made, and not from the
// later commit.
func TestALateFirstStepGivesNodesNoMoreTime(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	s.desk, _ = New(s.desk.Config, s, s.now)
	s.Watch(true)
	s.now.Wall, s.now.Leap = s.now.Wall.Add(3600*second), 3600*second
	full := true
	s.lost = func(*book.Command) error {
		if full {
			return messages.Errorf(messages.Unavailable, "the log is full")
		}
		return nil
	}
	s.step()
	s.pass(lease)
	full = false
	if s.pass(lease / 3); !s.Node("n1").Up {
		t.Error("a node is lost before one lease and a half")
	}
	if s.pass(lease / 3); s.Node("n1").Up {
		t.Error("a node that was silent for longer than one lease and a half has its claims")
	}
}

// A market is removed and added again in one term. Its vectors must have higher numbers than before, because an agent
// ignores smaller numbers.
func TestVectorsOfAMarketThatComesBackAreTaken(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	for _, key := range []string{"a", "b", "c"} {
		s.submit(key, 1)
		s.pass(second)
	}
	last := s.desk.Published("main")
	all := s.desk.Markets.Configs
	for _, markets := range [][]market.Market{{{Name: "other", Mechanism: market.FIFO, Classes: []messages.Name{"gpu"}}}, all} {
		s.must(&book.Command{ApplyMarkets: &book.ApplyMarkets{Markets: markets}})
		s.pass(second)
	}
	if v, err := s.desk.Vector("main"); err != nil || last == 0 || v.Seq <= last {
		t.Errorf("vector %d of the market comes after vector %d, %v", v.Seq, last, err)
	}
}

// The leader proposes a command that takes back the claims of a lost node. The commit of this command fails, so the
// leader must propose the command again.
func TestANodeIsTakenBackThoughACommitFails(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	fails := 3
	s.lost = func(c *book.Command) error {
		if fails--; fails >= 0 {
			return messages.Errorf(messages.Unknown, "not known")
		}
		return nil
	}
	if s.pass(3 * lease); s.Node("n1").Up || fails >= 0 {
		t.Error("the node has its claims still")
	}
}

// The log refuses all commands for 20 seconds. Meanwhile each command must be proposed again several times, with
// pauses. The commands are a decision, a job that begins at its time, and a leap of the clock.
func TestAFullLogIsTriedAtIntervals(t *testing.T) {
	spec := job.JobSpec{Market: "main", Budget: messages.Credit, Rate: messages.Credit / 100, Begin: epoch.Add(2 * second),
		Stages: []job.Stage{{Name: "s", Class: "cpu", Tasks: 1, Command: []string{"true"}}}}
	for _, c := range []struct {
		what  string
		is    func(*book.Command) bool
		begin func(*site)
	}{
		{"a decision", func(c *book.Command) bool { return c.Decide != nil }, func(s *site) {
			for i, rate := range []messages.Credits{2, 1, 3} { // the last job has the slot of the first
				now := spec
				now.Rate, now.Begin = rate*spec.Rate, 0
				id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint(i), Payer: "alice", Hold: fmt.Sprint("job/", i), Held: messages.Credit, Spec: &now}}).(book.Receipt).Job
				if i == 0 {
					s.register("n1", 7)
					s.claim("n1", 7, 1, id, 2)
				}
			}
		}},
		{"a beginning", func(c *book.Command) bool { return c.Begin != nil && c.Leap == 0 }, func(s *site) {
			s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: "k", Payer: "alice", Hold: "job/k", Held: messages.Credit, Spec: &spec}})
			s.step()
		}},
		{"a leap", func(c *book.Command) bool { return c.Begin != nil }, func(s *site) {
			s.now.Wall, s.now.Leap = s.now.Wall.Add(3600*second), 3600*second
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSite(t, func(c *Config) { c.Markets[0].Mechanism = market.HighestBid })
			tries, full := 0, false
			s.lost = func(command *book.Command) error {
				if c.is(command) {
					tries++
				}
				if full {
					return messages.Errorf(messages.Unavailable, "the log is full")
				}
				return nil
			}
			c.begin(s)
			full = true
			s.step()
			if s.pass(20 * second); tries < 6 || tries > 30 {
				t.Errorf("%s was proposed %d times in 20 seconds", c.what, tries)
			}
			tries, full, s.ran = 0, false, nil
			s.pass(8 * second)
			if s.ran = slices.DeleteFunc(s.ran, func(command *book.Command) bool { return !c.is(command) }); tries != 1 || len(s.ran) != 1 {
				t.Errorf("with room %s was proposed %d times, and is in the log %d times", c.what, tries, len(s.ran))
			}
		})
	}
}

// A gang has waited too long for its slots, and the command that gives back its slots fails. The desk must propose this
// command again after a short time.
func TestAGangIsGivenBackThoughACommitFails(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.Markets[0].Mechanism, c.Markets[0].GangTimeout = market.Backfill, 2*second
	})
	id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: "k", Payer: "alice", Hold: "job/k", Held: messages.Credit,
		Spec: &job.JobSpec{Market: "main", Budget: messages.Credit, Length: 60 * second,
			Stages: []job.Stage{{Name: "s", Class: "cpu", Tasks: 3, Gang: true, Command: []string{"true"}}}}}}).(book.Receipt).Job
	s.register("n1", 7)
	s.register("n2", 8)
	s.pass(second)
	s.claim("n1", 7, 1, id, 2)
	if s.Job(id).Stages[0].Gathered == 0 {
		t.Fatal("the gang does not gather")
	}
	fails := 1
	s.lost = func(c *book.Command) error {
		if c.Disband != nil {
			if fails--; fails >= 0 {
				return messages.Errorf(messages.Unavailable, "the log is full")
			}
		}
		return nil
	}
	if s.pass(4 * second); s.Job(id).Stages[0].Gathered != 0 || fails >= 0 {
		t.Error("the gang gathers still")
	}
}

// When a node's drain is over, by the wall clock, the desk must end the tasks that still run on the node.
func TestDrainedNodesAreEvicted(t *testing.T) {
	s := newSite(t, usual)
	id := s.submit("k", 2)
	s.register("n1", 7)
	s.claim("n1", 7, 1, id, 2)
	s.must(&book.Command{Drain: &book.Drain{Node: "n1", Until: s.now.Wall.Add(10 * second)}})
	s.step()
	if s.pass(9 * second); len(s.Node("n1").Stop) > 0 {
		t.Fatal("tasks are ended before the time")
	}
	if s.pass(2 * second); len(s.Node("n1").Stop) != 2 {
		t.Errorf("%d of 2 tasks are to end", len(s.Node("n1").Stop))
	}
}

func TestLastWords(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	spent := func(id messages.JobID) *book.Command {
		return &book.Command{Decide: &book.Decide{Market: "main", Discard: []book.Discarding{{Job: id, Reason: mechanism.BudgetSpent, Message: "its slots have cost 10 credits"}}}}
	}
	for i, one := range []struct {
		end  func(id messages.JobID, a messages.Attempt) *book.Command
		want []string
	}{
		{func(id messages.JobID, _ messages.Attempt) *book.Command {
			return &book.Command{Cancel: &book.Cancel{Job: id, By: "alice"}}
		}, []string{"*** cancelled by alice, its owner"}},
		{func(id messages.JobID, _ messages.Attempt) *book.Command { return spent(id) }, []string{"DUE TO BUDGET *** its slots have cost 10 credits"}},
		{func(_ messages.JobID, a messages.Attempt) *book.Command {
			return &book.Command{Decide: &book.Decide{Market: "main", Requeue: []messages.Attempt{a}}}
		}, []string{"DUE TO PREEMPTION ***"}},
		{func(messages.JobID, messages.Attempt) *book.Command {
			return &book.Command{Drain: &book.Drain{Node: "n1", Until: s.now.Wall}}
		}, nil},
	} {
		id, seq := s.submit(fmt.Sprint(i), 1), uint64(2*i+1)
		a := s.claim("n1", 7, seq, id, 1)[0].Attempt
		s.must(one.end(id, a))
		s.step()
		reply, err := Answer(s.Book, "n1", &agent.Exchange{Session: 7, Seq: seq}, []agent.Grant{})
		if err != nil || !slices.Equal(reply.Stop, []messages.Attempt{a}) || !slices.Equal(reply.Last, one.want) {
			t.Errorf("end %d: %v, told %v to end with %q, want %q", i, err, reply.Stop, reply.Last, one.want)
		}
		s.must(s.desk.Exchange("n1", &agent.Exchange{Session: 7, Seq: seq + 1, Finished: []agent.Finished{{Attempt: a, Outcome: agent.Stopped}}}))
		s.step()
	}
}

// A task reaches its time limit. The job's other task must end, and the last line of its output must say why.
func TestLastWordsOfATimeLimit(t *testing.T) {
	s := newSite(t, usual)
	s.register("n1", 7)
	id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: "k", Payer: "alice", Hold: "job/k", Held: messages.Credit, Spec: &job.JobSpec{Market: "main", Budget: messages.Credit,
		Stages: []job.Stage{{Name: "s", Class: "cpu", Tasks: 2, Attempts: 1, TimeLimit: 2 * second, Command: []string{"true"}}}}}}).(book.Receipt).Job
	grants := s.claim("n1", 7, 1, id, 2)
	s.must(s.desk.Exchange("n1", &agent.Exchange{Session: 7, Seq: 2, Finished: []agent.Finished{{Attempt: grants[1].Attempt, Outcome: agent.TimedOut}}}))
	s.step()
	reply, err := Answer(s.Book, "n1", &agent.Exchange{Session: 7, Seq: 2}, []agent.Grant{})
	if want := []string{"DUE TO TIME LIMIT *** its time limit is 2s"}; err != nil || !slices.Equal(reply.Last, want) {
		t.Errorf("told %v to end with %q, %v; want %q", reply.Stop, reply.Last, err, want)
	}
}

// At first the clock is far behind, so the time of the next duty seems far away. Then the clock is set right. Soon
// after that, the desk must make a step.
func TestAClockThatIsSetDelaysNoDuty(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Idle = second })
	id := s.submit("k", 2)
	s.register("n1", 7)
	s.claim("n1", 7, 1, id, 2)
	s.must(&book.Command{Drain: &book.Drain{Node: "n1", Until: s.now.Wall.Add(3600 * second)}})
	s.step()
	if s.pass(second); s.next < 0 || s.next > second {
		t.Errorf("the next step is made after %v", s.next)
	}
	s.now.Wall = s.now.Wall.Add(3600 * second)
	if s.pass(second); len(s.Node("n1").Stop) != 2 {
		t.Errorf("%d of 2 tasks are to end", len(s.Node("n1").Stop))
	}
}

// While a job with a budget for one hour runs, the clock is set ahead by a day. The job must continue, and must pay
// only for the time that it really ran. When a day has really passed, the job must have ended.
func TestNobodyPaysForALeapOfTheClock(t *testing.T) {
	const day = 24 * 3600 * second
	s := newSite(t, func(c *Config) {
		c.Markets[0].Mechanism, c.Markets[0].Reserve = market.HighestBid, new(messages.Price(messages.Credit))
	})
	id := s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: "k", Payer: "alice", Hold: "job/k", Held: 3600 * messages.Credit, Spec: &job.JobSpec{Market: "main", Budget: 3600 * messages.Credit, Rate: messages.Credit,
		Stages: []job.Stage{{Name: "s", Class: "cpu", Tasks: 1, Command: []string{"true"}}}}}}).(book.Receipt).Job
	s.register("n1", 7)
	s.claim("n1", 7, 1, id, 1)
	pass := func(d messages.Duration) {
		for end := s.now.Mono + d; s.now.Mono < end; s.pass(lease / 3) {
			s.step(Heard{"n1", s.now.Mono})
		}
	}
	pass(600 * second)
	s.now.Wall, s.now.Leap = s.now.Wall.Add(day), day
	pass(1200 * second)
	if cost, had := s.Used(s.Job(id), s.now.Wall); s.Job(id).State != job.Running || cost/messages.Credit != 1799 || had/second != 1799 {
		t.Errorf("after half an hour the job is %v, and is to pay %v for %v", s.Job(id).State, cost, had)
	}
	if pass(day); s.Job(id).Active() {
		t.Errorf("after a day the job is %v still", s.Job(id).State)
	}
}

// After the end of a job, the desk commits commands that settle and charge the job. If many jobs end one shortly after
// another, their commands must wait a little, so that several commands share a log entry. If a single job ends, its
// commands must be committed immediately.
func TestEndsInAStreamWaitForOthers(t *testing.T) {
	s := newSite(t, usual)
	for i, c := range []struct{ after, settle, pay messages.Duration }{
		{second, 0, 0},
		{SharedWithin + 1000, 0, 0},
		{SharedWithin, SharedWithin, SharedWithin},
		{SharedWithin / 2, SharedWithin, SharedWithin},
		{second, 0, 0},
	} {
		one, other := s.submit(fmt.Sprint(i, "a"), 1), s.submit(fmt.Sprint(i, "b"), 1)
		s.pass(c.after)
		s.ran, s.waits = nil, nil
		s.end(one)
		s.end(other) // both jobs end at the same time
		s.step()
		s.carriesOut()
		settled, paid := 0, 0
		for k, command := range s.ran {
			switch {
			case command.Settle != nil && s.waits[k] == c.settle:
				settled++
			case command.Confirm != nil && s.waits[k] == c.pay:
				paid += len(command.Confirm.Effects)
			}
		}
		if settled != 2 || paid != 2 {
			t.Errorf("after %v: %d were settled and %d paid as wanted; all wait %v", c.after, settled, paid, s.waits)
		}
	}
}

// If the command that settles a job is lost, the desk must propose it again with the same content. It must keep the
// content, because the market returns the shares of a job only once.
func TestSettlementIsProposedUntilItIsInTheBook(t *testing.T) {
	s := newSite(t, usual)
	id := s.submit("k", 1)
	s.register("n1", 7)
	s.pass(second)
	var first *book.Settle
	tries := 0
	s.lost = func(c *book.Command) error {
		if c.Settle == nil {
			return nil
		}
		if first == nil {
			first = c.Settle
		}
		if tries++; tries < 4 {
			return messages.Errorf(messages.Unknown, "not known")
		}
		if c.Settle != first {
			t.Error("another settlement is proposed")
		}
		return nil
	}
	s.end(id)
	s.step()
	if s.pass(10 * second); !s.Job(id).Settled || tries != 4 || len(first.Shares) == 0 {
		t.Errorf("after %d tries: %+v", tries, first)
	}
}

func TestAJobOfAMarketThatIsGoneOwesNothing(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Markets[0].Name = "other" })
	id := s.submit("k", 1)
	s.end(id)
	s.step()
	s.carriesOut()
	if j := s.Job(id); !j.State.Final() || j.Charged != 0 {
		t.Errorf("%v, %v charged", j.State, j.Charged)
	}
}

// Retries must come even if no other events happen: when the bank is silent, a confirmation is lost, or the stream does
// not work.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	s := newSite(t, usual)
	id := s.submit("k", 1)
	s.end(id)
	s.step()
	confirms := 0
	s.lost = func(c *book.Command) error {
		if c.Confirm != nil {
			if confirms++; confirms == 1 {
				return messages.Errorf(messages.Unknown, "not known")
			}
		}
		return nil
	}
	charges := map[string]int{}
	for range 20 {
		for len(s.asked) > 0 {
			switch body := s.asked[0].Body.(type) {
			case money.TransferRequest:
				charges[body.Transfers[0].ID]++
				if charges[body.Transfers[0].ID] < 3 {
					s.answer(nil, messages.Errorf(messages.Unavailable, "no answer"))
				} else {
					s.answer(moved(body), nil)
				}
			case []job.Observation:
				s.answer(0, messages.Errorf(messages.Unavailable, "the stream has no leader"))
				s.pass(10 * second)
				if len(s.asked) == 0 {
					t.Fatal("observations are not left again")
				}
				s.carriesOut()
			}
		}
		s.pass(10 * second)
	}
	if n := charges["job/k/charge"]; !s.Job(id).State.Final() || len(slices.Collect(s.EachEffect)) > 0 || n < 3 || len(charges) != 1 {
		t.Errorf("%v, %d effects, %v", s.Job(id).State, len(slices.Collect(s.EachEffect)), charges)
	}
}

// If the bank refuses a request as a whole, each of its transfers must be sent alone.
func TestOneBadTransferRefusesNoOther(t *testing.T) {
	s := newSite(t, usual)
	var ids []messages.JobID
	for _, key := range []string{"a", "bad", "c"} {
		ids = append(ids, s.submit(key, 1))
	}
	for _, id := range ids {
		s.end(id)
	}
	s.step()
	for len(s.asked) > 0 {
		body, transfers := s.asked[0].Body.(money.TransferRequest)
		bad := false
		for _, c := range body.Transfers {
			bad = bad || c.ID == "job/bad/charge"
		}
		switch {
		case !transfers:
			s.answer(len(s.asked[0].Body.([]job.Observation)), nil)
		case bad:
			s.answer(nil, messages.Errorf(messages.TooLarge, "more than a command may have"))
		default:
			s.answer(moved(body), nil)
		}
	}
	for i, id := range ids {
		if j := s.Job(id); !j.State.Final() || (j.Refused != "") != (i == 1) {
			t.Errorf("job %d is %v, refused %q", id, j.State, j.Refused)
		}
	}
}

// Charges to a silent site do not fill a batch. The first batch must have the site's own charges, and the next ones the
// charges of each other site in turn.
func TestABatchIsSharedFairly(t *testing.T) {
	s := newSite(t, usual)
	for i := range 4 * feesAtOnce {
		s.end(s.visit("silent", i+1))
	}
	s.end(s.visit("north", 1))
	own := s.submit("k", 1)
	s.end(own)
	s.step()
	sites := map[messages.Name]int{}
	for _, r := range s.asked {
		if fee, is := r.Body.(clearing.ChargeRequest); is {
			sites[fee.Issuer]++
		}
	}
	if sites["north"] != 1 || sites["silent"] != feesAtOnce-1 {
		t.Fatalf("charges to other sites: %v", sites)
	}
	for len(s.asked) > 0 {
		switch body := s.asked[0].Body.(type) {
		case clearing.ChargeRequest:
			if body.Issuer == "silent" {
				s.answer(nil, messages.Errorf(messages.Exhausted, "the outbox is full"))
				continue
			}
			s.answer(&clearing.ClearingReply{}, nil)
		case money.TransferRequest:
			s.answer(moved(body), nil)
		case []job.Observation:
			s.answer(len(body), nil)
		}
	}
	if !s.Job(own).State.Final() {
		t.Error("a charge of the site waits for those of another")
	}
	another := s.submit("k2", 1)
	s.end(another)
	s.step()
	for _, r := range s.asked {
		if fee, is := r.Body.(clearing.ChargeRequest); is {
			t.Fatalf("what cannot be charged is tried again at once: %+v", fee)
		}
	}
	s.carriesOut()
	if !s.Job(another).State.Final() {
		t.Error("a charge of the site waits for those of another")
	}
	for range 100 {
		s.pass(10 * second)
		s.carriesOut()
	}
	if n := len(slices.Collect(s.EachEffect)); n > 0 {
		t.Errorf("%d effects are left", n)
	}
}

// Holds are extended once in each quarter of HoldFor, and soon again if the bank did not answer. If the bank refuses to
// extend one hold, the others must still be extended.
func TestHoldsAreExtended(t *testing.T) {
	s := newSite(t, func(c *Config) { c.HoldFor = 400 * second })
	s.submit("a", 1)
	s.submit("b", 1)
	if s.pass(150 * second); len(s.asked) > 0 {
		t.Fatalf("young holds are extended: %+v", s.asked)
	}
	s.pass(51 * second)
	extended := func() (holds []string) {
		for _, x := range s.asked[0].Body.(money.TransferRequest).Transfers {
			if x.Kind != money.Extend || x.Expires < s.now.Wall.Add(390*second) {
				t.Fatalf("%+v", x)
			}
			holds = append(holds, x.Pending)
		}
		return holds
	}
	if got := fmt.Sprint(extended()); got != "[job/a job/b]" && got != "[job/b job/a]" {
		t.Fatalf("extended are %v", got)
	}
	s.answer(nil, messages.Errorf(messages.Unavailable, "no answer"))
	if s.pass(10 * second); len(s.asked) != 1 {
		t.Fatalf("%d requests after the bank was silent", len(s.asked))
	}
	s.answer(nil, messages.Errorf(messages.TooLarge, "more than a command may have"))
	alone := len(s.asked)
	for range 2 {
		reply := moved(s.asked[0].Body.(money.TransferRequest))
		if alone++; len(extended()) != 1 {
			t.Fatal("they are not asked for alone")
		}
		if extended()[0] == "job/a" {
			reply.Results[0].Error = messages.Errorf(messages.Expired, "the hold is resolved")
		}
		s.answer(reply, nil)
	}
	if len(s.asked) > 0 {
		t.Errorf("asked again at once: %+v", s.asked)
	}
	if s.pass(102 * second); len(s.asked) != 1 {
		t.Errorf("%d requests after a quarter of the time", len(s.asked))
	}
}

// The clock is set ahead by an hour. Within the next minute, the desk must ask the bank to extend the holds, and must
// compute their new expiry from the new time.
func TestHoldsAreExtendedWhenTheClockIsSet(t *testing.T) {
	s := newSite(t, func(c *Config) { c.HoldFor = 3600 * second })
	s.submit("a", 1)
	if s.pass(60 * second); len(s.asked) > 0 {
		t.Fatalf("young holds are extended: %+v", s.asked)
	}
	s.now.Wall = s.now.Wall.Add(3600 * second)
	s.pass(60 * second)
	if len(s.asked) != 1 {
		t.Fatalf("%d requests after the clock was set", len(s.asked))
	}
	x := s.asked[0].Body.(money.TransferRequest).Transfers
	if len(x) != 1 || x[0].Kind != money.Extend || x[0].Expires < s.now.Wall.Add(3500*second) {
		t.Errorf("%+v", x)
	}
	s.answer(moved(s.asked[0].Body.(money.TransferRequest)), nil)
	if s.pass(120 * second); len(s.asked) > 0 {
		t.Errorf("asked again: %+v", s.asked)
	}
}

// A node registers again while the leader is committing that the node is lost. Then the node falls silent. Its claims
// must be taken back, even if other nodes are checked before it.
func TestANodeThatComesBackDuringItsLossIsLostAgain(t *testing.T) {
	s := newSite(t, func(*Config) {})
	register := func(node messages.Name, session uint64) {
		s.must(&book.Command{Register: &book.Register{Node: node, Session: session, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}}})
	}
	began := s.now
	// The function lost moves both clocks to the given time after the beginning, and lets the desk take a step. It
	// returns the desk's proposal that the node is lost, if there is one.
	lost := func(after messages.Duration, node messages.Name, in ...Input) (found Proposal) {
		s.now = Instant{Wall: began.Wall.Add(after), Mono: began.Mono + after}
		for _, p := range s.desk.Step(s.now, in...).Propose {
			if p.Command.Lost != nil && p.Command.Lost.Node == node {
				found = p
			}
		}
		return found
	}
	register("n", 1)
	lost(0, "n")
	register("m", 1)
	lost(10*second, "m")
	first := lost(46*second, "n")
	register("n", 2)
	lost(47*second, "n")
	other := lost(56*second, "m")
	if first.Command == nil || other.Command == nil {
		t.Fatal("silent nodes are not lost")
	}
	lost(57*second, "n", Done{ID: other.ID, Result: s.must(other.Command)})
	lost(58*second, "n", Done{ID: first.ID, Result: s.must(first.Command)})
	if again := lost(47*second+lease*3/2+second, "n"); again.Command == nil || again.Command.Lost.Session != 2 {
		t.Errorf("the node came back, fell silent, and is not lost: %+v", again)
	}
}

// A node registers after the clock has jumped ahead. The book learns of the jump three seconds later. The node's lease
// must be counted from the answer to the registration, and the jump must not make it shorter or longer.
func TestALeaseCountsFromTheAnswer(t *testing.T) {
	s := newSite(t, func(*Config) {})
	r := &agent.RegisterRequest{Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}}
	c, err := s.desk.Register("n", r)
	if err != nil {
		t.Fatal(err)
	}
	s.desk.Registered(s.now, "n", r, s.must(c).([]messages.Attempt))
	answered := s.now
	loses := func(after messages.Duration, leap messages.Duration) bool {
		s.now = Instant{Wall: answered.Wall.Add(after), Mono: answered.Mono + after, Leap: leap}
		return slices.ContainsFunc(s.desk.Step(s.now).Propose, func(p Proposal) bool { return p.Command.Lost != nil })
	}
	loses(1, second)
	loses(3*second, 0)
	if early := loses(lease*3/2-second, 0); early {
		t.Error("the node is lost before its lease has ended")
	}
	if !loses(lease*3/2+second, 0) {
		t.Error("the node is not lost after its lease has ended")
	}
}

// meddled is a book. Before each read, it calls the function in the field `meddle`.
type meddled struct {
	*site
	meddle func()
}

func (m *meddled) Read(f func(*book.Book)) {
	if m.meddle != nil {
		m.meddle()
	}
	f(m.Book)
}

// A new leader reads the jobs from the book in several parts, one part in each step. One job ends before its part is
// read. Afterwards the market must have all jobs except this one.
func TestANewLeaderReadsInParts(t *testing.T) {
	s := newSite(t, func(*Config) {})
	last := messages.JobID(0)
	for i := range 2*followAtOnce + 1 {
		last = s.must(&book.Command{Submit: &book.Submit{Account: "alice", Key: fmt.Sprint(i), Payer: "alice", Hold: fmt.Sprint("h", i), Held: messages.Credit,
			Spec: &job.JobSpec{Market: "main", Budget: messages.Credit, Stages: []job.Stage{{Name: "main", Class: "cpu", Tasks: 1}}}}}).(book.Receipt).Job
	}
	b := &meddled{site: s}
	d, faults := New(s.desk.Config, b, s.now)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	s.Watch(true)
	reads := 0
	b.meddle = func() {
		if reads++; reads == 1 {
			s.must(&book.Command{Cancel: &book.Cancel{Job: last, By: "alice"}})
		}
	}
	out := d.Step(s.now)
	if n := d.Market("main").Jobs(); n != 2*followAtOnce || reads < 2 {
		t.Errorf("%d jobs are in the market after %d reads, not %d after 2", n, reads, 2*followAtOnce)
	}
	if !slices.ContainsFunc(out.Propose, func(p Proposal) bool { return p.Command.Settle != nil && p.Command.Settle.Job == last }) {
		t.Errorf("the job that ended is not settled: %+v", out.Propose)
	}
	if d.Step(s.now); d.Market("main").Jobs() != 2*followAtOnce {
		t.Error("the job that ended is in the market again")
	}
}

// In a market without weights, a claim must wait for a decision if a task has ended and the market does not know this
// yet. In a market that sets weights, no claim may wait.
func TestClaimsWaitForADecision(t *testing.T) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		s := newSite(t, func(c *Config) { c.Markets[0].Mechanism = mechanism })
		s.register("n1", 1) // a node with two slots
		first := s.claim("n1", 1, 1, s.submitted("a"), 1)
		s.claim("n1", 1, 2, s.submitted("b"), 1)
		waits := s.submitted("c")
		x := &agent.Exchange{Session: 1, Seq: 4, Claims: []agent.Claim{{Market: "main", Class: "cpu", Slots: 1, Job: waits}}}
		if s.desk.AwaitsDecision(x) {
			t.Errorf("%s: there is nothing to decide, and a claim waits", mechanism)
		}
		s.must(s.desk.Exchange("n1", &agent.Exchange{Session: 1, Seq: 3, Finished: []agent.Finished{{Attempt: first[0].Attempt}}}))
		if is, want := s.desk.AwaitsDecision(x), mechanism == market.HighestBid; is != want {
			t.Errorf("%s: the market does not know of an end, and a claim waits: %v", mechanism, is)
		}
		s.step()
		if s.desk.AwaitsDecision(x) || len(s.must(s.desk.Exchange("n1", x)).([]agent.Grant)) != 1 {
			t.Errorf("%s: the market has decided, and a claim waits or comes to nothing", mechanism)
		}
	}
}

// All tasks of a market that directs claims end together. Then their nodes claim at the same time, with jobs that they
// draw from the vector. Each claim must be granted a task.
func TestAWaveIsServedByOneDecision(t *testing.T) {
	const nodes = 700
	s := newSite(t, func(c *Config) { c.Markets[0].Mechanism = market.HighestBid })
	ends := s.submit("a", nodes)
	var jobs []messages.JobID
	for n := range nodes {
		jobs = append(jobs, s.submit(fmt.Sprint("waits", n), 1))
		s.must(&book.Command{Register: &book.Register{Node: fmt.Sprint("n", n), Session: 1, Slots: []job.ClassSlots{{Class: "cpu", Slots: 1}}}})
	}
	s.step()
	say := func(n int, x agent.Exchange) *book.Command {
		x.Session = 1
		return s.desk.Exchange(fmt.Sprint("n", n), &x)
	}
	for n := range nodes {
		grants := s.must(say(n, agent.Exchange{Seq: 1, Claims: []agent.Claim{{Market: "main", Class: "cpu", Slots: 1, Job: ends}}})).([]agent.Grant)
		s.must(say(n, agent.Exchange{Seq: 2, Finished: []agent.Finished{{Attempt: grants[0].Attempt}}}))
	}
	s.step()
	rng, all := rand.New(rand.NewPCG(7, 1)), make([]*book.Command, nodes)
	for n := range nodes {
		all[n] = say(n, agent.Exchange{Seq: 3, Claims: []agent.Claim{{Market: "main", Class: "cpu", Slots: 1, Job: jobs[rng.IntN(nodes)]}}})
	}
	served := 0
	for _, n := range rng.Perm(nodes) {
		served += len(s.must(all[n]).([]agent.Grant))
	}
	if served != nodes {
		t.Errorf("%d claims of %d are granted a task; the others wait for the next vector", served, nodes)
	}
}

// A claim can wait if other claims have reserved all tasks. There are two exceptions. If the node of the claim has a
// task, the claim must not wait, because the report of the task's end would wait too. If the market directs claims, the
// claim must not wait either.
func TestVainClaims(t *testing.T) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		s := newSite(t, func(c *Config) { c.Markets[0].Mechanism = mechanism })
		s.register("n1", 1)
		s.register("n2", 2)
		job, directs := s.submitted("a"), mechanism == market.HighestBid
		claim := func(session, seq uint64) *agent.Exchange {
			return &agent.Exchange{Session: session, Seq: seq, Claims: []agent.Claim{{Market: "main", Class: "cpu", Slots: 1, Job: job}}}
		}
		if s.desk.AllReserved("n1", claim(1, 1)) {
			t.Errorf("%s: a claim for a waiting task is in vain", mechanism)
		}
		first := s.desk.Exchange("n1", claim(1, 1))
		if is := s.desk.AllReserved("n2", claim(2, 1)); is == directs {
			t.Errorf("%s: the task is on its way to another node, and a claim is in vain: %v", mechanism, is)
		}
		if s.desk.AllReserved("n2", &agent.Exchange{Session: 2, Seq: 1, Finished: []agent.Finished{{}}}) {
			t.Errorf("%s: the end of a task is in vain", mechanism)
		}
		s.must(first)
		s.step()
		if s.desk.AllReserved("n1", claim(1, 2)) {
			t.Errorf("%s: a claim is in vain whose node has a task", mechanism)
		}
	}
}

func (s *site) submitted(key string) messages.JobID {
	id := s.submit(key, 1)
	s.step()
	return id
}

// The claims of an exchange list jobs, and slots are reserved for each listed job. The reservation of a job must end if
// the job got no slot. There are two reasons: earlier jobs in the list used up the claim, or the task did not fit in
// the answer.
func TestUngranted(t *testing.T) {
	x := &book.Exchange{Claims: []book.Claim{{Jobs: []messages.JobID{1, 2, 3}}, {Jobs: []messages.JobID{4}}, {Jobs: []messages.JobID{5, 2}}}}
	grant := func(id messages.JobID) agent.Grant {
		return agent.Grant{Attempt: messages.Attempt{Task: messages.TaskRef{Job: id}}}
	}
	if got := Ungranted(x, []agent.Grant{grant(2)}); !slices.Equal(got, []messages.JobID{3, 4}) {
		t.Errorf("missed %v, want jobs 3 and 4", got)
	}
	directed := &book.Exchange{Claims: []book.Claim{{Jobs: []messages.JobID{1, 2, 3}, Most: []int{1, 1, 1}}}}
	if got := Ungranted(directed, []agent.Grant{grant(2)}); !slices.Equal(got, []messages.JobID{3, 1}) {
		t.Errorf("missed %v where the market directs, want jobs 3 and 1", got)
	}
	if got := Ungranted(x, nil); len(got) != 6 {
		t.Errorf("missed %v, where nothing was granted", got)
	}
	fitted := []book.Claim{{Jobs: []messages.JobID{1}}, {Jobs: []messages.JobID{2, 3}}}
	if got := cutOff(x.Claims, fitted); !slices.Equal(got, []messages.JobID{4, 5}) {
		t.Errorf("cutOff %v, want jobs 4 and 5", got)
	}
	if got := cutOff(x.Claims[:1], fitted); got != nil {
		t.Errorf("cutOff %v, where all fit", got)
	}
}

// A job was charged, and then the node of a failed attempt goes into quarantine. The bank must be asked to give back
// the charge for the attempt.
func TestABrokenNodesTimeIsGivenBack(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.Markets = []market.Market{{Name: "main", Mechanism: market.FIFO, Classes: []messages.Name{"cpu"}}}
	})
	s.register("n1", 7)
	s.register("n2", 7)
	seqs := map[messages.Name]uint64{}
	exchange := func(node messages.Name, exit int, ended []agent.Grant, jobs ...messages.JobID) []agent.Grant {
		t.Helper()
		seqs[node]++
		x := &book.Exchange{Node: node, Session: 7, Seq: seqs[node], Claims: []book.Claim{{Class: "cpu", Slots: 1, Jobs: jobs}}}
		for _, g := range ended {
			f := agent.Finished{Attempt: g.Attempt, ExitCode: exit, Started: s.now.Wall.Add(-second), Ended: s.now.Wall}
			if g.Attempt.Task.Job == 0 { // a probe ends well, because only tasks of users fail on this node
				f.ExitCode = 0
			}
			x.Finished = append(x.Finished, f)
		}
		grants := s.must(&book.Command{Exchange: x}).([]agent.Grant)
		s.step()
		return grants
	}
	var costs []messages.Credits
	for _, account := range []messages.Name{"alice", "bob"} {
		id := s.enter(&book.Submit{Account: account, Key: "k", Payer: account, Hold: "job/" + account}, 1)
		s.Job(id).Spec.Stages[0].Attempts = 2
		s.step()
		bad := exchange("n1", 0, nil, id)
		s.pass(second)
		probe := exchange("n1", 1, bad)
		good := exchange("n2", 0, nil, id)
		s.pass(second)
		exchange("n1", 0, probe)
		exchange("n2", 0, good)
		s.carriesOut()
		if j := s.Job(id); j.State != job.Completed || j.Charged == 0 {
			t.Fatalf("%s's job is %v and was charged %v", account, j.State, j.Charged)
		}
		costs = append(costs, s.Job(id).Charged)
	}
	if s.Node("n1").Health.Quarantined == 0 || costs[0] != 2*costs[1] {
		t.Fatalf("the jobs were charged %v; health of n1: %+v", costs, s.Node("n1").Health)
	}
	var back []money.Transfer
	for _, r := range s.all {
		if body, ok := r.Body.(money.TransferRequest); ok {
			for _, x := range body.Transfers {
				if x.Kind == money.Posted && x.Debit == money.SiteAccount {
					back = append(back, x)
				}
			}
		}
	}
	if len(back) != 1 || back[0].Credit != "alice" || back[0].Amount != costs[1] || s.Job(1).Cost() != costs[1] || len(slices.Collect(s.EachEffect)) > 0 {
		t.Errorf("%+v is given back, and alice pays %v in the end", back, s.Job(1).Cost())
	}
}
