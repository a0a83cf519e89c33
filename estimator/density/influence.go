package density

import (
	"cmp"
	"slices"
)

// DefaultInfluence bounds the weight of an account, as a multiple of an even share. With 2, a twentieth of the accounts
// has at most a tenth of the weight. The function screen drops a sample if less than 12 % of the weight (the constant
// support) is near it. A tenth is less than 12 %. So if a twentieth of the accounts all tell the same lie, screen drops
// their samples.
const DefaultInfluence = 2

// capped reduces the weights of accounts that weigh too much. An account may have at most `multiple` (at least 1) times
// the mean weight of all accounts. If an account weighs more, the weights of all its samples are multiplied by one
// factor. Other accounts keep their weights. For each sample, the slice `owner` has the number of its account.
func capped(owner []int, weights []float64, multiple float64) []float64 {
	totals := make([]float64, slices.Max(append([]int{-1}, owner...))+1)
	out := slices.Clone(weights)
	for k, a := range owner {
		totals[a] += weights[k]
	}
	most := ceiling(totals, multiple)
	for k, a := range owner {
		if totals[a] > most {
			out[k] *= most / totals[a]
		}
	}
	return out
}

// ceiling returns the largest allowed limit c for the weights of accounts; larger weights are reduced to c. The mean of
// the reduced weights is Σ min(total, c), divided by the number of accounts. c may be at most this mean times
// `multiple`. Accounts with weight 0 do not count.
func ceiling(totals []float64, multiple float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(totals), func(t float64) bool { return t == 0 })
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	part := multiple / float64(len(sorted))
	rest := 0.0
	for _, t := range sorted {
		rest += t
	}
	for k, t := range sorted { // the first k weights are above the ceiling
		if left := 1 - part*float64(k); left <= 0 || part*rest >= t*left {
			if k == 0 {
				return t
			}
			return min(sorted[k-1], part*rest/left)
		}
		rest -= t
	}
	return 0
}
