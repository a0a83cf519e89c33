package density

import "math"

const (
	// expSteps is the number of steps into which a factor of two is divided.
	expSteps = 64
	// If shifter is added to x, the lowest bits of the sum are x, rounded to a whole number.
	shifter = 0x1.8p52
	// ln 2/64 is the sum of stepHigh and stepLow. stepHigh has so many zero bits at its end that its product with a
	// whole number up to 2^20 is exact.
	stepHigh = 0x1.62e42fee00000p-7
	stepLow  = 0x1.a39ef35793c76p-39
)

// powers has, for each i, the bits of the float64 number 2^(i/64).
var powers = func() (p [expSteps]uint64) {
	for i := range p {
		p[i] = math.Float64bits(math.Exp2(float64(i) / expSteps))
	}
	return p
}()

// addExp returns sum + Σ e^(v−top) over all v ≤ top that are not negligible, in half the time of math.Exp. Its error is
// at most 4e-16 of each term: e^x = 2^(k/64)·e^r with |r| ≤ ln 2/128, and e^r is the Taylor polynomial of degree 5.
func addExp(sum float64, values []float64, top float64) float64 {
	for _, v := range values {
		x := v - top
		if !(x > negligible) {
			continue
		}
		shifted := x*(expSteps/math.Ln2) + shifter
		k := int64(math.Float64bits(shifted)<<13) >> 13 // the low 51 bits, with their sign
		whole := shifted - shifter
		r := x - whole*stepHigh - whole*stepLow
		power := math.Float64frombits(powers[k&(expSteps-1)] + uint64(k>>6)<<52)
		square := r * r
		sum += power + power*(r+square*(0.5+r*(1.0/6)+square*(1.0/24+r*(1.0/120))))
	}
	return sum
}
