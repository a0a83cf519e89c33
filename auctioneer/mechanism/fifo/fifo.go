package fifo

import "github.com/candor-grid/candor/auctioneer/mechanism/rigid"

// Schedule runs the jobs in the order of their submission.
func Schedule(in *rigid.Instance) (*rigid.Schedule, error) { return rigid.Run(in, new(queue)) }

// SolveDocument answers the JSON document described in package rigid.
func SolveDocument(data []byte) (any, error) { return rigid.SolveDocument(data, Schedule) }

// queue is the policy "first in, first out". If the front job does not fit, all jobs behind it wait.
type queue struct {
	jobs []int
	next int
}

func (q *queue) Arrive(_ *rigid.Machine, job int) { q.jobs = append(q.jobs, job) }

func (q *queue) End(*rigid.Machine, int) {}

func (q *queue) Decide(m *rigid.Machine) {
	for q.next < len(q.jobs) && m.Jobs[q.jobs[q.next]].Width <= m.Free {
		m.Start(q.jobs[q.next])
		q.next++
	}
}
