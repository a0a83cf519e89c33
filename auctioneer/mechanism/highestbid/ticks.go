package highestbid

import "math"

// ticks is how many ticks make a second: the smallest power of ten, up to a
// million, at which every time of the problem is the double nearest to a whole
// number of ticks, so that times given as decimal fractions add up exactly
// and events meant for one instant share it. If there is none, or the sum of all
// times is beyond 2⁵³ ticks, it is 1 and times are rounded as they are added.
func (p *Problem) ticks() float64 {
	last, total := 0.0, 0.0
	for i := range p.Jobs {
		last = max(last, p.Jobs[i].Submit)
		total += p.Jobs[i].Runtime
	}
	scale := 1.0
	for i := range p.Jobs {
		for !whole(p.Jobs[i].Submit, scale) || !whole(p.Jobs[i].Runtime, scale) {
			if scale *= 10; scale > 1e6 {
				return 1
			}
		}
	}
	if (last+total)*scale > 1<<53 {
		return 1
	}
	return scale
}

// whole says whether seconds is a whole number of ticks as exactly as a double can be.
func whole(seconds, scale float64) bool { return math.Round(seconds*scale)/scale == seconds }

// inTicks converts seconds.
func inTicks(seconds, scale float64) float64 {
	if scale == 1 {
		return seconds
	}
	return math.Round(seconds * scale)
}
