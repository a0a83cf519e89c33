package rigid

import (
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Input is the document that fifo, fairshare and backfill read.
type Input struct {
	Nodes int        `json:"nodes"`
	Jobs  []InputJob `json:"jobs"`
	Price *float64   `json:"price,omitempty"`
}

// InputJob is a job in the document that the package comment describes.
type InputJob struct {
	Submit   float64  `json:"submit"`
	Runtime  float64  `json:"runtime"`
	Width    int      `json:"width"`
	Estimate *float64 `json:"estimate,omitempty"`
	User     string   `json:"user,omitempty"`
	Weight   *float64 `json:"weight,omitempty"`
	Budget   *float64 `json:"budget,omitempty"`
}

// Output is the answer of three commands: candor solve fifo, candor solve fairshare and candor solve backfill.
type Output struct {
	Start  []float64 `json:"start"`
	Finish []float64 `json:"finish"`
	*Measures
	*bill
}

type bill struct {
	Payments []float64 `json:"payments"`
	Revenue  float64   `json:"revenue"`
}

// Instance makes the instance that a document describes.
func (in *Input) Instance() (*Instance, error) {
	if p := in.Price; p != nil && !(*p >= 0 && *p <= Largest) {
		return nil, casefile.Invalid("price", "must be from 0 to %g, is %g", Largest, *p)
	}
	out, users := &Instance{Nodes: in.Nodes, Jobs: make([]Job, len(in.Jobs))}, map[string]int{}
	for i := range in.Jobs {
		job := &in.Jobs[i]
		place := "jobs[" + strconv.Itoa(i) + "]."
		if b := job.Budget; b != nil && !(*b >= 0 && *b <= Largest) {
			return nil, casefile.Invalid(place+"budget", "must be from 0 to %g, is %g", Largest, *b)
		}
		weight := 1.0
		if job.Weight != nil {
			weight = *job.Weight
		}
		if !(weight > 0 && weight <= Largest) {
			return nil, casefile.Invalid(place+"weight", "must be above 0 and at most %g, is %g", Largest, weight)
		}
		u, known := users[job.User]
		if !known {
			u = len(users)
			users[job.User] = u
			out.Weights = append(out.Weights, weight)
		}
		if out.Weights[u] != weight {
			return nil, casefile.Invalid(place+"weight", "is %g, but %g on an earlier job of user %.64q: give the user one weight", weight, out.Weights[u], job.User)
		}
		out.Jobs[i] = Job{Submit: job.Submit, Runtime: job.Runtime, Estimate: job.Runtime, Width: job.Width, User: u}
		if job.Estimate != nil {
			out.Jobs[i].Estimate = *job.Estimate
		}
	}
	return out, out.Check()
}

// Present makes the output for a schedule.
func (in *Input) Present(instance *Instance, s *Schedule) *Output {
	out := &Output{Start: s.Start, Finish: s.Finish, Measures: instance.Measure(s)}
	if in.Price == nil {
		return out
	}
	out.bill = &bill{Payments: make([]float64, len(in.Jobs))}
	for i, job := range in.Jobs {
		owed := *in.Price * float64(job.Width) * job.Runtime
		if job.Budget != nil {
			owed = min(owed, *job.Budget)
		}
		out.Payments[i] = owed
		out.Revenue += owed
	}
	return out
}

// SolveDocument answers a document that has only the keys of Input.
func SolveDocument(data []byte, schedule func(*Instance) (*Schedule, error)) (any, error) {
	in, err := casefile.Read[Input](data)
	if err != nil {
		return nil, err
	}
	return in.Solve(schedule)
}

// Solve schedules the jobs of the document.
func (in *Input) Solve(schedule func(*Instance) (*Schedule, error)) (any, error) {
	instance, err := in.Instance()
	if err != nil {
		return nil, err
	}
	s, err := schedule(instance)
	if err != nil {
		return nil, err
	}
	return in.Present(instance, s), nil
}
