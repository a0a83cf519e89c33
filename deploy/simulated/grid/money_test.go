package grid

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
)

// TestMoneyBeyondTheBank runs a study whose budgets are too large for a bank, and the same study with all money divided
// by 1,024. The payments must differ by exactly this factor.
func TestMoneyBeyondTheBank(t *testing.T) {
	for _, mechanism := range []string{rules.HighestBid, rules.Backfill, rules.Contract} {
		rapid.Check(t, func(t *rapid.T) {
			small := study(t, mechanism)
			for i := range small.Bids {
				small.Bids[i].Budget += 2e9
			}
			large := in(1./1024, small)
			a, _, err := Run(small, Config{})
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := Run(large, Config{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range a.Jobs {
				x, y := a.Jobs[i], b.Jobs[i]
				if x.Paid *= 1024; x.Fate != y.Fate || x.Finish != y.Finish || x.Paid != y.Paid {
					t.Fatalf("job %d: %+v, with 1,024 times the money %+v", i, x, y)
				}
			}
			if n := len(b.Notes); n == 0 || !strings.Contains(b.Notes[n-1], "stands for 1024") {
				t.Fatalf("notes %q", b.Notes)
			}
		})
	}
}

// TestPartsAreHeldInFull divides a budget into parts that are each rounded up to a microcredit. The bank must hold
// their sum, which can be more than the budget.
func TestPartsAreHeldInFull(t *testing.T) {
	for _, mechanism := range []string{rules.Deadline, rules.BatchQueue} {
		w := &workload.Workload{Nodes: 8, Parallel: workload.Split, Users: []int64{1}, Groups: []int64{1},
			Jobs: []workload.Job{{Number: 1, Runtime: 5, Width: 7}}}
		m := byDefault(mechanism)
		b := m.Bids.Draw(w, 1)
		b[0].Budget = 1000.000001
		for range 7 {
			if o, _, err := Run(&core.Problem{Market: m, Work: w, Bids: b}, Config{}); err != nil || o.Jobs[0].Fate == core.Refused {
				t.Errorf("%s, budget %v: %v", mechanism, b[0].Budget, err)
			}
			b[0].Budget += 1e-6
		}
	}
}

func TestTooMuchMoney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := study(t, rules.HighestBid)
		p.Bids[0].Budget = 1e19
		_, _, err := Run(p, Config{})
		if messages.KindOf(err) != messages.Invalid || !strings.Contains(err.Error(), "choose a smaller unit of value") {
			t.Fatal(err)
		}
	})
}
