package faults

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/state"
)

// executor starts waiting tasks on the slots of ended tasks, like a node's executor. The agent learns a moment later
// what the executor has done, in the same order.
type executor struct {
	waits []state.Start // tasks that wait for a slot, the next one first
	heard messages.Time // time when the agent learns of the latest action
}

// The constant `tells` is the longest time until an agent learns about an action of its executor.
const tells = second / 10

// line puts a task into the queue of the executor. The task waits there until another task's slot is free. With
// probability 1/20 the executor refuses the task.
func (a *agent) line(s state.Start) {
	if a.rng.IntN(20) == 0 {
		a.state.Keep(s.Grant.Attempt)
		return
	}
	a.executor.waits = append(a.executor.waits, s)
}

// withdraw removes a task that waits for a slot, unless the task has started.
func (a *agent) withdraw(at messages.Attempt) {
	if a.Bug == WithdrawnBegins && a.executor.has(at) || a.executor.remove(at) {
		a.hear(func() {
			a.state.Ended(agentmsg.Finished{Attempt: at, Outcome: agentmsg.Stopped, Detail: "given back before it started"})
		})
	}
}

func (x *executor) has(at messages.Attempt) bool { return x.index(at) >= 0 }

func (x *executor) index(at messages.Attempt) int {
	return slices.IndexFunc(x.waits, func(s state.Start) bool { return s.Grant.Attempt == at })
}

func (x *executor) remove(at messages.Attempt) bool {
	i := x.index(at)
	if i >= 0 {
		x.waits = slices.Delete(x.waits, i, i+1)
	}
	return i >= 0
}

// over tells the agent how a task ended. If the task had a slot, a waiting task may take it.
func (a *agent) over(f agentmsg.Finished, slot bool) {
	if !slot || len(a.executor.waits) == 0 {
		a.hear(func() { a.state.Ended(f) })
		return
	}
	next, since := a.executor.waits[0], a.now
	a.executor.waits = a.executor.waits[1:]
	a.check(a.site, a.repeats(&next.Grant))
	a.begin(next.Grant.Attempt)
	a.hear(func() { a.state.Turned(a.clock().Add(since.Sub(a.now)), f, next.Grant.Attempt) })
}

// hear calls its argument `what`, a function that tells the agent about an action of the executor. If tasks can wait
// for slots on this node, hear delays each call by a random time, but keeps the order of the calls. Otherwise it calls
// the function at once.
func (a *agent) hear(what func()) {
	if !a.feeds {
		what()
		a.after(&a.host, 0, a.act)
		return
	}
	a.executor.heard = max(a.executor.heard, a.now.Add(messages.Duration(a.rng.Int64N(int64(tells)))))
	a.after(&a.host, a.executor.heard.Sub(a.now), func() {
		what()
		a.act()
	})
}
