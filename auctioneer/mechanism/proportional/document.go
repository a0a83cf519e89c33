package proportional

import (
	"math"
	"slices"
	"strconv"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
	jobmsg "github.com/candor-grid/candor/messages/job"
)

// input is the document of `candor solve proportional`.
type input struct {
	Alpha       float64    `json:"alpha"`
	Jobs        []inputJob `json:"jobs"`
	Rounds      *int       `json:"rounds,omitempty"`      // do only this number of the paper's rounds
	Evaluations *int       `json:"evaluations,omitempty"` // limit of the search for a better pool
}

type inputJob struct {
	Budget  float64   `json:"budget"`
	Kind    string    `json:"kind"`
	Weights []float64 `json:"weights"`
	SLO     *float64  `json:"slo,omitempty"` // minimum utility
}

// output is the answer that `candor solve proportional` prints. It has a row for each job, in the order of the input.
// If a job of the input has an SLO, only the jobs of the chosen pool have rows.
type output struct {
	Subbudgets [][]float64 `json:"subbudgets"`
	Allocation [][]float64 `json:"allocation"`
	Utilities  []*float64  `json:"utilities"` // null stands for minus infinity, the logarithm of a share of 0
	Rounds     int         `json:"rounds"`
	Converged  bool        `json:"converged"`
	*pools
}

type pools struct {
	Prolific    []int   `json:"prolific_pool"`
	NonProlific []int   `json:"non_prolific_pool"`
	Profit      float64 `json:"profit"`
	BestGroup   []int   `json:"best_group"`
	BestProfit  float64 `json:"best_profit"`
	Evaluations int     `json:"evaluations"`
	Complete    bool    `json:"search_complete"`
}

// SolveDocument answers a JSON document {"alpha", "jobs": [{"budget", "kind", "weights", "slo"?}…], "rounds"?,
// "evaluations"?}. If jobs have the key "slo", a greedy method chooses a pool of jobs. A search then looks for a better
// pool; "evaluations" bounds this search.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	p, err := in.problem()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(in.Jobs, func(j inputJob) bool { return j.SLO != nil }) {
		return in.pool(p)
	}
	var s Solver
	var r *Result
	if in.Rounds != nil {
		r, err = s.Rounds(p, *in.Rounds)
	} else {
		r, err = s.Solve(p)
	}
	if err != nil {
		return nil, err
	}
	return present(p, r), nil
}

func (in *input) problem() (*Problem, error) {
	if in.Rounds != nil && *in.Rounds < 0 {
		return nil, casefile.Invalid("rounds", "must not be negative, is %d", *in.Rounds)
	}
	p := &Problem{Alpha: in.Alpha, Log: make([]bool, len(in.Jobs))}
	for i, job := range in.Jobs {
		if i == 0 {
			p.Classes = len(job.Weights)
		}
		if err := job.check(i, p.Classes); err != nil {
			return nil, err
		}
		p.Log[i] = job.Kind == string(jobmsg.Log)
		p.Budgets = append(p.Budgets, job.Budget)
		p.Weights = append(p.Weights, job.Weights...)
	}
	return p, p.Check()
}

func (job *inputJob) check(i, classes int) error {
	place := "jobs[" + strconv.Itoa(i) + "]"
	if job.Kind != string(jobmsg.Linear) && job.Kind != string(jobmsg.Log) {
		return casefile.Invalid(place+".kind", "must be %q or %q, is %.64q", jobmsg.Linear, jobmsg.Log, job.Kind)
	}
	if len(job.Weights) == 0 || len(job.Weights) != classes {
		return casefile.Invalid(place+".weights", "must have a weight for each class: the first job has %d weights, this job has %d", classes, len(job.Weights))
	}
	if !slices.ContainsFunc(job.Weights, func(w float64) bool { return w != 0 }) {
		return casefile.Invalid(place+".weights", "are all zero: give at least one class a positive weight")
	}
	return nil
}

func present(p *Problem, r *Result) *output {
	return &output{
		Subbudgets: rows(r.Subbudgets, p.Classes),
		Allocation: rows(r.Shares, p.Classes),
		Utilities:  utilities(p, r.Shares),
		Rounds:     r.Rounds,
		Converged:  r.Converged,
	}
}

func rows(flat []float64, m int) [][]float64 {
	out := [][]float64{}
	for k := 0; k < len(flat); k += m {
		out = append(out, flat[k:k+m])
	}
	return out
}

func utilities(p *Problem, shares []float64) []*float64 {
	out := []*float64{}
	for i := range p.Budgets {
		u := p.Utility(i, shares[i*p.Classes:(i+1)*p.Classes])
		if math.IsInf(u, 0) {
			out = append(out, nil)
			continue
		}
		out = append(out, &u)
	}
	return out
}

// pool answers a document in which jobs have minimum utilities. The answer has three parts: the pool of jobs that the
// greedy method chooses, the fixed point of the auction among these jobs, and the best group that the search found.
func (in *input) pool(p *Problem) (*output, error) {
	if in.Rounds != nil {
		return nil, casefile.Invalid("rounds", "cannot be combined with slo: leave one out")
	}
	minimum := make([]float64, len(in.Jobs))
	for i, job := range in.Jobs {
		minimum[i] = math.Inf(-1)
		if job.SLO != nil {
			minimum[i] = *job.SLO
		}
	}
	limit, err := in.limit(p)
	if err != nil {
		return nil, err
	}
	pool, err := NewPool(p, minimum, limit)
	if err != nil {
		return nil, err
	}
	var chosen Problem
	var s Solver
	chosen.choose(p, pool.Members)
	r, err := s.Solve(&chosen)
	if err != nil {
		return nil, err
	}
	out := present(&chosen, r)
	out.pools = &pools{list(pool.Members), outside(len(in.Jobs), pool.Members), pool.Profit,
		list(pool.Best), pool.BestProfit, pool.Evaluations, pool.Complete}
	return out, nil
}

// limit returns how many evaluations the search may take. By default it ends in about a second.
func (in *input) limit(p *Problem) (int, error) {
	if in.Evaluations == nil {
		return min(20_000, 2_000_000/len(p.Weights)), nil
	}
	if *in.Evaluations < 0 {
		return 0, casefile.Invalid("evaluations", "must not be negative, is %d", *in.Evaluations)
	}
	return *in.Evaluations, nil
}

// list returns a copy of group. The copy is never nil, so that an empty group becomes [] in JSON, and not null.
func list(group []int) []int { return append([]int{}, group...) }

func outside(n int, group []int) []int {
	out := []int{}
	for i := range n {
		if _, in := slices.BinarySearch(group, i); !in {
			out = append(out, i)
		}
	}
	return out
}
