package reservation

import "math"

// money holds values as whole numbers of a common unit, so that sums and
// differences are exact, do not depend on their order, and a payment is never
// above the value or below zero, not even by rounding.
type money struct {
	amounts []int64
	decimal float64 // units in 1; 0: binary
	binary  int     // 2^binary units in 1
}

// newMoney picks the unit: 1 or a millionth if all values are whole numbers of
// it (as decimals with up to six places are) and together below 2^62 of it; else
// a power of two so small that all together have 61 bits, and what is below it
// is dropped.
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
