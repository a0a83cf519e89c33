package faults

import "testing"

// The liar must get no more credits than the limit that each site gave it. In some run it must get at least 90 % of the
// limit, and some of its lies must cause disputes. Otherwise the lies would be too weak to test the limit.
func TestALiarHasItsTermsAndNoMore(t *testing.T) {
	plan := controlPlan(map[string]float64{Lie: 6})
	most, disputes := 0.0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		w := newWorld(plan, plan.draw(seed), seed, Sound)
		calm := epoch.Add(plan.Duration + 80*second)
		for _, e := range plan.draw(seed) {
			w.strike(e)
			calm = max(calm, epoch.Add(e.At+e.For))
		}
		w.run(calm)
		if w.failed != nil {
			t.Fatalf("seed %d: %v", seed, w.failed)
		}
		for _, s := range w.sites {
			most = max(most, s.liar.exposed.Float())
			if s.liar.disputed {
				disputes++
			}
		}
	}
	t.Logf("at most %.2f credits, %d disputes", most, disputes)
	if most < 0.9*(southLimit).Float() || disputes < 5 {
		t.Errorf("the liar came to %.2f credits at most, and to %d disputes", most, disputes)
	}
}
