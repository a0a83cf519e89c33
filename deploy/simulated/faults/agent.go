package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/bank/ledger"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/state"
)

const slots = 2

// agent is the shell of a node agent; its tasks are timers.
type agent struct {
	*World
	host
	name  messages.Name
	rng   *rand.Rand
	state *state.State
	tasks map[messages.Attempt]bool
	wake  messages.Time
	hint  int
}

func newAgent(w *World, i int) *agent {
	a := &agent{World: w, name: fmt.Sprint("n", i), rng: rand.New(rand.NewPCG(w.seed, uint64(i)+100))}
	a.down = true
	a.boot()
	return a
}

func (a *agent) clock() messages.Time { return a.now.Add(a.offset) }

func (a *agent) boot() {
	if !a.down {
		return
	}
	a.down, a.wake, a.tasks = false, 0, map[messages.Attempt]bool{}
	a.life++
	a.state = state.New([]messages.ClassSlots{{Class: class, Slots: slots}}, a.rng)
	a.act()
}

// crash ends all its processes with it.
func (a *agent) crash() { a.down = true }

func (a *agent) act() {
	if a.down {
		return
	}
	do := a.state.Act(a.clock())
	for i := range do.Start {
		a.start(do.Start[i].Grant.Attempt)
	}
	for _, s := range do.Stop {
		a.end(s.Attempt, messages.Stopped)
	}
	for range do.Fetch {
		a.state.FetchFailed(a.clock(), market.Name) // whole vectors come by themselves
	}
	if do.Request != nil {
		a.request(do.Request)
	}
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

func (a *agent) start(at messages.Attempt) {
	a.tasks[at] = true
	run := second + messages.Duration(a.rng.Int64N(int64(8*second)))
	a.after(&a.host, run, func() {
		if a.tasks[at] {
			a.exits[at] = true
			a.end(at, messages.Exited)
			a.act()
		}
	})
}

func (a *agent) end(at messages.Attempt, how messages.Outcome) {
	if a.tasks[at] {
		delete(a.tasks, at)
		a.state.Ended(messages.Finished{Attempt: at, Outcome: how, Ended: a.clock()})
		a.after(&a.host, 0, a.act)
	}
}

// request sends a registration or an exchange to whom it takes for the leader.
func (a *agent) request(q *state.Request) {
	r, life := a.books.replicas[a.hint], a.life
	mine := func() bool { return !a.down && a.life == life }
	answer := func(do func()) {
		a.send(r.host.name, a.name, func() {
			if mine() {
				do()
				a.act()
			}
		})
	}
	fail := func(err error) {
		answer(func() { a.state.Failed(a.clock(), q.ID, err) })
	}
	a.send(a.name, r.host.name, func() {
		switch {
		case r.host.down:
		case r.role != leading:
			fail(messages.Errorf(messages.Unavailable, "not the leader"))
		case q.Register != nil:
			r.desk.register(a, q, answer)
		default:
			r.desk.exchange(a, q, answer, fail)
		}
	})
	a.hint = (a.hint + 1) % 3
	if r.role == leading {
		a.hint = r.me
	}
	a.after(&a.host, q.Within, func() {
		a.state.Failed(a.clock(), q.ID, messages.Errorf(messages.Unavailable, "no answer"))
		a.act()
	})
}

func (d *desk) register(a *agent, q *state.Request, answer func(func())) {
	c := &book.Register{Node: a.name, Session: q.Register.Session, Slots: q.Register.Slots, Running: q.Register.Running}
	d.propose(&book.Command{Register: c}, func(result any) {
		stop, ok := result.([]messages.Attempt)
		if !ok || d.gone() {
			return
		}
		d.heard[a.name] = d.r.clock()
		reply := &messages.RegisterReply{Lease: lease, Term: d.term, Stop: stop, Markets: []messages.Market{market}}
		answer(func() { a.state.Registered(a.clock(), q.ID, reply) })
	})
}

func (d *desk) exchange(a *agent, q *state.Request, answer func(func()), fail func(error)) {
	x := q.Exchange
	n := d.book().Node(a.name)
	reply := func(grants []messages.Grant) {
		d.heard[a.name] = d.r.clock()
		out := &messages.ExchangeReply{Seq: x.Seq, Grants: slices.Clone(grants)}
		for _, g := range grants {
			out.Programs = append(out.Programs, messages.Program{Job: g.Attempt.Task.Job, StageName: "main", Class: class, Command: []string{"run"}})
		}
		if n := d.book().Node(a.name); n != nil {
			out.Stop, out.Held, out.Version = slices.Clone(n.Stop), n.Halted(), n.Version
		}
		answer(func() { a.state.Answered(a.clock(), q.ID, out) })
	}
	if len(x.Finished)+len(x.Claims) == 0 {
		if n == nil || !n.Up || n.Session != x.Session {
			fail(messages.Errorf(messages.Fenced, "the session is over"))
			return
		}
		reply(nil)
		return
	}
	c := &book.Exchange{Node: a.name, Session: x.Session, Seq: x.Seq, Finished: x.Finished}
	for _, k := range x.Claims {
		c.Claims = append(c.Claims, book.Claim{Class: class, Slots: k.Slots, Jobs: []messages.JobID{k.Job}})
	}
	d.propose(&book.Command{Exchange: c}, func(result any) {
		if err, refused := result.(error); refused {
			fail(err)
		} else if !d.gone() {
			reply(result.([]messages.Grant))
		}
	})
}

// user submits one job, again and again until it is answered, and may submit it
// once more later, or cancel it.
type user struct {
	*World
	name messages.Name
	key  string
	job  messages.JobID // 0: not answered yet
	over bool           // refused
}

const users = 3

// open grants the users their credits.
func (w *World) open() {
	for i := range users {
		c := ledger.Command{Verb: ledger.Grant, At: w.now, By: "operator", Grant: messages.GrantRequest{
			Key: fmt.Sprint("open/", i), Account: fmt.Sprint("u", i), Amount: granted, Reason: "the run begins"}}
		data := c.Encode()
		w.call("operator", w.banks, func() bool { return false }, func(r *replica, answer func(any)) { r.propose(data, answer) }, func(any) {})
	}
}

// granted is what each user has: enough for a few jobs at once.
const granted = 12 * messages.Credit

func newUser(w *World, i int) *user {
	u := &user{World: w, name: fmt.Sprint("u", i%users), key: fmt.Sprint("j", i)}
	at := 8*second + messages.Duration(w.rng.Int64N(int64(w.plan.Duration)))
	w.queue.Push(w.now.Add(at), u.submit)
	if w.rng.IntN(2) == 0 {
		w.queue.Push(w.now.Add(at+messages.Duration(w.rng.Int64N(int64(20*second)))), u.submit)
	}
	if w.rng.IntN(5) == 0 {
		w.queue.Push(w.now.Add(at+messages.Duration(w.rng.Int64N(int64(20*second)))), u.cancel)
	}
	return u
}

func (u *user) submit() {
	spec := &messages.JobSpec{Market: market.Name, Budget: 4 * messages.Credit, Stages: []messages.Stage{{Name: "main", Class: class, Tasks: 3, Command: []string{"run"}}}}
	u.call("users", u.books, func() bool { return u.over }, func(r *replica, answer func(any)) { r.desk.submit(u.name, u.key, spec, answer) }, func(reply any) {
		id, accepted := reply.(messages.JobID)
		switch {
		case accepted && u.job != 0 && u.job != id:
			u.violate("invariant 3: job %s/%s was acknowledged as %d, and is %d", u.name, u.key, u.job, id)
		case accepted:
			u.job = id
		case u.job != 0:
			u.violate("invariant 3: job %d was acknowledged, and is refused: %v", u.job, reply)
		default:
			u.over = true
		}
	})
}

func (u *user) cancel() {
	if u.job == 0 {
		return
	}
	u.call("users", u.books, func() bool { return false }, func(r *replica, answer func(any)) {
		r.desk.propose(&book.Command{Cancel: &book.Cancel{Job: u.job, By: u.name}}, answer)
	}, func(any) {})
}
