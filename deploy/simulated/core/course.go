package core

import (
	"math"

	"github.com/candor-grid/candor/deploy/simulated/clock"
	"github.com/candor-grid/candor/messages"
)

// course is the state of a simulated run. The run does not step through the time: it goes from one event to the next.
type course[End any] struct {
	*Problem
	out  *Outcome
	next int // index of the next job to be submitted
	open int // number of wanted jobs whose outcomes are unknown
	ends clock.Queue[End]
}

func newCourse[End any](p *Problem) course[End] {
	c := course[End]{Problem: p, out: NewOutcome(p)}
	for i := range p.Bids {
		if p.pays(i) {
			c.open++
		}
	}
	return c
}

func (c *course[End]) settled(i int) {
	if c.pays(i) {
		c.open--
	}
}

// run continues until the outcomes of all wanted jobs are known. All events of the same time are applied together, ends
// before submissions; then the market makes one decision. A job without run time is complete at its submission.
func (c *course[End]) run(end func(now messages.Time, e End) error, arrive func(now messages.Time, job int) error,
	decide func(now messages.Time) error) (*Outcome, error) {
	for c.open > 0 && (c.next < len(c.Work.Jobs) || c.ends.Len() > 0) && !c.stopped() {
		now := c.instant()
		for c.ends.Len() > 0 && c.ends.Next() <= now {
			if err := end(now, c.ends.Pop()); err != nil {
				return nil, err
			}
		}
		for ; c.next < len(c.Work.Jobs) && micros(c.Work.Jobs[c.next].Submit) <= now; c.next++ {
			c.progress(c.next)
			if j := &c.Work.Jobs[c.next]; j.Runtime == 0 {
				c.complete(c.out, c.next, j.Submit, j.Submit, 0)
				c.settled(c.next)
			} else if err := arrive(now, c.next); err != nil {
				return nil, err
			}
		}
		if err := decide(now); err != nil {
			return nil, err
		}
	}
	return c.out, nil
}

func (c *course[End]) instant() messages.Time {
	if c.next == len(c.Work.Jobs) {
		return c.ends.Next()
	}
	at := micros(c.Work.Jobs[c.next].Submit)
	if c.ends.Len() > 0 {
		at = min(at, c.ends.Next())
	}
	return at
}

func micros(seconds float64) messages.Time { return messages.Time(math.Round(seconds * 1e6)) }

func seconds(t messages.Time) float64 { return float64(t) / 1e6 }

// serial is a simulated run (see course) in which each task of a job starts alone, when a slot is free.
type serial struct {
	course[int] // the events are the ends of tasks, by job
	free        int
	jobs        []tasks
}

// A value of the type tasks has two numbers for a job: `pending` tasks must still be started, and `left` tasks have not
// ended.
type tasks struct{ pending, left int }

func newSerial(p *Problem) serial {
	return serial{course: newCourse[int](p), free: p.Work.Nodes, jobs: make([]tasks, len(p.Bids))}
}

func (s *serial) enter(i int) { s.jobs[i] = tasks{s.Work.Jobs[i].Width, s.Work.Jobs[i].Width} }

func (s *serial) begin(now messages.Time, i int) {
	if math.IsNaN(s.out.Jobs[i].Start) {
		s.out.Jobs[i].Start = seconds(now)
	}
	s.free--
	s.jobs[i].pending--
	s.ends.Push(now+micros(s.Work.Jobs[i].Runtime), i)
}

// end frees the slot of a task that ends. It returns true if this was the last task of the job.
func (s *serial) end(now messages.Time, i int) bool {
	s.free++
	j, r := &s.Work.Jobs[i], &s.out.Jobs[i]
	if seconds(now) <= s.Bids[i].Deadline {
		r.InTime += 1 / float64(j.Width)
	}
	if s.jobs[i].left--; s.jobs[i].left > 0 {
		return false
	}
	r.Finish, r.InTime, r.Used = seconds(now), min(1, r.InTime), j.Work()
	s.settled(i)
	return true
}
