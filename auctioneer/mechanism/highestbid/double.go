package highestbid

import "math"

// double is the unevaluated sum of two float64, the second below half a unit
// in the last place of the first: some 106 bits. Differences of running sums
// need them: a job that runs a second in a year of prices a million times its
// own is still charged to full precision.
type double struct{ hi, lo float64 }

// product is a·b, exactly unless it under- or overflows.
func product(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

// twoSum is a+b exactly (Knuth).
func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// plus adds with a relative error of some 2⁻¹⁰⁴ where the signs agree.
func (a double) plus(b double) double {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = quickSum(s.hi, s.lo+t.hi)
	return quickSum(s.hi, s.lo+t.lo)
}

// quickSum is a+b exactly, for |a| ≥ |b| (Dekker).
func quickSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func (a double) minus(b double) double { return a.plus(double{-b.hi, -b.lo}) }

func (a double) times(x float64) double {
	p := product(a.hi, x)
	return quickSum(p.hi, math.FMA(a.lo, x, p.lo))
}

func (a double) float() float64 { return a.hi + a.lo }

// compare is negative, zero or positive as a is below, at or above b.
func (a double) compare(b double) int {
	switch {
	case a.hi < b.hi, a.hi == b.hi && a.lo < b.lo:
		return -1
	case a == b:
		return 0
	default:
		return 1
	}
}
