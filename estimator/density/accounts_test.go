package density

import "github.com/candor-grid/candor/messages"

// Screen reports which samples the screening keeps. Before that, it bounds the weight of each account. The bound is a
// multiple of the weight that each account would have if all accounts had equal weights. The argument `influence` is
// this multiple.
func Screen(d *Data, accounts []messages.Name, influence float64) (keep []bool, err error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if len(accounts) != d.Len() {
		return nil, messages.Errorf(messages.Invalid, "accounts: must be one for each of %d samples, there are %d", d.Len(), len(accounts))
	}
	weights, err := Influence(accounts, d.Weights, influence)
	if err != nil {
		return nil, err
	}
	count := 0.0
	for k := range d.Len() {
		count += d.Weight(k)
	}
	return screen(d, weights, count), nil
}

// Influence returns weights that are cut, so that no account has more than a given multiple of the mean weight of all
// accounts. A sample whose account is "" counts as the only sample of an account.
func Influence(accounts []messages.Name, weights []float64, multiple float64) ([]float64, error) {
	if weights == nil {
		weights = ones(len(accounts))
	}
	if len(weights) != len(accounts) {
		return nil, messages.Errorf(messages.Invalid, "accounts: must be one for each of %d samples, there are %d", len(weights), len(accounts))
	}
	return capped(owners(accounts), weights, multiple), nil
}

// owners returns a number for each sample's account, in the order of the accounts' first samples.
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
