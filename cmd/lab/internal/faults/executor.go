package faults

import (
	"slices"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/state"
)

// executor begins tasks on the slots of others, as the executor of a node does. It is told at once what
// to do; the agent hears a moment later, in order, what it did.
type executor struct {
	waits []state.Start // to follow others, the next first
	heard messages.Time // when the agent hears of the last that it did
}

// tells is within what time an agent hears of what its executor did.
const tells = second / 10

// line has a task follow others. Now and then the executor cannot.
func (a *agent) line(s state.Start) {
	if a.rng.IntN(20) == 0 {
		a.state.Keep(s.Grant.Attempt)
		return
	}
	a.executor.waits = append(a.executor.waits, s)
}

// withdraw takes a task back that was to follow, unless it has begun.
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

// over has the agent hear how a task ended. If it had a slot, another may follow.
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

// hear has the agent hear something after all that it is to hear before: at once, where its tasks
// follow no others.
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
