package batchqueue

import (
	"math"

	"github.com/candor-grid/candor/messages"
)

// MaxSteps bounds the work of an exact expectation. One step is the addition of one term. The insertion of a job into
// schedules counts as several steps (the constant insertion).
const MaxSteps = 1 << 26

type steps int

func (s *steps) spend(n int) error {
	if n > int(*s) {
		return messages.Errorf(messages.TooLarge,
			"expectation: exact takes more than %d steps with these distributions: give a number of draws instead", MaxSteps)
	}
	*s -= steps(n)
	return nil
}

// expect returns the expected externality of each job. It does not draw samples, so only rounding makes the result
// inexact.
func expect(q *Queue, e *Expectation) ([]float64, error) {
	types := make([][]Point, len(e.Priors))
	for i, p := range e.Priors {
		types[i] = normalised(p.Points)
	}
	left := steps(MaxSteps)
	if l, ok := newLinear(q, e); ok {
		x := &exact{linear: l, types: types, left: &left, out: make([]float64, len(q.Jobs))}
		return x.out, x.run()
	}
	w := &walk{q: q, types: types, left: &left}
	return w.run()
}

// exact computes an expectation over the sum of what a delay costs the waiting jobs. The costs are independent random
// amounts. It builds the distribution of the sum job by job, and merges equal sums.
//
// For each job, exact also needs the distribution of the sum over all other jobs. Recursive halving does this in
// O(n·log n) steps, instead of n². It adds all amounts of one half of the jobs to the sum once, and then treats the
// other half in the same way, until one job is left out.
type exact struct {
	*linear
	types [][]Point
	left  *steps
	out   []float64
}

// mass is a possible value of a random sum, and the probability of this value.
type mass struct{ sum, p float64 }

func (x *exact) run() error {
	n := len(x.jobs)
	nothing := []mass{{0, 1}}
	all, err := x.with(nothing, 1, n)
	if err != nil {
		return err
	}
	value, scale := x.front(&x.jobs[0])
	for _, m := range all {
		if worth(value, scale*m.sum) {
			x.out[0] -= m.p * scale * m.sum
		}
	}
	return x.leaveOut(nothing, 1, n)
}

// leaveOut sets the externalities of the jobs [from, to). The argument `others` is the distribution of the sum of the
// costs of a delay over all waiting jobs outside this range.
func (x *exact) leaveOut(others []mass, from, to int) error {
	if to-from == 1 {
		return x.waiting(from, others)
	}
	half := (from + to) / 2
	right, err := x.with(others, half, to)
	if err != nil {
		return err
	}
	if err := x.leaveOut(right, from, half); err != nil {
		return err
	}
	left, err := x.with(others, from, half)
	if err != nil {
		return err
	}
	return x.leaveOut(left, half, to)
}

func (x *exact) waiting(j int, others []mass) error {
	if err := x.left.spend(len(x.types[0]) * len(others)); err != nil {
		return err
	}
	announced := x.cost[j] * x.jobs[j].Delay
	for i := range x.types[0] {
		value, scale := x.front(&x.types[0][i].Type)
		for _, m := range others {
			if worth(value, scale*(m.sum+announced)) {
				x.out[j] += x.types[0][i].P * m.p * (value - scale*m.sum)
			}
		}
	}
	return nil
}

// `sums` is the distribution of a sum of costs. The method `with` adds the random costs of the jobs with indices from
// `from` to `to` − 1 to this sum, and returns the new distribution.
func (x *exact) with(sums []mass, from, to int) ([]mass, error) {
	for j := from; j < to; j++ {
		if x.cost[j] == 0 {
			continue
		}
		var all []mass
		for _, point := range x.types[j] {
			if err := x.left.spend(len(all) + len(sums)); err != nil {
				return nil, err
			}
			all = merge(all, sums, x.cost[j]*point.Type.Delay, point.P)
		}
		sums = all
	}
	return sums, nil
}

// merge joins two distributions, both in ascending order of their sums. Before that, it adds `by` to the sums of b, and
// multiplies the probabilities of b by `weight`. Sums that differ only by rounding are joined into one.
func merge(a, b []mass, by, weight float64) []mass {
	out := make([]mass, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var next mass
		if len(b) == 0 || len(a) > 0 && a[0].sum <= b[0].sum+by {
			next, a = a[0], a[1:]
		} else {
			next, b = mass{b[0].sum + by, b[0].p * weight}, b[1:]
		}
		if last := len(out) - 1; last >= 0 && next.sum-out[last].sum <= slack*math.Abs(next.sum) {
			out[last].p += next.p
			continue
		}
		out = append(out, next)
	}
	return out
}
