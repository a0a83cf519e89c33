package state

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
)

// AheadWithin is how long a task may wait on the node for a slot before it is given back to the leader. If tasks take
// longer than this, an agent claims none in advance.
const AheadWithin = 40 * time.Millisecond

// SetAhead replaces [AheadWithin] by another time. 0 means that no task is claimed in advance.
func (s *State) SetAhead(within time.Duration) { s.tasks.setAhead(within) }

func (k *tasks) setAhead(within time.Duration) {
	k.within = within
	for i := range k.slots {
		k.slots[i].within = within
	}
}

// stock has the tasks of a class that wait on the node for a slot. Without them, a free slot would be idle until the
// next exchange is answered. The leader does not count them as running or charge for them.
type stock struct {
	waits  []messages.Attempt // the waiting tasks; the first one starts next
	run    time.Duration      // average time that a task keeps its slot; 0 means unknown
	began  messages.Time      // when a task last started
	within time.Duration      // how long a task may wait on the node
}

// An agent claims tasks in advance, so that they wait on the node. wanted returns two numbers of such tasks of a class.
// The result `all` is how many should wait: enough for the class's slots during one exchange with the leader, and until
// the next one. If more tasks waited, some of them would not get a slot in time. When only `low` tasks still wait, the
// agent must claim again.
func (c *class) wanted(trip time.Duration) (all, low int) {
	if c.run <= 0 || c.run > c.within {
		return 0, 0
	}
	taken := func(d time.Duration) int { return int(min(time.Duration(c.slots)*d/c.run, math.MaxInt32)) }
	low = 1 + taken(trip)
	all = min(low+max(low+c.slots, taken(c.within/2)), taken(c.within), agent.MaxAhead*c.slots)
	return all, min(low, all-1)
}

// took records how long a task kept its slot. It moves the average time of the class an eighth of the way to the new
// time.
func (c *class) took(d time.Duration) {
	if c.run == 0 {
		c.run = d
	}
	c.run += (d - c.run) / 8
	c.run = max(c.run, time.Microsecond)
}

func (k *tasks) hold(a messages.Attempt, t *task) {
	t.ahead = true
	c := &k.slots[t.class]
	c.waits = append(c.waits, a)
}

// passOn is called when a task of the class has ended. If tasks of the class wait, passOn gives the free slot to the
// one that has waited longest, and starts it. It returns false if no task waits.
func (k *tasks) passOn(f *agent.Finished, class int) bool {
	c := &k.slots[class]
	if len(c.waits) == 0 || c.tasks >= c.slots {
		return false
	}
	a := c.waits[0]
	c.waits = c.waits[1:]
	t := k.hand[a]
	t.ahead, t.left = false, false
	c.tasks++
	k.begin(t)
	f.Next = &agent.Successor{Attempt: a}
	k.turns = append(k.turns, f.Next)
	return true
}

func (k *tasks) follow() {
	if !k.feeds {
		return
	}
	for class := range k.slots {
		for _, a := range k.slots[class].waits {
			t := k.hand[a]
			if t.kept {
				break // later tasks must not overtake this task
			}
			if !t.left {
				t.left = true
				k.out.Follow = append(k.out.Follow, *t.start)
			}
		}
	}
}

// The method followed records that the runner has started a waiting task on the slot of a task that has ended. It
// returns false if the started task did not wait for a slot of this class, or if no slot of the class is free.
func (k *tasks) followed(f *agent.Finished, class int, at messages.Time, a messages.Attempt) bool {
	t, c := k.hand[a], &k.slots[class]
	if t == nil || !t.ahead || t.ended || t.class != class || k.halts(a) || c.tasks >= c.slots {
		return false
	}
	k.leave(a, t)
	c.tasks++
	c.began, t.since, t.start, t.left = at, at, nil, false
	f.Next = &agent.Successor{Attempt: a, At: at}
	if t.stopped {
		k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: t.killed})
	}
	return true
}

// evict ends a task that the runner has started on a slot that the leader meanwhile gave to another task.
func (k *tasks) evict(a messages.Attempt) {
	t := k.hand[a]
	if t == nil || !t.ahead || t.ended {
		return
	}
	k.leave(a, t)
	// otherwise the runner would start the waiting tasks after this task
	k.giveBack(t.class, len(k.slots[t.class].waits))
	t.ahead = true
	t.start, t.left, t.stopped, t.killed = nil, false, true, true
	k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: true})
}

func (k *tasks) withdraw(a messages.Attempt, t *task) {
	if t.withdrawn {
		return
	}
	k.leave(a, t)
	t.ahead, t.withdrawn = true, true // the task stays withdrawn until the runner answers
	k.out.Withdraw = append(k.out.Withdraw, a)
}

// refill is called when the leader has granted tasks in advance. A slot may have become free before that, and the
// leader may not know this yet. refill starts one of the waiting tasks on this slot.
func (k *tasks) refill(class int) {
	for i := range k.finished {
		f := &k.finished[i]
		if t := k.hand[f.Attempt]; t != nil && t.vacated && t.class == class && f.Next == nil {
			k.passOn(f, class)
			return
		}
	}
}

func (k *tasks) leave(a messages.Attempt, t *task) {
	t.ahead = false
	c := &k.slots[t.class]
	c.waits = slices.DeleteFunc(c.waits, func(w messages.Attempt) bool { return w == a })
}

// giveBack gives the first n waiting tasks of a class back to the leader, after a decision or because they have waited
// too long.
func (k *tasks) giveBack(class, n int) {
	for _, a := range slices.Clone(k.slots[class].waits[:n]) {
		if t := k.hand[a]; t.left {
			k.withdraw(a, t)
			continue
		}
		k.ended(agent.Finished{Attempt: a, Outcome: agent.Stopped, Detail: "returned to the leader before it started"})
	}
}

func (k *tasks) giveBackAll() {
	for class := range k.slots {
		k.giveBack(class, len(k.slots[class].waits))
	}
}

// expire gives back tasks that have waited for a slot too long. From then on, the agent claims fewer tasks of their
// class in advance. If no task of the class has started for some time, the agent claims none in advance until tasks of
// the class end quickly again.
func (k *tasks) expire(now messages.Time) {
	for class := range k.slots {
		c := &k.slots[class]
		late := 0
		for late < len(c.waits) && now >= k.hand[c.waits[late]].until {
			late++
		}
		switch {
		case late == 0:
			continue
		case now.Sub(c.began).Std() < c.within:
			c.run *= 2
		default:
			c.run = 2 * c.within
		}
		k.giveBack(class, late)
	}
}

// A waiting task is given back to the leader when it has waited too long. expiry returns the next time at which a task
// is given back, or 0 if no task waits.
func (k *tasks) expiry() (at messages.Time) {
	for class := range k.slots {
		if c := &k.slots[class]; len(c.waits) > 0 {
			at = messages.Earlier(at, k.hand[c.waits[0]].until)
		}
	}
	return at
}

// measure records the times of the tasks that have started or ended since the last call.
func (k *tasks) measure(now messages.Time) {
	for i := range k.out.Start {
		if t := k.hand[k.out.Start[i].Grant.Attempt]; t != nil {
			t.since = now
			k.slots[t.class].began = now
		}
	}
	for _, t := range k.over {
		if t.since == 0 {
			t.account.close(-1)
			continue
		}
		took := max(0, cmp.Or(t.until, now).Sub(t.since).Std())
		k.slots[t.class].took(took)
		t.account.close(took)
	}
	for _, next := range k.turns {
		next.At = now
	}
	k.over, k.turns = k.over[:0], k.turns[:0]
}
