package batchqueue

import (
	"math"
	"slices"

	"github.com/candor-grid/candor/auctioneer/mechanism/casefile"
)

// Prior is the site's belief about a job before the job is announced. It is a list of types with their probabilities,
// or a function that draws a type.
type Prior struct {
	Points []Point
	// Sample returns the type for a number that is uniform in [0, 1). It is used only if Points is empty. The same
	// number must give the same type. The results have the smallest error if the type changes in one direction only as
	// the number grows.
	Sample func(u float64) Job
}

// Point is a type and its probability.
type Point struct {
	Type Job
	P    float64
}

// total is how much the sum of probabilities may differ from 1, because decimals are rounded.
const total = 1e-9

// check returns an error if a prior is invalid. If priority is true, the queue uses only values and costs of delay, so
// check ignores the other fields.
func (p *Prior) check(q *Queue, i int, priority bool) error {
	if p.Sample != nil && len(p.Points) == 0 {
		return nil // types from Sample are checked when they are drawn
	}
	if len(p.Points) == 0 {
		return casefile.Invalid(at("distributions", i), "has no types: give at least one, of probability 1")
	}
	sum, k := 0.0, 0
	place := field(func(name string) string { return at("distributions", i) + at("", k) + name })
	for k = range p.Points {
		point := &p.Points[k]
		if !(point.P >= 0 && point.P <= 1) {
			return casefile.Invalid(place(".p"), "must be a probability from 0 to 1, is %g", point.P)
		}
		sum += point.P
		t := point.Type
		if priority { // lengths and widths are as announced, and not checked
			t.Length, t.Width = q.Jobs[i].Length, q.Jobs[i].Width
		}
		if err := q.checkJob(place, i == 0, t); err != nil {
			return err
		}
	}
	if math.Abs(sum-1) > total {
		return casefile.Invalid(at("distributions", i), "the probabilities sum to %g: make them sum to 1", sum)
	}
	return nil
}

// normalised removes the points with probability 0, and scales the probabilities of the others to a sum of 1.
func normalised(points []Point) []Point {
	sum := 0.0
	for _, p := range points {
		sum += p.P
	}
	out := slices.Clone(points)
	for k := range out {
		out[k].P /= sum
	}
	return slices.DeleteFunc(out, func(p Point) bool { return p.P == 0 })
}

// inverse draws types by inverting the cumulative distribution.
type inverse struct {
	points []Point
	above  []float64 // cumulative probabilities; the last is +Inf, so that every u is below it
	guide  []int32   // guide[g]: the first k with above[k] > g/len(guide)
	delays []float64 // costs of delay of the points
	sample func(u float64) Job
	drawn  Job // the last result of sample
}

func invert(p Prior) *inverse {
	if len(p.Points) == 0 {
		return &inverse{sample: p.Sample}
	}
	in := &inverse{points: normalised(p.Points)}
	sum, k := 0.0, 0
	for _, point := range in.points {
		sum += point.P
		in.above = append(in.above, sum)
		in.delays = append(in.delays, point.Type.Delay)
	}
	in.above[len(in.above)-1] = math.Inf(1)
	in.guide = make([]int32, len(in.above))
	for g := range in.guide {
		for in.above[k] <= float64(g)/float64(len(in.guide)) {
			k++
		}
		in.guide[g] = int32(k)
	}
	return in
}

// The method at maps a number u in [0, 1) to a type of job. If u is uniformly distributed, the types have the
// probabilities of the prior. The result is valid until the next call.
func (in *inverse) at(u float64) *Job {
	if in.sample != nil {
		in.drawn = in.sample(u)
		return &in.drawn
	}
	return &in.points[in.index(u)].Type
}

// index returns the position of the type whose part of [0, 1) contains u. Each type has such a part, as long as its
// probability.
func (in *inverse) index(u float64) int32 {
	k := in.guide[int(u*float64(len(in.guide)))]
	for k > 0 && in.above[k-1] > u { // the guide may be too high because of rounding
		k--
	}
	for in.above[k] <= u {
		k++
	}
	return k
}

// delay returns the cost of delay of the type that the random number u chooses (see the method at).
func (in *inverse) delay(u float64) float64 {
	if in.sample != nil {
		return in.at(u).Delay
	}
	return in.delays[in.index(u)]
}
