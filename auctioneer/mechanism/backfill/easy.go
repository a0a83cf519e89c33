package backfill

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/profile"
	"github.com/candor-grid/candor/auctioneer/mechanism/rigid"
)

// easy is the variant of backfilling in which only the first waiting job has a reservation.
type easy struct {
	queue   queue
	running *profile.Profile // only running jobs
}

func newEasy(in *rigid.Instance) *easy {
	return &easy{queue: newQueue(len(in.Jobs)), running: profile.New(in.Nodes)}
}

func (e *easy) Arrive(m *rigid.Machine, job int) {
	e.queue.push(job, m.Jobs[job].Width, m.Jobs[job].Estimate)
}

func (e *easy) End(m *rigid.Machine, job int) {
	e.running.Take(m.Now, m.Until(job), -m.Jobs[job].Width)
}

func (e *easy) Outlive(m *rigid.Machine, job int, until float64) {
	e.running.Take(m.Now, until, m.Jobs[job].Width)
}

// Next returns +Inf: jobs start only when another job arrives or ends.
func (e *easy) Next() float64 { return math.Inf(1) }

func (e *easy) start(m *rigid.Machine, at int) {
	job := e.queue.take(at)
	m.Start(job)
	e.running.Take(m.Now, m.Until(job), m.Jobs[job].Width)
}

func (e *easy) Decide(m *rigid.Machine) {
	e.running.Forget(m.Now)
	front := e.queue.find(0, want{free: m.Free, spare: math.MaxInt})
	for ; front >= 0 && front == e.queue.front(); front = e.queue.find(front, want{free: m.Free, spare: math.MaxInt}) {
		e.start(m, front)
	}
	if front < 0 { // no waiting job fits
		return
	}
	e.backfill(m)
}

// backfill starts jobs behind the front job that do not delay it. Such a job ends before enough nodes are free for the
// front job, or leaves enough nodes for it.
func (e *easy) backfill(m *rigid.Machine) {
	head := m.Jobs[e.queue.jobs[e.queue.front()]]
	w := want{now: m.Now, shadow: e.running.Soonest(m.Now, 0, head.Width)}
	w.spare = e.running.Free(w.shadow) - head.Width
	for at := e.queue.front() + 1; ; at++ {
		w.free = m.Free
		if at = e.queue.find(at, w); at < 0 {
			return
		}
		job := m.Jobs[e.queue.jobs[at]]
		if m.Now+job.Estimate > w.shadow {
			w.spare -= job.Width
		}
		e.start(m, at)
	}
}
