package faults

import "testing"

// On some nodes every task fails as soon as it starts. The test runs one plan with only this fault, and one with all
// faults. No job may fail, and the nodes must get work again later.
func TestBlackHolesCostNoJob(t *testing.T) {
	alone := Default()
	for kind := range alone.Rates {
		alone.Rates[kind] = 0
	}
	alone.Rates[BlackHole] = 6
	more := Default()
	more.Rates[BlackHole] = 6
	seeds := fromEnv(t, "CANDOR_SEEDS", 10)
	for _, plan := range []*Plan{alone, more} {
		for seed := uint64(1); seed <= seeds; seed++ {
			if o := Run(plan, seed, Sound); o.Violation != nil {
				t.Errorf("seed %d: %v", seed, o.Violation)
			}
		}
	}
}
