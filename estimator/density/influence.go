package density

import (
	"cmp"
	"slices"

	"github.com/candor-grid/candor/messages"
)

// DefaultInfluence is how many times an even part of the total weight an
// account has at most. With 2, one account in twenty has a tenth of it between
// them at most, less than it takes to be believed (Screen).
const DefaultInfluence = 2

// Influence returns weights for samples of accounts, such that no account has
// more than so many times an even part of their sum, multiple being 1 or above.
// Accounts beyond that have all their samples weighted down alike; the others
// keep theirs. weights nil: 1 each. An account "" is nobody's: each of its
// samples counts as from an account of its own.
func Influence(accounts []messages.Name, weights []float64, multiple float64) ([]float64, error) {
	if weights != nil && len(weights) != len(accounts) {
		return nil, messages.Errorf(messages.Invalid, "accounts: must be one for each of %d samples, there are %d", len(weights), len(accounts))
	}
	if err := checkInfluence(multiple); err != nil {
		return nil, err
	}
	return capped(owners(accounts), weights, multiple), nil
}

func checkInfluence(multiple float64) error {
	if !(multiple >= 1 && multiple <= Largest) {
		return messages.Errorf(messages.Invalid, "influence: must be 1 or more times an even part, is %g", multiple)
	}
	return nil
}

// owners numbers the accounts in the order of their first sample.
func owners(accounts []messages.Name) []int {
	owner, known, next := make([]int, len(accounts)), map[messages.Name]int{}, 0
	for k, a := range accounts {
		number, ok := known[a]
		if !ok {
			number = next
			next++
			if a != "" {
				known[a] = number
			}
		}
		owner[k] = number
	}
	return owner
}

func capped(owner []int, weights []float64, multiple float64) []float64 {
	totals := make([]float64, slices.Max(append([]int{-1}, owner...))+1)
	out := make([]float64, len(owner))
	for k, a := range owner {
		out[k] = 1
		if weights != nil {
			out[k] = weights[k]
		}
		totals[a] += out[k]
	}
	most := ceiling(totals, multiple)
	for k, a := range owner {
		if totals[a] > most {
			out[k] *= most / totals[a]
		}
	}
	return out
}

// ceiling is the largest c with c ≤ part·Σ min(total, c), the part being so
// many times an even one.
func ceiling(totals []float64, multiple float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(totals), func(t float64) bool { return t == 0 })
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	part := multiple / float64(len(sorted))
	rest := 0.0
	for _, t := range sorted {
		rest += t
	}
	for k, t := range sorted { // the k before are above the ceiling
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
