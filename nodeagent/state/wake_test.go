package state_test

import (
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/candor-grid/candor/messages"
	agentmsg "github.com/candor-grid/candor/messages/agent"
)

// TestWakeInProportion publishes a vector to a thousand idle agents, and counts the claims that they make. There must
// be enough claims for the work, and not many more.
func TestWakeInProportion(t *testing.T) {
	const agents = 1000
	for _, c := range []struct{ pending, least, most int }{
		{pending: 1, least: 0, most: 20}, // 6 claims are expected
		{pending: 0, least: 0, most: 0},
		{pending: 100, least: 100, most: 200}, // 123 claims are expected
		{pending: 1000, least: 1000, most: 1500},
	} {
		none := 0
		for seed := range uint64(20) {
			claims := 0
			for i := range uint64(agents) {
				a := newAgent(t, 1, seed*agents+i)
				a.join()
				a.vector(1, c.pending, agents)
				if r := a.act().Request; r != nil {
					claims += slotsOf(r.Exchange)
				}
			}
			if claims < c.least || claims > c.most {
				t.Errorf("%d claims for %d tasks, want %d to %d", claims, c.pending, c.least, c.most)
			}
			if claims == 0 {
				none++
			}
		}
		if c.pending == 1 && none > 2 { // the probability of no claim is e⁻⁶, so 0.05 of 20 cases are expected
			t.Errorf("nobody claimed a lone task in %d of 20 cases", none)
		}
	}
}

// TestOneAgentOfManySlots checks that an agent with many slots does not claim more than the pending work.
func TestOneAgentOfManySlots(t *testing.T) {
	a := newAgent(t, 64, 3)
	a.join()
	a.vector(1, 5, 1) // 5 tasks wait, but the leader counts only one idle slot
	if e := a.request().Exchange; slotsOf(e) > 5 || slotsOf(e) == 0 {
		t.Fatalf("claimed for %d slots, 5 tasks are pending", slotsOf(e))
	}
}

// TestDispatchFollowsWeights claims 100,000 tasks, and compares how often each job was claimed with its weight.
func TestDispatchFollowsWeights(t *testing.T) {
	const rounds, slots = 1000, 100
	a := newAgent(t, slots, 11)
	a.join()
	var jobs []agentmsg.JobWeight
	total := float32(0)
	for i := range 50 {
		jobs = append(jobs, agentmsg.JobWeight{Job: messages.JobID(i + 1), Weight: float32(i%7) + 0.5})
		total += jobs[i].Weight
	}
	counts := make([]float64, len(jobs))
	for round := range rounds {
		a.take(whole(1, uint64(round+1), 1_000_000, slots, jobs...))
		r := a.request()
		for _, c := range r.Exchange.Claims {
			counts[c.Job-1] += float64(c.Slots)
		}
		a.Answered(a.now, r.ID, grants(r, 0, 0))
	}
	expected := make([]float64, len(jobs))
	for i, j := range jobs {
		expected[i] = rounds * slots * float64(j.Weight/total)
	}
	statistic := stat.ChiSquare(counts, expected)
	if limit := (distuv.ChiSquared{K: float64(len(jobs) - 1)}).Quantile(0.999); statistic > limit {
		t.Errorf("chi-squared is %.1f, above %.1f", statistic, limit)
	}
}
