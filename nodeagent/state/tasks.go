package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/agent"
	"github.com/candor-grid/candor/nodeagent/sampler"
)

// tasks has this node's attempts. An attempt is in this list from the time when the leader grants it until the leader
// knows that it has ended.
type tasks struct {
	slots slots
	out   *Actions
	freed func(class int) // called when the end of a task has freed a slot of a class
	// sharing returns the Stride that shares slot time in the market of a job, or nil if there is none.
	sharing func(class int, job messages.JobID) *sampler.Stride

	hand      map[messages.Attempt]*task
	alive     int                // number of attempts that have not ended
	suspended []messages.Attempt // attempts that the leader suspends, sorted; some may not be granted yet
	version   uint64             // version of the leader's list
	finished  []agent.Finished   // reports of ended attempts that are in no exchange yet
	gathers   messages.Time      // until when the reports in finished wait for more ends; 0 means no wait
	over      []*task            // ended tasks whose times are not recorded yet
	turns     []*agent.Successor // successors whose times are not known yet
	within    time.Duration      // how long a task may wait here for a slot
	feeds     bool               // the runner accepts tasks that wait for a slot
}

// task is one attempt of this node.
type task struct {
	class     int
	width     int    // number of slots that the task has, or will have
	start     *Start // what to start; nil after the task has started
	suspended bool   // the task must not run until it is resumed, and has no slot
	ended     bool
	vacated   bool // the task had a slot when it ended
	stopped   bool // the task was told to end
	killed    bool
	ahead     bool          // the task waits for a slot
	left      bool          // the runner has the task, and starts it by itself
	kept      bool          // the runner did not accept the task: the agent must start it
	withdrawn bool          // the runner was asked to give the task back
	until     messages.Time // when the wait for a slot ends, or when the task ended
	since     messages.Time // when the task started; 0 means not during this run of the agent
	account   account
}

// accept adds a granted task, and starts it unless it is suspended or has no slot.
func (k *tasks) accept(now messages.Time, class int, start Start) {
	a := start.Grant.Attempt
	t := &task{class: class, width: max(start.Program.Width, 1), start: &start, suspended: k.halts(a), until: now.Add(messages.Duration(k.within))}
	if by := k.sharing(class, a.Task.Job); by != nil {
		t.account.open(by, a.Task.Job, t.width)
		by.Owe(a.Task.Job, start.Grant.Waited.Std()) // the job pays for slots that were idle for it
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

// adopt adds a task that has started already. It returns false if the task is known.
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
		k.suspended = slices.Insert(slices.Clip(k.suspended), at, a) // the earlier run was told to suspend the task
	}
	return true
}

// obey suspends the listed tasks, and resumes all other tasks. It does nothing if it has already obeyed a newer list.
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
		return // the tasks are in these states already
	}
	was := k.suspended
	if k.suspended = suspended; !slices.IsSortedFunc(suspended, messages.Attempt.Compare) {
		k.suspended = slices.SortedFunc(slices.Values(suspended), messages.Attempt.Compare)
	}
	for is := k.suspended; len(was)+len(is) > 0; { // both lists are sorted
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

// halts reports whether the leader wants an attempt suspended.
func (k *tasks) halts(a messages.Attempt) bool {
	_, told := slices.BinarySearchFunc(k.suspended, a, messages.Attempt.Compare)
	return told
}

// turn suspends a task that runs, or resumes a suspended task. A suspended task gives up its slot. A resumed task takes
// a slot even if all slots are in use, because the leader decides how many tasks run.
func (k *tasks) turn(a messages.Attempt, t *task) {
	t.suspended = !t.suspended
	switch c := &k.slots[t.class]; {
	case t.suspended:
		c.tasks -= t.width
		k.out.Suspend = append(k.out.Suspend, a) // a task that has not started need not be suspended
	case t.start != nil:
		c.tasks += t.width
		k.begin(t)
	default:
		c.tasks += t.width
		k.out.Resume = append(k.out.Resume, a)
	}
}

func (k *tasks) stopAll(kill bool) {
	for _, a := range k.list() {
		k.stop(a, kill, "")
	}
}

// stopThese ends the attempts in the list `all`. The list `last` has the texts for the last lines of their outputs.
func (k *tasks) stopThese(all []messages.Attempt, last []string) {
	for i, a := range all {
		words := ""
		if i < len(last) {
			words = last[i]
		}
		k.stop(a, false, words)
	}
}

// stop ends a task. A second call has no effect, unless the task must now be killed.
func (k *tasks) stop(a messages.Attempt, kill bool, last string) {
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
		k.ended(agent.Finished{Attempt: a, Outcome: agent.Stopped, Detail: "stopped before it started"})
		return
	}
	k.out.Stop = append(k.out.Stop, Stop{Attempt: a, Kill: kill, Last: last})
}

func (k *tasks) ended(f agent.Finished) { k.turned(0, f, messages.Attempt{}) }

// turned records and reports the end of a task. The argument `next` is the task that the runner has then started on the
// same slot, if there is one.
func (k *tasks) turned(at messages.Time, f agent.Finished, next messages.Attempt) {
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

// refuse reports a granted attempt as ended although it never started.
func (k *tasks) refuse(a messages.Attempt, why agent.Outcome, detail string) {
	k.hand[a] = &task{ended: true}
	k.report(agent.Finished{Attempt: a, Outcome: why, Detail: detail})
}

// maxDetail bounds the sentence about the end of an attempt, in bytes. A user's text in it must not make an exchange
// too large or invalid.
const maxDetail = 1024

// report adds the end of an attempt to the next exchange.
func (k *tasks) report(f agent.Finished) {
	f.Detail = strings.ToValidUTF8(f.Detail[:min(len(f.Detail), maxDetail)], "?")
	k.finished = append(k.finished, f)
}

func (k *tasks) reported(ends []agent.Finished) {
	for _, f := range ends {
		delete(k.hand, f.Attempt)
		k.out.Reported = append(k.out.Reported, f.Attempt)
	}
}

func (k *tasks) list() []messages.Attempt { return sorted(k.hand) }

func sorted[V any](attempts map[messages.Attempt]V) []messages.Attempt {
	list := slices.AppendSeq(make([]messages.Attempt, 0, len(attempts)), maps.Keys(attempts))
	slices.SortFunc(list, messages.Attempt.Compare)
	return list
}

// A large exchange costs hardly more than a small one. So the agent collects the ends of several tasks for one
// exchange. It sends the exchange after gatherWithin. It sends it earlier if more than a quarter of the running tasks
// (1/gatherPart) have ended.
const (
	gatherPart   = 4
	gatherWithin = 6 * time.Millisecond
)

// due reports whether the ended tasks must be reported now. A report waits at most for the duration of an exchange. It
// may wait longer if other tasks wait on the node and fill the free slots, because then no slot is idle.
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

// This method reports whether there are waiting tasks for all slots that will become free.
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

// mostFinished bounds how many ended tasks one exchange reports. Each report may have a sentence of maxDetail bytes,
// and all reports must fit into one message.
const mostFinished = 4096

// drain removes and returns the ends for the next exchange, as many as fit. The result `all` is true if none are left.
func (k *tasks) drain() (ends []agent.Finished, all bool) {
	n := min(len(k.finished), mostFinished)
	ends = k.finished[:n:n]
	if k.finished = k.finished[n:]; len(k.finished) == 0 {
		k.finished, all = nil, true
	}
	k.gathers = 0
	return ends, all
}

// An exchange with reports of ended tasks was lost. putBack puts these reports back, so that the next exchange sends
// them.
func (k *tasks) putBack(ends []agent.Finished) { k.finished = append(ends, k.finished...) }
