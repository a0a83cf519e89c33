package highestbid

import "math"

// units are the units in which a problem is computed. They are so small that times and bids are whole numbers of units,
// which makes sums of decimal fractions exact. So events at the same decimal instant happen together, and equal ratios
// compare as equal.
type units struct {
	time  float64 // ticks per second
	money float64 // units of money for each unit of the problem's money, for ratios
}

func (p *Problem) units() units {
	last, total := 0.0, 0.0
	times, bids := scale{factor: 1}, scale{factor: 1}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		last = max(last, j.Submit)
		total += j.Runtime * float64(j.tasks())
		times.fit(j.Submit)
		times.fit(j.Runtime)
		if p.Rule.Algorithm == WSEPT {
			times.fit(j.Estimate)
		}
		if p.Rule.byLength() {
			bids.fit(j.Bid)
		}
	}
	times.largest = max(times.largest, last+total)
	return units{time: times.units(), money: bids.units()}
}

// scale finds the smallest power of ten that makes all given numbers whole.
type scale struct{ factor, largest float64 }

const mostScale = 1e6

func (s *scale) fit(x float64) {
	s.largest = max(s.largest, x)
	for s.factor <= mostScale && !whole(x, s.factor) {
		s.factor *= 10
	}
}

// units returns a factor with which all numbers become whole numbers. It returns 1 if no factor up to a million does
// this, or if the largest number would then exceed 2⁵³.
func (s *scale) units() float64 {
	if s.factor > mostScale || s.largest*s.factor > 1<<53 {
		return 1
	}
	return s.factor
}

// whole reports whether x is the float64 nearest to a whole number divided by scale.
func whole(x, scale float64) bool { return math.Round(x*scale)/scale == x }

// scaled returns x·scale. If scale is not 1, it was chosen to make this product a whole number, so scaled rounds it.
func scaled(x, scale float64) float64 {
	if scale == 1 {
		return x
	}
	return math.Round(x * scale)
}
