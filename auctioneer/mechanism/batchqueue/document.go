package batchqueue

import (
	"math"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// input is the document of `candor solve batch-queue`.
type input struct {
	Nodes         *int           `json:"N,omitempty"`
	Queue         []inputJob     `json:"queue"`
	Running       []inputRunning `json:"running,omitempty"`
	Mode          *string        `json:"mode,omitempty"`
	Distributions [][]inputPoint `json:"distributions,omitempty"`
	Expectation   *string        `json:"expectation,omitempty"`
	Draws         *int           `json:"draws,omitempty"`
	Seed          *uint64        `json:"seed,omitempty"`
	Pricing       *string        `json:"pricing,omitempty"`
}

type inputJob struct {
	V *float64 `json:"v,omitempty"`
	D *float64 `json:"d,omitempty"`
	R *float64 `json:"r,omitempty"`
	N *int     `json:"n,omitempty"`
	A *string  `json:"account,omitempty"`
}

type inputRunning struct {
	N         int     `json:"n"`
	Remaining float64 `json:"remaining"`
}

type inputPoint struct {
	V     *float64 `json:"v,omitempty"`
	D     *float64 `json:"d,omitempty"`
	R     *float64 `json:"r,omitempty"`
	N     *int     `json:"n,omitempty"`
	P     float64  `json:"p"`
	Exact *string  `json:"p_exact,omitempty"` // the same probability as text for readers; the solver ignores it
}

// output is the answer that `candor solve batch-queue` prints. A number that has no meaning for the front job is null.
// Standard errors are null if there was only one draw.
type output struct {
	Runs      bool    `json:"runs"`
	Threshold float64 `json:"threshold"`
	*starts
	Payments []float64 `json:"payments,omitzero"`
	*paid
	*levied
}

type starts struct {
	With    []float64  `json:"start_with"`
	Without []*float64 `json:"start_without"`
	Delays  []*float64 `json:"delays"`
}

type paid struct {
	Externality []float64  `json:"expected_externality"`
	Errors      []*float64 `json:"standard_errors,omitempty"`
	Draws       int        `json:"draws,omitempty"`
}

// levied has the taxes and rebates of a market with the setting pricing: pivot. An account pays one tax and gets one
// rebate. Both are listed at the position of the account's first job.
type levied struct {
	Taxes   []float64 `json:"taxes"`
	Rebates []float64 `json:"rebates"`
	Rest    float64   `json:"to_site"`
}

const defaultDraws = 1000

// SolveDocument answers a JSON document {"queue": [{"v", "r"}, {"d", "r"}…]}. For jobs of any width it also
// has "N", an "n" for each job, and "running": [{"n", "remaining"}…]. For payments it has "distributions":
// [[{"v" or "d", "r", "n", "p"}…]…], "mode": "priority" (the default) or "full", and either "expectation":
// "exact" or "draws" (default 1000) and "seed" (default 0). In mode priority, r and n in a distribution are
// not used. With "pricing": "pivot" payments need no distributions, and jobs with the same "account" are one
// bidder.
func SolveDocument(data []byte) (any, error) {
	in, err := casefile.Read[input](data)
	if err != nil {
		return nil, err
	}
	q, err := in.queue()
	if err != nil {
		return nil, err
	}
	d, err := Decide(q)
	if err != nil {
		return nil, err
	}
	out := present(q, d)
	switch casefile.Or(in.Pricing, Externality) {
	case PivotPricing:
		return out, in.levy(q, d, out)
	case Externality:
	default:
		return nil, casefile.Invalid("pricing", "must be %q or %q, is %.64q", Externality, PivotPricing, *in.Pricing)
	}
	e, err := in.expectation()
	if err != nil || e == nil {
		return out, err
	}
	p, err := Pay(q, e)
	if err != nil {
		return nil, err
	}
	out.Payments, out.paid = p.Net, &paid{Externality: p.Externality}
	if !e.Exact {
		out.Errors, out.Draws = nullable(p.Errors, 0), e.Draws
	}
	return out, nil
}

// levy computes taxes and rebates. Each job without an account counts as a job of an account of its own.
func (in *input) levy(q *Queue, d *Decision, out *output) error {
	if in.Distributions != nil || in.Mode != nil || in.Expectation != nil || in.Draws != nil {
		return casefile.Invalid("pricing", "pivot does not use the keys distributions, mode, expectation and draws: leave them out")
	}
	accounts := make([]string, len(in.Queue))
	for i, job := range in.Queue {
		accounts[i] = casefile.Or(job.A, "")
		if job.A == nil {
			accounts[i] = at("queue", i)
		}
	}
	stakes, of := StakesOf(q, d, accounts, nil)
	taxes, rebates := Pivot(stakes)
	n := len(of)
	out.Payments, out.levied = make([]float64, n), &levied{make([]float64, n), make([]float64, n), 0}
	for i, k := range of {
		out.Taxes[i], out.Rebates[i] = taxes[k], rebates[k]
		out.Payments[i] = taxes[k] - rebates[k]
		out.Rest += out.Payments[i]
		taxes[k], rebates[k] = 0, 0
	}
	out.Rest = max(0, out.Rest) // only rounding can make Rest negative
	return nil
}

func (in *input) queue() (*Queue, error) {
	q := &Queue{Jobs: make([]Job, len(in.Queue))}
	if in.Nodes != nil {
		if q.Nodes = *in.Nodes; q.Nodes < 1 {
			return nil, casefile.Invalid("N", "must be at least 1 node, is %d", q.Nodes)
		}
	}
	for i, job := range in.Queue {
		place := at("queue", i)
		if job.R == nil {
			return nil, casefile.Invalid(place+".r", "the key is missing: it is required")
		}
		if err := oneOf(place, i, job.V, job.D); err != nil {
			return nil, err
		}
		q.Jobs[i] = fill(job.V, job.D, job.R, job.N)
	}
	for _, r := range in.Running {
		q.Running = append(q.Running, Hold{Width: r.N, Remaining: r.Remaining})
	}
	return q, nil
}

// oneOf checks one job of a document. The front job must have a value v and no cost of delay d. Every other job must
// have a cost of delay d and no value v.
func oneOf(place string, i int, v, d *float64) error {
	switch {
	case i == 0 && v == nil:
		return casefile.Invalid(place+".v", "the key is missing: give the value of the front job")
	case i == 0 && d != nil:
		return casefile.Invalid(place+".d", "leave this key out: the front job waits for no other job")
	case i > 0 && d == nil:
		return casefile.Invalid(place+".d", "the key is missing: give the cost of delay of this waiting job")
	case i > 0 && v != nil:
		return casefile.Invalid(place+".v", "leave this key out: only the front job has a value")
	}
	return nil
}

func fill(v, d, r *float64, n *int) Job {
	return Job{Value: casefile.Or(v, 0), Delay: casefile.Or(d, 0), Length: casefile.Or(r, 0), Width: casefile.Or(n, 0)}
}

// expectation returns how the expected payments are to be computed. It returns nil if the document does not ask for
// payments.
func (in *input) expectation() (*Expectation, error) {
	if in.Distributions == nil {
		if in.Mode != nil || in.Draws != nil {
			return nil, casefile.Invalid("distributions", "the key is missing: for payments, give a distribution for each job")
		}
		return nil, nil
	}
	e := &Expectation{Mode: Mode(casefile.Or(in.Mode, string(Priority))), Draws: casefile.Or(in.Draws, defaultDraws),
		Seed: casefile.Or(in.Seed, 0)}
	if in.Expectation != nil {
		if *in.Expectation != "exact" {
			return nil, casefile.Invalid("expectation", `must be "exact", or left out to estimate it from random draws, is %.64q`, *in.Expectation)
		}
		e.Exact = true
	}
	if e.Exact && in.Draws != nil {
		return nil, casefile.Invalid("draws", "an exact expectation uses no random draws: leave out draws or expectation")
	}
	return e, in.priors(e)
}

func (in *input) priors(e *Expectation) error {
	for i, points := range in.Distributions {
		var p Prior
		for k, point := range points {
			place := at("distributions", i) + at("", k)
			if err := oneOf(place, i, point.V, point.D); err != nil {
				return err
			}
			if e.Mode == Full && point.R == nil {
				return casefile.Invalid(place+".r", `the key is missing: mode "full" also draws lengths`)
			}
			p.Points = append(p.Points, Point{Type: fill(point.V, point.D, point.R, point.N), P: point.P})
		}
		e.Priors = append(e.Priors, p)
	}
	return nil
}

func present(q *Queue, d *Decision) *output {
	out := &output{Runs: d.Runs, Threshold: d.Threshold}
	if q.wide() {
		out.starts = &starts{With: d.With, Without: nullable(d.Without, 1), Delays: nullable(d.Delays, 1)}
		if len(q.Jobs) == 0 {
			out.With = []float64{}
		}
	}
	return out
}

// nullable returns pointers to the numbers. NaN becomes nil, and so do the numbers at positions smaller than `first`.
func nullable(x []float64, first int) []*float64 {
	out := make([]*float64, len(x))
	for i := first; i < len(x); i++ {
		if !math.IsNaN(x[i]) {
			out[i] = &x[i]
		}
	}
	return out
}
