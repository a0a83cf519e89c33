package state_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
	"github.com/candor-grid/candor/messages/wire"
)

func running(t *testing.T, n int) *agent {
	a := newAgent(t, n, 1)
	a.join()
	a.vector(1, max(1000, n), n)
	r := a.request()
	if slotsOf(r.Exchange) != n {
		t.Fatalf("claimed for %d slots of %d", slotsOf(r.Exchange), n)
	}
	a.Answered(a.now, r.ID, grants(r, 0, n))
	a.act()
	if len(a.starts) != n {
		t.Fatalf("started %d of %d tasks", len(a.starts), n)
	}
	a.now = a.now.Add(second / 20) // tasks take so long that no task is claimed in advance
	return a
}

func TestFinishAndClaimShareOneExchange(t *testing.T) {
	a := running(t, 3)
	a.silent()
	a.end(1, agentmsg.Exited)
	r := a.request()
	if e := r.Exchange; len(e.Finished) != 1 || e.Finished[0].Attempt != attempt(1) {
		t.Fatalf("sent %+v, want the end of task 1", e)
	} else if slotsOf(e) != 1 || e.Seq != 2 {
		t.Fatalf("sent exchange %d with %d slots", e.Seq, slotsOf(e))
	}
	a.end(0, agentmsg.Exited)
	a.end(2, agentmsg.Exited)
	a.silent()
	a.Answered(a.now, r.ID, grants(r, 10, 1))
	if e := a.request().Exchange; len(e.Finished) != 2 || slotsOf(e) != 2 || e.Seq != 3 {
		t.Fatalf("sent %+v", e)
	}
}

// The first claim of a freed slot gets nothing. If the market orders the starts, the slot must claim once more: the
// market learns from the first claim that the slot is free, and can then order a start.
func TestAFreedSlotClaimsOnceMoreWhereTheMarketDirects(t *testing.T) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		a := running(t, 2)
		for i := range 2 {
			a.end(i, agentmsg.Exited)
		}
		r := a.request()
		none := grants(r, 0, 0)
		none.Markets = []agentmsg.NodeMarket{{Name: "main", Ordered: mechanism != market.Proportional, Classes: []messages.Name{"cpu"}}}
		a.Answered(a.now, r.ID, none)
		if mechanism == market.HighestBid {
			r = a.request()
			if e := r.Exchange; len(e.Finished) != 0 || slotsOf(e) != 2 {
				t.Fatalf("sent %+v, want the claims once more", e)
			}
			a.Answered(a.now, r.ID, grants(r, 0, 0))
		}
		a.silent()
	}
}

// TestAFreedSlotClaimsThoughIdleOnesTakeTheWork ends a task while there are enough idle slots for all work. In a market
// in which the leader chooses the next job, the slot that became free must claim too.
func TestAFreedSlotClaimsThoughIdleOnesTakeTheWork(t *testing.T) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		a := newAgent(t, 1, 1)
		a.join()
		a.vector(1, 1, 1)
		r := a.request()
		one := grants(r, 0, 1)
		one.Markets = []agentmsg.NodeMarket{{Name: "main", Ordered: mechanism != market.Proportional, Classes: []messages.Name{"cpu"}}}
		a.Answered(a.now, r.ID, one)
		a.act()
		a.end(0, agentmsg.Exited)
		if e, want := a.request().Exchange, mechanism == market.HighestBid; len(e.Finished) != 1 || slotsOf(e) > 0 != want {
			t.Errorf("%s: sent %+v; with a claim: %v", mechanism, e, want)
		}
	}
}

// TestEndsClaimTheirSlotsWhereTheMarketDirects reports the end of a task. The agent must claim its slot in the same
// exchange, although it knows of no work: only the leader knows which job is next.
func TestEndsClaimTheirSlotsWhereTheMarketDirects(t *testing.T) {
	for _, mechanism := range []messages.Name{market.Proportional, market.HighestBid} {
		for _, passedOn := range []int{0, 1, 2} {
			a := newAgent(t, 3, 1)
			a.join()
			a.vector(1, 3, 3)
			r := a.request()
			three := grants(r, 0, 3)
			three.Markets = []agentmsg.NodeMarket{{Name: "main", Ordered: mechanism != market.Proportional, Classes: []messages.Name{"cpu"}}}
			a.Answered(a.now, r.ID, three)
			a.act()
			a.take(whole(1, 2, 0, 0))
			a.end(0, agentmsg.Exited)
			a.end(1, agentmsg.Exited)
			r = a.request()
			want := 0
			if mechanism == market.HighestBid {
				want = 2
			}
			if e := r.Exchange; len(e.Finished) != 2 || slotsOf(e) != want {
				t.Fatalf("%s: sent %+v", mechanism, e)
			}
			passedOn = min(passedOn, want)
			a.Answered(a.now, r.ID, grants(r, 3, passedOn))
			a.silent()
			if len(a.starts) != 1+passedOn {
				t.Errorf("%s: %d tasks run, of which %d were passed slots on", mechanism, len(a.starts), passedOn)
			}
			if a.vector(3, 2, 2); passedOn == 2 {
				a.silent()
			} else if e := a.request().Exchange; slotsOf(e) != 2-passedOn { // like before, the agent claims for the remaining slots
				t.Errorf("%s, %d passed on: sent %+v", mechanism, passedOn, e)
			}
		}
	}
}

// TestAnAnswerWithoutATaskDoesNotHideWork publishes a vector during an exchange. The answer gives the free slot no
// task. The agent must then claim a task for this slot because of the new vector.
func TestAnAnswerWithoutATaskDoesNotHideWork(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.join()
	a.vector(1, 1, 1)
	r := a.request()
	one := grants(r, 0, 1)
	one.Markets = []agentmsg.NodeMarket{{Name: "main", Ordered: true, Classes: []messages.Name{"cpu"}}}
	a.Answered(a.now, r.ID, one)
	a.act()
	a.take(whole(1, 2, 0, 0))
	a.end(0, agentmsg.Exited)
	r = a.request()
	a.vector(3, 1, 1)
	a.Answered(a.now, r.ID, grants(r, 1, 0))
	if e := a.request().Exchange; slotsOf(e) != 1 {
		t.Errorf("sent %+v", e)
	}
}

func TestUnansweredExchangeIsRepeatedUnchanged(t *testing.T) {
	for _, kind := range []messages.Kind{messages.Unavailable, messages.NotLeader, messages.Unknown, messages.Internal} {
		a := running(t, 2)
		a.end(0, agentmsg.Exited)
		first := a.request()
		for range 3 {
			a.Failed(a.now, first.ID, fails(kind))
			a.end2(1)
			a.silent() // nothing is sent before a pause
			again := a.sleep().Request
			if again == nil || !a.repeats(again.Exchange, first.Exchange) {
				t.Fatalf("%v: sent %+v, want exchange %d once more", kind, again, first.Exchange.Seq)
			}
			a.Answered(a.now, first.ID, grants(first, 50, 1))
			if len(a.act().Start) != 0 {
				t.Fatal("listened to the answer to an earlier request")
			}
			first = again
		}
		a.Answered(a.now, first.ID, grants(first, 20, 1))
		if e := a.request().Exchange; len(e.Finished) != 1 || e.Finished[0].Attempt != attempt(1) {
			t.Fatalf("sent %+v, want the second finish", e)
		}
	}
}

// repeats reports whether an exchange is a repetition of the first exchange. Only the time in the field Sent may
// differ.
func (a *agent) repeats(again, first *agentmsg.Exchange) bool {
	want := *first
	want.Sent = a.now
	return reflect.DeepEqual(*again, want)
}

func (a *agent) end2(i int) {
	if _, ok := a.starts[attempt(i)]; ok {
		a.end(i, agentmsg.Exited)
	}
}

func TestAnswerToAnotherNumberIsNoAnswer(t *testing.T) {
	a := running(t, 1)
	a.end(0, agentmsg.Exited)
	r := a.request()
	wrong := grants(r, 1, 1)
	wrong.Seq--
	a.Answered(a.now, r.ID, wrong)
	if again := a.sleep().Request; again == nil || !a.repeats(again.Exchange, r.Exchange) {
		t.Fatalf("sent %+v, want the exchange once more", again)
	}
}

func TestTwiceGrantedRunsOnce(t *testing.T) {
	a := running(t, 2)
	a.end(0, agentmsg.Exited)
	r := a.request()
	reply := grants(r, 1, 1) // task 1 runs already
	reply.Grants = append(reply.Grants, reply.Grants[0])
	a.Answered(a.now, r.ID, reply)
	if s := a.act().Start; len(s) != 0 {
		t.Fatalf("started %v", s)
	}
}

func TestGrantThatCannotStartIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		programs []agentmsg.Program
		outcome  agentmsg.Outcome
	}{
		"no program":    {nil, agentmsg.Stopped}, // this is no failure of the task
		"unknown class": {[]agentmsg.Program{{Job: 7, Class: "gpu"}}, agentmsg.Unstartable},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, 1, 1)
			a.join()
			a.vector(1, 5, 1)
			r := a.request()
			reply := grants(r, 0, 1)
			reply.Programs = c.programs
			a.Answered(a.now, r.ID, reply)
			e := a.request().Exchange
			if len(e.Finished) != 1 || e.Finished[0].Outcome != c.outcome || e.Finished[0].Detail == "" {
				t.Fatalf("sent %+v, want the attempt as %v", e, c.outcome)
			}
		})
	}
}

func TestDetailIsBounded(t *testing.T) {
	a := running(t, 1)
	delete(a.starts, attempt(0))
	a.Ended(agentmsg.Finished{Attempt: attempt(0), Outcome: agentmsg.Unstartable, Detail: strings.Repeat("é\xff", 100_000)})
	if d := a.request().Exchange.Finished[0].Detail; len(d) > 1024 || !utf8.ValidString(d) || !strings.HasPrefix(d, "é?é") {
		t.Fatalf("the detail has %d bytes: %.20q", len(d), d)
	}
}

func TestShortAnswerMeansWaiting(t *testing.T) {
	a := newAgent(t, 4, 1)
	a.join()
	a.vector(1, 1000, 4)
	r := a.request()
	a.Answered(a.now, r.ID, grants(r, 0, 2))
	a.silent()
	a.end(0, agentmsg.Exited)
	if e := a.request().Exchange; slotsOf(e) != 0 {
		t.Fatalf("claimed %v though there was no work left", e.Claims)
	}
}

// TestShortAnswerAfterNewVector publishes a vector while claims are under way, and answers with too few tasks. The idle
// slots must claim again: the work of the vector may be newer than the claims.
func TestShortAnswerAfterNewVector(t *testing.T) {
	a := newAgent(t, 4, 1)
	a.join()
	a.vector(1, 1000, 4)
	r := a.request()
	a.vector(2, 1000, 4)
	a.Answered(a.now, r.ID, grants(r, 0, 1))
	if e := a.request().Exchange; slotsOf(e) != 3 {
		t.Fatalf("claimed for %d slots, want 3", slotsOf(e))
	}
}

func TestHeartbeat(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.join()
	for range 5 {
		from := a.now
		do := a.sleep()
		if do.Request == nil { // the agent requests the complete vector first
			do = a.sleep()
		}
		if waited := a.now.Sub(from); waited < lease/5 || waited > lease/4 {
			t.Fatalf("the heartbeat came after %v of a lease of %v", waited, lease)
		}
		if e := do.Request.Exchange; len(e.Claims)+len(e.Finished) > 0 {
			t.Fatalf("the heartbeat says %+v", e)
		}
		a.Answered(a.now, do.Request.ID, grants(do.Request, 0, 0))
	}
}

func TestStopsAreObeyedOnce(t *testing.T) {
	a := running(t, 2)
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Stop: []messages.Attempt{attempt(0), attempt(99)}})
	a.Directive(a.now, &agentmsg.Directive{Term: 1, Stop: []messages.Attempt{attempt(0)}})
	a.act()
	a.end(1, agentmsg.Exited)
	r := a.request()
	reply := grants(r, 0, 0)
	reply.Stop = []messages.Attempt{attempt(0), attempt(1)}
	a.Answered(a.now, r.ID, reply)
	a.act()
	if len(a.stops) != 1 || a.stops[0].Attempt != attempt(0) || a.stops[0].Kill {
		t.Fatalf("stopped %+v, want task 0 once, with grace", a.stops)
	}
}

func TestDirectiveOfEarlierLeaderIsIgnored(t *testing.T) {
	a := running(t, 1)
	a.take(whole(5, 1, 0, 0))
	a.Directive(a.now, &agentmsg.Directive{Term: 4, Stop: []messages.Attempt{attempt(0)}})
	a.act()
	if len(a.stops) != 0 {
		t.Fatalf("stopped %v on the word of a leader that was replaced", a.stops)
	}
	a.Directive(a.now, &agentmsg.Directive{Term: 5, Stop: []messages.Attempt{attempt(0)}})
	if a.act(); len(a.stops) != 1 {
		t.Fatal("did not stop on the leader's word")
	}
}

// TestEndsGather checks that an agent with many tasks does not report the end of a task at once: it waits up to 10 ms
// for other ends.
func TestEndsGather(t *testing.T) {
	a := running(t, 64)
	a.end(0, agentmsg.Exited)
	a.silent()
	from := a.now
	r := a.sleep().Request
	if r == nil || r.Exchange == nil {
		t.Fatalf("sent %+v, want an exchange", r)
	}
	if len(r.Exchange.Finished) != 1 || slotsOf(r.Exchange) != 1 {
		t.Fatalf("sent %+v, want the end and a claim", r.Exchange)
	}
	if waited := a.now.Sub(from).Std(); waited <= 0 || waited > 10*time.Millisecond {
		t.Errorf("an end waited %v", waited)
	}
	a.Answered(a.now, r.ID, grants(r, 100, 1))
	a.act()
	for i := 1; i < 13; i++ {
		a.end(i, agentmsg.Exited)
		a.silent()
	}
	a.end(13, agentmsg.Exited) // now the ended tasks are a quarter of the tasks that still run, which is enough to report them
	if e := a.request().Exchange; len(e.Finished) != 13 || slotsOf(e) != 13 {
		t.Errorf("sent %d ends and %d claims", len(e.Finished), slotsOf(e))
	}
}

// TestRefusedClaimsAreWithdrawn refuses an exchange. The agent must send its reports again without the claims.
func TestRefusedClaimsAreWithdrawn(t *testing.T) {
	a := running(t, 2)
	a.end(0, agentmsg.Exited)
	first := a.request()
	if slotsOf(first.Exchange) != 1 {
		t.Fatalf("sent %+v", first.Exchange)
	}
	a.Failed(a.now, first.ID, fails(messages.Invalid))
	next := a.request().Exchange
	if next == nil || next.Seq != first.Exchange.Seq+1 {
		t.Fatalf("sent %+v, want exchange %d", next, first.Exchange.Seq+1)
	}
	if len(next.Claims) != 0 || len(next.Finished) != 1 {
		t.Fatalf("sent %+v, want the end and no claim", next)
	}
	if len(a.stops) != 0 || a.Running() != 1 {
		t.Fatalf("stopped %v", a.stops)
	}
}

// TestManyEndsFitMessages ends very many tasks at once. Several exchanges must report them, and the last one must have
// the claims.
func TestManyEndsFitMessages(t *testing.T) {
	const n = 10_000
	a := running(t, n)
	for i := range n {
		delete(a.starts, attempt(i))
		a.Ended(agentmsg.Finished{Attempt: attempt(i), Detail: strings.Repeat("x", 5000)})
	}
	told := 0
	for told < n {
		r := a.request()
		data, err := wire.Marshal(r.Exchange, wire.Msgpack)
		if err != nil {
			t.Fatalf("after %d: %v", told, err)
		}
		if told += len(r.Exchange.Finished); told < n && len(r.Exchange.Claims) > 0 || len(r.Exchange.Finished) == 0 {
			t.Fatalf("sent %d ends and %d claims in %d bytes", len(r.Exchange.Finished), len(r.Exchange.Claims), len(data))
		}
		a.Answered(a.now, r.ID, &agentmsg.ExchangeReply{Seq: r.Exchange.Seq})
	}
}

// TestSharedEnvironment checks that each program of a job gets the job's whole environment. A message has this
// environment only once, and not in each program.
func TestSharedEnvironment(t *testing.T) {
	a := newAgent(t, 1, 1)
	a.join()
	a.vector(1, 5, 1)
	reply := grants(a.request(), 0, 1)
	reply.Programs[0].Env = job.Env{{Name: "B", Value: "own"}}
	reply.Programs = append(reply.Programs, agentmsg.Program{Job: 7, Stage: agentmsg.SharedEnv,
		Env: job.Env{{Name: "A", Value: "job"}, {Name: "B", Value: "job"}}})
	a.Answered(a.now, 2, reply)
	s := a.act().Start
	if len(s) != 1 || !slices.Equal(s[0].Program.Env, job.Env{{Name: "A", Value: "job"}, {Name: "B", Value: "own"}}) {
		t.Fatalf("started %+v", s)
	}
}
