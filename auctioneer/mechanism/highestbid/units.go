package highestbid

import (
	"iter"
	"math"
)

// units are the units in which a problem is worked on, so that numbers given as
// decimal fractions add up exactly, events meant for one instant share it, and
// equal ratios are equal.
type units struct {
	time  float64 // ticks in a second
	money float64 // units in one of the problem's, for ratios
}

func (p *Problem) units() units {
	last, total := 0.0, 0.0
	for i := range p.Jobs {
		last = max(last, p.Jobs[i].Submit)
		total += p.Jobs[i].Runtime
	}
	u := units{time: scaleOf(p.times(), last+total), money: 1}
	if p.Rule.byLength() {
		u.money = scaleOf(p.bids(), 0)
	}
	return u
}

func (p *Problem) times() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := range p.Jobs {
			j := &p.Jobs[i]
			if !yield(j.Submit) || !yield(j.Runtime) || p.Rule.Algorithm == WSEPT && !yield(j.Estimate) {
				return
			}
		}
	}
}

func (p *Problem) bids() iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := range p.Jobs {
			if !yield(p.Jobs[i].Bid) {
				return
			}
		}
	}
}

// scaleOf is the smallest power of ten, up to a million, times which every
// number is whole, as exactly as a double can say. It is 1, and numbers are as
// they are, if there is none or the largest would be beyond 2⁵³.
func scaleOf(numbers iter.Seq[float64], largest float64) float64 {
	scale := 1.0
	for x := range numbers {
		largest = max(largest, x)
		for !whole(x, scale) {
			if scale *= 10; scale > 1e6 {
				return 1
			}
		}
	}
	if largest*scale > 1<<53 {
		return 1
	}
	return scale
}

// whole says whether x is the double nearest to a whole number over scale.
func whole(x, scale float64) bool { return math.Round(x*scale)/scale == x }

// scaled is x in units of which scale make one.
func scaled(x, scale float64) float64 {
	if scale == 1 {
		return x
	}
	return math.Round(x * scale)
}
