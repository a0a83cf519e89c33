package fairshare

import (
	"math"
	"slices"
	"sort"
)

// claim is one user's claim to a divisible amount.
type claim struct {
	Weight float64 // above 0
	Had    float64 // what counts as had already
	Demand float64 // the most it can use now, what it had not included
}

// divide divides an amount among claims so that the least well off is as well
// off as can be, then the next, and so on: (had + given)/weight are levelled
// from below like water, and nobody is given more than the demand. What the
// demands leave over stays undivided. The parts are written to out, which is
// grown as needed, and add up to the amount or to all demands.
func divide(amount float64, claims []claim, out []float64) []float64 {
	level := level(amount, claims)
	out = out[:0]
	for i := range claims {
		out = append(out, claims[i].upTo(level))
	}
	return out
}

// opens and closes are the levels at which the claim begins to be filled, and is full.
func (c *claim) opens() float64  { return c.Had / c.Weight }
func (c *claim) closes() float64 { return (c.Had + c.Demand) / c.Weight }

// upTo is what the claim is given when the water stands at a level: exactly
// nothing and exactly the demand at and beyond its ends.
func (c *claim) upTo(level float64) float64 {
	switch {
	case c.Demand == 0 || level <= c.opens():
		return 0
	case level >= c.closes():
		return c.Demand
	default:
		return min(max(0, level*c.Weight-c.Had), c.Demand)
	}
}

// given is what all claims are given at a level, and how fast that rises with it.
func given(level float64, claims []claim) (sum, rate float64) {
	for i := range claims {
		c := &claims[i]
		sum += c.upTo(level)
		if c.Demand > 0 && c.opens() <= level && level < c.closes() {
			rate += c.Weight
		}
	}
	return sum, rate
}

// level finds how high the water stands, +Inf if every demand is met. It is
// between two of the levels at which a claim begins to be filled or is full.
// Sums are made anew for each level that is tried, since to subtract a large
// weight from a running sum would lose the small ones.
func level(amount float64, claims []claim) float64 {
	var edges []float64
	for i := range claims {
		if c := &claims[i]; c.Demand > 0 {
			edges = append(edges, c.opens(), c.closes())
		}
	}
	slices.Sort(edges)
	above := sort.Search(len(edges), func(k int) bool {
		if math.IsInf(edges[k], 1) {
			return true
		}
		sum, _ := given(edges[k], claims)
		return sum > amount
	})
	if above == 0 { // nobody asks for anything
		return math.Inf(1)
	}
	sum, rate := given(edges[above-1], claims)
	if rate == 0 {
		return math.Inf(1)
	}
	return edges[above-1] + (amount-sum)/rate
}
