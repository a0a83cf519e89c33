package grid

import (
	"math"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// The commands of owners must have the same effects in a simulated grid as on a real site.
func TestOwners(t *testing.T) {
	for name, c := range map[string]struct {
		owner  Owner
		result float64 // when the owner has the result; 0: never
		finish float64
		fate   core.Fate
	}{
		"waits":                          {Owner{}, 10, 10, core.Completed},
		"exits with 1, and runs again":   {Owner{Exits: 1, Attempts: 2}, 10, 20, core.Completed},
		"exits with 1, and looks":        {Owner{Exits: 1, Attempts: 2, Quick: true}, 10, 10, core.Completed},
		"exits with 1, once and for all": {Owner{Exits: 1, Attempts: 1}, 10, 10, core.Expired},
		"cancels before":                 {Owner{Acts: []Act{{Do: Cancel, When: Started, After: 4}}}, 0, 4, core.Expired},
		"cancels with the result":        {Owner{Acts: []Act{{Do: Cancel, When: Printed}}}, 10, 10, core.Expired},
		"requeues":                       {Owner{Acts: []Act{{Do: Requeue, When: Started, After: 4}}}, 14, 14, core.Completed},
		"requeues with the result":       {Owner{Stays: 5, Acts: []Act{{Do: Requeue, When: Printed}}}, 10, 25, core.Completed},
		"cancels while it keeps a slot":  {Owner{Stays: 20, Acts: []Act{{Do: Cancel, When: Printed, After: 4}}}, 10, 14, core.Expired},
		"begins later":                   {Owner{Begin: 30}, 40, 40, core.Completed},
		"is on hold":                     {Owner{Hold: true, Acts: []Act{{Do: Release, After: 20}}}, 30, 30, core.Completed},
		"keeps its slot":                 {Owner{Stays: 20}, 10, 30, core.Completed},
		"comes from another site":        {Owner{Visits: true}, 10, 10, core.Completed},
		"has one task at a time":         {Owner{Most: 1}, 10, 10, core.Completed},
		"has idle tasks":                 {Owner{Idle: 3}, 10, 10, core.Completed},
		"has two stages":                 {Owner{Stages: 2}, 10, 10, core.Completed},
	} {
		m := byDefault(rules.HighestBid)
		p := &core.Problem{Market: m, Seed: 1, Work: &workload.Workload{Nodes: 1, Users: []int64{1}, Groups: []int64{1}, Jobs: []workload.Job{{Number: 1, Line: 1, Runtime: 10, Width: 1}}},
			Bids: []bids.Bid{{Rate: 1, Length: 10, Budget: 1e5, Deadline: math.Inf(1)}}}
		o, _, err := Run(p, Config{Network: network.Config{Delay: ms}, Owners: map[int]*Owner{0: &c.owner}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at, has := o.Results[0]
		if r := &o.Jobs[0]; has != (c.result > 0) || has && math.Abs(at-c.result) > 1 || math.Abs(r.Finish-c.finish) > 1 || r.Fate != c.fate {
			t.Errorf("%s: result at %v (%v), %+v", name, at, has, *r)
		}
	}
}
