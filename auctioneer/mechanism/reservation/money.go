package reservation

import "math"

// money converts values to whole numbers of a common unit, so that sums and differences are exact and do not depend on their
// order. So a payment is never above the value or below zero, not even by rounding.
type money struct {
	amounts []int64
	decimal float64 // number of units in 1; 0: use binary
	binary  int     // 1 has 2^binary units
}

// newMoney chooses the unit: 1 or a millionth, if all values are multiples of it (decimals with up to six places are) and their
// sum is below 2^62 units. Otherwise it is a power of two with which the sum has 61 bits, and values are rounded down.
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

// take converts values that are whole numbers of a decimal unit.
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

// float converts an amount back, rounding once.
func (m *money) float(x int64) float64 {
	if m.decimal > 0 {
		return float64(x) / m.decimal
	}
	return math.Ldexp(float64(x), -m.binary)
}
