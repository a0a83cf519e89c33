package market

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/market"
)

// passOn ends a running task and gives its slot to the next job. It reports whether ReserveFreedSlots found such a job.
func (f *floor) passOn(c claim) bool {
	ended := []agentmsg.Finished{{Attempt: c.Attempt, Outcome: agentmsg.Exited}}
	name := f.book.Nodes()[c.node].Name
	f.seq[name]++
	x := &book.Exchange{Node: name, Session: 1, Seq: f.seq[name], Finished: ended}
	next, ok := f.t.ReserveFreedSlots(f.book, c.node, ended, &agentmsg.Claim{Market: "spot", Class: "cpu", Slots: 1})
	if ok {
		x.Claims = []book.Claim{next}
	}
	grants := f.apply(book.Command{Exchange: x}).([]agentmsg.Grant)
	if ok && (len(grants) != 1 || grants[0].Attempt.Task.Job != next.Jobs[0]) {
		f.Fatalf("the next in line is %+v, granted was %+v", next, grants)
	}
	return ok
}

// Bids come at random, and random tasks end before each decision. When a task ends, its slot may be passed on to
// another task without a decision. No decision may take back such a slot. When nothing more happens, each task must
// have the slot that a decision alone would have given it.
func TestTheNextInLineIsWhomADecisionChooses(t *testing.T) {
	passed, left, beside := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}
		f := newFloor(rt, m, rapid.IntRange(1, 4).Draw(rt, "nodes"), rapid.IntRange(1, 3).Draw(rt, "slots"))
		for range rapid.IntRange(5, 60).Draw(rt, "events") {
			f.now = f.now.Add(messages.Duration(1e9))
			if rapid.IntRange(0, 2).Draw(rt, "submit") == 0 {
				f.submit(messages.Credits(rapid.IntRange(1, 30).Draw(rt, "rate")), rapid.IntRange(1, 6).Draw(rt, "tasks"))
			} else {
				for range rapid.IntRange(1, 3).Draw(rt, "ends") {
					running := f.claims(book.Goes)
					if len(running) == 0 {
						break
					}
					if f.passOn(running[rapid.IntRange(0, len(running)-1).Draw(rt, "which")]) {
						passed++
					} else {
						left++
					}
					beside += len(f.claims(book.Suspended))
				}
				before := f.suspensions
				f.settle()
				if f.suspensions != before {
					rt.Fatalf("%d slots were taken back", f.suspensions-before)
				}
			}
			f.settle()
			f.checkIdle(rt)
			f.checkSuspended(rt)
		}
	})
	if passed < 100 || left < 100 || beside == 0 {
		t.Errorf("%d slots were passed on and %d were not, beside %d suspended tasks: this shows little", passed, left, beside)
	}
}

// In three cases, no job may get the freed slot before the next decision: after the failure of a task that may run
// again; after the end of a task in a stage that other stages wait for; when all tasks of the next job are reserved.
func TestNobodyIsNextWhereOnlyADecisionKnows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFloor(rt, market.Market{Name: "spot", Mechanism: market.HighestBid, Classes: []messages.Name{"cpu"}}, 1, 2)
		f.submit(9, 2)
		f.settle()
		f.submit(3, 1)
		f.settle()
		runs := f.claims(book.Goes)[0].Attempt
		succeed := func(end agentmsg.Finished) bool {
			_, ok := f.t.ReserveFreedSlots(f.book, 0, []agentmsg.Finished{end}, &agentmsg.Claim{Market: "spot", Class: "cpu", Slots: 1})
			return ok
		}
		if succeed(agentmsg.Finished{Attempt: runs, Outcome: agentmsg.Exited, ExitCode: 1}) || succeed(agentmsg.Finished{Attempt: runs, Outcome: agentmsg.Stopped}) ||
			succeed(agentmsg.Finished{Attempt: messages.Attempt{Task: messages.TaskRef{Job: 77}}}) {
			rt.Error("there is a next after a task that failed, was stopped, or is not known")
		}
		j := f.book.Job(runs.Task.Job)
		spec := *j.Spec
		j.Stages, j.Spec = append(j.Stages, j.Stages[0]), &spec
		if succeed(agentmsg.Finished{Attempt: runs}) {
			rt.Error("there is a next after a stage")
		}
		j.Stages = j.Stages[:1]
		if !succeed(agentmsg.Finished{Attempt: runs}) || succeed(agentmsg.Finished{Attempt: runs}) {
			rt.Error("one task waits, and not one claim counts on it")
		}
	})
}

var _ mechanism.Lining = lining{}

// lining is a mechanism whose next job is never a job of the market: it always names job 12345.
type lining struct{ mechanism.Mechanism }

func (lining) Next(int) messages.JobID { return 12345 }

// The mechanism names a job that is not in the market. The market must then report that no job is next.
func TestAnUnknownJobIsNotNext(t *testing.T) {
	m := New(mechanism.Manner{Directs: true, Order: func(x, y *mechanism.Job) int { return 0 }}, market.Market{Name: "spot", Classes: []messages.Name{"cpu"}}, lining{})
	if _, ok := m.ReserveFreedSlots(book.New(), 0, nil, &agentmsg.Claim{Class: "cpu", Slots: 1}); ok {
		t.Error("a job that is not in the market is next")
	}
}
