package proportional

import (
	"math"
	"math/big"
)

// Each function on big.Float returns a new number, with the larger precision of its arguments.

func plus(x, y *big.Float) *big.Float  { return new(big.Float).Add(x, y) }
func minus(x, y *big.Float) *big.Float { return new(big.Float).Sub(x, y) }
func times(x, y *big.Float) *big.Float { return new(big.Float).Mul(x, y) }
func over(x, y *big.Float) *big.Float  { return new(big.Float).Quo(x, y) }
func root(x *big.Float) *big.Float     { return new(big.Float).Sqrt(x) }
func size(x *big.Float) *big.Float     { return new(big.Float).Abs(x) }
func less(x, y *big.Float) bool        { return x.Cmp(y) < 0 }

// double rounds x to a float64. If x is too large for a float64, the result is infinite; if x is too small, the result
// is 0.
func double(x *big.Float) float64 {
	d, _ := x.Float64()
	return d
}

// digits computes with numbers of a fixed number of bits.
type digits struct {
	bits          uint
	one, two, ln2 *big.Float
}

func newDigits(bits uint) *digits {
	d := &digits{bits: bits}
	d.one, d.two = d.number(1), d.number(2)
	d.ln2 = d.number(0) // Σ 1/(k·2^k)
	for k := 1; k < int(bits)+8; k++ {
		term := over(d.one, d.number(float64(k)))
		d.ln2.Add(d.ln2, term.SetMantExp(term, -k))
	}
	return d
}

func (d *digits) number(x float64) *big.Float {
	return new(big.Float).SetPrec(d.bits).SetFloat64(x)
}

// vanishing is a limit for powers of e. If the logarithm of a power to the base 2 is below it, the power counts as 0.
// Without this limit, the sum of a very large and a very small number would take much memory.
const vanishing = -1 << 14

// exp returns e^x. It subtracts a multiple of ln 2 from x, and halves the difference 16 times. It computes the Taylor
// series of this small number, and squares the result 16 times.
func (d *digits) exp(x *big.Float) *big.Float {
	turns := double(over(x, d.ln2))
	switch {
	case turns < vanishing:
		return d.number(0)
	case turns > -vanishing:
		return d.number(math.Inf(1))
	}
	const halvings = 16
	k := math.Round(turns)
	r := minus(x, times(d.number(k), d.ln2))
	r.SetMantExp(r, -halvings)
	sum := d.number(1)
	for n := d.terms(halvings); n > 0; n-- { // compute the series by Horner's rule
		sum.Mul(sum, r)
		sum.Quo(sum, d.number(float64(n)))
		sum.Add(sum, d.one)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, int(k))
}

// terms returns how many terms of the Taylor series of e^x are needed, if |x| ≤ 2^−halvings.
func (d *digits) terms(halvings int) int {
	n, size := 0, 0.0
	for size > -float64(d.bits)-8 {
		n++
		size -= float64(halvings) + math.Log2(float64(n))
	}
	return n
}

// log returns ln x of a positive x. It starts with the logarithm as a float64. Each step of Halley's method triples the
// number of right digits.
func (d *digits) log(x *big.Float) *big.Float {
	mantissa := d.number(0)
	exponent := x.MantExp(mantissa)
	y := d.number(math.Log(double(mantissa)))
	for have := uint(48); have < d.bits; have *= 3 {
		e := d.exp(y)
		step := over(minus(mantissa, e), plus(mantissa, e))
		y.Add(y, times(d.two, step))
	}
	return y.Add(y, times(d.number(float64(exponent)), d.ln2))
}

func (d *digits) softplus(z *big.Float) *big.Float {
	if z.Sign() > 0 {
		return plus(z, d.softplus(new(big.Float).Neg(z)))
	}
	return d.log(plus(d.one, d.exp(z)))
}

// eliminatePrecisely does the same as eliminate, but computes with big.Float instead of float64.
func eliminatePrecisely(a, v []*big.Float) bool {
	n := len(v)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if less(size(a[pivot*n+c]), size(a[r*n+c])) {
				pivot = r
			}
		}
		if a[pivot*n+c].Sign() == 0 {
			return false
		}
		for k := range n {
			a[c*n+k], a[pivot*n+k] = a[pivot*n+k], a[c*n+k]
		}
		v[c], v[pivot] = v[pivot], v[c]
		for r := c + 1; r < n; r++ {
			factor := over(a[r*n+c], a[c*n+c])
			for k := c; k < n; k++ {
				a[r*n+k].Sub(a[r*n+k], times(factor, a[c*n+k]))
			}
			v[r].Sub(v[r], times(factor, v[c]))
		}
	}
	for r := n - 1; r >= 0; r-- {
		for k := r + 1; k < n; k++ {
			v[r].Sub(v[r], times(a[r*n+k], v[k]))
		}
		v[r].Quo(v[r], a[r*n+r])
	}
	return true
}
