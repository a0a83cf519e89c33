package grid

import (
	"fmt"
	"math/rand/v2"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/state"
)

// agent runs the state of a node agent (package state) in the simulation. Its tasks are only timers.
type agent struct {
	*Grid
	name  messages.Name
	state *state.State
	tasks map[messages.Attempt]*task
	wake  messages.Time // when its timer fires; 0: no timer
	index int           // position among all agents
	heard int           // number of the vectors in Grid.news that the state has received
}

// task is the simulated process of a task.
type task struct {
	left  messages.Duration // run time that was left at since
	stays messages.Duration // how long the task keeps its slot after it has printed its result
	ends  agentmsg.Outcome  // outcome of the task if it is not stopped
	began messages.Time
	since messages.Time // when it last began to run; 0: it is suspended
	round int           // number of the current timer; earlier timers are ignored
	over  bool
}

func newAgent(g *Grid, i, slots int, rng *rand.Rand) *agent {
	return &agent{Grid: g, index: i, name: fmt.Sprintf("n%d", i), tasks: map[messages.Attempt]*task{},
		state: state.New([]job.ClassSlots{{Class: class, Slots: slots}}, rng)}
}

func (a *agent) act() {
	a.catchUp()
	do := a.state.Act(a.now)
	for i := range do.Start {
		a.start(&do.Start[i])
	}
	for _, at := range do.Suspend {
		a.suspend(at)
	}
	for _, at := range do.Resume {
		a.resume(at)
	}
	for _, s := range do.Stop {
		a.end(s.Attempt, agentmsg.Stopped)
	}
	if len(do.Stop) > 0 { // after these ends, the state may have more to do
		a.queue.Push(a.now, a.act)
	}
	for _, m := range do.Fetch {
		a.fetch(m)
	}
	if do.Request != nil {
		a.request(do.Request)
	}
	a.setTimer()
	a.heeds[a.index] = a.state.Heeds()
}

func (a *agent) setTimer() {
	at := a.state.Wake()
	if at == 0 || a.wake != 0 && a.wake <= at && a.wake > a.now {
		return // an earlier timer is set, and will check again
	}
	a.wake = max(at, a.now)
	due := a.wake
	a.queue.Push(due, func() {
		if a.wake != due {
			return
		}
		a.wake = 0
		if at := a.state.Wake(); at != 0 && at <= a.now {
			a.act()
		} else {
			a.setTimer()
		}
	})
}

func (a *agent) start(s *state.Start) {
	t := &task{began: a.now}
	if job := s.Grant.Attempt.Task.Job; job != 0 { // a probe, which is no real job, ends at once
		takes := a.Work.Jobs[a.leader.of[job]].Runtime
		if o := a.owner(job); o != nil {
			if takes = a.takes(o, s.Grant.Attempt.Task); !o.started {
				o.started = true
				a.moment(o, Started)
			}
			t.stays = messages.Duration(a.stays(o, s.Grant.Attempt.Task) * 1e9)
		}
		t.left = messages.Duration(takes * 1e9)
	}
	if limit := s.Program.TimeLimit; limit > 0 && t.left+t.stays > limit {
		t.left, t.ends = min(t.left, limit), agentmsg.TimedOut
		t.stays = limit - t.left
	}
	a.tasks[s.Grant.Attempt] = t
	a.run(s.Grant.Attempt, t)
}

// run plans the end of a task's run. If the task is suspended or stopped before, the plan has no effect.
func (a *agent) run(at messages.Attempt, t *task) {
	t.since = a.now
	t.round++
	round := t.round
	a.queue.Push(a.now.Add(t.left), func() {
		switch {
		case t.round != round || t.over:
		case t.stays > 0:
			t.left, t.stays = t.stays, 0
			a.run(at, t)
			a.prints(a.owner(at.Task.Job), at.Task)
		default:
			a.end(at, t.ends)
			a.act()
		}
	})
}

func (a *agent) suspend(at messages.Attempt) {
	if t := a.tasks[at]; t != nil && t.since != 0 {
		t.left -= a.now.Sub(t.since)
		t.since = 0
		t.round++
	}
}

func (a *agent) resume(at messages.Attempt) {
	if t := a.tasks[at]; t != nil && t.since == 0 {
		a.run(at, t)
	}
}

func (a *agent) end(at messages.Attempt, how agentmsg.Outcome) {
	t := a.tasks[at]
	if t == nil {
		return
	}
	t.over = true
	delete(a.tasks, at)
	f := agentmsg.Finished{Attempt: at, Outcome: how, Started: t.began, Ended: a.now}
	if a.config.Mute {
		f.Started = 0
	}
	if o := a.owner(at.Task.Job); o != nil && how == agentmsg.Exited {
		if a.stays(o, at.Task) == 0 { // a task that keeps its slot has already printed its result
			a.prints(o, at.Task)
		}
		f.ExitCode = a.code(o, at.Task)
	}
	a.catchUp()
	a.state.Ended(f)
}

func (a *agent) request(r *state.Request) {
	a.send(a.name, auctioneerActor, func() {
		if r.Register != nil {
			reply, err := a.leader.register(a.name, r.Register)
			if messages.KindOf(err) == messages.Exhausted { // the agent will ask again
				return
			}
			if err != nil {
				a.fail("node %s cannot register: %v", a.name, err)
				return
			}
			a.send(auctioneerActor, a.name, func() {
				a.catchUp()
				a.state.Registered(a.now, r.ID, reply)
				a.act()
			})
			return
		}
		a.leader.exchange(a.name, r.Exchange, func(reply *agentmsg.ExchangeReply, err error) {
			a.send(auctioneerActor, a.name, func() {
				a.catchUp()
				if err != nil {
					a.state.Failed(a.now, r.ID, err)
				} else {
					a.state.Answered(a.now, r.ID, reply)
				}
				a.act()
			})
		})
	})
	if a.net.Reliable() && 2*a.net.Slowest() < r.Within {
		return // an answer cannot be lost
	}
	a.queue.Push(a.now.Add(r.Within), func() {
		a.state.Failed(a.now, r.ID, messages.Errorf(messages.Unavailable, "no answer"))
		a.act()
	})
}

func (a *agent) fetch(m messages.Name) {
	a.traffic.Fetches++
	answered := false
	a.send(a.name, auctioneerActor, func() {
		v, err := a.leader.desk.Vector(m)
		if err != nil {
			a.fail("%s: %v", a.name, err)
			return
		}
		a.send(auctioneerActor, a.name, func() {
			if answered {
				return
			}
			answered = true
			a.catchUp()
			if err := a.state.Fetched(a.now, &v); err != nil {
				a.fail("%s: %v", a.name, err)
			}
			a.act()
		})
	})
	if a.net.Reliable() {
		return
	}
	a.queue.Push(a.now.Add(patience), func() {
		if !answered {
			answered = true
			a.state.FetchFailed(a.now, m)
			a.act()
		}
	})
}

func (a *agent) vector(v *agentmsg.Vector) {
	if err := a.state.Vector(a.now, v); err != nil {
		a.fail("%s: %v", a.name, err)
	}
}

// catchUp gives the agent's state the vectors that it has not got yet. It begins with the last complete vector. To save
// work, the agent gets vectors only when it needs them.
func (a *agent) catchUp() {
	for a.heard = max(a.heard, a.whole); a.heard < len(a.news); a.heard++ {
		a.vector(a.news[a.heard])
	}
}
