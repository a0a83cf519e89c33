package book

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/expect"
	"github.com/candor-grid/candor/messages/job"
)

func gang(tasks int) job.Stage {
	s := mapStage(tasks)
	s.Gang = true
	return s
}

// passTo sets the clock so that the next command has the given time.
func (s *site) passTo(at messages.Time) { s.at = at - 1 }

func TestSuspendedClaimLeavesItsSlotAndTakesItAgain(t *testing.T) {
	s := newSite(t)
	low, high := s.submit("low", mapStage(1)), s.submit("high", mapStage(1))
	s.register("n1", 7, 1)
	g := s.claim("n1", 7, 1, 1, low)[0]
	suspend := Command{Decide: &Decide{Market: "main", Suspend: []messages.Attempt{g.Attempt}}}
	s.apply(suspend)
	version := s.Node("n1").Version
	s.apply(suspend)
	if n := s.Node("n1"); n.Idle("map") != 1 || !slices.Equal(n.Halted(), []messages.Attempt{g.Attempt}) || n.Version != version {
		t.Fatalf("node %+v", n)
	}
	other := s.claim("n1", 7, 2, 1, high)
	resume := Command{Decide: &Decide{Market: "main", Resume: []messages.Attempt{g.Attempt}}}
	s.apply(resume)
	if n := s.Node("n1"); len(n.Halted()) != 1 {
		t.Fatal("a task was resumed on a slot that another has")
	}
	s.finish("n1", 7, 3, agent.Exited, 0, other[0].Attempt)
	s.apply(resume)
	if n := s.Node("n1"); len(n.Halted()) != 0 || n.Version <= version || n.Idle("map") != 0 {
		t.Fatalf("node %+v", n)
	}
	s.apply(Command{Decide: &Decide{Suspend: []messages.Attempt{{Task: g.Attempt.Task, Number: 9}, {Task: messages.TaskRef{Job: 77}, Number: 1}}}})
	if n := s.Node("n1"); len(n.Halted()) != 0 {
		t.Fatal("a word about another attempt suspended this one")
	}
}

// The tariff changes twice while the job exists. At first a slot costs 3 a second, and the job has 2 slots for 10 µs.
// Then a slot costs the job's own bid, 4, and the job has 2 slots for 5 µs, until it is suspended. The last tariff is 6
// a second for jobs that declare the length 3, and in proportion for other lengths. This job declares the length 2, so
// it pays 6·2/3 a second, for 5 µs.
func TestMeterCountsAtTheTariffsThatHeld(t *testing.T) {
	s := newSite(t)
	s.apply(Command{Submit: &Submit{Account: "alice", Key: "k", Hold: "k", Held: 100,
		Spec: &job.JobSpec{Market: "main", Rate: 4_000_000, Length: 2, Stages: []job.Stage{mapStage(2)}}}})
	tariff := func(x Tariff) Command {
		x.Class = "map"
		return Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{x}}}
	}
	s.register("n1", 7, 2)
	s.passTo(100)
	s.apply(tariff(Tariff{Price: 3_000_000}))
	s.passTo(110)
	g := s.claim("n1", 7, 1, 2, 1)
	s.passTo(120)
	s.apply(tariff(Tariff{OwnBid: true}))
	s.passTo(125)
	s.apply(Command{Decide: &Decide{Suspend: []messages.Attempt{g[0].Attempt, g[1].Attempt}}})
	s.passTo(1000)
	s.apply(tariff(Tariff{Price: 6_000_000, Length: 3}))
	s.passTo(1001)
	s.apply(Command{Decide: &Decide{Resume: []messages.Attempt{g[0].Attempt, g[1].Attempt}}})
	cost, used := s.Used(s.Job(1), 1006)
	if want := messages.Credits(2*10*3 + 2*5*4 + 2*5*4); cost != want || used != messages.Duration(2*20*1000) {
		t.Fatalf("cost %d microcredits for %v, want %d for 40µs", cost, used, want)
	}
	s.passTo(1006)
	s.finish("n1", 7, 2, agent.Exited, 0, g[0].Attempt, g[1].Attempt)
	if again, _ := s.Used(s.Job(1), 5000); again != cost {
		t.Fatalf("an ended job owes %d, then %d", cost, again)
	}
	if slot := s.Job(1).Stages[0].SlotTime; slot != used {
		t.Fatalf("slot time %v, used %v", slot, used)
	}
}

// The test cuts a period into random parts, and reads the meter after each part. At the end the meter must show the
// exact cost of the whole period.
func TestMeterDoesNotDependOnHowTimeIsCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSite(t)
		s.submit("k", mapStage(1))
		s.register("n1", 7, 1)
		price := messages.Credits(rapid.Int64Range(0, 1<<43).Draw(rt, "price"))
		s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: price}}}})
		s.claim("n1", 7, 1, 1, 1)
		began, length := s.at, messages.Time(0)
		for range rapid.IntRange(1, 5).Draw(rt, "cuts") {
			length += messages.Time(rapid.Int64Range(1, 1<<20).Draw(rt, "span"))
			s.passTo(began + length)
			s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: price}}}})
		}
		cost, _ := s.Used(s.Job(1), s.at)
		exact := float64(price) * float64(length) / 1e6
		if d := float64(cost) - exact; d > 0.51+exact*1e-15 || d < -0.51-exact*1e-15 {
			rt.Fatalf("%d microcredits for %d µs at %d a second, want %.3f", cost, length, price, exact)
		}
	})
}

// A spell is a period in which the tariffs do not change. Spells that are metered together must cost the same as spells
// that are metered one by one.
func TestMeterOfManySpellsAtOnce(t *testing.T) {
	together := 0
	rapid.Check(t, func(rt *rapid.T) {
		stages := []job.Stage{mapStage(9), {Class: "reduce"}}
		spec := &job.JobSpec{Rate: messages.Credits(rapid.Int64Range(0, 1<<44).Draw(rt, "rate")), Length: 3, Stages: stages}
		uneven, lengths := rapid.Bool().Draw(rt, "some uneven"), 0
		if uneven {
			lengths = 1
		}
		var all []change
		at := messages.Time(rapid.Int64Range(1, 1<<40).Draw(rt, "begin"))
		one := Meter{Since: at}
		for range rapid.IntRange(1, 20).Draw(rt, "spells") {
			at += messages.Time(rapid.Int64Range(0, 1<<30).Draw(rt, "span"))
			c := change{spell: spell{Until: at}}
			for range rapid.IntRange(0, 3).Draw(rt, "classes") {
				c.Tariffs = append(c.Tariffs, Tariff{Class: rapid.SampledFrom([]messages.Name{"map", "reduce"}).Draw(rt, "class"),
					Price: messages.Credits(rapid.Int64Range(-1, 1<<44).Draw(rt, "price")), OwnBid: rapid.Bool().Draw(rt, "own"),
					Length: messages.Duration(rapid.IntRange(0, lengths).Draw(rt, "length")), Capped: uneven && rapid.Bool().Draw(rt, "capped")})
			}
			if len(all) > 0 {
				c.follow(&all[len(all)-1])
			}
			all = append(all, c)
		}
		going, stage := rapid.IntRange(0, 5).Draw(rt, "going"), rapid.IntRange(0, 1).Draw(rt, "stage")
		sum := one
		sum.through(all, going, spec, stage)
		for i := range all {
			one.upTo(all[i].Until, going, all[i].Tariffs, spec, stage)
		}
		if one != sum {
			rt.Fatalf("at once %+v, one by one %+v", sum, one)
		}
		if going > 0 && len(all) > 2 && all[len(all)-1].uneven == 0 {
			together++
		}
	})
	if together == 0 {
		t.Error("no spells were metered together: the test does not try what it is for")
	}
}

func TestGangStartsWithItsLastTaskAndBreaksWithItsFirstLoss(t *testing.T) {
	s := newSite(t)
	id := s.submit("k", gang(3))
	s.register("n1", 7, 2)
	s.register("n2", 7, 1)
	first := s.claim("n1", 7, 1, 2, id)
	if n := s.Node("n1"); len(n.Halted()) != 2 || n.Idle("map") != 0 {
		t.Fatalf("a gang that gathers keeps its slots and does not run: %+v", n)
	}
	s.apply(Command{Disband: &Disband{Job: id, Since: 12345}})
	s.claim("n2", 7, 1, 1, id)
	if a, b := s.Node("n1").Halted(), s.Node("n2").Halted(); len(a)+len(b) != 0 {
		t.Fatalf("the gang is complete, but %v and %v wait", a, b)
	}
	s.finish("n1", 7, 2, agent.Exited, 0, first[0].Attempt)
	s.apply(Command{Lost: &Lost{Node: "n2", Session: 7}})
	if n := s.Node("n1"); !slices.Equal(n.Stop, []messages.Attempt{first[1].Attempt}) {
		t.Fatalf("to be stopped: %v", n.Stop)
	}
	if s.Job(id).Claimable(0) != 0 {
		t.Fatal("a gang starts anew before the old one has ended")
	}
	s.finish("n1", 7, 3, agent.Exited, 0, first[1].Attempt)
	if j := s.Job(id); j.Claimable(0) != 3 || j.Stages[0].Done != 0 || j.Stages[0].Tasks[0].Tries != 0 {
		t.Fatalf("stage %+v", j.Stages[0])
	}
}

func TestRoundMovesOnlyWhatHoldsCover(t *testing.T) {
	s := newSite(t)
	a, b := s.submit("a", mapStage(1)), s.submit("b", mapStage(1))
	round := func(amount messages.Credits) Command {
		return Command{Decide: &Decide{Start: []Starting{{Job: a, Order: Order{Class: "map", Slots: 1}, Legs: []Leg{{From: a, To: b, Amount: amount}}}}}}
	}
	s.apply(round(101))
	if s.Job(a).Order == nil || len(slices.Collect(s.EachEffect)) != 0 || s.Job(a).Paid != 0 {
		t.Fatalf("a payment above the hold was taken: %+v", s.Job(a))
	}
	c := s.submit("c", mapStage(1))
	s.apply(Command{Decide: &Decide{Discard: []Discarding{{Job: c, Reason: "Discarded", Message: "m", Change: []string{"x"}, Legs: []Leg{{From: c, To: b, Amount: 30}}}}}})
	e := slices.Collect(s.EachEffect)
	expect.Same(t, "len(e)", len(e), 1)
	expect.Same(t, "Kind", e[0].Kind, Round, "Paid", s.Job(c).Paid, 30, "Gained", s.Job(b).Gained, 30, "Outcome", s.Job(c).Outcome, job.Discarded)
	refusal(t, s.apply(Command{Settle: &Settle{Job: c, Charge: 71}}), messages.Invalid)
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: e[0].ID}}}})
	if j := s.Job(c); j.HoldID() != j.RestID(e[0].ID) || j.Cost() != 30 || s.Job(b).Cost() != -30 {
		t.Fatalf("hold %q, cost %v", j.HoldID(), j.Cost())
	}
}

func TestRefusedRoundIsTakenBack(t *testing.T) {
	s := newSite(t)
	a, b := s.submit("a", mapStage(1)), s.submit("b", mapStage(1))
	s.apply(Command{Decide: &Decide{Discard: []Discarding{{Job: a, Reason: "Discarded", Legs: []Leg{{From: a, To: b, Amount: 100}}}}}})
	s.apply(Command{Confirm: &Confirm{Effects: []Confirmation{{Effect: slices.Collect(s.EachEffect)[0].ID, Refused: "no"}}}})
	if j := s.Job(a); j.Paid != 0 || s.Job(b).Gained != 0 || j.HoldID() != "a" {
		t.Fatalf("paid %v, hold %q", j.Paid, j.HoldID())
	}
}

// The first of 10,000 jobs that wait for one another is cancelled. All of them must end.
func TestLongChainOfDependents(t *testing.T) {
	b := New()
	for i := range 10_000 {
		spec := &job.JobSpec{Market: "main", Stages: []job.Stage{mapStage(1)}}
		if i > 0 {
			spec.AfterOK = []messages.JobID{messages.JobID(i)}
		}
		if _, ok := b.Apply(&Command{Submit: &Submit{Account: "alice", Key: messages.JobID(i + 1).String(), Spec: spec}}).(Receipt); !ok {
			t.Fatal("refused")
		}
	}
	b.Apply(&Command{Cancel: &Cancel{Job: 1, By: "alice"}})
	for i := range 10_000 {
		if j := b.Job(messages.JobID(i + 1)); j.Active() || i > 0 && j.Reason != "DependencyFailed" {
			t.Fatalf("job %d is %v: %s", j.ID, j.State, j.Reason)
		}
	}
}

func TestQuoteIsTakenOnceByItsAccountInTime(t *testing.T) {
	s := newSite(t)
	quote := func() uint64 {
		return s.apply(Command{Quote: &Quote{Account: "alice", Market: "main", Contracts: make([]job.Contract, 2), Expires: 50}}).(uint64)
	}
	take := func(who, key string, id uint64) any {
		return s.apply(Command{Submit: &Submit{Account: who, Key: key, Quote: id, Spec: &job.JobSpec{Market: "main", Stages: []job.Stage{mapStage(1)}}}})
	}
	first := quote()
	refusal(t, take("bob", "b", first), messages.Expired) // names a quote that does not exist
	if _, ok := take("alice", "a", first).(Receipt); !ok {
		t.Fatal("refused")
	}
	refusal(t, take("alice", "again", first), messages.Conflict)
	second := quote()
	if second == first || s.Quote(second) == nil {
		t.Fatalf("quotes %d and %d", first, second)
	}
	s.passTo(51)
	refusal(t, take("alice", "late", second), messages.Expired)
	refusal(t, take("alice", "none", 99), messages.Expired)
	s.passTo(60)
	for range MaxAccountQuotes {
		s.apply(Command{Quote: &Quote{Account: "alice", Expires: 1000}})
	}
	refusal(t, s.apply(Command{Quote: &Quote{Account: "alice", Expires: 1000}}), messages.Exhausted)
}

// A task runs again because its node was lost, its node was drained, its agent gave it up, or its program failed. Only
// in the last case must the job pay for the first attempt.
func TestWhatTheSiteBrokeIsNotPaid(t *testing.T) {
	for _, c := range []struct {
		name  string
		ends  func(s *site, a messages.Attempt)
		began int
		paid  bool
	}{
		{"lost", func(s *site, _ messages.Attempt) { s.apply(Command{Lost: &Lost{Node: "n2", Session: 8}}) }, 1, false},
		{"its agent began anew without it", func(s *site, _ messages.Attempt) { s.register("n2", 9, 1) }, 1, false},
		{"drained", func(s *site, _ messages.Attempt) {
			s.apply(Command{Drain: &Drain{Node: "n2", Until: 1}})
			s.apply(Command{Drain: &Drain{Node: "n2", Until: 1, Evict: true}})
		}, 2, false}, // the task has its slot until the agent has ended the task
		{"given up by its agent", func(s *site, a messages.Attempt) { s.finish("n2", 8, 2, agent.Stopped, 0, a) }, 1, false},
		{"failed", func(s *site, a messages.Attempt) { s.finish("n2", 8, 2, agent.Exited, 1, a) }, 2, true},
	} {
		s := newSite(t)
		stage := mapStage(2)
		stage.Attempts = 2
		s.submit("k", stage)
		s.apply(Command{Decide: &Decide{Market: "main", Tariffs: []Tariff{{Class: "map", Price: 3_000_000}}}})
		s.register("n1", 7, 1)
		s.register("n2", 8, 1)
		s.passTo(1000)
		s.claim("n1", 7, 1, 1, 1)
		began := s.at
		a := s.claim("n2", 8, 1, 1, 1)[0].Attempt
		s.passTo(1100)
		c.ends(s, a)
		slots := 1
		if c.paid {
			slots = 2
		}
		cost, had := s.Used(s.Job(1), s.at)
		if least := messages.Duration(slots) * 90_000; had < least || had > least+messages.Duration(slots*30_000) || cost < 3*messages.Credits(had/1000)-3 || cost > 3*messages.Credits(had/1000) {
			t.Errorf("%s: %v of slots since %v cost %d, want those of %d", c.name, had, began, cost, slots)
		}
		if n := s.Job(1).Began(); n != c.began {
			t.Errorf("%s: %d tasks began, want %d", c.name, n, c.began)
		}
	}
}
