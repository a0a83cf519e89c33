package state_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

// claimed returns the job that an idle agent with one slot claims next, or 0 if there is none.
func (a *agent) claimed() messages.JobID {
	a.t.Helper()
	r := a.act().Request
	if r == nil || len(r.Exchange.Claims) == 0 {
		return 0
	}
	job := r.Exchange.Claims[0].Job
	a.Answered(a.now, r.ID, grants(r, 0, 0))
	return job
}

// sleepUntilFetch lets time pass until the agent's state asks for vectors. It returns how many vectors the state asks
// for.
func (a *agent) sleepUntilFetch() int {
	a.t.Helper()
	for range 100 {
		if n := len(a.sleep().Fetch); n > 0 {
			return n
		}
	}
	a.t.Fatal("no vector is asked for")
	return 0
}

func only(job messages.JobID) agentmsg.JobWeight { return agentmsg.JobWeight{Job: job, Weight: 1} }

// idle returns an agent that has its first vector, with job 1 and no work.
func idle(t *testing.T) *agent {
	a := newAgent(t, 1, 1)
	a.join()
	a.sleepUntilFetch()
	if err := a.Fetched(a.now, whole(2, 10, 0, 1)); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestVectorsAreFenced(t *testing.T) {
	a := idle(t)
	for _, v := range []*agentmsg.Vector{whole(1, 99, 9, 1, only(1)), whole(2, 10, 9, 1, only(1)), whole(2, 9, 9, 1, only(1))} {
		a.take(v)
		if got := a.claimed(); got != 0 {
			t.Fatalf("claimed %v from vector (%d, %d), (2, 10) is held", got, v.Term, v.Seq)
		}
	}
	for _, v := range []*agentmsg.Vector{whole(2, 11, 9, 1, only(2)), whole(3, 1, 9, 1, only(3))} {
		a.take(v)
		if got, want := a.claimed(), v.Classes[0].Jobs[0].Job; got != want {
			t.Fatalf("claimed %v from vector (%d, %d), want %v", got, v.Term, v.Seq, want)
		}
	}
}

func TestChangesApplyToTheirBase(t *testing.T) {
	a := idle(t)
	a.take(change(2, 11, 9, 1, only(4)))
	if got := a.claimed(); got != 4 {
		t.Fatalf("claimed %v, want 4", got)
	}
	a.take(change(2, 12, 9, 1, agentmsg.JobWeight{Job: 4}, only(5)))
	if got := a.claimed(); got != 5 {
		t.Fatalf("claimed %v, want 5: 4 was removed", got)
	}
}

func TestMissedChangeAsksForTheWhole(t *testing.T) {
	a := idle(t)
	// Vector 11 is lost, and 13 arrives before 12.
	a.take(change(2, 13, 9, 1, agentmsg.JobWeight{Job: 5}, only(6)))
	a.take(change(2, 12, 9, 1, only(5)))
	if got := a.claimed(); got != 0 {
		t.Fatalf("claimed %v from changes to an unknown vector", got)
	}
	fetches := a.sleepUntilFetch()
	a.take(change(2, 14, 9, 1))
	a.now = a.now.Add(second)
	if again := a.act().Fetch; fetches != 1 || len(again) != 0 {
		t.Fatalf("asked %d times, and again for %v", fetches, again)
	}
	if err := a.Fetched(a.now, whole(2, 11, 0, 1)); err != nil {
		t.Fatal(err)
	}
	if got := a.claimed(); got != 6 {
		t.Fatalf("claimed %v, want 6, of what follows the whole vector", got)
	}
}

func TestOldWholeVectorIsAskedForAgain(t *testing.T) {
	a := idle(t)
	a.take(change(2, 20, 9, 1, only(6)))
	a.sleepUntilFetch()
	a.Fetched(a.now, whole(2, 15, 0, 1)) // vector 15 is older than vector 19
	a.sleepUntilFetch()
	a.FetchFailed(a.now, "main")
	a.sleepUntilFetch()
	a.Fetched(a.now, whole(2, 19, 0, 1))
	if got := a.claimed(); got != 6 {
		t.Fatalf("claimed %v, want 6", got)
	}
}

func TestSenselessVectorIsRefusedAndReplaced(t *testing.T) {
	a := idle(t)
	bad := agentmsg.JobWeight{Job: 1, Weight: float32(math.NaN())}
	if err := a.Vector(a.now, whole(2, 11, 9, 1, bad)); messages.KindOf(err) != messages.Invalid {
		t.Fatalf("got %v, want Invalid", err)
	}
	a.sleepUntilFetch()
	a.Fetched(a.now, whole(2, 11, 9, 1, only(3)))
	if got := a.claimed(); got != 3 {
		t.Fatalf("claimed %v, want 3", got)
	}
}

func TestIdleWithoutWorkIsSilent(t *testing.T) {
	a := idle(t)
	a.take(whole(2, 11, 0, 1, only(1)))
	a.silent()
	a.take(whole(2, 12, 5, 1)) // work is pending, but no job has a weight
	a.silent()
}

func TestMarketsAreFollowed(t *testing.T) {
	a := newAgent(t, 1, 1)
	r := a.request()
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: lease, Markets: []agentmsg.NodeMarket{
		{Name: "main", Classes: []messages.Name{"cpu"}}, {Name: "other", Classes: []messages.Name{"gpu"}},
		{Name: "spot", Classes: []messages.Name{"gpu", "cpu"}}}})
	if got := a.act().Markets; !slices.Equal(got, []messages.Name{"main", "spot"}) {
		t.Fatalf("follows %v, want the two with cpu slots", got)
	}
}

func TestMarketsShareAClass(t *testing.T) {
	const slots = 10_000
	a := newAgent(t, slots, 1)
	r := a.request()
	a.Registered(a.now, r.ID, &agentmsg.RegisterReply{Lease: lease, Markets: []agentmsg.NodeMarket{
		{Name: "main", Classes: []messages.Name{"cpu"}}, {Name: "spot", Classes: []messages.Name{"cpu"}}}})
	spot := whole(1, 1, 30_000, 0, only(2))
	spot.Market = "spot"
	a.take(whole(1, 1, 10_000, 0, only(1)))
	a.take(spot)
	got := map[messages.Name]int{}
	for _, c := range a.request().Exchange.Claims {
		got[c.Market] += c.Slots
	}
	// The number of slots that claim in one market has a binomial distribution with p = 1/4. Its standard deviation is
	// 43.
	if n := got["main"]; got["main"]+got["spot"] != slots || math.Abs(float64(n)-slots/4) > 200 {
		t.Fatalf("claimed %v of %d slots", got, slots)
	}
}

// busy returns an agent whose only slot has a task of a market that grants nothing in advance.
func busy(t *testing.T, seed uint64) *agent {
	a := newAgent(t, 1, seed)
	a.join()
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Version: 1, Markets: []agentmsg.NodeMarket{{Name: "main", Ordered: true, Classes: []messages.Name{"cpu"}}}})
	a.vector(1, 1000, 1)
	r := a.request()
	a.Answered(a.now, r.ID, grants(r, 0, 1))
	a.act()
	return a
}

// TestBusyNodesMayHearVectorsLate compares two nodes without a free slot. The first node gets each vector at once. The
// second node gets all vectors just before the next event. Both nodes must behave in the same way.
func TestBusyNodesMayHearVectorsLate(t *testing.T) {
	for seed := range uint64(50) {
		soon, late, rng := busy(t, seed), busy(t, seed), rand.New(rand.NewPCG(seed, 2))
		var missed []*agentmsg.Vector
		for seq := uint64(2); seq < 20; seq++ {
			v := change(1, seq, rng.IntN(100), rng.IntN(3), agentmsg.JobWeight{Job: messages.JobID(1 + rng.IntN(4)), Weight: float32(rng.IntN(3))})
			if rng.IntN(4) == 0 {
				v.Base = 0
			}
			missed = append(missed, v)
			soon.take(v)
			if do := soon.act(); soon.Heeds() || !reflect.DeepEqual(do, state.Actions{}) {
				t.Fatalf("seed %d: a busy node does %+v at a vector", seed, do)
			}
		}
		for _, v := range missed {
			late.take(v)
		}
		soon.end(0, agentmsg.Exited)
		late.end(0, agentmsg.Exited)
		if x, y := soon.act(), late.act(); !reflect.DeepEqual(x, y) || !soon.Heeds() && soon.Idle() > 0 {
			t.Fatalf("seed %d: then it does %+v, and %+v if it heard the vectors late", seed, x, y)
		}
	}
}
