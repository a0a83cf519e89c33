package solve

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/candor-grid/candor/auctioneer"
	"github.com/candor-grid/candor/auctioneer/desk"
	"github.com/candor-grid/candor/auctioneer/intake"
	"github.com/candor-grid/candor/auctioneer/mechanism"
	"github.com/candor-grid/candor/auctioneer/mechanism/posted"
	"github.com/candor-grid/candor/auctioneer/mechanism/registry"
	"github.com/candor-grid/candor/deploy/simulated/bids"
	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/grid"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
	"github.com/candor-grid/candor/messages"
	"github.com/candor-grid/candor/messages/job"
	"github.com/candor-grid/candor/messages/market"
)

// newest is a simple mechanism, as a new developer might write it: the newest job goes first.
type newest struct{ *posted.Desk }

// described returns the traits of the mechanism. The other parts of the system know only these traits.
func described(*market.Market) mechanism.Traits {
	t := posted.Traits("newest-first", "the newest job")
	t.Make = func(m market.Market) (mechanism.Mechanism, error) { return newest{posted.NewDesk(m)}, nil }
	t.Solve = func([]byte) (any, error) { return "the newest job goes first", nil }
	return t
}

func (n newest) Allocate(view *mechanism.View) *mechanism.Allocation {
	a := &mechanism.Allocation{Weights: make([][]float64, len(view.Jobs)), Prices: make([]float64, len(view.Classes)),
		Tariffs: make([]mechanism.Tariff, len(view.Classes))}
	for i := range a.Weights {
		a.Weights[i] = make([]float64, len(view.Classes))
	}
	for k := range view.Classes {
		for i, job := range slices.Backward(view.Jobs) {
			if job.Pending[k] > 0 {
				a.Weights[i][k] = 1
				break
			}
		}
	}
	return a
}

func (newest) Explain(_ *mechanism.View, job *mechanism.Job) mechanism.Explanation {
	return mechanism.Explain(mechanism.WaitingForTurn, "newer jobs go first")
}

// The test adds a new mechanism to the registry, and changes nothing else. The mechanism must run jobs of a site and
// appear in the help, and its parameters and bids must be checked. TestMechanismsAreNamedOnce, in deploy, checks that
// no other file names a mechanism.
func TestANewMechanismIsOneDirectoryAndOneLine(t *testing.T) {
	t.Cleanup(registry.Add(described))
	m := market.Market{Name: "main", Mechanism: "newest-first", Classes: []messages.Name{"cpu"}}
	if err := auctioneer.CheckMarket([]market.Market{m}, 0); err != nil {
		t.Error(err)
	}
	m.Draws = 3
	if err := auctioneer.CheckMarket([]market.Market{m}, 0); err == nil || !strings.Contains(err.Error(), "draws: markets of mechanism newest-first do not use this field") {
		t.Errorf("draws: %v", err)
	}
	if err := intake.Heeds(&job.JobSpec{Rate: 1}, &m, new(desk.Markets)); err == nil || !strings.Contains(err.Error(), "a bid there has budget; leave rate out") {
		t.Errorf("rate: %v", err)
	}
	if rows := strings.Join(registry.Rows(), "\n"); !strings.Contains(rows, "| `newest-first` | the newest job | a posted price") {
		t.Errorf("the table lacks it:\n%s", rows)
	}
	if help := Command().Long; !strings.Contains(help, "\n  newest-first\n") {
		t.Errorf("the help lacks it:\n%s", help)
	}
	var out bytes.Buffer
	if err := run([]string{"newest-first"}, strings.NewReader("{}"), &out, false); err != nil || !strings.Contains(out.String(), "newest job") {
		t.Errorf("solve: %s %v", out.String(), err)
	}

	w := &workload.Workload{Nodes: 1, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{1}}
	p := &core.Problem{Market: &rules.Market{Name: "main", Mechanism: "newest-first", Price: 2.0}, Work: w, Seed: 1}
	for i := range 3 { // the third job comes while the second one waits
		w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(i), Runtime: 60, Width: 1, User: i})
		p.Bids = append(p.Bids, bids.Bid{Length: 60, Budget: 1000})
	}
	o, _, err := grid.Run(p, grid.Config{Network: network.Config{Delay: messages.Duration(1e6)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, from := range []float64{0, 120, 60} {
		if j := o.Jobs[i]; j.Fate != core.Completed || j.Start < from || j.Start > from+5 || j.Paid < 120*messages.Credit || j.Paid > 125*messages.Credit {
			t.Errorf("job %d: fate %v from %v s, paid %v; want a start about %v s, and 120 credits or little more", i+1, j.Fate, j.Start, j.Paid, from)
		}
	}
}
