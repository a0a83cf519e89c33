package batchqueue

import (
	"math"
	"slices"
)

// DynamicPricing is the pricing of Dynamic, of simulated markets.
const DynamicPricing = "dynamic"

// searched is in how long a queue all decisions are searched.
const searched = 6

// Dynamic decides on the front job of a queue as what follows makes it best, at the time at
// which it comes to the front: what it keeps from others while it waits for its nodes is a
// part of the decision. It has each account pay what the others lose by its announcements, now and later (the dynamic pivot
// mechanism of Bergemann and Välimäki, Econometrica 78, 2010). All jobs have a Value and a
// Delay, the machine has Nodes, accounts are by position, and asked says whose payments are
// wanted.
//
// W(a) is what the jobs of the queue are worth from now on, less their waiting, if the front
// job is run or discarded now, and W_i(a) the same without the jobs of account i, of which
// the front job, if it is i's, takes its nodes when it runs and is worth nothing. The decision has the
// larger W, and i pays max_a W_i(a) − W_i of the decision.
//
// What follows is worked out as if nobody else came and all took the time that they declare.
// Of up to six jobs all later decisions are searched: then truth is best for every account,
// whatever the others announce, as W is a maximum over decisions that no announcement
// shapes. In longer queues later decisions are those of Decide, and truth is best but for
// what these fall short of the best ones.
//
// Cost: for a queue of n jobs two runs of the queue, O(n²) each, and two for each account
// that is asked about; of up to six jobs 32 times as many.
func Dynamic[Account comparable](q *Queue, accounts []Account, asked func(Account) bool) (runs bool, pays map[Account]float64) {
	pays = map[Account]float64{}
	run, discard := ahead(q, func(int) bool { return true })
	runs = worth(run-min(run, discard), discard-min(run, discard))
	for i, account := range accounts {
		if slices.Index(accounts, account) < i || !asked(account) {
			continue
		}
		run, discard := ahead(q, func(i int) bool { return accounts[i] != account })
		tax := max(run, discard) - discard
		if runs {
			tax = max(run, discard) - run
		}
		if tax > slack*(math.Abs(run)+math.Abs(discard)) {
			pays[account] = tax
		}
	}
	return runs, pays
}

// ahead is what the jobs that count are worth from now on if the front job runs, and if it
// is discarded. Jobs that do not count are not there, but for the front job if it runs.
func ahead(q *Queue, counts func(i int) bool) (run, discard float64) {
	front := q.Jobs[0]
	if !counts(0) {
		front.Value, front.Delay = 0, 0
	}
	of := &Queue{Nodes: q.Nodes, Running: q.Running, Jobs: []Job{front}}
	for i := 1; i < len(q.Jobs); i++ {
		if counts(i) {
			of.Jobs = append(of.Jobs, q.Jobs[i])
		}
	}
	depth := 0
	if len(q.Jobs) <= searched {
		depth = searched
	}
	return of.run(depth), of.discard().future(depth)
}

// future is what the jobs of a queue are worth, less their waiting until they start or are
// discarded. So many of the decisions are searched for the best.
func (q *Queue) future(depth int) float64 {
	switch {
	case len(q.Jobs) == 0:
		return 0
	case depth > 0:
		return max(q.run(depth-1), q.discard().future(depth-1))
	case decide(q).Runs:
		return q.run(0)
	}
	return q.discard().future(0)
}

// run is what the jobs are worth if the front job runs as soon as its nodes are free, for
// which the others wait.
func (q *Queue) run(depth int) float64 {
	wait, next := q.start()
	sum := q.Jobs[0].Value
	for i := range q.Jobs {
		sum -= q.Jobs[i].Delay * wait
	}
	return sum + next.future(depth)
}

// start is how long the front job waits for its nodes, and the queue when it has started.
func (q *Queue) start() (wait float64, next *Queue) {
	wait, next = q.soonest(), q.discard()
	next.Running = nil
	for _, h := range q.Running {
		if h.Remaining -= wait; h.Remaining > 0 {
			next.Running = append(next.Running, h)
		}
	}
	next.Running = append(next.Running, Hold{q.Jobs[0].Width, q.Jobs[0].Length})
	return wait, next
}

// discard is the queue without its front job.
func (q *Queue) discard() *Queue { return &Queue{Nodes: q.Nodes, Jobs: q.Jobs[1:], Running: q.Running} }

// soonest is when the front job's nodes are free.
func (q *Queue) soonest() float64 {
	free := q.Nodes
	for _, h := range q.Running {
		free -= h.Width
	}
	ends := slices.SortedFunc(slices.Values(q.Running), func(a, b Hold) int {
		if a.Remaining < b.Remaining {
			return -1
		}
		return 1
	})
	at := 0.0
	for _, h := range ends {
		if free >= q.Jobs[0].Width {
			break
		}
		free, at = free+h.Width, h.Remaining
	}
	return at
}
