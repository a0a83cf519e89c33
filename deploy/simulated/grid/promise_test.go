package grid

import (
	"math/rand/v2"
	"testing"

	"github.com/candor-grid/candor/deploy/simulated/core"
	"github.com/candor-grid/candor/deploy/simulated/network"
	"github.com/candor-grid/candor/deploy/simulated/rules"
	"github.com/candor-grid/candor/deploy/simulated/workload"
)

// TestPromisesAreKept runs 60 jobs on 3 slots. The jobs have twice as much work as the slots can do in the time of the
// arrivals. All contracts must be kept. In an earlier version, 4 of 10 jobs were promised slots at times that were also
// promised to other jobs.
func TestPromisesAreKept(t *testing.T) {
	kept, broken := uint64(0), uint64(0)
	for seed := range uint64(3) {
		m, err := rules.Decode("market", []byte("mechanism: contract\nM: 8\nbids: {deadline: {slack: exponential, mean: 4, least: 60}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, seed))
		w := &workload.Workload{Nodes: 3, Parallel: workload.Split, Users: []int64{1, 2, 3}, Groups: []int64{1}}
		for i := range 60 {
			w.Jobs = append(w.Jobs, workload.Job{Number: int64(i + 1), Line: i + 1, Submit: float64(60 * i), Runtime: float64(60 + rng.IntN(540)), Width: 1, User: i % 3})
		}
		g, err := newGrid(&core.Problem{Market: m, Work: w, Bids: m.Bids.Draw(w, seed), Seed: seed}, Config{Network: network.Config{Delay: ms}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := g.run(); err != nil {
			t.Fatal(err)
		}
		for _, p := range g.leader.book.Promises() {
			kept, broken = kept+p.Kept, broken+p.Broken
		}
	}
	if kept < 100 || broken > kept/20 {
		t.Errorf("%d promises were kept, %d broken", kept, broken)
	}
}
