package deploy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/candor-grid/candor/auctioneer/book"
	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/nodeagent/state"
)

// rack is a node with its agent, and a job book that gives it tasks, in virtual time.
type rack struct {
	t     *testing.T
	rng   *rand.Rand
	now   messages.Time
	due   clock.Queue[func()]
	wake  messages.Time
	agent *state.State
	book  *book.Book
	takes map[messages.JobID]messages.Duration // by job: run time of each task
	runs  map[messages.Attempt]bool
	used  messages.Duration // slot time that tasks had, according to the book
	ahead int               // number of tasks that were granted ahead
	heard int               // number of exchanges so far
}

func (r *rack) after(d time.Duration, do func()) {
	r.due.Push(r.now.Add(messages.Duration(d)), do)
}

// trip returns the time that a message or a commit takes.
func (r *rack) trip() time.Duration { return time.Duration(500+r.rng.IntN(1000)) * time.Microsecond }

func (r *rack) apply(c book.Command) any {
	c.Stamp(r.now, 0, false)
	return r.book.Apply(&c)
}

func (r *rack) act() {
	do := r.agent.Act(r.now)
	for _, s := range do.Start {
		a := s.Grant.Attempt
		r.runs[a] = true
		r.after(r.takes[a.Task.Job].Std(), func() { r.end(a, agent.Exited) })
	}
	for _, s := range do.Stop {
		r.end(s.Attempt, agent.Stopped)
	}
	if q := do.Request; q != nil {
		r.after(r.trip(), func() { r.serve(q) })
	}
	if at := r.agent.Wake(); at != 0 && at != r.wake {
		r.wake = at
		r.due.Push(max(at, r.now), r.act)
	}
}

func (r *rack) end(a messages.Attempt, how agent.Outcome) {
	if r.runs[a] {
		delete(r.runs, a)
		r.agent.Ended(agent.Finished{Attempt: a, Outcome: how})
		r.act()
	}
}

func (r *rack) serve(q *state.Request) {
	if q.Register != nil {
		r.apply(book.Command{Register: &book.Register{Node: "n", Session: q.Register.Session, Slots: q.Register.Slots}})
		r.after(r.trip(), func() {
			markets := []agent.NodeMarket{{Name: "main", Classes: []messages.Name{"cpu"}}}
			r.agent.Registered(r.now, q.ID, &agent.RegisterReply{Lease: messages.Duration(8 * time.Second), Markets: markets, Term: 1})
			v := &agent.Vector{Market: "main", Term: 1, Seq: 1, Classes: []agent.ClassVector{{Class: "cpu", Pending: 1 << 30, Idle: 1}}}
			for id := range messages.JobID(len(r.takes)) {
				v.Classes[0].Jobs = append(v.Classes[0].Jobs, agent.JobWeight{Job: id + 1, Weight: 1})
			}
			if err := r.agent.Vector(r.now, v); err != nil {
				r.t.Fatal(err)
			}
			r.act()
		})
		return
	}
	r.heard++
	x := &book.Exchange{Node: "n", Session: q.Exchange.Session, Seq: q.Exchange.Seq, Sent: q.Exchange.Sent, Finished: q.Exchange.Finished}
	for _, c := range q.Exchange.Claims {
		x.Claims = append(x.Claims, book.Claim{Class: c.Class, Slots: c.Slots, Jobs: []messages.JobID{c.Job}, Ahead: c.Ahead})
	}
	grants, ok := r.apply(book.Command{Exchange: x}).([]agent.Grant)
	if !ok {
		r.t.Fatal("the exchange was refused")
	}
	reply := &agent.ExchangeReply{Seq: x.Seq, Grants: grants}
	for id := range messages.JobID(len(r.takes)) {
		reply.Programs = append(reply.Programs, agent.Program{Job: id + 1, Class: "cpu"})
	}
	for _, g := range grants {
		if g.Ahead {
			r.ahead++
		}
	}
	r.after(r.trip(), func() {
		r.agent.Answered(r.now, q.ID, reply)
		r.act()
	})
}

// newRack returns a node with slots, and jobs that always have more tasks than can run. There is one job for each given
// run time, and all tasks of the job run that long.
func newRack(t *testing.T, seed uint64, slots int, takes ...time.Duration) *rack {
	rng := rand.New(rand.NewPCG(seed, 5))
	r := &rack{t: t, rng: rng, now: 1e6, agent: state.New([]job.ClassSlots{{Class: "cpu", Slots: slots}}, rng), book: book.New(),
		runs: map[messages.Attempt]bool{}, takes: map[messages.JobID]messages.Duration{}}
	for i, took := range takes {
		key := fmt.Sprint(i)
		r.takes[messages.JobID(i+1)] = messages.Duration(took)
		r.apply(book.Command{Submit: &book.Submit{Account: "alice", Key: key, Payer: "alice", Hold: key, Held: 100, Spec: &job.JobSpec{
			Market: "main", Budget: 100, Stages: []job.Stage{{Name: "all", Class: "cpu", Tasks: 1 << 20}}}}})
	}
	return r
}

func (r *rack) run(d time.Duration) {
	r.act()
	for end := r.now.Add(messages.Duration(d)); r.now < end; {
		at := r.due.Next()
		if n := r.book.Node("n"); n != nil && len(n.Used) > 0 {
			r.used += messages.Duration(n.Used[0]) * at.Sub(r.now)
		}
		r.now = at
		r.due.Pop()()
	}
}

// Jobs with tasks of 1 ms and of 20 ms run on the same slots. Most tasks begin before the leader hears that the
// previous task has ended. Each task must pay for its own run time, and for a part of the time between two exchanges.
// All tasks together must pay for the time of the slots, to the microsecond.
func TestShortAndLongTasksPayForTheirTime(t *testing.T) {
	for seed := range uint64(6) {
		r := newRack(t, seed, 1+int(seed%3), time.Millisecond, 20*time.Millisecond)
		r.run(10 * time.Second)
		var all messages.Duration
		for id, took := range r.takes {
			j := r.book.Job(id)
			_, had := r.book.Used(j, r.now)
			all += had
			if more := (had / messages.Duration(j.Stages[0].Done)).Std() - took.Std(); more < -100*time.Microsecond || more > 500*time.Microsecond {
				t.Errorf("seed %d: each task of %v pays for %v more", seed, took, more)
			}
		}
		if done := r.book.Job(1).Stages[0].Done + r.book.Job(2).Stages[0].Done; r.ahead < done/2 {
			t.Errorf("seed %d: %d of %d tasks were claimed ahead: the test does not try what it is for", seed, r.ahead, done)
		}
		if all != r.used {
			t.Errorf("seed %d: jobs had slots for %v, the slots had tasks for %v", seed, all, r.used)
		}
	}
}

// Tasks take 1 ms and exchanges take 2 ms. The slots must nevertheless be busy all the time, because tasks are granted
// in advance. Without this, they would be busy for about a quarter of the time. Exchanges must be at least a third of
// state.AheadWithin apart.
func TestSlotsOfShortTasksAreBusy(t *testing.T) {
	for _, slots := range []int{2, 8} {
		for within, least := range map[time.Duration]float64{0: 0.2, state.AheadWithin: 0.95} {
			r := newRack(t, 1, slots, time.Millisecond)
			r.agent.SetAhead(within)
			r.run(time.Second)
			busy := float64(r.book.Job(1).Stages[0].Done) / float64(1000*slots)
			if busy < least || busy > 1 || within == 0 && busy > 0.5 {
				t.Errorf("%d slots with tasks at hand for %v did %.3f of what they can", slots, within, busy)
			}
			if apart := time.Second / time.Duration(r.heard); within > 0 && apart < within/3 {
				t.Errorf("%d slots: an exchange each %v", slots, apart)
			}
		}
	}
}
