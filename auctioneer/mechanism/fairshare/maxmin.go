package fairshare

import (
	"cmp"
	"math"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// Claim is one user's claim to a divisible amount.
type Claim struct {
	Weight float64 // above 0
	Had    float64 // what counts as had already
	Demand float64 // the most it can use now, what it had not included
}

// MaxMin divides an amount among claims so that the least well off is as well
// off as can be, then the next, and so on: (had + given)/weight are levelled
// from below like water, and nobody is given more than the demand. What the
// demands leave over stays undivided. The parts are written to out, which is
// grown as needed, and add up to the amount or to all demands.
func MaxMin(amount float64, claims []Claim, out []float64) ([]float64, error) {
	if !(amount >= 0) || math.IsInf(amount, 1) {
		return nil, messages.Errorf(messages.Invalid, "amount: must be a finite number from 0 on, is %v", amount)
	}
	for i, c := range claims {
		switch {
		case !(c.Weight > 0) || math.IsInf(c.Weight, 1):
			return nil, messages.Errorf(messages.Invalid, "claims[%d].weight: must be a finite number above 0, is %v", i, c.Weight)
		case !(c.Had >= 0) || math.IsInf(c.Had, 1):
			return nil, messages.Errorf(messages.Invalid, "claims[%d].had: must be a finite number from 0 on, is %v", i, c.Had)
		case !(c.Demand >= 0):
			return nil, messages.Errorf(messages.Invalid, "claims[%d].demand: must not be negative, is %v", i, c.Demand)
		}
	}
	return divide(amount, claims, out), nil
}

// divide is MaxMin for claims that are known to be in order.
func divide(amount float64, claims []Claim, out []float64) []float64 {
	return pour(amount, level(amount, claims), claims, out)
}

// edge is a level at which the number of those being filled changes: a claim
// begins to be filled at had/weight, and is full at (had+demand)/weight.
type edge struct{ level, weight float64 }

// level finds how high the water stands, +Inf if every demand is met.
func level(amount float64, claims []Claim) float64 {
	edges := make([]edge, 0, 2*len(claims))
	for _, c := range claims {
		if c.Demand == 0 {
			continue
		}
		edges = append(edges, edge{c.Had / c.Weight, c.Weight})
		if full := (c.Had + c.Demand) / c.Weight; !math.IsInf(full, 1) {
			edges = append(edges, edge{full, -c.Weight})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(b.weight, a.weight))
	})
	filling, open, at := 0.0, 0, math.Inf(-1)
	for _, e := range edges {
		if open > 0 {
			need := filling * (e.level - at)
			if need >= amount {
				return at + amount/filling
			}
			amount -= need
		}
		at, filling = e.level, filling+e.weight
		open++
		if e.weight < 0 {
			open -= 2
		}
		if open == 0 { // not what subtraction left over
			filling = 0
		}
	}
	if open > 0 {
		return at + amount/filling
	}
	return math.Inf(1)
}

// pour fills every claim up to the level. The level is exact only to the last
// digits of the largest; what is poured is scaled to the amount.
func pour(amount, level float64, claims []Claim, out []float64) []float64 {
	out = append(out[:0], make([]float64, len(claims))...)
	sum := 0.0
	for i, c := range claims {
		out[i] = min(max(0, level*c.Weight-c.Had), c.Demand)
		sum += out[i]
	}
	if sum > 0 && !math.IsInf(level, 1) {
		for i := range out {
			out[i] *= amount / sum
		}
	}
	return out
}
