package faults

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/state"
)

// executor begins tasks on the slots of ended ones, like the executor of a node. It gets instructions at once. The agent
// learns a moment later, in order, what the executor did.
type executor struct {
	waits []state.Start // tasks that wait for a slot, the next first
	heard messages.Time // when the agent hears of its latest action
}

// tells is the time within which an agent hears of its executor's actions.
const tells = second / 10

// line lets a task wait for another's slot. Sometimes the executor refuses.
func (a *agent) line(s state.Start) {
	if a.rng.IntN(20) == 0 {
		a.state.Keep(s.Grant.Attempt)
		return
	}
	a.executor.waits = append(a.executor.waits, s)
}

// withdraw takes a waiting task back, unless it has begun.
func (a *agent) withdraw(at messages.Attempt) {
	if a.Bug == WithdrawnBegins && a.executor.has(at) || a.executor.remove(at) {
		a.hear(func() {
			a.state.Ended(messages.Finished{Attempt: at, Outcome: messages.Stopped, Detail: "given back before it started"})
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

// over tells the agent how a task ended. If the task had a slot, another may take it.
func (a *agent) over(f messages.Finished, slot bool) {
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

// hear passes something to the agent after all earlier messages. It does so at once if no task of
// the agent waits for a slot.
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
