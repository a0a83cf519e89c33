package state

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/candor-grid/candor/messages"
)

// AheadWithin is how long a task may wait on the node for a slot; then it is given back. An agent
// with longer tasks claims none in advance.
const AheadWithin = 40 * time.Millisecond

// SetAhead sets another time in place of [AheadWithin]; 0: no task is claimed ahead.
func (s *State) SetAhead(within time.Duration) { s.tasks.setAhead(within) }

func (k *tasks) setAhead(within time.Duration) {
	k.within = within
	for i := range k.slots {
		k.slots[i].within = within
	}
}

// stock is the tasks of a class that wait on the node for a slot, so that a slot is not idle until
// the next exchange is answered. The leader knows them, and counts them as neither running nor paid
// for.
type stock struct {
	waits  []messages.Attempt // the next first
	run    time.Duration      // average time that a task has its slot; 0: unknown
	began  messages.Time      // when a task last began
	within time.Duration      // how long a task may wait
}

// wanted returns how many tasks of a class should wait on the node: as many as its slots use up
// during an exchange, and until the next exchange. The cost of an exchange hardly depends on its
// contents, so it should report as many ends as can be collected while slots are supplied. All
// waiting tasks should get a slot in time. When only low tasks are left, it is time to claim.
func (c *class) wanted(trip time.Duration) (all, low int) {
	if c.run <= 0 || c.run > c.within {
		return 0, 0
	}
	taken := func(d time.Duration) int { return int(min(time.Duration(c.slots)*d/c.run, math.MaxInt32)) }
	low = 1 + taken(trip)
	all = min(low+max(low+c.slots, taken(c.within/2)), taken(c.within), messages.MaxAhead*c.slots)
	return all, min(low, all-1)
}

// took notes how long a task had its slot. An average that moves by an eighth follows the
// tasks of the last moments.
func (c *class) took(d time.Duration) {
	if c.run == 0 {
		c.run = d
	}
	c.run += (d - c.run) / 8
	c.run = max(c.run, time.Microsecond)
}

// hold keeps a task that was granted ahead until a slot is free.
func (k *tasks) hold(a messages.Attempt, t *task) {
	t.ahead = true
	c := &k.slots[t.class]
	c.waits = append(c.waits, a)
}

// passOn begins the task that has waited longest for a slot of a class on the slot of one
// that has ended; it reports false if none waits.
func (k *tasks) passOn(f *messages.Finished, class int) bool {
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
	f.Next = &messages.Successor{Attempt: a}
	k.turns = append(k.turns, f.Next)
	return true
}

// follow leaves the tasks that wait with the runner, in their order.
func (k *tasks) follow() {
	if !k.feeds {
		return
	}
	for class := range k.slots {
		for _, a := range k.slots[class].waits {
			t := k.hand[a]
			if t.kept {
				break // later tasks would overtake it
			}
			if !t.left {
				t.left = true
				k.out.Follow = append(k.out.Follow, *t.start)
			}
		}
	}
}

// followed records that the runner has started a task on the slot of an ended one. It returns false
// if that is impossible, or there is no slot for the task.
func (k *tasks) followed(f *messages.Finished, class int, at messages.Time, a messages.Attempt) bool {
	t, c := k.hand[a], &k.slots[class]
	if t == nil || !t.ahead || t.ended || t.class != class || k.halts(a) || c.tasks >= c.slots {
		return false
	}
	k.leave(a, t)
	c.tasks++
	c.began, t.since, t.start, t.left = at, at, nil, false
	f.Next = &messages.Successor{Attempt: a, At: at}
	if t.stopped {
		k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: t.killed})
	}
	return true
}

// evict ends a task that the runner has started and for which there is no slot, because a decision
// gave the slot to another task in the meantime.
func (k *tasks) evict(a messages.Attempt) {
	t := k.hand[a]
	if t == nil || !t.ahead || t.ended {
		return
	}
	k.leave(a, t)
	k.giveBack(t.class, len(k.slots[t.class].waits)) // otherwise they would run after this one
	t.ahead = true
	t.start, t.left, t.stopped, t.killed = nil, false, true, true
	k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: true})
}

// withdraw asks a task back that was left with the runner.
func (k *tasks) withdraw(a messages.Attempt, t *task) {
	if t.withdrawn {
		return
	}
	k.leave(a, t)
	t.ahead, t.withdrawn = true, true // until the runner answers
	k.out.Withdraw = append(k.out.Withdraw, a)
}

// refill begins a task that waits on a slot that became free before the task was granted,
// if the leader does not know yet that the slot is free.
func (k *tasks) refill(class int) {
	for i := range k.finished {
		f := &k.finished[i]
		if t := k.hand[f.Attempt]; t != nil && t.vacated && t.class == class && f.Next == nil {
			k.passOn(f, class)
			return
		}
	}
}

// leave removes a task from the tasks that wait for a slot.
func (k *tasks) leave(a messages.Attempt, t *task) {
	t.ahead = false
	c := &k.slots[t.class]
	c.waits = slices.DeleteFunc(c.waits, func(w messages.Attempt) bool { return w == a })
}

// giveBack gives back the first n tasks of a class that wait for a slot: a decision was made
// since they were claimed, or they have waited too long.
func (k *tasks) giveBack(class, n int) {
	for _, a := range slices.Clone(k.slots[class].waits[:n]) {
		if t := k.hand[a]; t.left {
			k.withdraw(a, t)
			continue
		}
		k.ended(messages.Finished{Attempt: a, Outcome: messages.Stopped, Detail: "given back before it started"})
	}
}

func (k *tasks) giveBackAll() {
	for class := range k.slots {
		k.giveBack(class, len(k.slots[class].waits))
	}
}

// expire gives back tasks that have waited too long. If tasks of the class began in the meantime,
// the others only took longer than expected, and fewer will be claimed in advance. If none began,
// none is claimed in advance until the tasks on the slots are short again.
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

// expiry returns when the first waiting task has waited too long; 0: none waits.
func (k *tasks) expiry() (at messages.Time) {
	for class := range k.slots {
		if c := &k.slots[class]; len(c.waits) > 0 {
			at = messages.Earlier(at, k.hand[c.waits[0]].until)
		}
	}
	return at
}

// measure notes what began and ended since the last call.
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
