package fairshare

import (
	"math"
	"slices"
	"sort"
)

// claim is one user's claim to a divisible amount.
type claim struct {
	Weight float64 // above 0
	Had    float64 // amount that counts as received before
	Demand float64 // the most that it can use in addition to Had
}

// divide divides an amount among claims by max-min fairness: it maximises the smallest (had + given)/weight,
// then the next, and so on, like water that fills vessels. No claim gets more than its demand; what demands
// leave over is not divided. The parts add up to the amount or to all demands. They are written to out, which
// grows as needed.
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

// upTo returns what the claim is given when the water stands at a level: exactly 0 up to opens, and exactly the
// demand from closes on.
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

// given returns what all claims are given at a level, and its derivative by the level.
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

// level returns how high the water stands; +Inf if every demand is met. It lies between two levels at which a
// claim begins to be filled or is full. Sums are computed again for each level that is tried, because
// subtracting a large weight from a running sum would lose the small ones.
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
