package chart

import (
	"math"
	"strconv"
)

// ranged returns the axis with low < high. If both are equal, ranged makes the range wider. If nothing is drawn, the
// axis has no range, and ranged gives it one.
func (a Axis) ranged() Axis {
	switch {
	case !a.covers && a.Log:
		a.low, a.high = 1, 10
	case !a.covers:
		a.low, a.high = 0, 1
	case a.low == a.high && a.Log:
		a.low, a.high = a.low/2, a.high*2
	case a.low == a.high:
		half := max(math.Abs(a.low)/2, 1e-6)
		a.low, a.high = a.low-half, a.high+half
	}
	return a
}

// at returns the position of a value on the axis, from 0 to 1.
func (a Axis) at(v float64) float64 {
	if a.Log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// ticks returns round values on the axis. A logarithmic axis of two decades or more has powers of ten. Other axes have
// steps of 1, 2 or 5 times a power of ten.
func (a Axis) ticks() (out []float64) {
	if decades := math.Log10(a.high / a.low); a.Log && decades >= 2 {
		every := math.Ceil(decades / 8)
		for e := math.Ceil(math.Log10(a.low) - 1e-9); e <= math.Log10(a.high)+1e-9; e += every {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	const most = 7
	rough := (a.high - a.low) / most
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, times := range [...]float64{2, 2.5, 2} { // each factor leads to the next step: 1, 2, 5, 10
		if step < rough {
			step *= times
		}
	}
	for k := math.Ceil(a.low/step - 1e-9); k <= a.high/step+1e-9; k++ {
		out = append(out, k*step)
	}
	return out
}

// label returns the text of a tick. A value that rounds to zero has no sign.
func label(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
