package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// tasks are the attempts in hand, from the grant until the leader knows of their
// end, and the reports of those that have ended.
type tasks struct {
	slots slots
	out   *Actions
	freed func(class int) // called when the end of a task has freed a slot
	// sharing is what shares slot time among the jobs of a task's market; nil: nothing does.
	sharing func(class int, job messages.JobID) *sampler.Stride

	hand      map[messages.Attempt]*task
	alive     int                   // tasks in hand and not ended
	suspended []messages.Attempt    // by the leader's word, in order; maybe not yet granted
	version   uint64                // of the leader's word
	finished  []messages.Finished   // ended, and in no exchange yet
	gathers   messages.Time         // until when finished waits for more; 0: it does not
	over      []*task               // ended, and not measured yet
	turns     []*messages.Successor // of slots that were passed on, and not timed yet
	within    time.Duration         // how long a task may wait for a slot
	feeds     bool                  // tasks that wait can be left with the runner
}

// task is an attempt in hand.
type task struct {
	class     int
	width     int    // how many slots of the class it has, or would have
	start     *Start // what it begins with; nil once it has begun
	suspended bool   // not to run until it is resumed: leaves its slot to others
	ended     bool
	vacated   bool // it had a slot when it ended
	stopped   bool // told to end
	killed    bool
	ahead     bool          // waits for a slot
	left      bool          // with the runner, which begins it by itself
	kept      bool          // not left: the runner does not begin it by itself
	withdrawn bool          // asked back from the runner
	until     messages.Time // until when, if it is ahead; when it ended, where that is known
	since     messages.Time // when it began; 0: not here
	account   account
}

// accept takes a granted task in hand, and begins it unless it is suspended or has no slot.
func (k *tasks) accept(now messages.Time, class int, start Start) {
	a := start.Grant.Attempt
	t := &task{class: class, width: max(start.Program.Width, 1), start: &start, suspended: k.halts(a), until: now.Add(messages.Duration(k.within))}
	if by := k.sharing(class, a.Task.Job); by != nil {
		t.account.open(by, a.Task.Job, t.width)
	}
	k.hand[a] = t
	k.alive++
	switch {
	case t.suspended:
	case start.Grant.Ahead:
		k.hold(a, t)
		k.refill(class)
	default:
		k.slots[class].tasks += t.width
		k.begin(t)
	}
}

func (k *tasks) begin(t *task) {
	k.out.Start = append(k.out.Start, *t.start)
	t.start = nil
}

// adopt takes a task in hand that has begun; it reports false where the task is in
// hand already.
func (k *tasks) adopt(a messages.Attempt, class, width int, suspended bool) bool {
	if k.hand[a] != nil {
		return false
	}
	k.hand[a] = &task{class: class, width: max(width, 1), suspended: suspended}
	k.alive++
	if !suspended {
		k.slots[class].tasks += max(width, 1)
		return true
	}
	if at, told := slices.BinarySearchFunc(k.suspended, a, messages.Attempt.Compare); !told {
		k.suspended = slices.Insert(slices.Clip(k.suspended), at, a) // as the earlier run was told
	}
	return true
}

// obey suspends the listed tasks and lets all others run, unless something newer was
// obeyed before.
func (k *tasks) obey(version uint64, suspended []messages.Attempt) {
	if version < k.version {
		return
	}
	k.version = version
	if len(suspended) == 0 && len(k.suspended) == 0 {
		return
	}
	k.giveBackAll()
	if slices.Equal(suspended, k.suspended) {
		return // the tasks in hand are so already
	}
	was := k.suspended
	if k.suspended = suspended; !slices.IsSortedFunc(suspended, messages.Attempt.Compare) {
		k.suspended = slices.SortedFunc(slices.Values(suspended), messages.Attempt.Compare)
	}
	for is := k.suspended; len(was)+len(is) > 0; { // both are in order
		var a messages.Attempt
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].Compare(is[0]) < 0:
			a, was = was[0], was[1:]
		case len(was) == 0 || was[0].Compare(is[0]) > 0:
			a, is = is[0], is[1:]
		default:
			was, is = was[1:], is[1:]
			continue
		}
		if t := k.hand[a]; t != nil && !t.ended && !t.ahead && t.suspended != k.halts(a) {
			k.turn(a, t)
		}
	}
}

// halts reports whether an attempt is not to run, by the leader's word.
func (k *tasks) halts(a messages.Attempt) bool {
	_, told := slices.BinarySearchFunc(k.suspended, a, messages.Attempt.Compare)
	return told
}

// turn suspends a task that runs, and lets a suspended one run. A suspended task
// leaves its slot: the leader says how many run at once.
func (k *tasks) turn(a messages.Attempt, t *task) {
	t.suspended = !t.suspended
	switch c := &k.slots[t.class]; {
	case t.suspended:
		c.tasks -= t.width
		k.out.Suspend = append(k.out.Suspend, a) // it has begun: others are suspended from the start
	case t.start != nil:
		c.tasks += t.width
		k.begin(t)
	default:
		c.tasks += t.width
		k.out.Resume = append(k.out.Resume, a)
	}
}

// stopAll ends every task in hand.
func (k *tasks) stopAll(kill bool) {
	for _, a := range k.list() {
		k.stop(a, kill)
	}
}

// stop ends a task; saying so again changes nothing, unless it is to be
// killed now.
func (k *tasks) stop(a messages.Attempt, kill bool) {
	t := k.hand[a]
	if t == nil || t.ended || t.killed || t.stopped && !kill {
		return
	}
	t.stopped, t.killed = true, kill
	if t.left {
		k.withdraw(a, t)
		return
	}
	if t.start != nil {
		k.ended(messages.Finished{Attempt: a, Outcome: messages.Stopped, Detail: "stopped before it started"})
		return
	}
	k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: kill})
}

// ended notes and reports the end of a task.
func (k *tasks) ended(f messages.Finished) { k.turned(0, f, messages.Attempt{}) }

// turned notes and reports the end of a task, on whose slot the runner has begun next.
func (k *tasks) turned(at messages.Time, f messages.Finished, next messages.Attempt) {
	defer k.evict(next)
	t := k.hand[f.Attempt]
	if t == nil || t.ended {
		return
	}
	t.ended = true
	k.alive--
	k.report(f)
	switch {
	case t.ahead:
		k.leave(f.Attempt, t)
		t.account.close(-1)
	case !t.suspended:
		t.vacated = true
		t.until = at
		k.over = append(k.over, t)
		k.slots[t.class].tasks -= t.width
		for range t.width - 1 {
			k.freed(t.class)
		}
		if end := &k.finished[len(k.finished)-1]; !k.followed(end, t.class, at, next) && !k.passOn(end, t.class) {
			k.freed(t.class)
		}
	}
}

// refuse reports a granted attempt as ended though it never began.
func (k *tasks) refuse(a messages.Attempt, why messages.Outcome, detail string) {
	k.hand[a] = &task{ended: true}
	k.report(messages.Finished{Attempt: a, Outcome: why, Detail: detail})
}

// maxDetail bounds the sentence about the end of an attempt, in bytes. The sentence may
// repeat what a user wrote, of any length and in any encoding, and must not make an
// exchange unfit to be sent.
const maxDetail = 1024

// report puts the end of an attempt into the next exchange.
func (k *tasks) report(f messages.Finished) {
	f.Detail = strings.ToValidUTF8(f.Detail[:min(len(f.Detail), maxDetail)], "?")
	k.finished = append(k.finished, f)
}

// reported forgets tasks of whose end the leader knows.
func (k *tasks) reported(ends []messages.Finished) {
	for _, f := range ends {
		delete(k.hand, f.Attempt)
		k.out.Reported = append(k.out.Reported, f.Attempt)
	}
}

// list returns the attempts in hand, in order.
func (k *tasks) list() []messages.Attempt { return sorted(k.hand) }

func sorted[V any](attempts map[messages.Attempt]V) []messages.Attempt {
	list := slices.AppendSeq(make([]messages.Attempt, 0, len(attempts)), maps.Keys(attempts))
	slices.SortFunc(list, messages.Attempt.Compare)
	return list
}

// An exchange costs the site much the same whatever is in it. Where many tasks
// run, those that have ended wait until they are a part of the ones that run, but
// not for long.
const (
	gatherPart   = 4
	gatherWithin = 6 * time.Millisecond
)

// due reports whether the tasks that have ended are to be reported now. They wait no
// longer than an exchange takes, where no slot is fed meanwhile.
func (k *tasks) due(now messages.Time, closing bool, trip time.Duration) bool {
	within, fed := min(cmp.Or(trip, gatherWithin), gatherWithin), k.fed()
	if fed {
		within = k.within / 2
	}
	switch n := len(k.finished); {
	case n == 0:
		return false
	case closing || n > k.alive/gatherPart && !fed:
		return true
	case k.gathers == 0:
		k.gathers = now.Add(messages.Duration(within))
	}
	return now >= k.gathers
}

// fed reports whether tasks are at hand for all slots that become free.
func (k *tasks) fed() bool {
	fed := false
	for i := range k.slots {
		c := &k.slots[i]
		if c.tasks < c.slots && c.tasks > 0 {
			return false
		}
		fed = fed || len(c.waits) > 0
	}
	return fed
}

// mostFinished bounds the ends of tasks in one exchange, each of which may explain
// itself in maxDetail bytes: all of them must fit a message.
const mostFinished = 4096

// drain removes the ends for the next exchange, as many as fit; all says that none is
// left.
func (k *tasks) drain() (ends []messages.Finished, all bool) {
	n := min(len(k.finished), mostFinished)
	ends = k.finished[:n:n]
	if k.finished = k.finished[n:]; len(k.finished) == 0 {
		k.finished, all = nil, true
	}
	k.gathers = 0
	return ends, all
}

// putBack puts ends that were in an exchange into the next one.
func (k *tasks) putBack(ends []messages.Finished) { k.finished = append(ends, k.finished...) }
