package fairshare

import (
	"math"
	"slices"
	"sort"
)

// claim says how much of a divisible amount a user can use.
type claim struct {
	Weight float64 // positive
	Had    float64 // the amount that the user has had before
	Demand float64 // the most that the user can use in addition to Had
}

// divide divides an amount among claims by max-min fairness. The level of a claim is what it had before plus its new
// part, divided by its weight. divide makes the smallest level as large as possible, then the second smallest, and so
// on. No claim gets more than its demand. If the amount exceeds all demands together, the surplus is not divided. The
// parts are written to `out`, which grows if needed.
func divide(amount float64, claims []claim, out []float64) []float64 {
	level := level(amount, claims)
	out = out[:0]
	for i := range claims {
		out = append(out, claims[i].upTo(level))
	}
	return out
}

// Slots are given to all claims up to a common level. A claim gets its first slots above the level c.opens(), which is
// what it already had, divided by its weight. At the level c.closes(), the claim has its whole demand.
func (c *claim) opens() float64  { return c.Had / c.Weight }
func (c *claim) closes() float64 { return (c.Had + c.Demand) / c.Weight }

// Slots are given to claims until each claim has reached a common level: slots divided by weight. upTo returns how many
// slots the claim gets up to a given level. It returns exactly 0 up to the level c.opens(), where the claim begins to
// get slots. It returns exactly the demand from the level c.closes() on.
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

// The function `given` returns what all claims together get at a level. It also returns how fast this amount grows with
// the level.
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

// level returns the level up to which all claims are filled, like water in vessels. +Inf means that every claim gets
// all that it asks for. Each claim begins to receive at one level and is full at a higher level. The search sorts all
// these levels, and finds the two neighbours between which the result lies. For each level that it tries, it computes
// the sums again. If it subtracted a large weight from a running sum instead, the small weights would be lost.
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
	if above == 0 { // no claim asks for anything
		return math.Inf(1)
	}
	sum, rate := given(edges[above-1], claims)
	if rate == 0 {
		return math.Inf(1)
	}
	return edges[above-1] + (amount-sum)/rate
}
