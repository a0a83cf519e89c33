package highestbid

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
)

// history is what a live market remembers to compute the payments of its jobs. It has the number of slots over time,
// and some jobs. A job is kept if it is not settled, or if it was present at the same time as another kept job.
type history struct {
	jobs  map[messages.JobID]*record
	kept  int        // number of jobs after the last prune
	slots []capacity // in the order of time, in microseconds
	told  bool       // the numbers of slots are in saved notes
	now   messages.Time
}

// record is the part of the history about one job.
type record struct {
	bid      float64 // in credits for a slot-second
	since    messages.Time
	enters   messages.Time
	received messages.Duration
	ended    messages.Time // 0 if the job has not ended
	left     bool          // the owner cancelled the job before its work was done
	settled  bool
}

func newHistory() history {
	return history{jobs: map[messages.JobID]*record{}, told: true}
}

func (h *history) put(job *mechanism.Job) {
	r := h.jobs[job.Job]
	if r == nil || r.ended != 0 {
		r = &record{bid: job.Rate.Float(), since: job.Arrived, enters: max(job.Arrived, h.now)}
		h.jobs[job.Job] = r
	}
	r.received = max(r.received, job.Received)
}

func (h *history) end(id messages.JobID, at messages.Time, state job.State, received messages.Duration) {
	if r := h.jobs[id]; r != nil {
		r.ended, r.received, r.left = at, received, state == job.Cancelled
	}
}

func (h *history) offer(slots int) {
	if n := len(h.slots); n == 0 || h.slots[n-1].slots != slots {
		h.slots, h.told = append(h.slots, capacity{float64(h.now), slots}), false
	}
}

// When prune has removed jobs, some number n of jobs is left in the history. prune runs again when the history has at
// least 2·n + often jobs.
const often = 64

// prune forgets the settled jobs on which no price depends any more. A job that runs, or that is not settled, is still
// needed. Let T be the earliest arrival of a job that is still needed. prune forgets the settled jobs that ended before
// T.
func (h *history) prune() {
	if len(h.jobs) < 2*h.kept+often {
		return
	}
	since := h.now
	var ended []messages.JobID
	for id, r := range h.jobs {
		if r.ended != 0 && r.settled {
			ended = append(ended, id)
		} else {
			since = min(since, r.enters)
		}
	}
	slices.SortFunc(ended, func(a, b messages.JobID) int { return cmp.Compare(h.jobs[b].ended, h.jobs[a].ended) })
	for _, id := range ended {
		if r := h.jobs[id]; r.ended >= since {
			since = min(since, r.enters)
		} else {
			delete(h.jobs, id)
		}
	}
	h.kept = len(h.jobs)
	for len(h.slots) > 1 && h.slots[1].from <= float64(since) {
		h.slots, h.told = h.slots[1:], false
	}
}

// contender describes a job: its bid, and what is known about its slot time.
func (h *history) contender(id messages.JobID) contender {
	r := h.jobs[id]
	c := contender{bid: r.bid, since: float64(r.since), order: uint64(id), enters: float64(r.enters),
		work: math.Inf(1), known: micros(r.received), until: math.Inf(1)}
	switch {
	case r.ended != 0 && r.left: // its work is not known: its owner cancelled it before
		c.until, c.known = float64(r.ended), math.Inf(1)
	case r.ended != 0:
		c.work = c.known
	}
	return c
}

func micros(d messages.Duration) float64 { return float64(d / 1000) }

// owed returns what a job owes for delaying other jobs, in credits. The argument `received` is the job's slot time. The
// result `certain` is false if later events can change the amount.
func (h *history) owed(id messages.JobID, received, horizon messages.Duration) (amount float64, certain bool) {
	r := h.jobs[id]
	if r == nil || received <= 0 {
		return 0, true
	}
	a := &absence{slots: h.slots, now: float64(r.enters)}
	for _, other := range slices.Sorted(maps.Keys(h.jobs)) {
		if other != id {
			a.coming = append(a.coming, h.contender(other))
		}
	}
	slices.SortStableFunc(a.coming, func(x, y contender) int { return cmp.Compare(x.enters, y.enters) })
	if len(a.coming) > 0 {
		a.now = min(a.now, a.coming[0].enters)
	}
	a.advance(a.now)
	me := h.contender(id)
	me.work = micros(received)
	price, certain := a.pivot(&me, float64(h.now), me.enters+micros(horizon))
	return price / 1e6, certain
}
