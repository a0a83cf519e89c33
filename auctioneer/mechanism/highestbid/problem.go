package highestbid

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// Reserve is the paper's reserve price for a second on a node.
const Reserve = 1

// Smallest and Largest bound all numbers of a problem that are not 0.
const (
	Smallest = 1e-30
	Largest  = 1e30
)

// MostNodes is the largest number of nodes that a market may have.
const MostNodes = 1 << 40

// MostTasks is the largest number of tasks that a job may have.
const MostTasks = 1<<31 - 1

// Problem is a trace of jobs, with the number of nodes and the rules of the market.
type Problem struct {
	Nodes int `json:"nodes"`
	Rule
	Reserve float64 `json:"reserve,omitempty"` // price of a second on a node
	Jobs    []Job   `json:"jobs"`
	// Payers is used with pivot prices. It says for which jobs the whole payment is computed; nil means for all jobs.
	// For other jobs only the reserve price is computed.
	Payers  []bool  `json:"-"`
	Horizon float64 `json:"horizon,omitempty"` // with pivot prices: seconds after submission in which waiting counts; 0 means no limit
	// Watch, if not nil, is called when tasks end, are suspended or resume.
	Watch func(Step) `json:"-"`
}

// Step says what happened to some tasks of one job at one time.
type Step struct {
	Job   int     // position of the job in the problem
	At    float64 // in seconds
	Done  int     // number of tasks that ended
	Lost  int     // number of tasks that were suspended
	Again int     // number of tasks that resumed
}

// Job is a job of one or more tasks, each with the job's bid. Tasks start in their order. Times are in seconds from any
// origin. Money is in any unit. A job with a run time of 0 ends when it is submitted, and costs nothing.
type Job struct {
	Submit   float64 `json:"submit"`
	Runtime  float64 `json:"runtime"`
	Value    float64 `json:"value"`              // what a second of delay really costs its owner
	Bid      float64 `json:"bid"`                // bid for a second on a node
	Estimate float64 `json:"estimate,omitempty"` // estimated run time, only for WSEPT
	Tasks    int     `json:"-"`                  // number of tasks, each with this run time; 0 means 1
	Width    int     `json:"width,omitempty"`    // nodes that each task uses at the same time; 0 means 1
}

func (j *Job) tasks() int { return max(1, j.Tasks) }

func (j *Job) width() int { return max(1, j.Width) }

// Check returns an error about the job and the field if a problem is invalid.
func (p *Problem) Check() error {
	if err := p.Rule.Validate(); err != nil {
		return err
	}
	if p.Nodes < 1 || p.Nodes > MostNodes {
		return messages.Errorf(messages.Invalid, "nodes: must be from 1 to %d, is %d", MostNodes, p.Nodes)
	}
	if !amount(p.Reserve) {
		return messages.Errorf(messages.Invalid, "reserve: must be 0 or from %g to %g, is %v", Smallest, Largest, p.Reserve)
	}
	switch {
	case !amount(p.Horizon):
		return messages.Errorf(messages.Invalid, "horizon: must be 0 or from %g to %g seconds, is %v", Smallest, Largest, p.Horizon)
	case p.Horizon > 0 && p.Rule.Price != Pivot:
		return messages.Errorf(messages.Invalid, "horizon: only the price %s uses a horizon, not the price %s; leave the horizon out", Pivot, p.Rule.Price)
	}
	if len(p.Jobs) > math.MaxInt32-1 {
		return messages.Errorf(messages.TooLarge, "jobs: there are %d, above the limit of %d", len(p.Jobs), math.MaxInt32-1)
	}
	for i := range p.Jobs {
		if err := p.Jobs[i].check(i, p); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) check(i int, p *Problem) error {
	for _, f := range [...]struct {
		name string
		x    float64
	}{{"submit", j.Submit}, {"runtime", j.Runtime}, {"value", j.Value}, {"bid", j.Bid}, {"estimate", j.Estimate}} {
		if !amount(f.x) {
			return messages.Errorf(messages.Invalid, "jobs[%d].%s: must be 0 or from %g to %g, is %v", i, f.name, Smallest, Largest, f.x)
		}
	}
	if j.Tasks < 0 || j.Tasks > MostTasks {
		return messages.Errorf(messages.Invalid, "jobs[%d].tasks: must be from 0 to %d, is %d", i, MostTasks, j.Tasks)
	}
	if most := p.Nodes; j.Width < 0 || j.Width > most || j.Width > MostTasks/j.tasks() {
		return messages.Errorf(messages.Invalid, "jobs[%d].width: must be from 0 to %d, the number of nodes, and at most %d for all tasks of the job together, is %d", i, most, MostTasks, j.Width)
	}
	if j.Width > 1 && p.Rule.Price == Pivot {
		return messages.Errorf(messages.Invalid, "jobs[%d].width: with price %s a job has one node, this job has %d", i, Pivot, j.Width)
	}
	if p.Rule.Algorithm == WSEPT && j.Estimate == 0 {
		return messages.Errorf(messages.Invalid, "jobs[%d].estimate: must be above 0 for WSEPT, which orders jobs by their estimates: give the expected run time", i)
	}
	return nil
}

func amount(x float64) bool { return x == 0 || x >= Smallest && x <= Largest }

// length returns a number. The algorithm divides the job's bid by this number.
func (j *Job) length(a Algorithm) float64 {
	switch a {
	case WSPT:
		return j.Runtime
	case WSEPT:
		return j.Estimate
	default:
		return 1
	}
}
