package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/state"
)

const slots = 2

// agent is a node agent. It connects the real state of an agent with the simulated network and clock. Tasks are only
// timers.
type agent struct {
	*site
	host
	name     messages.Name // name in the book of its site
	actor    string        // name on the network
	rng      *rand.Rand
	state    *state.State
	tasks    map[messages.Attempt]*task
	wake     messages.Time
	hint     int
	hole     bool // every task that starts here fails at once
	odd      bool // true for every second node
	feeds    bool // its executor holds tasks that wait for a slot; only on odd nodes, with most seeds
	executor executor
}

type task struct {
	began    messages.Time     // when the task started, by the agent's clock
	left     messages.Duration // run time that was left at the time `since`
	since    messages.Time     // when the task last began to run; 0 means that it is suspended
	round    int               // number of the current timer; earlier timers are ignored
	fails    bool
	unheeded int           // number of answers in a row that the agent did not obey
	defies   messages.Time // time of the first answer in this row
}

func newAgent(s *site, i int) *agent {
	a := &agent{site: s, name: fmt.Sprint("n", i), actor: fmt.Sprint(s.name, ".n", i),
		rng: rand.New(rand.NewPCG(s.seed, uint64(100*s.index+i+100)))}
	a.down, a.odd, a.feeds = true, i%2 == 1, i%2 == 1 && s.seed%4 != 0
	a.start()
	return a
}

func (a *agent) clock() messages.Time { return a.now.Add(a.offset) }

func (a *agent) start() {
	if !a.down {
		return
	}
	a.down, a.wake, a.tasks = false, 0, map[messages.Attempt]*task{}
	a.life++
	a.state = state.New([]job.ClassSlots{{Class: class, Slots: slots}}, a.rng)
	if a.odd { // tasks on odd nodes are short, so they can be claimed in advance
		a.state.SetAhead(time.Minute)
	}
	if a.executor = (executor{}); a.feeds {
		a.state.SetFeeds()
	}
	a.act()
}

func (a *agent) crash() { a.down = true }

func (a *agent) shift(by messages.Duration) {
	a.offset += by
	a.wake = 0
	a.act()
}

func (a *agent) act() {
	if a.down {
		return
	}
	do := a.state.Act(a.clock())
	for i := range do.Start {
		a.executor.remove(do.Start[i].Grant.Attempt)
		a.check(a.site, a.repeats(&do.Start[i].Grant))
		a.begin(do.Start[i].Grant.Attempt)
	}
	for _, s := range do.Follow {
		a.line(s)
	}
	for _, at := range do.Withdraw {
		a.withdraw(at)
	}
	for _, at := range do.Suspend {
		a.hold(at)
	}
	for _, at := range do.Resume {
		if t := a.tasks[at]; t != nil && t.since == 0 {
			a.goOn(at, t)
		}
	}
	for _, s := range do.Stop {
		if a.Bug == LeaseIgnored && s.Kill {
			continue
		}
		a.end(s.Attempt, agentmsg.Stopped)
	}
	for range do.Fetch {
		a.fetch()
	}
	if do.Request != nil {
		a.request(do.Request)
	}
	a.setTimer()
}

func (a *agent) setTimer() {
	at := a.state.Wake()
	if at == 0 {
		return
	}
	due := max(at.Add(-a.offset), a.now+1)
	if a.wake > a.now && a.wake <= due {
		return
	}
	a.wake = due
	a.after(&a.host, due.Sub(a.now), func() {
		if a.wake == due {
			a.wake = 0
			a.act()
		}
	})
}

func (a *agent) begin(at messages.Attempt) {
	if at.Task.Job == 0 || a.hole { // a task without a job is a probe, and is not recorded
		t := &task{began: a.clock(), left: second / 100, fails: a.hole}
		a.tasks[at] = t
		a.goOn(at, t)
		return
	}
	a.note(a.site.name, false, a.actor, "starts", at)
	a.alone(at)
	t := &task{began: a.clock(), left: second + messages.Duration(a.rng.Int64N(int64(8*second)))}
	if a.rng.IntN(3) == 0 { // one task in three runs longer than a lease
		t.left += lease + messages.Duration(a.rng.Int64N(int64(lease)))
	}
	a.tasks[at] = t
	a.goOn(at, t)
}

// alone checks that a task runs at only one place at a time. An agent that cannot renew its lease must end its tasks
// before the leader gives them to others. After a jump of a clock, leases cannot guarantee this, so the site is not
// checked.
func (a *agent) alone(at messages.Attempt) {
	for _, o := range a.agents {
		if o == a || o.down || a.jumped {
			continue
		}
		for n := at.Number; n > 0; n-- {
			if o.tasks[messages.Attempt{Task: at.Task, Number: n}] != nil {
				a.violate("invariant 2: attempt %d of task %v starts on %s while attempt %d runs on %s", at.Number, at.Task, a.actor, n, o.actor)
			}
		}
	}
}

// goOn starts or continues a task. The task ends when its remaining time is over, unless it is interrupted.
func (a *agent) goOn(at messages.Attempt, t *task) {
	t.since = a.now
	t.round++
	round := t.round
	a.after(&a.host, t.left, func() {
		if a.tasks[at] == t && t.round == round {
			a.exits[at] = !t.fails
			a.end(at, agentmsg.Exited)
			a.act()
		}
	})
}

func (a *agent) hold(at messages.Attempt) {
	if t := a.tasks[at]; t != nil && t.since != 0 {
		t.left = max(1, t.left-a.now.Sub(t.since))
		t.since = 0
		t.round++
	}
}

func (a *agent) end(at messages.Attempt, how agentmsg.Outcome) {
	if t := a.tasks[at]; t != nil {
		delete(a.tasks, at)
		a.note(a.site.name, false, a.actor, "ends", at, how)
		f := agentmsg.Finished{Attempt: at, Outcome: how, Started: t.began, Ended: a.clock(), CPU: 3e6, MaxRSS: 2 << 20}
		if how == agentmsg.Exited && !a.exits[at] {
			f.ExitCode = 137
		}
		a.over(f, t.since != 0)
	}
}

// attempts returns the attempts of the agent's tasks, sorted.
func (a *agent) attempts() []messages.Attempt {
	return slices.SortedFunc(maps.Keys(a.tasks), messages.Attempt.Compare)
}

// vector handles a vector, the state of the market that the leader publishes.
func (a *agent) vector(v *agentmsg.Vector) {
	if a.down {
		return
	}
	if err := a.state.Vector(a.clock(), v); err != nil {
		a.violate("a vector cannot be used: %v", err)
	}
	a.act()
}

func (a *agent) directive(d *agentmsg.Directive) {
	if !a.down {
		a.state.Directive(a.clock(), d)
		a.act()
	}
}

// ask sends a request to the replica that the agent believes to be the leader. If there is no answer in time, ask calls
// `failed`.
func (a *agent) ask(within messages.Duration, do func(l *leader, answer func(func())), failed func(error)) {
	r, life, over := a.books.replicas[a.hint], a.life, false
	answer := func(take func()) {
		a.send(r.host.name, a.actor, func() {
			if !a.down && a.life == life && !over {
				over = true
				take()
				a.act()
			}
		})
	}
	a.send(a.actor, r.host.name, func() {
		switch {
		case r.host.down:
		case !r.serving():
			answer(func() { failed(messages.Errorf(messages.Unavailable, "not the leader")) })
		default:
			do(r.shell.(*leader), answer)
		}
	})
	if r.role != leading { // a real agent would find the leader by asking all replicas
		a.hint = (a.hint + 1) % 3
	}
	a.after(&a.host, within, func() {
		if !over {
			over = true
			failed(messages.Errorf(messages.Unavailable, "no answer"))
			a.act()
		}
	})
}

func (a *agent) request(q *state.Request) {
	failed := func(err error) { a.state.Failed(a.clock(), q.ID, err) }
	a.ask(q.Within, func(l *leader, answer func(func())) {
		reply := func(err error, take func()) {
			if err != nil {
				take = func() { failed(err) }
			}
			answer(take)
		}
		if q.Register != nil {
			l.register(a, q.Register, func(r *agentmsg.RegisterReply, err error) {
				reply(err, func() { a.state.Registered(a.clock(), q.ID, r) })
			})
			return
		}
		l.exchange(a, q.Exchange, func(r *agentmsg.ExchangeReply, err error) {
			reply(err, func() {
				a.state.Answered(a.clock(), q.ID, r)
				a.after(&a.host, 0, func() { a.check(a.site, a.heeds(l)) })
			})
		})
	}, failed)
}

func (a *agent) fetch() {
	a.ask(2*second, func(l *leader, answer func(func())) {
		v, err := l.desk.Vector(a.market.Name)
		answer(func() {
			if err != nil {
				a.state.FetchFailed(a.clock(), a.market.Name)
			} else if err := a.state.Fetched(a.clock(), &v); err != nil {
				a.violate("a whole vector cannot be used: %v", err)
			}
		})
	}, func(error) { a.state.FetchFailed(a.clock(), a.market.Name) })
}
