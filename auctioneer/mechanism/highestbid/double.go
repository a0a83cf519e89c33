package highestbid

import "math"

// double is the sum of two float64 numbers. The second number is smaller than half a unit in the last place of the
// first. Together they have about 106 bits. A charge is the difference of two running sums, and needs this precision.
// Example: a job runs for one second, and the sum already has a year of prices that are a million times as large as the
// job's price. The charge must still be exact.
type double struct{ hi, lo float64 }

// product returns a·b, exactly unless it under- or overflows.
func product(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

// twoSum returns a+b exactly. The result, of type double, consists of the rounded sum and the rounding error (Knuth).
func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// plus returns a+b. If a and b have the same sign, the relative error is some 2⁻¹⁰⁴.
func (a double) plus(b double) double {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = quickSum(s.hi, s.lo+t.hi)
	return quickSum(s.hi, s.lo+t.lo)
}

// quickSum returns a+b exactly, for |a| ≥ |b| (Dekker).
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

// compare returns a negative number if a < b, 0 if a = b, and a positive number if a > b.
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
