package reservation

import "math"

// money converts values to whole numbers of a common unit. Sums of whole numbers are exact in any order, so rounding
// makes no payment larger than the value or smaller than zero.
type money struct {
	amounts []int64
	decimal float64 // the amount 1 has this many units; if this is 0, binary is used
	binary  int     // the amount 1 has 2^binary units
}

// newMoney chooses the unit of money. It takes 1, or a millionth, if two things are true: all values are multiples of
// this unit, and their sum is below 2⁶² units. Otherwise it takes a power of two, so that the sum has 61 bits. All
// values are then rounded down to multiples of this unit.
func newMoney(bids []Bid) *money {
	for _, per := range []float64{1, 1e6} {
		if m := (&money{decimal: per}); m.take(bids) {
			return m
		}
	}
	sum := 0.0
	for _, bid := range bids {
		sum += bid.Value
	}
	_, exponent := math.Frexp(sum)
	m := &money{binary: 61 - exponent}
	for _, bid := range bids {
		m.amounts = append(m.amounts, int64(math.Ldexp(bid.Value, m.binary)))
	}
	return m
}

// m.decimal is the number of units in a credit. take converts the values of the bids to units. It returns false if a
// value is not a whole number of units, or if the sum is too large.
func (m *money) take(bids []Bid) bool {
	sum := 0.0
	for _, bid := range bids {
		x := math.RoundToEven(bid.Value * m.decimal)
		if sum += x; x/m.decimal != bid.Value || sum > 1<<62 {
			return false
		}
		m.amounts = append(m.amounts, int64(x))
	}
	return true
}

// float converts an amount in the units of m to a float64 in credits. It rounds once.
func (m *money) float(x int64) float64 {
	if m.decimal > 0 {
		return float64(x) / m.decimal
	}
	return math.Ldexp(float64(x), -m.binary)
}
