package batchqueue

import (
	"math"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Job is a job of a queue, as announced or as drawn. The caller chooses one unit of money and one unit of time.
type Job struct {
	Value  float64 // what the run of the job is worth; only for the front job
	Delay  float64 // what each unit of time of delay costs; only for the other jobs
	Length float64
	Width  int // number of nodes; only in a queue with Nodes
}

// Hold is a running job: it has Width nodes for the time Remaining.
type Hold struct {
	Width     int
	Remaining float64
}

// Closing is a period in which some nodes are closed.
type Closing struct {
	From, To float64
	Nodes    int
}

// Queue is a queue of jobs. Its front job, Jobs[0], could run at time 0.
type Queue struct {
	Nodes   int // number of nodes, or 0 if every job takes the whole machine, which is idle
	Jobs    []Job
	Running []Hold // only in a queue with Nodes
	// Closings are maintenance periods. Only a queue with Nodes may have them. If a job would not end before the next
	// maintenance period, it does not start until this period is over.
	Closings []Closing
}

// Largest is the largest value, cost of delay or time.
const Largest = 1e15

func (q *Queue) wide() bool { return q.Nodes > 0 }

// Check returns an error if a queue is invalid. The error names the wrong field by its key in the JSON document that
// SolveDocument reads.
func (q *Queue) Check() error {
	if q.Nodes < 0 || q.Nodes > math.MaxInt32 {
		return casefile.Invalid("N", "must be a number of nodes from 1 to %d, is %d", math.MaxInt32, q.Nodes)
	}
	for i, job := range q.Jobs {
		if err := q.checkJob(place("queue", i), i == 0, job); err != nil {
			return err
		}
	}
	return q.checkRunning()
}

// field returns the full name of a field in the document. It is called only for an error, because naming each of a
// million types would take long.
type field func(name string) string

func place(list string, i int) field {
	return func(name string) string { return at(list, i) + name }
}

func (q *Queue) checkJob(place field, front bool, job Job) error {
	if front {
		if err := inRange(place, ".v", job.Value); err != nil {
			return err
		}
	} else if err := inRange(place, ".d", job.Delay); err != nil {
		return err
	}
	if err := inRange(place, ".r", job.Length); err != nil {
		return err
	}
	return q.checkWidth(place, job.Width)
}

func (q *Queue) checkWidth(place field, width int) error {
	switch {
	case q.wide() && width < 1:
		return casefile.Invalid(place(".n"), "must be at least 1 node, is %d", width)
	case q.wide() && width > q.Nodes:
		return casefile.Invalid(place(".n"), "%d nodes are more than the machine's %d: give a smaller number", width, q.Nodes)
	case !q.wide() && width != 0:
		return casefile.Invalid(place(".n"), "a width needs the size of the machine: give N")
	}
	return nil
}

func (q *Queue) checkRunning() error {
	if !q.wide() && len(q.Running) > 0 {
		return casefile.Invalid("running", "needs the size of the machine: give N")
	}
	held := 0
	for i, r := range q.Running {
		if err := q.checkWidth(place("running", i), r.Width); err != nil {
			return err
		}
		if err := inRange(place("running", i), ".remaining", r.Remaining); err != nil {
			return err
		}
		if held += r.Width; held > q.Nodes {
			return casefile.Invalid(at("running", i)+".n", "with this job, the running jobs hold more than the machine's %d nodes", q.Nodes)
		}
	}
	return nil
}

func inRange(place field, name string, x float64) error {
	if !(x >= 0 && x <= Largest) { // written so that NaN is refused too
		return casefile.Invalid(place(name), "must be from 0 to %g, is %g", Largest, x)
	}
	return nil
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
